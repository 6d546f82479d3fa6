// Whisper's generate: the ids, segments and seconds of transformers (golden/whisper.json, by tools/golden/whisper.py), and what is refused.
#include "calque/generate/whisper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/hub/from_pretrained.h"
#include "calque/op/make.h"
#include "calque/op/operators.h"
#include "generate/whisper_support.h"
#include "support/error_support.h"
#include "support/paths.h"

namespace calque::whisper_test {
namespace {

using Nlohmann = nlohmann::json;
using test::error_of;
using testing::HasSubstr;

Nlohmann whisper_cases() {
  return Nlohmann::parse(std::ifstream(test::source_folder() + "/tests/generate/golden/whisper.json"));
}

std::shared_ptr<PretrainedModel> small_whisper() {
  return from_pretrained(test::source_folder() + "/tests/zoo/golden/whisper");
}

Tensor features_by_formula(int64_t rows, int64_t frames) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < rows * 8 * frames; ++i)
    numbers.push_back(static_cast<float>(static_cast<double>((7919 * i) % 2001 - 1000) / 500));
  return tensor_of<float>(numbers, {rows, 8, frames});
}

WhisperOutput run(PretrainedModel& model, const Nlohmann& one) {
  Generator generator(one.at("seed").get<uint64_t>());
  GenerateOptions options;
  options.generator = &generator;
  return whisper_generate(model, features_by_formula(one.at("rows"), one.at("frames")),
                          GenerationConfig::from_json(one.at("settings").dump()),
                          test::whisper_options_of(one.at("options")), options);
}

// Seconds are float32 where they are of tokens.
void expect_segments(const Nlohmann& found, const Nlohmann& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_DOUBLE_EQ(found[i][0].get<double>(), wanted[i][0].get<double>());
    EXPECT_DOUBLE_EQ(found[i][1].get<double>(), wanted[i][1].get<double>());
    EXPECT_EQ(found[i][2], wanted[i][2]);
    ASSERT_EQ(found[i][3].size(), wanted[i][3].size());
    for (size_t t = 0; t < found[i][3].size(); ++t)
      EXPECT_NEAR(found[i][3][t].get<double>(), wanted[i][3][t].get<double>(), 1e-6);
  }
}

GenerationConfig settings_of_first() { return GenerationConfig::from_json(whisper_cases()[0].at("settings").dump()); }

}  // namespace

TEST(Whisper, writes_the_ids_and_segments_of_transformers) {
  const auto model = small_whisper();
  const Nlohmann cases = whisper_cases();
  ASSERT_GE(cases.size(), 15u);
  for (const Nlohmann& one : cases) {
    SCOPED_TRACE(one.at("options").dump() + " " + one.at("settings").dump());
    const Nlohmann found = test::whisper_json_of(run(*model, one));
    EXPECT_EQ(found.at("ids"), one.at("ids"));
    ASSERT_EQ(found.at("segments").size(), one.at("segments").size());
    for (size_t row = 0; row < found.at("segments").size(); ++row)
      expect_segments(found.at("segments")[row], one.at("segments")[row]);
  }
}

TEST(Whisper, tells_how_far_it_is) {
  const auto model = small_whisper();
  std::vector<int64_t> done;
  WhisperOptions options;
  options.progress = [&](std::span<const int64_t> seek, std::span<const int64_t> frames) {
    done.push_back(seek[0]);
    EXPECT_EQ(frames[0], 150);
  };
  whisper_generate(*model, features_by_formula(1, 150), settings_of_first(), options);
  ASSERT_GE(done.size(), 2u);
  EXPECT_EQ(done[0], 0);
  EXPECT_TRUE(std::ranges::is_sorted(done));
}

