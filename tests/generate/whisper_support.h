// Cases of Whisper's generate as transformers made them: features and options from JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "calque/generate/whisper.h"

namespace calque::test {

// By transformers' names; prompt_condition_type is one of its two words.
WhisperOptions whisper_options_of(const nlohmann::json& options);
// Rows of bins of frames.
Tensor whisper_features_of(const nlohmann::json& rows);
// {"ids": rows, "segments": by row [begin, end, ids, times]}
nlohmann::json whisper_json_of(const WhisperOutput& output);

}  // namespace calque::test
