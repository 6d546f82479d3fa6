// HFTracer on models of the zoo: what transformers 4.40's utils/fx.py promises, and every class traced and run at other sizes.
#include "calque/hub/hf_tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "calque/base/warning.h"
#include "calque/graph/to_folder.h"
#include "calque/hub/dummy_inputs.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/registry.h"
#include "calque/hub/trace_check.h"
#include "calque/nn/convolution.h"
#include "calque/nn/linear.h"
#include "calque/nn/loss.h"
#include "calque/nn/typed.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/getitem.h"
#include "calque/op/index.h"
#include "calque/op/tree.h"
#include "calque/sym/shape_env.h"
#include "hub/hub_support.h"
#include "support/error_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::hf_tracer_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using test::error_of;
using Names = std::vector<std::string>;

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(test::source_folder()) / "tests/zoo/golden" / name;
}

std::shared_ptr<PretrainedModel> made(const std::string& type, const std::string& model_class = "") {
  Config config = Config::from_file(golden(type));
  config.set("problem_type", "single_label_classification");
  auto model = from_config(config, {.model_class = model_class.empty() ? config.architectures().at(0) : model_class});
  model->eval();
  return model;
}

Names placeholders(const Graph& graph) {
  Names out;
  for (const Node* n : graph.nodes())
    if (n->kind() == NodeKind::placeholder) out.push_back(n->target().text());
  return out;
}

Names targets(const Graph& graph, NodeKind kind) {
  Names out;
  for (const Node* n : graph.nodes())
    if (n->kind() == kind) out.push_back(n->target().text());
  return out;
}

std::string listed(const Graph& graph) {
  std::string out;
  for (const Node* n : graph.nodes()) out += n->str() + "\n";
  return out;
}

std::vector<int64_t> sizes_of(const DummyInput& dummy) {
  const Tensor t = dummy.value.to_tensor();
  return {t.sizes().begin(), t.sizes().end()};
}

DummyInput dummy(PretrainedModel& model, DummyInputs& inputs, const std::string& name, const Names& all = {}) {
  (void)model;
  return inputs.make(name, all.empty() ? Names{name} : all).at(0);
}

constexpr ExampleSizes other_sizes{.batch = 3, .length = 9, .decoder_length = 6, .choices = 4};

void expect_equal_graph(PretrainedModel& model, const Names& names) {
  SCOPED_TRACE(model.class_name() + ::testing::PrintToString(names));
  const auto traced = symbolic_trace(model, names);
  traced->graph().lint();
  const TraceCheck check = check_trace(model, *traced, sample_inputs(model, names, other_sizes));
  EXPECT_THAT(check.differences, ElementsAre()) << model.class_name() << ::testing::PrintToString(names);
  EXPECT_FALSE(check.outputs.empty()) << model.class_name();
}

// ---- every class ------------------------------------------------------------------------------------------------------

