// generate for Whisper, as transformers' WhisperForConditionalGeneration.generate: the text begins with tokens of language and task,
// timestamps keep their rules, a recording longer than the model hears at once is written part by part, and a part that came out badly
// is written again at a higher temperature. What the settings of generation have for Whisper alone (lang_to_id, alignment_heads, ...) is
// read from GenerationConfig::other.
//
//   const auto out = whisper_generate(*model, features, generation_config_of(folder), {.return_timestamps = true});
//   for (const SpokenSegment& one : out.segments[0]) ...
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calque/generate/generate.h"

namespace calque {

class PretrainedModel;

struct WhisperOptions {
  std::optional<bool> return_timestamps = {};  // a recording that is longer than one part always has them
  std::string task = {};                       // "transcribe" or "translate"
  std::vector<std::string> language = {};      // "de", "german" or "<|de|>", for all rows or for each; none: detected
  std::optional<bool> is_multilingual = {};
  TokenIds prompt_ids = {};             // what was said before: of the first part, or of every one
  bool prompt_in_all_segments = false;  // needs condition_on_prev_tokens
  std::optional<bool> condition_on_prev_tokens = {};
  std::vector<double> temperature = {};  // tried in this order while a part falls short of the thresholds; 0: not sampled
  std::optional<double> compression_ratio_threshold = {}, logprob_threshold = {}, no_speech_threshold = {};
  bool token_timestamps = false;  // when each token was said, by the heads that the settings name
  Tensor attention_mask = {};     // [rows, frames]: which frames are no padding; of several long recordings it is needed
  double time_precision = 0.02;   // seconds between two timestamps
  double frame_precision = 0.01;  // seconds between two frames
  // Told of the frames that are done and of all frames, by row, before each part.
  std::function<void(std::span<const int64_t> done, std::span<const int64_t> frames)> progress = {};
};

struct SpokenSegment {
  double begin = 0, end = 0;  // seconds
  TokenIds ids;               // its timestamps among them
  std::vector<float> times;   // where they were asked for: seconds, of each id
};

struct WhisperOutput {
  Tensor sequences;  // what was written behind the first tokens, without ends of text; padded
  std::vector<std::vector<SpokenSegment>> segments;  // by row
  std::vector<TokenIds> first_tokens;                // by row: the start, and language, task and timestamps as they are
};

// `features` are [rows, bins, frames] as Whisper's extractor makes them. UserError for another model, and for options that contradict the
// settings or each other. No gradients.
WhisperOutput whisper_generate(PretrainedModel& model, const Tensor& features, const GenerationConfig& config,
                               const WhisperOptions& whisper = {}, const GenerateOptions& options = {});

// The rules of timestamps: in pairs, never earlier than before, the first not later than so many steps; one of them where together they
// are likelier than any word. `begin_index` is the place of the first token that is written.
struct WhisperTimestamps {
  int64_t no_timestamps_token_id = 0;  // the timestamps follow it
  int64_t eos_token_id = 0;
  std::optional<int64_t> max_initial_timestamp_index = {};
  bool by_probability = true;
};
LogitsProcessor whisper_timestamp_logits_processor(const WhisperTimestamps& rules, int64_t begin_index);

// English names of the languages by their codes ("de": "german"), in Whisper's order.
std::span<const std::pair<std::string_view, std::string_view>> whisper_languages();

}  // namespace calque
