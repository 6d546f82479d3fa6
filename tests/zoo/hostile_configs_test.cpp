// Configurations that are wrong: every number of every architecture, replaced by values that nobody means. A model is made and
// answers, or a UserError says why not; nothing else.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "calque/base/warning.h"
#include "calque/file/safetensors.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/registry.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/operators.h"
#include "hub/hub_support.h"
#include "support/paths.h"

namespace calque::hostile_configs_test {
namespace {

using namespace hub_test;
using testing::HasSubstr;
using Json = nlohmann::json;
namespace fs = std::filesystem;

fs::path folder_of(const std::string& name) { return fs::path(test::source_folder()) / "tests/zoo/golden" / name; }

std::vector<std::string> golden_folders() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder_of(""))) out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

Json config_of(const std::string& name) { return Json::parse(read_file(folder_of(name) / "config.json")); }

// Warnings of what is missing are not the subject here.
class Quiet {
 public:
  Quiet() : before_(set_warning_sink([](std::string_view) {})) {}
  ~Quiet() { set_warning_sink(before_); }

 private:
  WarningSink before_;
};

// Paths to the numbers in a configuration, and to what may be one.
void add_numbers(const Json& value, const Json::json_pointer& at, std::set<std::string>& out) {
  if (value.is_number() || (value.is_null() && !at.empty())) out.insert(at.to_string());
  if (value.is_object())
    for (const auto& [key, inner] : value.items())
      if (key != "label2id" && key != "id2label") add_numbers(inner, at / key, out);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i) add_numbers(value[i], at / i, out);
}

std::set<std::string> numbers_of(const Json& config, const Architecture& architecture) {
  std::set<std::string> out = {"/num_labels", "/chunk_size_feed_forward"};
  add_numbers(config, Json::json_pointer(), out);
  add_numbers(Json::parse(architecture.defaults), Json::json_pointer(), out);
  for (const KeyRule& rule : architecture.schema.keys) out.insert("/" + rule.key);
  if (config.contains("rope_parameters"))
    for (const char* key : {"factor", "original_max_position_embeddings", "partial_rotary_factor", "attention_factor"})
      out.insert("/rope_parameters/" + std::string(key));
  return out;
}

// Of a size that the folder's own configuration takes, whatever the changed one says.
ModelInputs small_inputs(const PretrainedModel& model, const Json& whole) {
  if ((!model.takes(arg::input_ids) && !model.takes({"pixel_values"})) || model.takes({"visual_feats"}))
    return model.example_inputs({.batch = 2, .length = 5, .decoder_length = 3});
  ModelInputs in;
  if (model.takes({"input_ids"})) in.set(arg::input_ids, tensor_of<int64_t>({3, 4, 5, 6, 7, 8, 9, 3, 4, 5}, {2, 5}));
  if (model.takes({"pixel_values"}) && !model.can_generate()) {  // a text has none where no token stands for one
    const Json& vision = whole.contains("vision_config") ? whole.at("vision_config") : whole;
    const int64_t side = vision.value("image_size", int64_t{32});
    in.set("pixel_values", ones({2, vision.at("num_channels").get<int64_t>(), side, side}));
  }
  if (model.takes({"visual_feats"})) {
    in.set("visual_feats", ones({2, 3, whole.at("visual_feat_dim").get<int64_t>()}));
    in.set("visual_pos", ones({2, 3, whole.at("visual_pos_dim").get<int64_t>()}));
  }
  if (model.takes(arg::decoder_input_ids)) in.set(arg::decoder_input_ids, tensor_of<int64_t>({3, 4, 5, 6, 7, 8}, {2, 3}));
  return in;
}

const std::vector<Json> hostile_values = {0, -1, 1, int64_t{1} << 31, std::numeric_limits<int64_t>::max(), 1.5, "text"};

