// What Whisper wrote as text: what was said between timestamps, or word by word, as transformers' pipeline gives it.
#pragma once

#include <vector>

#include "calque/task/sounds.h"

namespace calque {

struct WhisperTextOptions {
  TimesOf times = TimesOf::nothing;
  double time_precision = 0.02;  // seconds between two timestamps
  std::string language = {};     // English name; empty: not known
};

// `token_times` are of the ids, for words. The tokenizer is Whisper's: its timestamps follow "<|notimestamps|>".
Transcript whisper_text(const Tokenizer& tokenizer, const std::vector<int64_t>& ids, const std::vector<float>& token_times,
                        const WhisperTextOptions& options);

}  // namespace calque