Names golden_folders() {
  Names out;
  for (const auto& entry : std::filesystem::directory_iterator(golden(""))) out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

bool takes_labels(PretrainedModel& model) {
  // Its dummy labels have the sizes of transformers 4.40's; those of a run are pictures.
  if (model.class_name().ends_with("ForSemanticSegmentation")) return false;
  try {
    // transformers' dummy labels of letters are no whole numbers: a graph takes them, a loss does not.
    if (model.class_name().ends_with("ForCTC")) return false;
    // LXMERT's are of the objects, and no tensor.
    if (model.class_name() == "LxmertForPreTraining") return false;
    DummyInputs(model).make("labels", {"labels"});
    return find_argument(model.arguments(), "labels") || find_argument(model.arguments(), "start_positions");
  } catch (const UserError&) {
    return false;
  }
}

bool gives_a_cache(PretrainedModel& model) {
  try {
    DummyInputs(model).make("past_key_values", {"past_key_values"});
    return model.takes(arg::past_key_values);
  } catch (const UserError&) {
    return false;
  }
}

// At least three sets of inputs of a class that reads texts: what it is called with, without masks, with embeddings in the place of ids, and
// with labels, types, positions or keys and values.
std::vector<Names> input_sets(PretrainedModel& model) {
  Names usual, bare;
  for (const auto& [name, value] : model.example_inputs().to_kwargs(model.arguments())) {
    if (name == "mc_token_ids") continue;  // rows of choices; the dummy inputs of the class are plain rows
    usual.push_back(name);
    if (name.find("mask") == std::string::npos) bare.push_back(name);
  }
  std::vector<Names> out = {usual};
  if (bare != usual) out.push_back(bare);
  const auto is_usual = [&](const char* name) { return std::find(usual.begin(), usual.end(), name) != usual.end(); };
  const auto embedded = [&](const char* ids, const char* embeddings) {
    if (!is_usual(ids) || !find_argument(model.arguments(), embeddings)) return;
    // Of an encoder-decoder the end of the text is looked for in the ids, and so are the decoder's ids made.
    if (model.is_encoder_decoder() && model.class_name().ends_with("ForSequenceClassification")) return;
    Names all = usual;
    std::replace(all.begin(), all.end(), std::string(ids), std::string(embeddings));
    if (!is_usual("decoder_input_ids") && find_argument(model.arguments(), "decoder_input_ids"))
      all.emplace_back("decoder_input_ids");
    out.push_back(all);
  };
  embedded("input_ids", "inputs_embeds");
  embedded("decoder_input_ids", "decoder_inputs_embeds");
  const auto with = [&](std::initializer_list<const char*> more) {
    Names all = usual;
    for (const char* name : more)
      if (find_argument(model.arguments(), name) && !is_usual(name)) all.emplace_back(name);
    if (all.size() > usual.size()) out.push_back(all);
  };
  if (is_usual("input_values")) with({"attention_mask"});
  if (takes_labels(model)) with({"labels", "start_positions", "end_positions"});
  with({"token_type_ids"});
  with({"position_ids"});
  with({"decoder_attention_mask"});
  return out;
}

class EveryClassTraced : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Zoo, EveryClassTraced, ::testing::ValuesIn(golden_folders()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST_P(EveryClassTraced, H176_H179_H209_graphs_equal_the_model_at_other_sizes) {
  for (const ModelClass& one : model_registry().find(Config::from_file(golden(GetParam())).model_type())->classes) {
    const auto model = made(GetParam(), one.name);
    const std::vector<Names> sets = input_sets(*model);
    const std::string main = model->main_input_name();
    EXPECT_GE(sets.size(), main == "pixel_values"                               ? 1U
                           : main == "input_values" || main == "input_features" ? 2U
                                                                                : 3U)
        << one.name;
    for (const Names& names : sets) expect_equal_graph(*model, names);
  }
}

TEST_P(EveryClassTraced, H180_H199_keys_and_values_as_inputs_of_every_decoder) {
  for (const ModelClass& one : model_registry().find(Config::from_file(golden(GetParam())).model_type())->classes) {
    const auto model = made(GetParam(), one.name);
    if (!gives_a_cache(*model)) continue;
    model->config().set("use_cache", true);
    Names names;
    for (const auto& [name, value] : model->example_inputs().to_kwargs(model->arguments()))
      if (name != "mc_token_ids") names.push_back(name);
    names.emplace_back("past_key_values");
    expect_equal_graph(*model, names);
  }
}

// ---- caches -------------------------------------------------------------------------------------------------------------

TEST(HFTracer, H180_a_graph_takes_an_empty_cache_and_a_longer_one) {
  for (const char* type : {"llama", "opt"}) {
    const auto model = made(type);
    model->config().set("use_cache", true);
    const Names names = {"input_ids", "attention_mask", "past_key_values"};
    const auto traced = symbolic_trace(*model, names);
    for (const int64_t past : {0, 9}) {
      Kwargs inputs = sample_inputs(*model, names, other_sizes);
      for (auto& [name, value] : inputs) {
        if (name == "attention_mask") value = ones({other_sizes.batch, other_sizes.length + past}, DType::int64);
        if (name == "past_key_values")
          value = tree_map_tensors(
              [&](const Tensor& t) -> Value {
                return full({t.size(0), t.size(1), past, t.size(3)}, 0.25);
              },
              value);
      }
      EXPECT_THAT(check_trace(*model, *traced, inputs).differences, ElementsAre()) << type << " " << past;
    }
  }
}

TEST(HFTracer, H199_every_decoder_has_a_cache) {
  for (const char* type : {"llama", "opt", "gpt2", "gptj", "gpt_neo", "bloom", "xglm", "cohere", "bart", "t5"})
    EXPECT_TRUE(gives_a_cache(*made(type))) << type;
}

// ---- what is named ------------------------------------------------------------------------------------------------------

TEST(HFTracer, H181_inputs_are_the_models_dummy_inputs_where_none_are_named) {
  const auto inputs = [](const char* type) { return placeholders(symbolic_trace(*made(type), std::nullopt)->graph()); };
  EXPECT_THAT(inputs("bert"), ElementsAre("input_ids"));
  EXPECT_THAT(inputs("bart"), ElementsAre("input_ids", "attention_mask"));
  EXPECT_THAT(made("marian")->dummy_input_names(), ElementsAre("input_ids", "attention_mask", "decoder_input_ids"));
  EXPECT_THAT(inputs("t5"), ElementsAre("input_ids", "decoder_input_ids", "decoder_attention_mask"));
}

TEST(HFTracer, H182_a_graph_knows_its_model_and_is_traced_again) {
  const auto model = made("bert", "BertForMaskedLM");
  const auto traced = symbolic_trace(*model, {{"input_ids"}});
  EXPECT_EQ(traced->class_for_deserialization, "BertForMaskedLM");
  EXPECT_EQ(traced->config.text("model_type"), "bert");
  EXPECT_EQ(traced->device, Device());
  HFTracer tracer;
  const Graph again = tracer.trace(*traced, HFTraceInputs{});
  EXPECT_EQ(placeholders(again), placeholders(traced->graph()));
  EXPECT_EQ(targets(again, NodeKind::call_module), targets(traced->graph(), NodeKind::call_module));
}

TEST(HFTracer, H183_a_wrong_name_lists_the_names_that_there_are) {
  const auto model = made("gpt2");
  const std::string error = error_of([&] { symbolic_trace(*model, {{"input_ids", "pixels"}}); });
  EXPECT_THAT(error, AllOf(HasSubstr("input_ids, pixels"), HasSubstr("expected a subset of"), HasSubstr("token_type_ids")));
  const Kwargs frozen = get_concrete_args(*model, {"input_ids"});
  EXPECT_EQ(frozen.size(), model->argument_names().size() - 1);
  for (const auto& [name, value] : frozen) EXPECT_TRUE(value.is_none()) << name;
}

struct Unregistered : ModelOf<Unregistered> {
  static constexpr const char* torch_type = "elsewhere.Unregistered";
  static constexpr ModelArgument forward_arguments[] = {arg::input_ids, arg::labels};
  explicit Unregistered(const Config& config) : ModelOf(config) {}
  ModelOutput forward(const ModelInputs& in) override {
    ModelOutput out;
    out.set("logits", in[arg::input_ids] * 2);
    return out;
  }
};

TEST(HFTracer, H184_an_unknown_class_is_refused_with_the_list_unless_unchecked) {
  Unregistered model{made("bert")->config()};
  EXPECT_THAT(error_of([&] { symbolic_trace(model, {{"input_ids"}}); }),
              AllOf(HasSubstr("Unregistered is not supported"), HasSubstr("AlbertForMaskedLM, "), HasSubstr("BertModel")));
  // The names are looked at before.
  EXPECT_THAT(error_of([&] { symbolic_trace(model, {{"pixels"}}); }), HasSubstr("expected a subset of"));
  const auto traced = symbolic_trace(model, {{"input_ids"}}, {.disable_check = true});
  EXPECT_THAT(placeholders(traced->graph()), ElementsAre("input_ids"));
}

TEST(HFTracer, H185_the_supported_classes_are_the_registrys) {
  const Names all = supported_model_class_names();
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  // The classes of transformers' list whose architectures are here are all among them.
  std::ifstream table(std::filesystem::path(test::source_folder()) / "tests/peers/zoo.tsv");
  std::string line;
  std::getline(table, line);
  size_t found = 0;
  while (std::getline(table, line)) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (!model_registry().find(line.substr(0, first))) continue;
    const std::string name = line.substr(second + 1, line.find('\t', second + 1) - second - 1);
    EXPECT_TRUE(std::ranges::binary_search(all, name)) << name;
    ++found;
  }
  EXPECT_GE(found, 152U);
  EXPECT_THAT(supported_model_class_names({"next-sentence-prediction"}),
              ElementsAre("BertForNextSentencePrediction", "MegatronBertForNextSentencePrediction",
                          "MobileBertForNextSentencePrediction", "NezhaForNextSentencePrediction"));
}

// ---- dummy inputs -------------------------------------------------------------------------------------------------------

TEST(HFTracer, H186_sizes_are_drawn_and_are_no_numbers_of_the_configuration) {
  const auto model = made("bert");
  const std::vector<int64_t> taken = numbers_of(model->config());
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const DummyInputs inputs(*model, seed);
    for (const DummySize& size : {inputs.batch, inputs.length, inputs.decoder_length}) {
      EXPECT_GE(size.size, 10);
      EXPECT_LE(size.size, 20);
      EXPECT_EQ(std::ranges::count(taken, size.size), 0);
    }
    EXPECT_NE(inputs.batch.size, inputs.length.size);
    EXPECT_NE(inputs.batch.size, inputs.length.size + DummyInputs::cache_length);
    EXPECT_NE(inputs.length.size, inputs.decoder_length.size);
    EXPECT_EQ(inputs.batch.size, DummyInputs(*model, seed).batch.size);
  }
  uint64_t state = 1;
  EXPECT_EQ(draw_size(state, 10, 12, {10, 11, 12, 13}), 14);
  const auto choices = made("bert", "BertForMultipleChoice");
  DummyInputs inputs(*choices);
  const std::vector<int64_t> sizes = sizes_of(dummy(*choices, inputs, "input_ids"));
  ASSERT_EQ(sizes.size(), 3U);
  EXPECT_GE(sizes[1], 2);
  EXPECT_LE(sizes[1], 5);
}

