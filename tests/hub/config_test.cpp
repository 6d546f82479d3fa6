// Configurations: rows of area config.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/hub/registry.h"
#include "hub/load_support.h"

namespace calque::load_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

TEST(ConfigFile, older_files_are_written_as_transformers_writes_them) {
  std::ifstream in(golden("configs.json"));
  int compared = 0;
  for (const auto& row : nlohmann::json::parse(in)) {
    if (!model_registry().find(row.at("model_type").get<std::string>())) continue;
    SCOPED_TRACE(row.at("input").get<std::string>());
    const Config config = Config::from_json(row.at("input").get<std::string>());
    EXPECT_EQ(config.to_json_string(), row.at("written").get<std::string>());
    EXPECT_EQ(Config::from_json(config.to_json_string()).to_json_string(), config.to_json_string()) << "and once more";
    ++compared;
  }
  EXPECT_GE(compared, 6);
}

TEST(ConfigFile, H246_what_is_written) {
  const Config config = test_config(
      "BaseModel", R"("_commit_hash": "abc", "attn_implementation": "eager", "return_dict": true, "wide": true)");
  const std::string text = config.to_json_string();
  EXPECT_EQ(text, R"({
  "architectures": [
    "BaseModel"
  ],
  "attn_implementation": "eager",
  "hidden": 5,
  "initializer_range": 0.02,
  "kind": "plain",
  "model_type": "calque-test",
  "ratio": 0.5,
  "sizes": [
    1,
    2
  ],
  "tie_word_embeddings": true,
  "transformers_version": "5.22.2",
  "wide": true
}
)");
  EXPECT_THAT(config.to_json_string(false), HasSubstr("\"return_dict\": true"));
}

TEST(ConfigFile, H247_saved_and_read_again) {
  const Config config =
      test_config("BaseModel", R"("hidden": 9, "other": {"b": [1, 2.5, null], "a": "é"}, "num_labels": 3)");
  Folder folder;
  config.save(folder / "sub");
  EXPECT_EQ(Config::from_file(folder / "sub"), config);
  EXPECT_EQ(Config::from_file(folder / "sub/config.json"), config);
  Config loaded = config_from_pretrained(folder.path(), {.subfolder = "sub"});
  loaded.erase("_name_or_path");
  EXPECT_EQ(loaded, config);
  EXPECT_THAT(error_of([&] { Config::from_file(folder / "nowhere"); }), HasSubstr("no configuration at"));
  EXPECT_THAT(error_of([&] { config_from_pretrained(folder / "nowhere"); }), HasSubstr("there is no such path"));
  folder.write("file", "");
  EXPECT_THAT(error_of([&] { config.save(folder / "file"); }), HasSubstr("should be a directory, not a file"));
}

TEST(ConfigFile, H248_what_is_no_json) {
  Folder folder;
  for (const char* bad : {"{\"a\": ", "\xff\xfe", "[]", ""}) {
    folder.write("config.json", bad);
    const std::string text = error_of([&] { Config::from_file(folder.path()); });
    EXPECT_THAT(text, HasSubstr("is not a valid JSON file")) << bad;
    EXPECT_THAT(text, HasSubstr((folder / "config.json").string())) << bad;
  }
}

TEST(ConfigFile, H249_values_that_count_instead) {
  Config config = test_config("BaseModel");
  const Config::Items unused =
      config.update({{"hidden", 7}, {"output_attentions", true}, {"foo", false}, {"torch_dtype", "float16"}, {"width", 8}});
  EXPECT_EQ(config.integer("hidden"), 8);
  EXPECT_TRUE(config.flag("output_attentions"));
  EXPECT_EQ(config.dtype(), DType::float16);
  ASSERT_EQ(unused.size(), 2u);
  EXPECT_EQ(unused[0].first, "foo");
  EXPECT_EQ(unused[1].first, "torch_dtype");
}

TEST(ConfigFile, H250_labels) {
  Config config = test_config("BaseModel", R"("num_labels": 5)");
  EXPECT_EQ(config.num_labels(), 5);
  EXPECT_EQ(config.find("id2label")->str(), "{0: 'LABEL_0', 1: 'LABEL_1', 2: 'LABEL_2', 3: 'LABEL_3', 4: 'LABEL_4'}");
  EXPECT_EQ(config.find("label2id")->str(), "{'LABEL_0': 0, 'LABEL_1': 1, 'LABEL_2': 2, 'LABEL_3': 3, 'LABEL_4': 4}");
  config.set("num_labels", 3);
  EXPECT_EQ(config.find("id2label")->str(), "{0: 'LABEL_0', 1: 'LABEL_1', 2: 'LABEL_2'}");
  EXPECT_EQ(config.integer("num_labels"), 3);
  EXPECT_EQ(test_config("BaseModel").num_labels(), 2);
  EXPECT_EQ(test_config("BaseModel").find("id2label")->str(), "{0: 'LABEL_0', 1: 'LABEL_1'}");
  const Config named = test_config(
      "BaseModel", R"("id2label": {"0": "no", "1": "yes", "10": "maybe"}, "label2id": {"no": 0, "yes": 1, "maybe": 10})");
  EXPECT_EQ(named.num_labels(), 3);
  EXPECT_EQ(named.find("id2label")->str(), "{0: 'no', 1: 'yes', 10: 'maybe'}");
  EXPECT_THAT(named.to_json_string(), HasSubstr("\"0\": \"no\",\n    \"1\": \"yes\",\n    \"10\": \"maybe\""));
  const Warnings warnings;
  EXPECT_EQ(test_config("BaseModel", R"("id2label": {"0": "no"}, "num_labels": 4)").num_labels(), 1);
  EXPECT_TRUE(warnings.any("num_labels is 4, but id2label has 1 labels"));
  EXPECT_THAT(error_of([] { test_config("BaseModel", R"("id2label": {"a": "no"})"); }),
              HasSubstr("expected an object from numbers to names"));
}

