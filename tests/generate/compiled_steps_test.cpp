// Steps by a plan over a cache of fixed capacity: the text is the one that the model writes itself, and one capture serves all lengths.
#include <gtest/gtest.h>

#include <filesystem>

#include "calque/base/counters.h"
#include "calque/generate/model_generate.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/registry.h"
#include "generate/generate_support.h"
#include "support/paths.h"

namespace calque::compiled_steps_test {
namespace {

using generate_test::ids_of;
using generate_test::rows_of;

struct Written {
  std::vector<std::vector<int64_t>> rows;
  uint64_t captures;
};

Written written(PretrainedModel& model, const std::vector<std::vector<int64_t>>& prompt, const std::string& settings,
                int64_t after) {
  GenerateOptions options;
  options.compile_after = after;
  const uint64_t before = counters().get("frames", "ok");
  auto rows =
      rows_of(generate(model, {{arg::input_ids, ids_of(prompt)}}, GenerationConfig::from_json(settings), options).sequences);
  return {std::move(rows), counters().get("frames", "ok") - before};
}

std::shared_ptr<PretrainedModel> tiny() {
  LoadOptions options;
  options.dtype = DType::float32;
  return from_pretrained(test::source_folder() + "/assets/tiny-lm", options);
}

TEST(CompiledSteps, one_capture_writes_the_models_text_beyond_the_first_capacity) {
  const auto model = tiny();
  const std::string settings = R"({"max_new_tokens": 150, "eos_token_id": -1})";
  const Written expected = written(*model, {{5, 9, 21}}, settings, -1), found = written(*model, {{5, 9, 21}}, settings, 2);
  EXPECT_EQ(found.rows, expected.rows);
  EXPECT_EQ(expected.captures, 0U);
  EXPECT_EQ(found.captures, 1U);
}

// As in transformers, a cache of fixed capacity is asked for by name.
TEST(CompiledSteps, a_static_cache_asks_for_them) {
  const auto model = tiny();
  const auto captures = [&](const char* settings) {
    const uint64_t before = counters().get("frames", "ok");
    const auto rows =
        rows_of(generate(*model, {{arg::input_ids, ids_of({{5, 9, 21}})}}, GenerationConfig::from_json(settings)).sequences);
    return std::pair(rows, counters().get("frames", "ok") - before);
  };
  const auto grown = captures(R"({"max_new_tokens": 20, "eos_token_id": -1})");
  const auto fixed = captures(R"({"max_new_tokens": 20, "eos_token_id": -1, "cache_implementation": "static"})");
  EXPECT_EQ(grown.first, fixed.first);
  EXPECT_EQ(grown.second, 0U);
  EXPECT_EQ(fixed.second, 1U);
}

TEST(CompiledSteps, of_several_rows_with_processors_and_sampling) {
  const auto model = tiny();
  for (
      const char* settings :
      {R"({"max_new_tokens": 40, "eos_token_id": -1, "repetition_penalty": 1.3})",
       R"({"max_new_tokens": 40, "eos_token_id": -1, "num_return_sequences": 3, "do_sample": true, "temperature": 0.8, "top_k": 20})"}) {
    const std::vector<std::vector<int64_t>> prompt{{5, 9, 21}, {7, 8, 2}};
    manual_seed(3);
    const Written expected = written(*model, prompt, settings, -1);
    manual_seed(3);
    const Written found = written(*model, prompt, settings, 0);
    EXPECT_EQ(found.rows, expected.rows) << settings;
    EXPECT_EQ(found.captures, 1U) << settings;
  }
}

TEST(CompiledSteps, padded_prompts_and_beams_are_the_models_own) {
  const auto model = tiny();
  const std::string beams = R"({"max_new_tokens": 12, "eos_token_id": -1, "num_beams": 3})";
  const Written expected = written(*model, {{5, 9, 21}}, beams, -1), found = written(*model, {{5, 9, 21}}, beams, 0);
  EXPECT_EQ(found.rows, expected.rows);
  EXPECT_EQ(found.captures, 0U);
}

// Every class that writes from ids alone: those whose steps are captured, and those that go on as they did.
TEST(CompiledSteps, every_decoder_writes_the_same_text) {
  size_t compiled = 0, classes = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(test::source_folder()) / "tests/zoo/golden")) {
    const Architecture* architecture = model_registry().find(entry.path().filename().string());
    if (!architecture) continue;
    const Config config = from_pretrained(entry.path())->config();
    for (const ModelClass& one : architecture->classes) {
      const bool writes = std::find(one.tasks.begin(), one.tasks.end(), "causal-lm") != one.tasks.end();
      if (!writes) continue;
      const auto model = from_config(config, {.model_class = one.name});
      if (!model->can_generate() || model->is_encoder_decoder()) continue;
      model->eval();
      const std::string settings = R"({"max_new_tokens": 7, "eos_token_id": -1, "pad_token_id": 0})";
      const Written expected = written(*model, {{5, 9, 3}, {4, 2, 6}}, settings, -1),
                    found = written(*model, {{5, 9, 3}, {4, 2, 6}}, settings, 1);
      EXPECT_EQ(found.rows, expected.rows) << one.name;
      EXPECT_LE(found.captures, 2U) << one.name;
      compiled += found.captures > 0;
      ++classes;
    }
  }
  EXPECT_GT(classes, 30U);
  EXPECT_GT(compiled, 15U);
}

}  // namespace
}  // namespace calque::compiled_steps_test
