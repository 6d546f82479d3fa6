#include "calque/task/sounds.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/hub/model_io.h"
#include "calque/hub/pretrained_model.h"
#include "calque/op/aten/reductions.h"
#include "task/files.h"
#include "task/load.h"
#include "task/media_inputs.h"
#include "task/text_case.h"
#include "task/whisper_text.h"
#include "text/decoder.h"

namespace calque {
namespace {

namespace fs = std::filesystem;

FeatureExtractor extractor_of(const fs::path& folder) {
  return FeatureExtractor::from_folder(ModelFiles(folder.string()).folder());
}

// A member that is a token: a text, or an object with its "content".
void read_token(const Json& json, std::string_view key, std::string& to) {
  const Json* found = member_or_null(json, key);
  if (!found) return;
  to = std::string((found->is_object() ? found->at("content") : *found).to_string());
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\n\r\f\v");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\n\r\f\v") - first + 1);
}

// Characters between spaces, with the times of the first and the last one.
std::vector<SpokenPart> words_of(const std::vector<SpokenPart>& characters, const std::string& space) {
  std::vector<SpokenPart> out;
  bool open = false;
  for (const SpokenPart& one : characters) {
    const bool is_space = one.text == space;
    if (!is_space && open)
      out.back().text += one.text, out.back().end = one.end;
    else if (!is_space)
      out.push_back(one);
    open = !is_space;
  }
  return out;
}

}  // namespace

SoundClassifier::SoundClassifier(std::shared_ptr<PretrainedModel> model, FeatureExtractor extractor)
    : model_(std::move(model)), extractor_(std::move(extractor)), labels_(labels_of(model_->config())) {}

SoundClassifier SoundClassifier::from_folder(const fs::path& folder, const LoadOptions& options) {
  static constexpr std::string_view tasks[] = {"audio-classification"};
  return {load_model_for_task(folder, options, tasks, "classify --audio").model, extractor_of(folder)};
}

std::vector<LabelScore> SoundClassifier::classify(const Waveform& waveform) const {
  const GradModeScope no_grad(false);
  const Tensor logits = (*model_)(sound_inputs(*model_, extractor_, waveform)).logits().to(DType::float32);
  return sorted_labels(logits.softmax(-1), labels_);
}

CtcVocabulary CtcVocabulary::from_folder(const fs::path& folder) {
  CtcVocabulary out;
  std::string language;
  if (is_file(folder / "tokenizer_config.json"))
    read_json_file(folder / "tokenizer_config.json", [&](const Json& json) {
      read_token(json, "pad_token", out.pad_);
      read_token(json, "unk_token", out.unknown_);
      read_token(json, "word_delimiter_token", out.delimiter_);
      read_token(json, "replace_word_delimiter_char", out.space_);
      read_token(json, "target_lang", language);
      if (const Json* lower = member_or_null(json, "do_lower_case")) out.lower_ = lower->to_bool();
      if (const Json* clean = member_or_null(json, "clean_up_tokenization_spaces")) out.clean_up_ = clean->to_bool();
    });
  read_json_file(folder / "vocab.json", [&](const Json& json) {
    const Json& tokens = language.empty() ? json : json.at(language);
    for (const JsonMember& one : tokens.members()) out.tokens_[one.value.to_int()] = std::string(one.key);
  });
  return out;
}

Transcript CtcVocabulary::decode(std::span<const int64_t> ids, int64_t samples, int64_t rate, TimesOf times) const {
  Transcript out;
  out.ids.assign(ids.begin(), ids.end());
  std::vector<SpokenPart> characters;
  const auto at = [&](size_t step) {
    return static_cast<double>(static_cast<int64_t>(step) * samples) / static_cast<double>(rate);
  };
  const auto token = [&](int64_t id) -> const std::string& {
    const auto found = tokens_.find(id);
    return found == tokens_.end() ? unknown_ : found->second;
  };
  for (size_t i = 0; i < ids.size();) {
    const std::string& text = token(ids[i]);
    size_t end = i + 1;
    while (end < ids.size() && token(ids[end]) == text) ++end;
    if (text != pad_) characters.push_back({text == delimiter_ ? space_ : text, at(i), at(end)});
    i = end;
  }
  for (const SpokenPart& one : characters) out.text += one.text;
  out.text = trimmed(out.text);
  if (lower_) out.text = lower_text(out.text);
  if (clean_up_) clean_up_spaces(out.text);
  if (times == TimesOf::words) out.parts = words_of(characters, space_);
  if (times == TimesOf::characters) out.parts = std::move(characters);
  return out;
}

Transcriber::Transcriber(std::shared_ptr<PretrainedModel> model, FeatureExtractor extractor)
    : model_(std::move(model)), extractor_(std::move(extractor)) {}