struct Scaled : Typed<Scaled> {
  static constexpr const char* forward_arguments[] = {"x", "scale"};
  Child<Linear> up = child<Linear>("up", 4, 8);
  Tensor forward(const Tensor& x, const Tensor& scale) { return up(x) * scale; }
};

TEST(HFTracer, H187_a_module_that_is_no_model_needs_dummy_inputs) {
  Scaled module;
  EXPECT_THAT(error_of([&] { HFTracer().trace(module, HFTraceInputs{}); }),
              AllOf(HasSubstr("the input x of Scaled"), HasSubstr("dummy_inputs")));
  HFTracer tracer;
  const Graph graph = tracer.trace(module, {.dummy_inputs = {{"x", zeros({3, 4})}, {"scale", zeros({3, 1})}}});
  EXPECT_THAT(placeholders(graph), ElementsAre("x", "scale"));
}

TEST(HFTracer, H188_with_dummy_inputs_the_rest_keeps_its_defaults) {
  const auto model = made("bert");
  HFTracer tracer;
  const Graph graph = tracer.trace(*model, {.dummy_inputs = {{"input_ids", zeros({3, 5}, DType::int64)}}});
  EXPECT_THAT(placeholders(graph), ElementsAre("input_ids"));
  Scaled module;
  EXPECT_THAT(error_of([&] {
                HFTracer().trace(module, {.dummy_inputs = {{"x", zeros({3, 4})}}});
              }),
              AllOf(HasSubstr("argument scale"), HasSubstr("no default")));
}

