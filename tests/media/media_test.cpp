// Pictures, sounds and what models take of them against Pillow, soundfile, transformers and formulas in float64 (golden/, written by
// tools/golden/media.py), and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/base/memory.h"
#include "calque/file/safetensors.h"
#include "calque/media/feature_extractor.h"
#include "calque/media/image_processor.h"
#include "media/media_jobs_support.h"
#include "support/error_support.h"
#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::media_test {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;
using Nlohmann = nlohmann::json;

const std::string golden = test::source_folder() + "/tests/media/golden";

// Bytes and labels the same, floats within 1e-6.
void expect_same(const Tensor& found, const Tensor& wanted) {
  ASSERT_EQ(found.dtype(), wanted.dtype());
  ASSERT_EQ(found.sizes(), wanted.sizes());
  const Tensor a = found.to(DType::float64).contiguous(), b = wanted.to(DType::float64).contiguous();
  const double allowed = wanted.dtype() == DType::float32 ? 1e-6 : 0;
  for (int64_t i = 0; i < a.numel(); ++i)
    ASSERT_LE(std::abs(a.data_as<double>()[i] - b.data_as<double>()[i]), allowed) << "element " << i;
}

// All jobs of one kind; how many there were.
size_t run_golden(const std::string& kind) {
  const Nlohmann jobs = Nlohmann::parse(std::ifstream(golden + "/jobs.json"));
  const SafetensorsFile wanted = SafetensorsFile::open(golden + "/expected.safetensors");
  size_t count = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].at("do") != kind) continue;
    SCOPED_TRACE(jobs[i].dump());
    ++count;
    for (const auto& [name, tensor] : test::run_media_job(jobs[i], golden))
      expect_same(tensor, wanted.tensor(std::to_string(i) + "." + name));
  }
  return count;
}

std::string picture_error(const std::string& path, const PictureOptions& options = {}) {
  return error_of([&] { load_picture(path, options); }, ErrorKind::bad_file);
}

std::string processor_error(const std::string& json) {
  return error_of([&] { ImageProcessor::from_json(json, "settings"); }, ErrorKind::bad_file);
}

}  // namespace

TEST(Media, pictures_have_the_pixels_that_load_image_gives) { EXPECT_GE(run_golden("picture"), 30u); }
TEST(Media, resizing_gives_pillows_bytes) { EXPECT_EQ(run_golden("resize"), 36u); }
TEST(Media, image_processors_give_what_the_pil_backend_gives) { EXPECT_GE(run_golden("process"), 16u); }
TEST(Media, maps_of_labels_are_prepared_as_transformers_does) { EXPECT_EQ(run_golden("labels"), 2u); }
TEST(Media, sounds_have_the_samples_of_libsndfile) { EXPECT_GE(run_golden("waveform"), 11u); }
TEST(Media, resampling_follows_the_sinc_formula) { EXPECT_EQ(run_golden("resample"), 2u); }
TEST(Media, features_of_sounds_follow_their_formulas) { EXPECT_EQ(run_golden("features"), 3u); }

TEST(Media, a_picture_of_too_many_pixels_is_refused_from_its_header) {
  PictureOptions options;
  options.max_pixels = 100;
  for (const char* name : {"rgb.png", "420.jpg", "lossy.webp"})
    EXPECT_THAT(picture_error(golden + "/" + name, options), HasSubstr("a picture of 14 x 9 pixels; at most 100 are read"));
}

TEST(Media, pixels_count_against_the_limit_on_memory) {
  const size_t before = memory_limit();
  set_memory_limit(memory_in_use() + 200);
  const std::string error = error_of([] { load_picture(golden + "/rgb.png"); });
  set_memory_limit(before);
  EXPECT_THAT(error, HasSubstr("out of memory"));
}

TEST(Media, a_sound_that_lasts_too_long_is_refused_from_its_header) {
  WaveformOptions options;
  options.max_seconds = 0.01;
  for (const char* name : {"s16.wav", "flac.flac"})
    EXPECT_THAT(error_of([&] { load_waveform(golden + "/" + name, options); }, ErrorKind::bad_file),
                AllOf(HasSubstr(name), HasSubstr("at most 0 are read (raise the limit with --max-seconds")));
}

