// generation_config.json: read, checked, written.
#include "calque/generate/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "calque/base/error.h"
#include "generate/generate_support.h"
#include "support/error_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::generation_config_test {
namespace {

using test::error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

GenerationConfig config_of(const char* json) { return GenerationConfig::from_json(json); }
std::string_view mode_of(const char* json, bool assistant = false) { return name_of(config_of(json).mode(assistant)); }
std::string invalid(const char* json) {
  return error_of([&] { config_of(json).validate(); });
}

TEST(GenerationConfig, reads_and_writes_what_it_was_given) {
  const char* text =
      R"({"eos_token_id": [1, 2], "forced_eos_token_id": 3, "temperature": 0.7, "top_k": 5, "bad_words_ids": [[1], [2, 3]],
    "exponential_decay_length_penalty": [3, 1.5], "sequence_bias": [[[1, 2], -1.5]], "early_stopping": "never", "stop_strings": ["a"],
    "my_own": {"x": [1, null]}, "transformers_version": "4.40.0", "top_p": null})";
  const GenerationConfig config = config_of(text);
  EXPECT_THAT(config.eos_token_id->ids, ElementsAre(1, 2));
  EXPECT_EQ(config.temperature, 0.7);
  EXPECT_EQ(config.top_p, std::nullopt);
  EXPECT_EQ(config.other, (std::vector<std::pair<std::string, std::string>>{{"my_own", R"({"x": [1, null]})"}}));
  const std::string written = config.to_json();
  EXPECT_THAT(written, AllOf(HasSubstr("\"eos_token_id\": [1, 2]"), HasSubstr("\"forced_eos_token_id\": 3"),
                             HasSubstr("\"early_stopping\": \"never\""), HasSubstr("\"my_own\": {\"x\": [1, null]}"),
                             HasSubstr("[[[1, 2], -1.5]]")));
  EXPECT_EQ(config_of(written.c_str()).to_json(), written);
  EXPECT_THAT(error_of([] { config_of(R"({"top_k": "five"})"); }), HasSubstr("generation_config.json: `top_k`: "));
}

TEST(GenerationConfig, reads_the_embedded_models) {
  const GenerationConfig config = GenerationConfig::from_file(test::source_folder() + "/assets/tiny-lm");
  EXPECT_TRUE(config.derived_from_model_config);
  EXPECT_THAT(config.eos_token_id->ids, ElementsAre(0));
  EXPECT_EQ(config.use_cache, true);
  EXPECT_THAT(error_of([] { GenerationConfig::from_file(test::source_folder()); }),
              HasSubstr("no generation_config.json in this folder"));
}

TEST(GenerationConfig, H222_the_mode_follows_from_the_settings) {
  EXPECT_EQ(mode_of("{}"), "greedy_search");
  EXPECT_EQ(mode_of(R"({"do_sample": true})"), "sample");
  EXPECT_EQ(mode_of(R"({"num_beams": 2})"), "beam_search");
  EXPECT_EQ(mode_of(R"({"num_beams": 2, "do_sample": true})"), "beam_sample");
  EXPECT_EQ(mode_of(R"({"num_beams": 4, "num_beam_groups": 2})"), "group_beam_search");
  EXPECT_EQ(mode_of(R"({"top_k": 10, "penalty_alpha": 0.6})"), "contrastive_search");
  EXPECT_EQ(mode_of(R"({"num_beams": 2, "force_words_ids": [[1]]})"), "constrained_beam_search");
  EXPECT_EQ(mode_of("{}", true), "assisted_generation");
  EXPECT_EQ(mode_of(R"({"num_beams": 2})", true), "beam_search");
}