TEST(HFTracer, H189_the_graph_has_the_inputs_and_nothing_of_frozen_arguments) {
  const auto traced = symbolic_trace(*made("bert"), {{"attention_mask", "input_ids"}});
  EXPECT_THAT(placeholders(traced->graph()), ElementsAre("input_ids", "attention_mask"));
  for (const Node* n : traced->graph().nodes()) {
    if (n->kind() == NodeKind::placeholder) {
      EXPECT_TRUE(n->args().empty());
    } else if (n->kind() == NodeKind::output) {
      EXPECT_EQ(n->type(), "");
    }
  }
  EXPECT_THAT(listed(traced->graph()), Not(HasSubstr("_assert")));
  EXPECT_THAT(traced->code(), HasSubstr("def forward(self, input_ids : torch.Tensor, attention_mask : torch.Tensor):"));
}

std::string labels_of(const std::string& type, const std::string& model_class, const char* problem = nullptr) {
  const auto model = made(type, model_class);
  if (problem) model->config().set("problem_type", *problem ? Value(problem) : Value());
  DummyInputs inputs(*model);
  std::string out;
  for (const DummyInput& one : inputs.make("labels", {"labels"})) {
    out += (out.empty() ? "" : ", ") + one.name + " " + std::string(name(one.value.to_tensor().dtype())) + "[";
    for (const DummySize& size : one.sizes.at(0))
      out += size.size == inputs.batch.size            ? "b"
             : size.size == inputs.length.size         ? "s"
             : size.size == inputs.choices.size        ? "c"
             : size.size == inputs.decoder_length.size ? "d"
                                                       : std::to_string(size.size);
    EXPECT_TRUE(one.value.to_tensor().equal(zeros_like(one.value.to_tensor())));
    out += "]";
  }
  return out;
}

TEST(HFTracer, H190_labels_that_are_a_class_of_each_row) {
  EXPECT_EQ(labels_of("bert", "BertForNextSentencePrediction"), "labels int64[b]");
  EXPECT_EQ(labels_of("bert", "BertForMultipleChoice"), "labels int64[b]");
}

