// The models of tests/zoo/golden (made by transformers, tools/golden/models.py), one small configuration an architecture:
// what they answer, and what their exports with dynamic batch and length answer on other sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "calque/export/export.h"
#include "calque/file/safetensors.h"
#include "calque/generate/model_generate.h"
#include "calque/hub/from_pretrained.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::models_test {
namespace {

using Leaves = std::vector<std::pair<std::string, Tensor>>;  // path and tensor
struct Case {
  std::string attention;
  Leaves in, out;
};

std::filesystem::path golden() { return std::filesystem::path(test::source_folder()) / "tests/zoo/golden"; }

std::vector<std::string> folders() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(golden())) out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::map<std::string, Case> cases_of(const std::filesystem::path& folder) {
  std::map<std::string, Case> out;
  const SafetensorsFile file = SafetensorsFile::open((folder / "cases.safetensors").string());
  for (const std::string& full : file.names()) {
    const size_t attention = full.find('/'), part = full.find('/', attention + 1), name = full.find('/', part + 1);
    Case& one = out[full.substr(0, attention)];
    one.attention = full.substr(attention + 1, part - attention - 1);
    (full.substr(part + 1, name - part - 1) == "in" ? one.in : one.out)
        .emplace_back(full.substr(name + 1), file.tensor(full).clone());
  }
  return out;
}

// "past_key_values.0.1" and its kin into tuples.
Value tree(const Leaves& leaves) {
  if (leaves.size() == 1 && leaves[0].first.empty()) return leaves[0].second;
  std::map<int, Leaves> parts;
  for (const auto& [path, tensor] : leaves) {
    const size_t dot = std::min(path.find('.'), path.size());
    parts[std::stoi(path.substr(0, dot))].emplace_back(dot < path.size() ? path.substr(dot + 1) : "", tensor);
  }
  Values items;
  for (const auto& [index, part] : parts) items.push_back(tree(part));
  return tuple(std::move(items));
}

ModelInputs inputs_of(const Leaves& leaves) {
  std::map<std::string, Leaves> by_name;
  for (const auto& [path, tensor] : leaves) {
    const size_t dot = std::min(path.find('.'), path.size());
    by_name[path.substr(0, dot)].emplace_back(dot < path.size() ? path.substr(dot + 1) : "", tensor);
  }
  ModelInputs inputs;
  for (const auto& [name, part] : by_name) {
    const Value value = tree(part);
    const bool flag = value.is_tensor() && value.to_tensor().dim() == 0 && value.to_tensor().dtype() == DType::bool_;
    inputs.set(name, flag ? Value(value.to_tensor().item_as<bool>()) : value);
  }
  return inputs;
}

void flatten(const std::string& name, const Value& value, Leaves& out) {
  if (value.is_tensor()) out.emplace_back(name, value.to_tensor());
  if (value.kind() == Value::Kind::tuple || value.kind() == Value::Kind::list)
    for (size_t i = 0; i < value.to_items().size(); ++i) flatten(name + "." + std::to_string(i), value.to_items()[i], out);
  if (value.kind() == Value::Kind::dict)
    for (const auto& [key, item] : value.to_dict().items) flatten(name + "." + key.to_string(), item, out);
}

Leaves leaves_of(const ModelOutput& output) {
  Leaves out;
  for (const auto& [name, value] : output.items()) flatten(name, value, out);
  return out;
}