Transcriber Transcriber::from_folder(const fs::path& folder, const LoadOptions& options) {
  static constexpr std::string_view tasks[] = {"ctc", "speech-seq2seq"};
  const ModelForTask found = load_model_for_task(folder, options, tasks, "transcribe");
  Transcriber out(found.model, extractor_of(folder));
  const fs::path files = ModelFiles(folder.string()).folder();
  if (found.task == "ctc") {
    out.vocabulary_ = CtcVocabulary::from_folder(files);
  } else {
    out.tokenizer_ = Tokenizer::from_file(files);
    out.settings_ = generation_config_of(files);
  }
  return out;
}

Transcript Transcriber::transcribe(const Waveform& waveform, const SpeechOptions& options) const {
  const GradModeScope no_grad(false);
  const bool whispers = model_->config().model_type() == "whisper";
  if (!whispers && (!options.whisper.task.empty() || !options.whisper.language.empty()))
    throw UserError("transcribe: " + model_->class_name() + " has no language and no task to choose; Whisper's models do");
  if (vocabulary_ ? options.times == TimesOf::segments : options.times == TimesOf::characters)
    throw UserError("transcribe: " + model_->class_name() + " does not say when each " +
                    (vocabulary_ ? "segment was said; ask for words or characters" : "character was said; ask for words"));
  if (vocabulary_) return read_steps(waveform, options.times);
  if (whispers) return whispered(waveform, options);
  if (options.times != TimesOf::nothing)
    throw UserError("transcribe: " + model_->class_name() +
                    " does not say when something was said; Whisper and models with a CTC head do");
  return written(waveform, options);
}

Transcript Transcriber::read_steps(const Waveform& waveform, TimesOf times) const {
  SoundFeatureOptions options;
  options.attention_mask = true;
  const Tensor logits = (*model_)(sound_inputs(*model_, extractor_, waveform, options)).logits();
  const Tensor best = argmax(logits, -1).contiguous();
  int64_t samples = 1;  // a step of the model
  for (const int64_t stride : model_->config().integers("conv_stride")) samples *= stride;
  return vocabulary_->decode({best.data_as<int64_t>(), static_cast<size_t>(best.numel())}, samples, extractor_.rate(),
                             times);
}

Transcript Transcriber::written(const Waveform& waveform, const SpeechOptions& options) const {
  GenerateOptions generation;
  generation.generator = options.generator;
  const ModelInputs heard = sound_inputs(*model_, extractor_, waveform);
  const Tensor ids = generate(*model_, heard, settings_, generation).sequences.contiguous();
  Transcript out;
  out.ids.assign(ids.data_as<int64_t>(), ids.data_as<int64_t>() + ids.numel());
  out.text = tokenizer_->decode(out.ids);
  return out;
}

Transcript Transcriber::whispered(const Waveform& waveform, const SpeechOptions& options) const {
  const Waveform at_rate = resampled(waveform, extractor_.rate());
  const bool is_long = std::ssize(at_rate.samples) > extractor_.chunk_samples();
  const SoundFeatures features = extractor_.extract({&at_rate, 1}, {.whole = is_long, .attention_mask = true});
  WhisperOptions whisper = options.whisper;
  if (options.times != TimesOf::nothing) whisper.return_timestamps = true;
  whisper.token_timestamps = options.times == TimesOf::words;
  whisper.attention_mask = *features.attention_mask;
  GenerateOptions generation;
  generation.generator = options.generator;
  const WhisperOutput found = whisper_generate(*model_, as_model(*model_, features.values), settings_, whisper, generation);
  std::vector<int64_t> ids;
  std::vector<float> times;
  for (const SpokenSegment& one : found.segments[0]) {
    ids.insert(ids.end(), one.ids.begin(), one.ids.end());
    times.insert(times.end(), one.times.begin(), one.times.end());
  }
  WhisperTextOptions text{.times = options.times, .language = language_of(found.first_tokens[0])};
  text.time_precision = static_cast<double>(extractor_.chunk_samples()) / static_cast<double>(extractor_.rate()) /
                        static_cast<double>(model_->config().integer("max_source_positions"));
  Transcript out = whisper_text(*tokenizer_, ids, times, text);
  out.language = text.language;
  return out;
}

// The language is one of the first tokens: "<|de|>".
std::string Transcriber::language_of(const std::vector<int64_t>& first_tokens) const {
  for (const int64_t id : first_tokens)
    for (const auto& [code, name] : whisper_languages())
      if (tokenizer_->id_to_token(id) == "<|" + std::string(code) + "|>") return std::string(name);
  return "";
}

}  // namespace calque