TEST(HFTracer, H191_labels_of_questions_are_two_positions) {
  EXPECT_EQ(labels_of("bert", "BertForQuestionAnswering"), "start_positions int64[b], end_positions int64[b]");
  EXPECT_EQ(labels_of("layoutlm", "LayoutLMForQuestionAnswering"), "start_positions int64[b], end_positions int64[b]");
}

TEST(HFTracer, H192_labels_of_sequences_follow_the_kind_of_problem) {
  const char* type = "BertForSequenceClassification";
  EXPECT_EQ(labels_of("bert", type, "single_label_classification"), "labels int64[b]");
  EXPECT_EQ(labels_of("bert", type, "multi_label_classification"), "labels float32[b2]");
  EXPECT_EQ(labels_of("bert", type, "regression"), "labels float32[b2]");
  EXPECT_THAT(error_of([&] { labels_of("bert", type, ""); }),
              AllOf(HasSubstr("set problem_type"), HasSubstr("\"single_label_classification\"")));
  EXPECT_THAT(error_of([&] { labels_of("bert", type, "guess"); }), HasSubstr("problem_type is \"guess\""));
}

TEST(HFTracer, H193_labels_that_are_a_class_of_each_token) {
  for (const char* head : {"BertForPreTraining", "BertForTokenClassification", "BertLMHeadModel", "BertForMaskedLM"})
    EXPECT_EQ(labels_of("bert", head), "labels int64[bs]") << head;
  EXPECT_EQ(labels_of("gpt2", "GPT2DoubleHeadsModel"), "labels int64[bs]");
  EXPECT_EQ(labels_of("t5", "T5ForConditionalGeneration"), "labels int64[bd]");  // as long as the decoder's ids
}

TEST(HFTracer, H194_classes_without_labels_say_so) {
  EXPECT_THAT(error_of([&] { labels_of("bert", "BertModel"); }),
              AllOf(HasSubstr("no dummy input labels for BertModel"), HasSubstr("no task")));
  for (const std::string& name : supported_model_class_names({"ctc"})) {
    const auto model = made(model_registry().find_class(name)->architecture->model_type, name);
    DummyInputs inputs(*model);
    EXPECT_EQ(dummy(*model, inputs, "labels").value.to_tensor().dtype(), DType::float32);
    EXPECT_EQ(sizes_of(dummy(*model, inputs, "labels")), (std::vector<int64_t>{inputs.batch.size, inputs.length.size}));
  }
}

TEST(HFTracer, H195_pictures_are_as_large_as_the_configuration_says) {
  const auto model = made("bert");
  DummyInputs unknown(*model);
  const std::vector<int64_t> drawn = sizes_of(dummy(*model, unknown, "pixel_values"));
  EXPECT_EQ(drawn[0], unknown.batch.size);
  EXPECT_EQ(drawn[1], 3);
  EXPECT_THAT((std::vector{drawn[2], drawn[3]}), Each(::testing::AllOf(::testing::Ge(10), ::testing::Le(20))));
  model->config().set("image_size", 30);
  model->config().set("num_channels", 1);
  DummyInputs square(*model);
  EXPECT_EQ(sizes_of(dummy(*model, square, "pixel_values")), (std::vector<int64_t>{square.batch.size, 1, 30, 30}));
  model->config().set("image_size", list({24, 32}));
  DummyInputs wide(*model);
  EXPECT_EQ(sizes_of(dummy(*model, wide, "pixel_values")), (std::vector<int64_t>{wide.batch.size, 1, 24, 32}));
  model->config().erase("image_size");
  model->config().set("vision_config", dict({{"image_size", 48}}));
  DummyInputs inner(*model);
  EXPECT_EQ(sizes_of(dummy(*model, inner, "pixel_values"))[3], 48);
}

TEST(HFTracer, H196_boxes_features_and_what_is_seen) {
  const auto model = made("bert");
  for (const char* key : {"input_feat_per_channel", "visual_feat_dim", "visual_pos_dim"}) model->config().set(key, 40);
  DummyInputs inputs(*model);
  const int64_t b = inputs.batch.size, s = inputs.length.size;
  EXPECT_EQ(sizes_of(dummy(*model, inputs, "bbox")), (std::vector<int64_t>{b, s, 4}));
  const int64_t regions = inputs.decoder_length.size;
  for (const char* name : {"input_features", "visual_feats", "visual_pos"}) {
    const int64_t length = name == std::string("input_features") ? s : regions;
    EXPECT_EQ(sizes_of(dummy(*model, inputs, name)), (std::vector<int64_t>{b, length, 40})) << name;
    EXPECT_EQ(dummy(*model, inputs, name).value.to_tensor().dtype(), DType::float32) << name;
  }
}

