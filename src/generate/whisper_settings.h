// What generation_config.json says for Whisper alone, and what follows from it: the first tokens of a text.
#pragma once

#include <map>
#include <utility>

#include "calque/generate/whisper.h"

namespace calque {

class Config;

struct WhisperSettings {
  std::optional<std::map<std::string, int64_t>> lang_to_id, task_to_id;
  std::optional<bool> is_multilingual, return_timestamps, condition_on_prev_tokens;
  std::optional<int64_t> no_timestamps_token_id, max_initial_timestamp_index, prev_sot_token_id;
  std::optional<double> compression_ratio_threshold, logprob_threshold, no_speech_threshold;
  std::string task;
  std::vector<std::string> language;
  std::optional<std::vector<std::pair<int64_t, int64_t>>> alignment_heads;                    // layer, head
  std::optional<std::vector<std::pair<int64_t, std::optional<int64_t>>>> forced_decoder_ids;  // place, token
  bool timestamps_by_probability = true;

  bool timestamps() const { return return_timestamps.value_or(false); }
};

// The options over the settings, those over the model's config. UserError where they contradict each other.
WhisperSettings whisper_settings_of(const GenerationConfig& config, const Config& model, const WhisperOptions& options,
                                    bool is_short);

// By row. `detect` gives the ids of the rows' languages; it is asked where none is set.
std::vector<TokenIds> whisper_first_tokens(const WhisperSettings& settings, int64_t start, size_t rows,
                                           const std::function<TokenIds()>& detect);

}  // namespace calque
