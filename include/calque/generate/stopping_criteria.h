// Stopping criteria, as transformers has them: given the ids so far [batch, length], which rows are done.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calque/generate/logits_process.h"
#include "calque/op/tensor.h"

namespace calque {

class Tokenizer;

struct StoppingCriterion {
  std::string name;
  std::function<std::vector<bool>(const Tensor& input_ids)> done;  // one a row

  std::vector<bool> operator()(const Tensor& input_ids) const { return done(input_ids); }
};

using StoppingCriteriaList = std::vector<StoppingCriterion>;
std::vector<bool> rows_done(const StoppingCriteriaList& criteria, const Tensor& input_ids);  // any of them

// At this many ids, the prompt among them.
// Going on beyond the model's positions, where they are known, gives a warning.
StoppingCriterion max_length_criteria(int64_t max_length, int64_t max_position_embeddings = 0);
// When more than this many seconds have passed; the clock starts when it is made, unless it is told when.
using StoppingClock = std::chrono::steady_clock;
StoppingCriterion max_time_criteria(double max_time, StoppingClock::time_point start = StoppingClock::now());
// When the last id is one of these.
StoppingCriterion eos_token_criteria(TokenIds eos_token_id);
// When the last token completes one of these strings, be it in its middle. The tokenizer must outlive the criterion.
StoppingCriterion stop_string_criteria(std::vector<std::string> stop_strings, const Tokenizer& tokenizer);

}  // namespace calque