TEST(HFTracer, H197_H198_inputs_by_their_names) {
  const auto model = made("bert");
  DummyInputs inputs(*model);
  const int64_t b = inputs.batch.size, s = inputs.length.size, hidden = model->config().integer("hidden_size");
  const std::vector<int64_t> flat = {b, s}, deep = {b, s, hidden};
  const std::vector<int64_t> sound = sizes_of(dummy(*model, inputs, "input_values"));
  EXPECT_EQ(sound[0], b);
  EXPECT_GE(sound[1], 10000);
  EXPECT_LE(sound[1], 20000);
  for (const char* name : {"input_ids", "position_ids", "token_type_ids", "attention_mask"}) {
    EXPECT_EQ(sizes_of(dummy(*model, inputs, name)), flat) << name;
    EXPECT_EQ(dummy(*model, inputs, name).value.to_tensor().dtype(), DType::int64) << name;
  }
  EXPECT_EQ(sizes_of(dummy(*model, inputs, "inputs")), flat);
  EXPECT_EQ(dummy(*model, inputs, "inputs").value.to_tensor().dtype(), DType::float32);
  EXPECT_EQ(sizes_of(dummy(*model, inputs, "inputs_embeds")), deep);
  EXPECT_EQ(sizes_of(dummy(*model, inputs, "encoder_hidden_states")), deep);
  // The first rule that fits counts.
  EXPECT_EQ(sizes_of(dummy(*model, inputs, "bbox_mask")).size(), 3U);
  EXPECT_THAT(error_of([&] { inputs.make("output_attentions", {}); }), HasSubstr("is no tensor"));
}

TEST(HFTracer, H199_a_cache_of_five_lengthens_the_mask) {
  const auto model = made("llama");
  DummyInputs inputs(*model);
  const Names all = {"input_ids", "attention_mask", "past_key_values"};
  EXPECT_EQ(sizes_of(dummy(*model, inputs, "attention_mask", all)),
            (std::vector<int64_t>{inputs.batch.size, inputs.length.size + 5}));
  const Values layers = dummy(*model, inputs, "past_key_values", all).value.to_items();
  ASSERT_EQ(std::ssize(layers), model->config().integer("num_hidden_layers"));
  const Tensor key = layers[0].to_items().at(0).to_tensor();
  EXPECT_EQ(key.size(0), inputs.batch.size);
  EXPECT_EQ(key.size(2), 5);
}

// ---- what is recorded ---------------------------------------------------------------------------------------------------

struct Unknowable : Typed<Unknowable> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  Tensor forward(const Tensor& x, const Tensor& y) { return x + x.sym_size(0) + (x * y) * 2; }
};

TEST(HFTracer, H200_what_cannot_be_computed_has_no_value_and_the_trace_goes_on) {
  Unknowable module;
  const Kwargs apart = {{"x", zeros({3, 4})}, {"y", zeros({7, 5})}};  // which do not fit together
  reset_warnings();
  std::string warnings;
  const WarningSink before = set_warning_sink([&](std::string_view text) { warnings += text; });
  HFTracer quiet;
  quiet.debug = false;
  const Graph graph = quiet.trace(module, {.dummy_inputs = apart});
  EXPECT_EQ(warnings, "");
  HFTracer loud;
  loud.debug = true;
  loud.trace(module, {.dummy_inputs = apart});
  set_warning_sink(before);
  EXPECT_THAT(warnings, HasSubstr("Could not compute metadata for call_function target operator.mul"));
  EXPECT_TRUE(graph.find_node("add")->meta.val.is_tensor());
  EXPECT_TRUE(graph.find_node("mul")->meta.val.is_none());
  const GraphModule traced(module, quiet.trace(module, {.dummy_inputs = apart}));
  ASSERT_EQ(setenv("FX_DEBUG_MODE", "yes", 1), 0);
  EXPECT_TRUE(HFTracer().debug);
  ASSERT_EQ(setenv("FX_DEBUG_MODE", "0", 1), 0);
  EXPECT_FALSE(HFTracer().debug);
  unsetenv("FX_DEBUG_MODE");
}

