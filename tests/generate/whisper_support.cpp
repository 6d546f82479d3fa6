#include "whisper_support.h"

#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/op/operators.h"

namespace calque::test {
namespace {

using Nlohmann = nlohmann::json;

Tensor mask_of(const Nlohmann& rows) {
  std::vector<int64_t> all;
  for (const auto& row : rows)
    for (const auto& value : row) all.push_back(value.get<int64_t>());
  return tensor_of<int64_t>(all, {std::ssize(rows), std::ssize(rows[0])});
}

}  // namespace

Tensor whisper_features_of(const Nlohmann& rows) {
  std::vector<float> all;
  for (const auto& row : rows)
    for (const auto& bin : row)
      for (const auto& value : bin) all.push_back(value.get<float>());
  return tensor_of<float>(all, {std::ssize(rows), std::ssize(rows[0]), std::ssize(rows[0][0])});
}

WhisperOptions whisper_options_of(const Nlohmann& json) {
  WhisperOptions out;
  for (const auto& [key, value] : json.items()) {
    if (key == "return_timestamps")
      out.return_timestamps = value.get<bool>();
    else if (key == "task")
      out.task = value.get<std::string>();
    else if (key == "language" && value.is_string())
      out.language = {value.get<std::string>()};
    else if (key == "language")
      out.language = value.get<std::vector<std::string>>();
    else if (key == "prompt_ids")
      out.prompt_ids = value.get<TokenIds>();
    else if (key == "prompt_condition_type")
      out.prompt_in_all_segments = value == "all-segments";
    else if (key == "condition_on_prev_tokens")
      out.condition_on_prev_tokens = value.get<bool>();
    else if (key == "temperature" && value.is_number())
      out.temperature = {value.get<double>()};
    else if (key == "temperature")
      out.temperature = value.get<std::vector<double>>();
    else if (key == "compression_ratio_threshold")
      out.compression_ratio_threshold = value.get<double>();
    else if (key == "logprob_threshold")
      out.logprob_threshold = value.get<double>();
    else if (key == "no_speech_threshold")
      out.no_speech_threshold = value.get<double>();
    else if (key == "return_token_timestamps")
      out.token_timestamps = value.get<bool>();
    else if (key == "attention_mask")
      out.attention_mask = mask_of(value);
    else
      throw UserError("no such option of Whisper:  " + key);
  }
  return out;
}

Nlohmann whisper_json_of(const WhisperOutput& found) {
  Nlohmann out = {{"ids", Nlohmann::array()}, {"segments", Nlohmann::array()}};
  const Tensor ids = found.sequences.contiguous();
  for (int64_t r = 0; r < ids.size(0); ++r) {
    const int64_t* row = ids.data_as<int64_t>() + r * ids.size(1);
    out["ids"].push_back(std::vector<int64_t>(row, row + ids.size(1)));
  }
  for (const auto& row : found.segments) {
    Nlohmann& parts = out["segments"].emplace_back(Nlohmann::array());
    for (const SpokenSegment& one : row) parts.push_back({one.begin, one.end, one.ids, one.times});
  }
  return out;
}

}  // namespace calque::test
