#include <algorithm>
#include <cmath>
#include <limits>

#include "calque/base/error.h"
#include "calque/generate/whisper.h"
#include "calque/op/operators.h"
#include "generate/checks.h"

namespace calque {
namespace {

constexpr float forbidden = -std::numeric_limits<float>::infinity();

struct RowOfScores {
  float* scores;
  int64_t vocab;
  void forbid(int64_t from, int64_t to) const {
    from = std::clamp<int64_t>(from, 0, vocab), to = std::clamp<int64_t>(to, from, vocab);
    std::fill(scores + from, scores + to, forbidden);
  }
};

// Timestamps come in pairs, but for the one in front of the end, and none is earlier than the last.
void keep_pairs(std::span<const int64_t> written, const WhisperTimestamps& rules, const RowOfScores& row) {
  const int64_t begin = rules.no_timestamps_token_id + 1;
  const bool last = !written.empty() && written.back() >= begin;
  const bool before = written.size() < 2 || written[written.size() - 2] >= begin;
  if (last && before)
    row.forbid(begin, row.vocab);
  else if (last)
    row.forbid(0, rules.eos_token_id);
  const auto latest = std::find_if(written.rbegin(), written.rend(), [&](int64_t id) { return id >= begin; });
  if (latest != written.rend()) row.forbid(begin, last && !before ? *latest : *latest + 1);
}

}  // namespace

LogitsProcessor whisper_timestamp_logits_processor(const WhisperTimestamps& rules, int64_t begin_index) {
  const auto apply = [rules, begin_index](const Tensor& ids, const Tensor& scores) {
    const int64_t begin = rules.no_timestamps_token_id + 1, vocab = scores.size(-1);
    if (begin <= 0 || begin >= vocab)
      throw UserError("Whisper: `no_timestamps_token_id` is " + std::to_string(begin - 1) +
                      ", behind which there are no timestamps in the vocabulary of " + std::to_string(vocab));
    const IdRows rows(ids);
    Tensor out = scores.contiguous().clone();
    float* data = out.mutable_data_as<float>();
    for (size_t r = 0; r < rows.size(); ++r) {
      const RowOfScores row{data + static_cast<int64_t>(r) * vocab, vocab};
      row.forbid(begin - 1, begin);
      keep_pairs(rows[r].subspan(static_cast<size_t>(std::min(begin_index, ids.size(1)))), rules, row);
      if (ids.size(1) != begin_index) continue;
      row.forbid(0, begin);
      if (rules.max_initial_timestamp_index) row.forbid(begin + *rules.max_initial_timestamp_index + 1, vocab);
    }
    if (!rules.by_probability) return out;
    const Tensor logs = out.log_softmax(-1);
    const Tensor times = logs.narrow(1, begin, vocab - begin).logsumexp({-1}).contiguous();
    const Tensor words = logs.narrow(1, 0, begin).amax({-1}).contiguous();
    for (size_t r = 0; r < rows.size(); ++r)
      if (times.data_as<float>()[r] > words.data_as<float>()[r])
        RowOfScores{data + static_cast<int64_t>(r) * vocab, vocab}.forbid(0, begin);
    return out;
  };
  return {"WhisperTimeStampLogitsProcessor", apply};
}

}  // namespace calque