struct Looking : Typed<Looking> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor forward(const Tensor& x) {
    const Tensor y = x.clone();
    y.set_by({0}, x[1]);
    if (x.dim() == 2 && x.dtype() == DType::float32 && guard(x.sym_size(1) == 4))
      return y.mT() * x.sym_size(0) + x.sym_size(1);
    return y;
  }
};

TEST(HFTracer, H201_H202_control_flow_on_what_is_known_and_sizes_items_attributes_as_calls) {
  Looking module;
  HFTracer tracer;
  const Graph graph = tracer.trace(module, {.dummy_inputs = {{"x", zeros({3, 4})}}});
  const std::string text = listed(graph);
  EXPECT_THAT(text, HasSubstr("operator.setitem(%clone, 0, %getitem"));
  EXPECT_THAT(text, HasSubstr("call_method[size](%x)"));
  EXPECT_THAT(text, HasSubstr("builtins.getattr(%clone, 'mT')"));
  size_t sizes = 0;
  for (const std::string& target : targets(graph, NodeKind::call_method)) sizes += target == "size";
  EXPECT_EQ(sizes, 1U);
}

struct Losing : Typed<Losing> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  std::shared_ptr<MSELoss> loss = std::make_shared<MSELoss>();  // registered nowhere
  Tensor forward(const Tensor& x, const Tensor& y) {
    const Tensor once = loss->call({x, y}).to_tensor();
    const Tensor again = loss->call({y, x}).to_tensor();
    return once + again + std::make_shared<MSELoss>()->call({x, x}).to_tensor();
  }
};

struct Keeping : Typed<Keeping> {
  static constexpr const char* torch_type = "torch.nn.modules.Keeping";
  static constexpr const char* forward_arguments[] = {"x"};
  explicit Keeping(const Tensor& kept) : kept(register_constant("kept", kept)) {}
  Tensor forward(const Tensor& x) { return x + kept; }
  Constant kept;
};

struct MadeOfProxies : Typed<MadeOfProxies> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor forward(const Tensor& x) { return std::make_shared<Keeping>(x * 2)->call({x}).to_tensor(); }
};

struct Holding : Typed<Holding> {
  static constexpr const char* forward_arguments[] = {"x"};
  std::shared_ptr<Linear> elsewhere = std::make_shared<Linear>(4, 4);
  Tensor forward(const Tensor& x) { return elsewhere->call({x}).to_tensor(); }
};

TEST(HFTracer, H205_modules_made_for_a_call_become_steps) {
  Losing module;
  HFTracer tracer;
  const Kwargs both = {{"x", zeros({3, 4})}, {"y", zeros({3, 4})}};
  const Graph graph = tracer.trace(module, {.dummy_inputs = both});
  EXPECT_THAT(targets(graph, NodeKind::call_module), ElementsAre("mseloss_0", "mseloss_0", "mseloss_1"));
  MadeOfProxies through;
  EXPECT_THAT(listed(HFTracer().trace(through, {.dummy_inputs = {{"x", zeros({3, 4})}}})),
              AllOf(HasSubstr("operator.add(%x, %mul)"), Not(HasSubstr("call_module"))));
  Holding held;
  EXPECT_THAT(error_of([&] {
                HFTracer().trace(held, {.dummy_inputs = {{"x", zeros({3, 4})}}});
              }),
              HasSubstr("not within the module being traced"));
  // Of a model they are the graph's, and the model is as it was.
  const auto model = made("bert", "BertForSequenceClassification");
  const size_t before = model->module_slots().size();
  const auto traced = symbolic_trace(*model, {{"input_ids", "labels"}});
  EXPECT_EQ(targets(traced->graph(), NodeKind::call_module).back(), "crossentropyloss_0");
  EXPECT_EQ(model->module_slots().size(), before);
}

struct Multiplying : Typed<Multiplying> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> up = child<Linear>("up", 4, 8);
  Child<Embedding> table = child<Embedding>("table", 10, 6);
  Tensor forward(const Tensor& x) {
    const Tensor y = matmul(up(x), up(x).transpose(-1, -2));
    return y + table(zeros({x.sym_size(0), x.sym_size(1)}, DType::int64)).sum();
  }
};

TEST(HFTracer, H206_values_of_products_tables_and_layers) {
  Multiplying module;
  const Graph graph = HFTracer().trace(module, {.dummy_inputs = {{"x", zeros({3, 5, 4})}}});
  const std::string text = listed(graph);
  EXPECT_THAT(text,
              AllOf(HasSubstr("f32[s0, s1, 8]"), HasSubstr("f32[s0, s1, s1] = torch.matmul"), HasSubstr("f32[s0, s1, 6]")));
}

