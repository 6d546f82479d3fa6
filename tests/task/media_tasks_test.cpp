// What models of pictures and sound are asked, without a model: texts of CTC heads as transformers' Wav2Vec2CTCTokenizer makes them
// (tests/media/golden/ctc.json), colours of segments, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "calque/op/make.h"
#include "calque/task/pictures.h"
#include "calque/task/sounds.h"
#include "support/error_support.h"
#include "support/folder_support.h"
#include "support/paths.h"
#include "task/whisper_text.h"

namespace calque::media_tasks_test {
namespace {

using testing::HasSubstr;
using Nlohmann = nlohmann::json;

// Steps of a second each, so that times are places.
void expect_parts(const std::vector<SpokenPart>& found, const Nlohmann& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].text, wanted[i][0].get<std::string>());
    EXPECT_EQ(found[i].begin, wanted[i][1].get<double>());
    EXPECT_EQ(found[i].end, wanted[i][2].get<double>());
  }
}

}  // namespace

TEST(MediaTasks, steps_of_a_ctc_head_become_the_text_and_places_of_transformers) {
  const Nlohmann golden = Nlohmann::parse(std::ifstream(test::source_folder() + "/tests/media/golden/ctc.json"));
  ASSERT_GE(golden.at("cases").size(), 15u);
  for (const Nlohmann& one : golden.at("cases")) {
    SCOPED_TRACE(one.dump());
    const test::TemporaryFolder folder;
    folder.write("vocab.json", golden.at("vocabulary").dump());
    folder.write("tokenizer_config.json", one.at("settings").dump());
    const CtcVocabulary vocabulary = CtcVocabulary::from_folder(folder.path());
    const auto ids = one.at("ids").get<std::vector<int64_t>>();
    EXPECT_EQ(vocabulary.decode(ids, 1, 1, TimesOf::nothing).text, one.at("text").get<std::string>());
    expect_parts(vocabulary.decode(ids, 1, 1, TimesOf::characters).parts, one.at("characters"));
    expect_parts(vocabulary.decode(ids, 1, 1, TimesOf::words).parts, one.at("words"));
  }
}

TEST(MediaTasks, the_time_of_a_step_follows_from_its_samples) {
  const test::TemporaryFolder folder;
  folder.write("vocab.json", R"({"<pad>": 0, "a": 1})");
  const std::vector<int64_t> ids{0, 1, 1, 0};
  const Transcript found = CtcVocabulary::from_folder(folder.path()).decode(ids, 320, 16000, TimesOf::characters);
  ASSERT_EQ(found.parts.size(), 1u);
  EXPECT_EQ(found.parts[0].begin, 0.02);
  EXPECT_EQ(found.parts[0].end, 0.06);
}

namespace {

void expect_whisper_parts(const std::vector<SpokenPart>& found, const Nlohmann& wanted) {
  const auto seconds = [](const Nlohmann& json) {
    return json.is_null() ? std::nullopt : std::optional(json.get<double>());
  };
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].text, wanted[i][0].get<std::string>());
    EXPECT_EQ(found[i].begin, seconds(wanted[i][1]));
    EXPECT_EQ(found[i].end, seconds(wanted[i][2]));
  }
}

}  // namespace

TEST(MediaTasks, what_whisper_wrote_becomes_the_text_segments_and_words_of_transformers) {
  const std::string folder = test::source_folder() + "/tests/task/golden/whisper";
  const Tokenizer tokenizer = Tokenizer::from_file(folder);
  const Nlohmann cases = Nlohmann::parse(std::ifstream(folder + "/cases.json"));
  ASSERT_GE(cases.size(), 40u);
  for (const Nlohmann& one : cases) {
    SCOPED_TRACE(one.dump());
    const auto ids = one.at("ids").get<std::vector<int64_t>>();
    const auto times = one.at("times").get<std::vector<float>>();
    EXPECT_EQ(whisper_text(tokenizer, ids, {}, {}).text, one.at("text").get<std::string>());
    expect_whisper_parts(whisper_text(tokenizer, ids, times, {.times = TimesOf::segments}).parts, one.at("segments"));
    expect_whisper_parts(whisper_text(tokenizer, ids, times, {.times = TimesOf::words}).parts, one.at("words"));
  }
  EXPECT_THAT(
      test::error_of([&] { whisper_text(Tokenizer::from_file(test::source_folder() + "/assets/tiny-lm"), {}, {}, {}); }),
      HasSubstr("has no <|notimestamps|>"));
}

TEST(MediaTasks, labels_of_a_segmentation_have_colours_of_their_own) {
  Segmentation all;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 256; ++i) ids.push_back(i);
  all.ids = tensor(ids).view({16, 16});
  const Picture picture = all.coloured();
  std::set<std::vector<uint8_t>> colours;
  for (int64_t y = 0; y < 16; ++y)
    for (int64_t x = 0; x < 16; ++x) colours.insert({picture.row(y) + 3 * x, picture.row(y) + 3 * x + 3});
  EXPECT_EQ(colours.size(), 256u);
}

TEST(MediaTasks, a_model_of_texts_is_refused_by_name) {
  const std::string folder = test::source_folder() + "/assets/tiny-lm";
  EXPECT_THAT(test::error_of([&] { PictureClassifier::from_folder(folder); }),
              HasSubstr("classify --image needs a model for image-classification"));
  EXPECT_THAT(test::error_of([&] { Segmenter::from_folder(folder); }),
              HasSubstr("segment needs a model for semantic-segmentation"));
  EXPECT_THAT(test::error_of([&] { SoundClassifier::from_folder(folder); }),
              HasSubstr("classify --audio needs a model for audio-classification"));
  EXPECT_THAT(test::error_of([&] { Transcriber::from_folder(folder); }),
              HasSubstr("transcribe needs a model for ctc or speech-seq2seq"));
}

TEST(MediaTasks, match_asks_for_a_model_of_pictures_and_texts) {
  const std::string error =
      test::error_of([&] { PictureMatcher::from_folder(test::source_folder() + "/tests/zoo/golden/vit"); });
  EXPECT_THAT(error, HasSubstr("match needs a model for zero-shot-image-classification, but"));
  EXPECT_THAT(error, HasSubstr("take a model of another architecture: altclip, clip, siglip"));
}

TEST(MediaTasks, a_checkpoint_without_a_pooler_gives_the_same_vector_each_time) {
  const test::TemporaryFolder folder;
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy(test::source_folder() + "/tests/zoo/golden/vit/" + name, folder.path() / name);
  folder.write("preprocessor_config.json",
               R"({"image_processor_type": "ViTImageProcessor", "size": {"height": 12, "width": 12}})");
  const auto vector = [&] { return PictureEncoder::from_folder(folder.path()).embed(Picture(20, 30, 3)); };
  EXPECT_TRUE(vector().equal(vector()));
}

}  // namespace calque::media_tasks_test