TEST(GenerationConfig, H224_settings_that_contradict_each_other) {
  EXPECT_THAT(invalid(R"({"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0, "do_sample": true})"),
              HasSubstr("does not sample"));
  EXPECT_THAT(invalid(R"({"num_beams": 5, "num_beam_groups": 2, "diversity_penalty": 1.0})"),
              HasSubstr("divisible by `num_beam_groups` (2)"));
  EXPECT_THAT(invalid(R"({"num_beams": 4, "num_beam_groups": 2})"), HasSubstr("`diversity_penalty`"));
  EXPECT_THAT(invalid(R"({"early_stopping": "sometimes"})"), HasSubstr("must be a boolean or 'never', but is sometimes"));
  EXPECT_THAT(invalid(R"({"max_new_tokens": 0})"), HasSubstr("`max_new_tokens` must be greater than 0, but is 0"));
  EXPECT_THAT(invalid(R"({"num_return_sequences": 2})"), HasSubstr("`num_return_sequences`"));
  EXPECT_THAT(invalid(R"({"num_return_sequences": 3, "num_beams": 2})"), HasSubstr("smaller or equal to `num_beams` (2)"));
  EXPECT_THAT(invalid(R"({"suppress_tokens": [1, 2], "forced_bos_token_id": 1})"), HasSubstr("`forced_bos_token_id`"));
  EXPECT_THAT(invalid(R"({"streamer": 1})"), HasSubstr("pass it to generate"));
  EXPECT_THAT(
      config_of(R"({"temperature": 0.5, "length_penalty": 2.0, "output_scores": true, "pad_token_id": -1})").validate(),
      SizeIs(4));
  EXPECT_THAT(config_of(R"({"do_sample": true, "temperature": 0.5})").validate(), IsEmpty());
}

TEST(GenerationConfig, caches_that_would_change_the_text_are_refused) {
  EXPECT_THAT(invalid(R"({"cache_implementation": "quantized"})"),
              AllOf(HasSubstr("`cache_implementation` is \"quantized\""), HasSubstr("leave it out")));
  EXPECT_THAT(invalid(R"({"cache_implementation": "paged"})"), HasSubstr("which Calque does not have"));
  EXPECT_THAT(invalid(R"({"cache_implementation": "statick"})"),
              AllOf(HasSubstr("Invalid `cache_implementation` (statick)"), HasSubstr("dynamic, static, ")));
  EXPECT_THAT(config_of(R"({"cache_implementation": "hybrid"})").validate(), IsEmpty());
  EXPECT_THAT(config_of(R"({"cache_implementation": "static", "use_cache": false})").validate(),
              ElementsAre(HasSubstr("has no effect")));
}

TEST(GenerationConfig, H225_a_config_with_problems_is_not_saved) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  EXPECT_THAT(error_of([&] { config_of(R"({"temperature": 0.5})").save(folder); }),
              AllOf(HasSubstr("fix these settings"), HasSubstr("temperature")));
  EXPECT_THAT(error_of([&] { config_of(R"({"max_new_tokens": -1})").save(folder); }), HasSubstr("max_new_tokens"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  const GenerationConfig clean = config_of(R"({"do_sample": true, "temperature": 0.5})");
  clean.save(folder);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_EQ(GenerationConfig::from_file(folder).to_json(), clean.to_json());
}

TEST(GenerationConfig, H227_derived_from_a_models_config) {
  const GenerationConfig config =
      GenerationConfig::from_model_config(R"({"hidden_size": 8, "eos_token_id": 2, "max_length": 50,
    "decoder": {"eos_token_id": 9, "bos_token_id": 7, "hidden_size": 1}, "text_config": {"pad_token_id": 5, "bos_token_id": 6}})");
  EXPECT_THAT(config.eos_token_id->ids, ElementsAre(2));
  EXPECT_EQ(config.max_length, 50);
  EXPECT_EQ(config.bos_token_id, 7);
  EXPECT_EQ(config.pad_token_id, 5);
  EXPECT_THAT(config.other, IsEmpty());
  EXPECT_TRUE(config.derived_from_model_config);
}