TEST(Media, cut_off_files_are_errors_that_name_them) {
  const test::TemporaryFolder folder;
  for (const char* name : {"rgb.png", "interlaced.png", "420.jpg", "progressive.jpg", "lossy.webp"}) {
    const std::string whole = test::read_file(golden + "/" + name);
    const std::string path = folder.write(name, whole.substr(0, whole.size() - 30));
    EXPECT_THAT(picture_error(path), AllOf(HasSubstr(path), HasSubstr("broken"))) << name;
  }
}

TEST(Media, what_is_no_picture_says_what_is_read) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(picture_error(folder.write("a.gif", "GIF89a")), HasSubstr("neither PNG nor JPEG nor WebP"));
  EXPECT_THAT(error_of([&] { load_waveform(folder.write("a.wav", "RIFF")); }), HasSubstr("a.wav"));
}

TEST(Media, a_map_of_labels_has_one_channel) {
  PictureOptions labels;
  labels.labels = true;
  EXPECT_EQ(load_picture(golden + "/palette.png", labels).channels, 1);
  for (const char* name : {"rgb.png", "420.jpg", "lossy.webp", "grey16.png"})
    EXPECT_THAT(picture_error(golden + "/" + name, labels), HasSubstr("a map of labels has one channel")) << name;
}

TEST(Media, a_written_png_is_read_back) {
  const test::TemporaryFolder folder;
  const Picture picture = load_picture(golden + "/tall.png");
  save_png(folder.path("out.png"), picture);
  EXPECT_EQ(load_picture(folder.path("out.png")).bytes, picture.bytes);
}

TEST(Media, settings_that_cannot_be_followed_are_named) {
  EXPECT_THAT(processor_error(R"({"image_processor_type": "OtherImageProcessor"})"),
              AllOf(HasSubstr("\"OtherImageProcessor\" is not known"), HasSubstr("ViTImageProcessor")));
  EXPECT_THAT(processor_error(R"({"image_processor_type": "ViTImageProcessor", "size": {"longest_edge": 3}})"),
              HasSubstr("a size is height and width"));
  EXPECT_THAT(processor_error(R"({"image_processor_type": "ViTImageProcessor", "size": 100000})"),
              HasSubstr("100000 pixels"));
  EXPECT_THAT(processor_error(R"({"image_processor_type": "ViTImageProcessor", "image_mean": [1, 2]})"),
              HasSubstr("image_mean"));
  EXPECT_THAT(processor_error(R"({"image_processor_type": "ViTImageProcessor", "resample": 9})"),
              HasSubstr("resample is 9"));
  EXPECT_THAT(error_of([] {
                FeatureExtractor::from_json(R"({"feature_extractor_type": "WhisperFeatureExtractor", "dither": 0.1})", "s");
              }),
              HasSubstr("dither"));
}

TEST(Media, a_folder_without_settings_says_which_file_is_missing) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { ImageProcessor::from_folder(folder.path()); }),
              HasSubstr("preprocessor_config.json: there is no such file"));
}

TEST(Media, pictures_of_one_batch_have_one_size) {
  const ImageProcessor keeps =
      ImageProcessor::from_json(R"({"image_processor_type": "ViTImageProcessor", "do_resize": false})", "s");
  const std::vector<Picture> two{load_picture(golden + "/tall.png"), load_picture(golden + "/wide.png")};
  EXPECT_THAT(error_of([&] { keeps.process(two); }), HasSubstr("pictures of one batch become 40 x 17 and 19 x 33"));
}

TEST(Media, a_waveform_of_another_rate_is_refused) {
  const FeatureExtractor extractor =
      FeatureExtractor::from_json(R"({"feature_extractor_type": "Wav2Vec2FeatureExtractor"})", "s");
  const Waveform waveform = load_waveform(golden + "/s8.wav");
  EXPECT_THAT(error_of([&] {
                extractor.extract({&waveform, 1});
              }),
              HasSubstr("8000 samples a second, but the model takes 16000"));
}

}  // namespace calque::media_test