void expect_same(const Leaves& found, const Leaves& expected) {
  const auto names = [](const Leaves& leaves) {
    std::set<std::string> out;
    for (const auto& [name, tensor] : leaves) out.insert(name);
    return out;
  };
  EXPECT_EQ(names(found), names(expected));
  for (const auto& [name, tensor] : expected) {
    const auto at =
        std::find_if(found.begin(), found.end(), [&, &name = name](const auto& item) { return item.first == name; });
    if (at == found.end()) continue;
    ASSERT_EQ(str(at->second.sizes()), str(tensor.sizes())) << name;
    ASSERT_EQ(at->second.dtype(), tensor.dtype()) << name;
    if (tensor.numel() == 0) continue;
    const double worst = (at->second - tensor).abs().max().item_as<double>();
    EXPECT_LE(worst, 1e-5 * std::max(1.0, tensor.abs().max().item_as<double>())) << name;
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class GoldenModel : public testing::TestWithParam<std::string> {
 protected:
  const std::filesystem::path folder = golden() / GetParam();
  const std::map<std::string, Case> cases = cases_of(folder);
  const GradModeScope no_grad{false};

  std::shared_ptr<PretrainedModel> load(const std::string& attention) const {
    LoadOptions options;
    options.attention = attention;
    return from_pretrained(folder, options);
  }
};

TEST_P(GoldenModel, answers_as_transformers) {
  for (const auto& [name, one] : cases) {
    SCOPED_TRACE(name);
    const std::shared_ptr<PretrainedModel> model = load(one.attention);
    expect_same(leaves_of((*model)(inputs_of(one.in))), one.out);
  }
}

TEST_P(GoldenModel, eager_and_fused_attention_agree) {
  for (const auto& [name, one] : cases) {
    if (one.attention != "sdpa") continue;
    SCOPED_TRACE(name);
    expect_same(leaves_of((*load("eager"))(inputs_of(one.in))), one.out);
  }
}

// Rows and positions again, so that there are three rows of nine tokens where there were two of seven.
TEST_P(GoldenModel, exports_with_dynamic_sizes) {
  const std::shared_ptr<PretrainedModel> model = from_pretrained(folder);
  const Dim batch("batch", 1, 64), length("length", 2, 16), target("target", 2, 16);
  Kwargs small, large;
  DynamicShapes::Entries shapes;
  ModelInputs others;
  const Tensor rows = arange(3).remainder(2), positions = arange(9).remainder(7);
  for (const auto& [name, value] : cases.begin()->second.in) {
    if (value.dim() == 0 || name.find("label") != std::string::npos || name.find("_positions") != std::string::npos)
      continue;
    DynamicShapes::Entries entries{{Value(0), batch}};
    Tensor larger = value.index_select(0, rows);
    for (int64_t d = 1; d < value.dim(); ++d)
      if (value.size(d) == 7) {
        entries.emplace_back(Value(d), name.starts_with("decoder_") ? target : length);
        larger = larger.index_select(d, positions);
      }
    small.emplace_back(name, value);
    large.emplace_back(name, larger);
    shapes.emplace_back(Value(name), DynamicShapes::dict(std::move(entries)));
    others.set(name, larger);
  }
  const ExportedProgram program =
      export_program(*model, {}, small, {.dynamic_shapes = DynamicShapes::dict(std::move(shapes))});
  expect_same(leaves_of(ModelOutput::from_value(program.call({}, large))), leaves_of((*model)(others)));
}

// A table of sines ends somewhere; positions do not.
TEST(Models, sinusoidal_positions_have_no_longest_text) {
  const GradModeScope no_grad(false);
  for (const char* name : {"m2m_100", "xglm"}) {
    SCOPED_TRACE(name);
    const auto model = from_pretrained(std::filesystem::path(test::source_folder()) / "tests/zoo/golden" / name);
    const int64_t longer = model->config().integer("max_position_embeddings") + 20;
    const Tensor ids = (arange(longer) * 7).remainder(40) + 5;
    const auto texts = [&](int64_t length) {
      Kwargs in{{"input_ids", ids.narrow(0, 0, length).expand({2, length})}};
      if (model->is_encoder_decoder()) in.emplace_back("decoder_input_ids", in[0].second);
      return in;
    };
    DynamicShapes::Entries shapes;
    for (const auto& [argument, value] : texts(7)) {
      const Dim length(argument == "input_ids" ? "length" : "target", 2, 1000);
      shapes.emplace_back(Value(argument), DynamicShapes::dict({{Value(1), length}}));
    }
    const ExportedProgram program =
        export_program(*model, {}, texts(7), {.dynamic_shapes = DynamicShapes::dict(std::move(shapes))});
    ModelInputs inputs;
    for (const auto& [argument, value] : texts(longer)) inputs.set(argument, value.to_tensor());
    expect_same(leaves_of(ModelOutput::from_value(program.call({}, texts(longer)))), leaves_of((*model)(inputs)));
  }
}

std::filesystem::path golden_model(const char* name) { return golden() / name; }

TEST(Models, a_base_model_opens_the_checkpoint_of_one_with_a_head) {
  const std::pair<const char*, const char*> pairs[] = {
      {"gpt_neox", "GPTNeoXModel"}, {"falcon", "FalconModel"}, {"gemma3", "Gemma3Model"}, {"xlm", "XLMModel"}};
  for (const auto& [name, base] : pairs) {
    const LoadedModel loaded = load_pretrained(golden_model(name), {.model_class = base});
    EXPECT_TRUE(loaded.report.missing_keys.empty()) << base;
  }
}

TEST(Models, the_text_part_of_gemma3_opens_by_itself) {
  const GradModeScope no_grad(false);
  const LoadedModel text = load_pretrained(golden_model("gemma3"), {.model_class = "Gemma3ForCausalLM"});
  EXPECT_TRUE(text.report.missing_keys.empty());
  const auto whole = from_pretrained(golden_model("gemma3"));
  const ModelInputs in{{arg::input_ids, tensor_of<int64_t>({3, 9, 4, 8, 5}, {1, 5})}};
  EXPECT_TRUE(equal((*text.model)(in).logits(), (*whole)(in).logits()));
}

TEST(Models, gemma3_counts_the_tokens_that_stand_for_pictures) {
  const GradModeScope no_grad(false);
  const auto model = from_pretrained(golden_model("gemma3"));
  const int64_t picture = model->config().integer("image_token_index");
  ModelInputs in{{arg::input_ids, tensor_of<int64_t>({3, picture, picture, 8}, {1, 4})}};
  in.set("pixel_values", ones({1, 3, 12, 12}));
  EXPECT_THAT(test::error_of([&] { (*model)(in); }),
              testing::HasSubstr("2 tokens that stand for pictures, expected 4: the pictures in pixel_values have 4 each"));
}

TEST(Models, experts_used_unequally_add_to_the_loss) {
  const GradModeScope no_grad(false);
  const auto model = from_pretrained(golden_model("mixtral"));
  const Tensor ids = tensor_of<int64_t>({3, 9, 4, 8, 5, 7}, {2, 3});
  const ModelOutput plain = (*model)({{arg::input_ids, ids}, {arg::labels, ids}});
  EXPECT_FALSE(plain.has("router_logits"));
  ModelInputs in{{arg::input_ids, ids}, {arg::labels, ids}};
  in.set("output_router_logits", true);
  const ModelOutput routed = (*model)(in);
  EXPECT_EQ(std::ssize(routed.tensors("router_logits")), model->config().integer("num_hidden_layers"));
  const double more = routed["aux_loss"].item_as<double>() * model->config().number("router_aux_loss_coef");
  EXPECT_NEAR(routed.loss().item_as<double>(), plain.loss().item_as<double>() + more, 1e-6);
  in.set(arg::attention_mask, ones({2, 1, 3, 3}));
  EXPECT_THAT(test::error_of([&] { (*model)(in); }), testing::HasSubstr("it says which tokens count in aux_loss"));
}

TEST(Models, what_fills_words_in_does_not_go_on) {
  for (const char* name : {"distilbert", "deberta"}) {
    const auto model = from_pretrained(golden_model(name));
    const ModelInputs in{{arg::input_ids, tensor_of<int64_t>({3, 9}, {1, 2})}};
    EXPECT_THAT(test::error_of([&] { generate(*model, in, {}); }), testing::HasSubstr("does not go on from a text")) << name;
  }
}

// Where transformers' own views of no tokens are ambiguous, the sizes are known here.
TEST(Models, texts_of_no_tokens_and_of_one) {
  for (const char* name : {"llama", "gpt2"}) {
    const auto model = from_pretrained(std::filesystem::path(test::source_folder()) / "tests/zoo/golden" / name);
    for (const int64_t length : {0, 1}) {
      const Tensor hidden = model->base_model()({{arg::input_ids, ones({2, length}, DType::int64)}})["last_hidden_state"];
      EXPECT_EQ(hidden.size(0), 2) << name;
      EXPECT_EQ(hidden.size(1), length) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, GoldenModel, testing::ValuesIn(folders()), test_name);

}  // namespace
}  // namespace calque::models_test