class HostileConfig : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Zoo, HostileConfig, ::testing::ValuesIn(golden_folders()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST_P(HostileConfig, answers_or_is_refused) {
  const Quiet quiet;
  const Json whole = config_of(GetParam());
  const Architecture* architecture = model_registry().find(whole.at("model_type").get<std::string>());
  ASSERT_TRUE(architecture);
  const SafetensorsFile file = SafetensorsFile::open((folder_of(GetParam()) / "model.safetensors").string());
  const StateDict tiny(file.tensors()), none;
  int answered = 0, refused = 0;
  const std::set<std::string> paths = numbers_of(whole, *architecture);
  for (const std::string& path : paths)
    for (const Json& value : hostile_values) {
      Json changed = whole;
      changed[Json::json_pointer(path)] = value;
      for (const StateDict* weights : {&tiny, &none}) {
        SCOPED_TRACE(path + " is " + value.dump() + (weights == &tiny ? ", tiny weights" : ", no weights"));
        try {
          const GradModeScope no_grad(false);
          const auto model = load_pretrained(Config::from_json(changed.dump()), *weights).model;
          (*model)(small_inputs(*model, whole));
          ++answered;
        } catch (const UserError& error) {
          ++refused;
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
  const int numbers = static_cast<int>(paths.size());  // a model of pictures has few
  EXPECT_GT(answered, std::min(50, numbers));
  EXPECT_GT(refused, std::min(100, 4 * numbers));
}

TEST(ConfigSchemas, every_architecture_has_a_small_model_here) {
  std::set<std::string> here;
  for (const std::string& name : golden_folders()) here.insert(config_of(name).at("model_type").get<std::string>());
  for (const auto& architecture : model_registry().architectures())
    EXPECT_TRUE(here.contains(architecture->model_type)) << architecture->model_type;
}

TEST(ConfigSchemas, every_number_of_every_architecture_has_a_kind) {
  for (const auto& architecture : model_registry().architectures()) {
    const Json defaults = Json::parse(architecture->defaults);
    for (const auto& [key, value] : defaults.items())
      if (value.is_number()) {
        EXPECT_TRUE(key_kind(architecture.get(), key)) << architecture->model_type << ": " << key;
      }
  }
}

// What a model of this architecture needs may be set to what it is; the schema refuses nothing that is right.
TEST(ConfigSchemas, defaults_and_small_models_are_right) {
  for (const auto& architecture : model_registry().architectures())
    EXPECT_EQ(error_of([&] {
                Config(Config::Items{{"model_type", architecture->model_type}});
              }),
              "")
        << architecture->model_type;
  for (const std::string& name : golden_folders())
    EXPECT_EQ(error_of([&] { Config::from_file(folder_of(name)).check_values(); }), "") << name;
}

class WrongFolder : public ::testing::Test {
 protected:
  // What loading the folder's weights with a configuration that differs says.
  std::string refusal(const std::string& name, const Json& changes, bool weights = true) {
    const Quiet quiet;
    Json config = config_of(name);
    config.update(changes);
    folder_.write("config.json", config.dump());
    fs::remove(folder_ / "model.safetensors");
    if (weights)
      fs::copy_file(folder_of(name) / "model.safetensors", folder_ / "model.safetensors");
    else
      folder_.write("model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
    return error_of([&] { load_pretrained(folder_.path()); }, ErrorKind::bad_file);
  }
  TemporaryFolder folder_;
};

TEST_F(WrongFolder, zero_heads_are_refused_by_name_and_file) {
  for (const bool weights : {true, false})
    EXPECT_EQ(
        refusal("bert", {{"num_attention_heads", 0}}, weights),
        (folder_ / "config.json").string() + ": \"num_attention_heads\" is 0, expected an integer from 1 to 2147483647");
}

TEST_F(WrongFolder, too_many_layers_are_refused_by_name_and_file) {
  EXPECT_THAT(refusal("bert", {{"num_hidden_layers", int64_t{1000000000000}}}, false),
              HasSubstr("config.json: \"num_hidden_layers\" is 1000000000000, expected an integer from 0 to 4096"));
  const std::string text = refusal("bert", {{"num_hidden_layers", 4000}});
  EXPECT_THAT(text, HasSubstr("config.json: \"num_hidden_layers\" is 4000, expected at most 80 layers: "));
  EXPECT_THAT(text, HasSubstr("model.safetensors holds "));
  EXPECT_THAT(text, HasSubstr(" parameters in 2 layers"));
}

TEST_F(WrongFolder, a_huge_head_is_refused_by_name_and_file) {
  const std::string text = refusal("llama", {{"head_dim", 1000000000}});
  EXPECT_THAT(text, HasSubstr("config.json: \"head_dim\" is 1000000000, expected at most 168"));
  EXPECT_THAT(text, HasSubstr("model.safetensors holds "));
}

TEST_F(WrongFolder, sizes_that_multiply_to_more_than_the_weights_hold_are_refused_before_anything_is_allocated) {
  EXPECT_THAT(refusal("bert", {{"hidden_size", 1000000}, {"intermediate_size", 16000000}}),
              testing::ContainsRegex("config.json: BertForPreTraining has [0-9]+ parameters, expected at most"));
  EXPECT_THAT(refusal("xglm", {{"max_position_embeddings", 10000000}, {"d_model", 10000000}}),
              HasSubstr("config.json: a table of max_position_embeddings x d_model has 100000000000000 elements"));
}

TEST_F(WrongFolder, heads_that_do_not_share_evenly_are_refused) {
  EXPECT_THAT(refusal("bert", {{"num_attention_heads", 5}}),
              HasSubstr("\"hidden_size\" is 16, expected a multiple of num_attention_heads, which is 5"));
  EXPECT_THAT(refusal("llama", {{"num_key_value_heads", 3}}),
              HasSubstr("\"num_attention_heads\" is 4, expected a multiple of num_key_value_heads, which is 3"));
  EXPECT_THAT(refusal("bart", {{"decoder_attention_heads", 3}}),
              HasSubstr("\"d_model\" is 16, expected a multiple of decoder_attention_heads, which is 3"));
  EXPECT_THAT(refusal("electra", {{"num_attention_heads", 17}}),
              HasSubstr("\"hidden_size\" is 16, expected at least num_attention_heads, which is 17"));
}

TEST_F(WrongFolder, layer_types_that_do_not_count_are_refused) {
  for (const Json& types : {Json::parse("[[[\"global\"], 9223372036854775807]]"), Json::parse("[[[\"global\"]]]"), Json(3),
                            Json::parse("[[[], 9223372036854775807], [[\"global\"], 2]]"), Json::parse("[[[3], 2]]")})
    EXPECT_THAT(refusal("gpt_neo", {{"attention_types", types}}), HasSubstr("config.json: \"attention_types\"")) << types;
}

TEST_F(WrongFolder, tokens_are_ids_or_lists_of_them) {
  EXPECT_THAT(refusal("llama", {{"eos_token_id", Json::array()}}),
              HasSubstr("\"eos_token_id\" is [], expected a token's id, or a list of one or more"));
  EXPECT_EQ(refusal("llama", {{"eos_token_id", {1, 2}}, {"bos_token_id", nullptr}, {"pad_token_id", -1}}), "");
}

TEST_F(WrongFolder, more_labels_than_can_be_named_are_refused) {
  Json config = config_of("bert");
  config.erase("id2label");
  config.erase("label2id");
  config["num_labels"] = int64_t{1} << 40;
  EXPECT_THAT(error_of([&] { Config::from_json(config.dump()); }), HasSubstr("\"num_labels\" is 1099511627776"));
}

TEST(ConfigSchemas, a_model_without_weights_fits_into_the_machine_or_the_limit) {
  Config config = Config::from_file(folder_of("bert"));
  EXPECT_THAT(error_of([&] { from_config(config, {.max_parameters = 1000}); }), HasSubstr("max_parameters says so"));
  config.set("intermediate_size", 200000000);
  config.set("hidden_size", 200000000);
  EXPECT_THAT(error_of([&] { from_config(config); }), HasSubstr("this machine has "));
}

TEST(ConfigSchemas, what_is_set_later_is_checked_when_a_model_is_made) {
  Config config = Config::from_file(folder_of("bert"));
  config.set("num_attention_heads", 0);
  EXPECT_THAT(error_of([&] { model_registry().find_class("BertModel")->make(config); }),
              HasSubstr("\"num_attention_heads\" is 0"));
}

}  // namespace
}  // namespace calque::hostile_configs_test