struct Seeing : Typed<Seeing> {
  static constexpr const char* forward_arguments[] = {"x", "y"};
  Child<Conv2d> halved = child<Conv2d>("halved", 3, 8, 3, ConvOptions{.stride = 2, .padding = Sizes(1)});
  Child<Conv2d> same = child<Conv2d>("same", 8, 6, 3, ConvOptions{.padding = "same"});
  Child<Conv1d> valid = child<Conv1d>("valid", 2, 5, 4, ConvOptions{.padding = "valid", .dilation = 2});
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) { return {same(halved(x)), valid(y)}; }
};

TEST(HFTracer, H207_values_of_convolutions) {
  Seeing module;
  HFTracer tracer;
  const Graph graph = tracer.trace(module, {.dummy_inputs = {{"x", zeros({7, 3, 16, 15})}, {"y", zeros({9, 2, 21})}}});
  const auto hints = [&](const char* node) {
    std::vector<int64_t> out;
    for (const SymInt& size : graph.find_node(node)->meta.val.to_tensor().sym_sizes())
      out.push_back(size.is_symbolic() ? tracer.env()->hint(size).value_or(-1) : size.as_int());
    return out;
  };
  EXPECT_THAT(hints("halved"), ElementsAre(7, 8, 8, 8));
  EXPECT_THAT(hints("same"), ElementsAre(7, 6, 8, 8));
  EXPECT_THAT(hints("valid"), ElementsAre(9, 5, 15));
}

struct Catching : Module {
  std::string type_name() const override { return "peft.Catching"; }
  std::vector<std::string> argument_names() const override { return {"x", "**kwargs"}; }
  Value forward_values(const Values& args, const Kwargs&) override {
    EXPECT_TRUE(args.at(1).to_dict().items.empty());
    return args.at(0).to_tensor() * 2;
  }
};

TEST(HFTracer, H210_a_catch_all_argument_is_given_nothing) {
  Catching module;
  const Graph graph = HFTracer().trace(module, {.dummy_inputs = {{"x", zeros({3, 4})}}});
  EXPECT_THAT(placeholders(graph), ElementsAre("x"));
  EXPECT_EQ(get_concrete_args(module, {"x"}).at(0).second.to_dict().items.size(), 0U);
}

// ---- folders ------------------------------------------------------------------------------------------------------------

TEST(HFTracer, parameters_and_buffers_are_got_once_each) {
  for (const char* type : {"bert", "t5", "llama", "gpt2"}) {
    const Names got = targets(symbolic_trace(*made(type), std::nullopt)->graph(), NodeKind::get_attr);
    EXPECT_EQ(std::set<std::string>(got.begin(), got.end()).size(), got.size()) << type;
  }
}

// Names that the class is called with, and labels where it has a head for sentences.
Names folder_inputs(PretrainedModel& model) {
  Names out;
  for (const auto& [name, value] : model.example_inputs().to_kwargs(model.arguments())) out.push_back(name);
  if (model.class_name().ends_with("ForSequenceClassification")) out.emplace_back("labels");
  return out;
}

TEST(HFTracer, a_graph_saved_in_a_folder_comes_back_the_same) {
  const test::TemporaryFolder folder;
  for (const char* type : {"bert", "bart", "llama", "wav2vec2", "hubert", "siglip", "vit", "whisper", "speech_to_text"}) {
    SCOPED_TRACE(type);
    const auto model = made(type, type == std::string("bert") ? "BertForSequenceClassification" : "");
    const Names names = folder_inputs(*model);
    const auto traced = symbolic_trace(*model, names);
    save_traced_model(*traced, folder / type);
    const auto restored = load_traced_model(folder / type);
    EXPECT_EQ(restored->class_for_deserialization, model->class_name());
    EXPECT_EQ(listed(restored->graph()), listed(traced->graph()));
    const Kwargs inputs = sample_inputs(*model, names, other_sizes);
    EXPECT_THAT(check_trace(*model, *restored, inputs).differences, ElementsAre()) << type;
    std::ifstream code(folder / type / "module.py");
    const std::string text{std::istreambuf_iterator<char>(code), {}};
    EXPECT_THAT(text, AllOf(HasSubstr("class FxModule(torch.nn.Module):"), HasSubstr("weights_only=True"),
                            HasSubstr("Linear(in_features="), Not(HasSubstr(folder.path().string()))));
  }
}

}  // namespace
}  // namespace calque::hf_tracer_test
