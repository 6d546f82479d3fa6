// What people ask of models of sound, as transformers' pipelines answer it: which labels (audio-classification), and what was said
// (automatic-speech-recognition): models with a CTC head, with the times of words or characters; Whisper, with those of words or of what
// it says in one go; and speech_to_text, which writes.
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
#include "calque/generate/whisper.h"
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

enum class TimesOf : uint8_t { nothing, segments, words, characters };

struct SpokenPart {
  std::string text;
  std::optional<double> begin, end;  // in seconds; nothing where the model wrote no time
};

struct Transcript {
  std::string text;
  std::vector<SpokenPart> parts;  // where times were asked for
  std::vector<int64_t> ids;       // the likeliest token of each step, or what was written
  std::string language;           // of Whisper, in English: "german"; empty where the model says none
};

struct SpeechOptions {
  TimesOf times = TimesOf::nothing;
  // Whisper's alone: language, task, prompt, temperatures, thresholds. Times and masks follow from the above.
  WhisperOptions whisper = {};
  Generator* generator = nullptr;  // for sampling; the default one when null
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
  Transcript transcribe(const Waveform& waveform, const SpeechOptions& options = {}) const;
  PretrainedModel& model() const { return *model_; }
  GenerationConfig& settings() { return settings_; }  // of a model that writes

 private:
  Transcriber(std::shared_ptr<PretrainedModel> model, FeatureExtractor extractor);
  Transcript read_steps(const Waveform& waveform, TimesOf times) const;
  Transcript written(const Waveform& waveform, const SpeechOptions& options) const;
  Transcript whispered(const Waveform& waveform, const SpeechOptions& options) const;
  std::string language_of(const std::vector<int64_t>& first_tokens) const;

  std::shared_ptr<PretrainedModel> model_;
  FeatureExtractor extractor_;
  // Of a CTC head, or of a model that writes.
  std::optional<CtcVocabulary> vocabulary_;
  std::optional<Tokenizer> tokenizer_;
  GenerationConfig settings_;
};

}  // namespace calque