TEST(ConfigFile, H253_other_names_of_a_key) {
  Config config = test_config("BaseModel", R"("width": 7)");
  EXPECT_EQ(config.integer("hidden"), 7);
  EXPECT_EQ(config.integer("width"), 7);
  config.set("width", 9);
  EXPECT_EQ(config.integer("hidden"), 9);
  EXPECT_THAT(config.to_json_string(), HasSubstr("\"hidden\": 9"));
  EXPECT_THAT(config.to_json_string(), testing::Not(HasSubstr("width")));
}

TEST(ConfigFile, H255_a_configuration_inside) {
  register_test_models();
  Config config = Config::from_json(
      R"({"model_type": "composite", "text_config": {"model_type": "calque-test", "hidden": 6, "return_dict": true,
    "transformers_version": "4.0.0"}})");
  const Config text = config.nested("text_config");
  EXPECT_EQ(text.integer("hidden"), 6);
  EXPECT_EQ(text.text("kind"), "plain") << "with the defaults of its architecture";
  EXPECT_EQ(config.to_json_string(),
            "{\n  \"model_type\": \"composite\",\n  \"text_config\": {\n    \"hidden\": 6,\n    \"model_type\": "
            "\"calque-test\"\n  },\n"
            "  \"transformers_version\": \"5.22.2\"\n}\n");
  EXPECT_THAT(config.update({{"text_config", dict({{"ratio", 0.25}})}}), IsEmpty());
  EXPECT_EQ(config.nested("text_config").number("ratio"), 0.25);
  EXPECT_EQ(config.nested("text_config").integer("hidden"), 6);
  EXPECT_EQ(config.nested("absent").items().size(), 0u);
}

TEST(ConfigFile, H256_files_for_a_version) {
  Folder folder;
  folder.write(
      "config.json",
      R"({"model_type": "calque-test", "hidden": 1, "configuration_files": ["config.4.0.0.json", "config.42.0.0.json", "config.5.1.0.json"]})");
  folder.write("config.4.0.0.json", R"({"model_type": "calque-test", "hidden": 4})");
  folder.write("config.5.1.0.json", R"({"model_type": "calque-test", "hidden": 5})");
  folder.write("config.42.0.0.json", R"({"model_type": "calque-test", "hidden": 42})");
  register_test_models();
  EXPECT_EQ(Config::from_file(folder.path()).integer("hidden"), 5);
  folder.write("config.json",
               R"({"model_type": "calque-test", "hidden": 1, "configuration_files": ["config.42.0.0.json"]})");
  EXPECT_EQ(Config::from_file(folder.path()).integer("hidden"), 1);
}

TEST(ConfigFile, H257_updates_as_text) {
  Config config = test_config("BaseModel");
  config.update_from_string("hidden=10,ratio=0.2,wide=false,kind=cls_index");
  EXPECT_EQ(config.integer("hidden"), 10);
  EXPECT_EQ(config.number("ratio"), 0.2);
  EXPECT_FALSE(config.flag("wide"));
  EXPECT_EQ(config.text("kind"), "cls_index");
  EXPECT_THAT(error_of([&] { config.update_from_string("hidde=10"); }),
              HasSubstr("key hidde isn't in the original config dict"));
  EXPECT_THAT(error_of([&] { config.update_from_string("wide=maybe"); }),
              HasSubstr("can't derive true or false from maybe (key wide)"));
  EXPECT_THAT(error_of([&] { config.update_from_string("sizes=3"); }),
              HasSubstr("You can only update int, float, bool or string values"));
  EXPECT_THAT(error_of([&] { config.update_from_string("hidden=1.5"); }), HasSubstr("key hidden is an integer"));
  EXPECT_THAT(error_of([&] { config.update_from_string("hidden"); }), HasSubstr("key=value"));
}

TEST(ConfigFile, H258_generation_settings_are_warned_of) {
  Folder folder;
  {
    const Warnings warnings;
    test_config("BaseModel", R"("min_length": 0)").save(folder.path());
    EXPECT_THAT(warnings.all(), IsEmpty());
  }
  const Warnings warnings;
  const Config config = test_config("BaseModel", R"("min_length": 3)");
  config.save(folder.path());
  config.save(folder.path());
  ASSERT_EQ(warnings.all().size(), 1u);
  EXPECT_THAT(warnings.all()[0], HasSubstr("min_length=3"));
  EXPECT_EQ(Config::from_file(folder.path()).integer("min_length"), 3);
}