TEST(Whisper, refuses_what_the_model_or_its_settings_do_not_have) {
  const auto model = small_whisper();
  const Tensor part = features_by_formula(1, 20), recording = features_by_formula(1, 50);
  const GenerationConfig settings = settings_of_first();
  const auto error_with = [&](const WhisperOptions& options, const Tensor& features) {
    return error_of([&] { whisper_generate(*model, features, settings, options); });
  };
  EXPECT_THAT(error_with({.language = {"klingon"}}, part),
              HasSubstr("no language klingon; expected one of english, chinese"));
  EXPECT_THAT(error_with({.language = {"fr"}}, part),
              HasSubstr("does not know the language fr: <|fr|> is not in `lang_to_id`"));
  EXPECT_THAT(error_with({.language = {"en", "de"}}, part), HasSubstr("2 languages for 1 recordings"));
  EXPECT_THAT(error_with({.task = "summarize"}, part),
              HasSubstr("no task summarize; expected \"transcribe\" or \"translate\""));
  EXPECT_THAT(error_with({.return_timestamps = false}, recording), HasSubstr("is cut at its timestamps"));
  EXPECT_THAT(error_with({.prompt_ids = {11}, .prompt_in_all_segments = true}, part),
              HasSubstr("needs condition_on_prev_tokens"));
  EXPECT_THAT(error_with({.no_speech_threshold = 0.5}, part), HasSubstr("counts only beside logprob_threshold"));
  EXPECT_THAT(error_with({}, features_by_formula(2, 50)), HasSubstr("need an attention_mask"));
  EXPECT_THAT(error_with({}, part.select(0, 0)), HasSubstr("expected features [rows, 8, frames], found [8, 20]"));
  GenerationConfig bare = settings;
  bare.other.clear();
  EXPECT_THAT(error_of([&] { whisper_generate(*model, part, bare, {.language = {"en"}}); }),
              HasSubstr("needs `lang_to_id`"));
  EXPECT_THAT(error_of([&] { whisper_generate(*model, part, bare, {.return_timestamps = true}); }),
              HasSubstr("needs `no_timestamps_token_id`"));
  EXPECT_THAT(error_of([&] { whisper_generate(*model, part, bare, {.token_timestamps = true}); }),
              HasSubstr("needs `alignment_heads`"));
  GenerationConfig longer = settings;
  longer.max_new_tokens = 8;
  EXPECT_THAT(error_of([&] { whisper_generate(*model, part, longer, {.prompt_ids = TokenIds(26, 11)}); }),
              HasSubstr("are more than the 30 positions of the decoder"));
  const auto other = from_pretrained(test::source_folder() + "/assets/tiny-lm");
  EXPECT_THAT(error_of([&] { whisper_generate(*other, part, settings); }),
              HasSubstr("is no WhisperForConditionalGeneration"));
}

TEST(Whisper, timestamps_come_in_pairs_and_never_earlier) {
  const WhisperTimestamps rules{
      .no_timestamps_token_id = 3, .eos_token_id = 2, .max_initial_timestamp_index = 1, .by_probability = false};
  // Words 0 and 1, the end 2, timestamps from 4 to 7.
  const auto allowed = [&](std::vector<int64_t> ids) {
    const Tensor scores = whisper_timestamp_logits_processor(rules, 1)(tensor(ids).view({1, -1}), zeros({1, 8}));
    std::string out;
    for (int64_t i = 0; i < 8; ++i) out += std::isinf(scores.select(0, 0).select(0, i).item_as<float>()) ? '-' : '+';
    return out;
  };
  EXPECT_EQ(allowed({9}), "----++--");              // the first is a timestamp, and an early one
  EXPECT_EQ(allowed({9, 5}), "+++-----");           // behind one that begins come words
  EXPECT_EQ(allowed({9, 5, 0}), "+++---++");        // no time again
  EXPECT_EQ(allowed({9, 5, 0, 6}), "--+---++");     // behind one that ends another, not earlier, or the end
  EXPECT_EQ(allowed({9, 5, 0, 6, 6}), "+++-----");  // behind a pair come words
}

}  // namespace calque::whisper_test
