#include "calque/generate/stopping_criteria.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/text/tokenizer.h"
#include "generate/checks.h"

namespace calque {
namespace {

// A tail of tokens that is sure to hold a string of this many bytes: a token has at least one byte, unless it is part of a
// character, of which there are at most four.
size_t tail_length(size_t bytes) { return bytes + 8; }

bool completes(std::span<const int64_t> ids, const std::string& stop, const Tokenizer& tokenizer) {
  const auto tail = ids.subspan(ids.size() - std::min(ids.size(), tail_length(stop.size())));
  const std::string text = tokenizer.decode(tail, false);
  const std::string before = tokenizer.decode(tail.first(tail.size() - 1), false);
  // What the last token added begins where the two texts part: the one before may end in half a character.
  const auto common =
      static_cast<size_t>(std::mismatch(before.begin(), before.end(), text.begin(), text.end()).second - text.begin());
  const size_t from = common >= stop.size() ? common - stop.size() + 1 : 0;
  return text.find(stop, from) != std::string::npos;
}

}  // namespace

std::vector<bool> rows_done(const StoppingCriteriaList& criteria, const Tensor& input_ids) {
  std::vector<bool> done(static_cast<size_t>(input_ids.size(0)), false);
  for (const StoppingCriterion& criterion : criteria) {
    const std::vector<bool> own = criterion(input_ids);
    for (size_t i = 0; i < done.size(); ++i) done[i] = done[i] || own.at(i);
  }
  return done;
}

StoppingCriterion max_length_criteria(int64_t max_length, int64_t max_position_embeddings) {
  return {"MaxLengthCriteria", [=](const Tensor& ids) {
            const bool done = ids.size(-1) >= max_length;
            if (!done && max_position_embeddings > 0 && ids.size(-1) >= max_position_embeddings)
              warn("The text is now as long as the model's " + std::to_string(max_position_embeddings) +
                   " positions, and goes on: what comes may be an error or of lesser quality. A smaller `max_new_tokens` "
                   "ends it before.");
            return std::vector<bool>(static_cast<size_t>(ids.size(0)), done);
          }};
}

StoppingCriterion max_time_criteria(double max_time, StoppingClock::time_point start) {
  return {"MaxTimeCriteria", [=](const Tensor& ids) {
            const double passed = std::chrono::duration<double>(StoppingClock::now() - start).count();
            return std::vector<bool>(static_cast<size_t>(ids.size(0)), passed > max_time);
          }};
}

StoppingCriterion eos_token_criteria(TokenIds eos_token_id) {
  return {"EosTokenCriteria", [eos = std::move(eos_token_id)](const Tensor& ids) {
            const IdRows rows(ids);
            std::vector<bool> done;
            for (size_t r = 0; r < rows.size(); ++r)
              done.push_back(!rows[r].empty() && std::find(eos.begin(), eos.end(), rows[r].back()) != eos.end());
            return done;
          }};
}

StoppingCriterion stop_string_criteria(std::vector<std::string> stop_strings, const Tokenizer& tokenizer) {
  if (std::any_of(stop_strings.begin(), stop_strings.end(), [](const std::string& s) { return s.empty(); }))
    throw UserError("`stop_strings` has an empty string, which would stop everything");
  return {"StopStringCriteria", [stops = std::move(stop_strings), &tokenizer](const Tensor& ids) {
            const IdRows rows(ids);
            std::vector<bool> done;
            for (size_t r = 0; r < rows.size(); ++r)
              done.push_back(!rows[r].empty() && std::any_of(stops.begin(), stops.end(), [&](const std::string& stop) {
                return completes(rows[r], stop, tokenizer);
              }));
            return done;
          }};
}

}  // namespace calque