TEST(GenerationConfig, H231_unknown_settings_are_named) {
  GenerationConfig config;
  config.set("do_sample", "true");
  config.set("eos_token_id", "[1, 2]");
  EXPECT_EQ(config.do_sample, true);
  EXPECT_THAT(error_of([&] { config.set("do_samples", "true"); }), HasSubstr("there is no setting `do_samples`"));
  EXPECT_THAT(error_of([&] { config.set("foo", "1"); }), HasSubstr("`foo`"));
  config.set("do_sample", "null");
  EXPECT_EQ(config.do_sample, std::nullopt);
}

TEST(GenerationConfig, errors_in_a_models_config_name_the_file) {
  EXPECT_THAT(error_of([] { GenerationConfig::from_model_config(R"({"num_beams": "two"})", "folder/config.json"); }),
              testing::StartsWith("folder/config.json: `num_beams`: "));
  EXPECT_THAT(error_of([] { GenerationConfig::from_model_config("[]", "folder/config.json"); }),
              testing::StartsWith("folder/config.json: "));
}

// Every setting, with values that make no sense: each is either taken or refused in words. The model is a table that ends its texts.
TEST(GenerationConfig, hostile_values_of_every_setting_are_fine_or_a_user_error) {
  const char* modes[] = {R"({"max_new_tokens": 3, "eos_token_id": 4, "pad_token_id": 0})",
                         R"({"max_new_tokens": 3, "eos_token_id": 4, "pad_token_id": 0, "do_sample": true})",
                         R"({"max_new_tokens": 3, "eos_token_id": 4, "pad_token_id": 0, "num_beams": 2})",
                         R"({"max_new_tokens": 3, "eos_token_id": 4, "pad_token_id": 0, "num_beams": 2, "do_sample": true})",
                         R"({"max_new_tokens": 3, "eos_token_id": 4, "pad_token_id": 0, "prompt_lookup_num_tokens": 2})"};
  const char* values[] = {"0",
                          "-1",
                          "1",
                          "2147483648",
                          "9223372036854775807",
                          "-9223372036854775808",
                          "1e300",
                          "0.5",
                          "NaN",
                          "Infinity",
                          "-Infinity",
                          "true",
                          "null",
                          "{}",
                          "[]",
                          "[[]]",
                          "[0]",
                          "[-1]",
                          "[9223372036854775807]",
                          "[NaN]",
                          "[[0]]",
                          "[[-1]]",
                          "[[9223372036854775807]]",
                          "[[[0], NaN]]",
                          "[[[0], Infinity]]",
                          "[[[-1], 1]]",
                          "[-9223372036854775808, 2]",
                          "[9223372036854775807, 2]",
                          "[0, NaN]",
                          "[0, Infinity]",
                          R"("")",
                          R"("text")",
                          R"(["text"])",
                          R"([""])"};
  GenerateOptions options;
  options.vocab_size = 1 << 20;  // of the estimate of memory
  size_t refused = 0, taken = 0;
  for (const char* mode : modes)
    for (const std::string& key : GenerationConfig::names())
      for (const char* value : values) {
        SCOPED_TRACE(key + " = " + value + " in " + mode);
        const auto run = [&] {
          GenerationConfig config = config_of(mode);
          config.set(key, value);
          generate_test::warnings_of([&] {
            generate(generate_test::follows({1, 2, 3, 4, 0}, 5), generate_test::ids_of({{1, 2}}), config, options);
          });
        };
        try {
          error_of(run).empty() ? ++taken : ++refused;
        } catch (const std::exception& e) {
          ADD_FAILURE() << e.what();
        }
      }
  EXPECT_GT(refused, 1000U);
  EXPECT_GT(taken, 1000U);
  EXPECT_THAT(error_of([] { config_of(R"({"eos_token_id": []})"); }),
              AllOf(HasSubstr("generation_config.json: `eos_token_id`"), HasSubstr("an empty list")));
  EXPECT_THAT(invalid(R"({"num_beams": -1})"), HasSubstr("`num_beams` must be greater than 0, but is -1"));
}

}  // namespace
}  // namespace calque::generation_config_test