TEST(ConfigFile, H259_keys_that_every_configuration_has) {
  const Config config = test_config(
      "BaseModel", R"("return_dict": false, "output_hidden_states": true, "output_attentions": true, "torchscript": true,
    "torch_dtype": "float16", "pruned_heads": {"0": [1]}, "tie_word_embeddings": false, "is_decoder": true, "cross_attention_hidden_size": 128,
    "add_cross_attention": true, "tie_encoder_decoder": true, "max_length": 50, "num_beams": 3, "finetuning_task": "translation",
    "id2label": {"0": "label"}, "label2id": {"label": 0}, "tokenizer_class": "BertTokenizerFast", "prefix": "prefix", "bos_token_id": 6,
    "pad_token_id": 7, "eos_token_id": 8, "sep_token_id": 9, "decoder_start_token_id": 10, "task_specific_params": {"translation": "some_params"},
    "problem_type": "regression")");
  EXPECT_FALSE(config.flag("return_dict"));
  for (const char* name : {"output_hidden_states", "output_attentions", "torchscript", "is_decoder", "add_cross_attention",
                           "tie_encoder_decoder"})
    EXPECT_TRUE(config.flag(name)) << name;
  EXPECT_EQ(config.dtype(), DType::float16);
  EXPECT_EQ(config.find("torch_dtype"), config.find("dtype"));
  for (const auto& [name, value] : {std::pair{"cross_attention_hidden_size", 128},
                                    {"max_length", 50},
                                    {"num_beams", 3},
                                    {"bos_token_id", 6},
                                    {"pad_token_id", 7},
                                    {"eos_token_id", 8},
                                    {"sep_token_id", 9},
                                    {"decoder_start_token_id", 10}})
    EXPECT_EQ(config.integer(name), value) << name;
  for (const auto& [name, value] : {std::pair{"finetuning_task", "translation"},
                                    {"tokenizer_class", "BertTokenizerFast"},
                                    {"prefix", "prefix"},
                                    {"problem_type", "regression"}})
    EXPECT_EQ(config.text(name), value) << name;
  EXPECT_EQ(config.num_labels(), 1);
  EXPECT_EQ(Config::from_json(config.to_json_string()), Config::from_json(config.to_json_string()));
}

TEST(ConfigFile, H260_tuples_for_torchscript) {
  EXPECT_TRUE(test_config("BaseModel").use_return_dict());
  EXPECT_FALSE(test_config("BaseModel", R"("torchscript": true, "return_dict": true)").use_return_dict());
  EXPECT_FALSE(test_config("BaseModel", R"("return_dict": false)").use_return_dict());
}

TEST(ConfigFile, numbers_that_json_has_no_word_for) {
  const Config config = test_config("BaseModel", R"("low": -Infinity, "high": {"__float__": "Infinity"}, "none": [NaN])");
  EXPECT_EQ(config.number("low"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(config.number("high"), std::numeric_limits<double>::infinity());
  EXPECT_THAT(config.to_json_string(), HasSubstr("\"low\": {\n    \"__float__\": \"-Infinity\"\n  }"));
}

TEST(ConfigFile, values_that_cannot_be) {
  EXPECT_THAT(error_of([] { test_config("BaseModel", R"("problem_type": "guessing")"); }),
              HasSubstr("\"problem_type\" is 'guessing', expected regression"));
  EXPECT_THAT(
      error_of([] { test_config("BaseModel", R"("problem_type": "single_label_classification", "num_labels": 1)"); }),
      HasSubstr("needs at least two labels"));
  EXPECT_THAT(error_of([] { test_config("BaseModel", R"("dtype": "float17")"); }),
              HasSubstr("\"dtype\" is 'float17', expected the name of a dtype"));
  EXPECT_THAT(error_of([] { test_config("BaseModel", R"("layer_types": ["a"], "num_hidden_layers": 2)"); }),
              HasSubstr("\"layer_types\" has 1 entries"));
  EXPECT_THAT(error_of([] { test_config("BaseModel", R"("hidden": "five")").integer("hidden"); }),
              HasSubstr("config.json: \"hidden\" is 'five', expected an integer"));
  EXPECT_THAT(error_of([] { test_config("BaseModel").integer("nothing"); }),
              HasSubstr("\"nothing\" is missing, expected an integer"));
  const Warnings warnings;
  test_config("BaseModel", R"("vocab_size": 10, "pad_token_id": -1)");
  EXPECT_TRUE(warnings.any("pad_token_id is -1, expected None or a token of the vocabulary (0 to 9)"));
  EXPECT_THAT(error_of([] { test_config("BaseModel", R"("vocab_size": -9223372036854775808, "bos_token_id": 1)"); }),
              HasSubstr("\"vocab_size\" is -9223372036854775808, expected an integer from 1"));
  EXPECT_FALSE(warnings.any("bos_token_id")) << "of a vocabulary that cannot be";
}

}  // namespace
}  // namespace calque::load_test
