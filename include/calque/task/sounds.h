// What people ask of models of sound, as transformers' pipelines answer it: which labels (audio-classification), and what was said
// (automatic-speech-recognition): models with a CTC head, with the times of words or characters, and speech_to_text, which writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calque/generate/model_generate.h"
#include "calque/hub/from_pretrained.h"
#include "calque/media/feature_extractor.h"
#include "calque/task/classify.h"
#include "calque/text/tokenizer.h"

namespace calque {

class SoundClassifier {
 public:
  static SoundClassifier from_folder(const std::filesystem::path& folder, const LoadOptions& options = {});
  // All labels, the most likely first. A waveform of another rate is resampled.
  std::vector<LabelScore> classify(const Waveform& waveform) const;
  PretrainedModel& model() const { return *model_; }

 private:
  SoundClassifier(std::shared_ptr<PretrainedModel> model, FeatureExtractor extractor);
  std::shared_ptr<PretrainedModel> model_;
  FeatureExtractor extractor_;
  std::vector<std::string> labels_;
};

enum class TimesOf : uint8_t { nothing, words, characters };

struct SpokenPart {
  std::string text;
  double begin = 0, end = 0;  // in seconds
};

struct Transcript {
  std::string text;
  std::vector<SpokenPart> parts;  // where times were asked for
  std::vector<int64_t> ids;       // the likeliest token of each step, or what was written
};

// The characters of a CTC head: vocab.json and the special tokens, as Wav2Vec2CTCTokenizer reads them.
class CtcVocabulary {
 public:
  static CtcVocabulary from_folder(const std::filesystem::path& folder);
  // Equal neighbours are one, padding is none. A step of the model is `samples` at `rate`.
  Transcript decode(std::span<const int64_t> ids, int64_t samples, int64_t rate, TimesOf times) const;

 private:
  std::map<int64_t, std::string> tokens_;
  std::string pad_ = "<pad>", unknown_ = "<unk>", delimiter_ = "|", space_ = " ";
  bool lower_ = false, clean_up_ = false;
};

class Transcriber {
 public:
  // UserError for a class that does not turn speech into text.
  static Transcriber from_folder(const std::filesystem::path& folder, const LoadOptions& options = {});
  Transcript transcribe(const Waveform& waveform, TimesOf times = TimesOf::nothing) const;
  PretrainedModel& model() const { return *model_; }

 private:
  Transcriber(std::shared_ptr<PretrainedModel> model, FeatureExtractor extractor);
  Transcript read_steps(const Waveform& waveform, TimesOf times) const;
  Transcript written(const Waveform& waveform) const;

  std::shared_ptr<PretrainedModel> model_;
  FeatureExtractor extractor_;
  // Of a CTC head, or of a model that writes.
  std::optional<CtcVocabulary> vocabulary_;
  std::optional<Tokenizer> tokenizer_;
  GenerationConfig settings_;
};

}  // namespace calque
