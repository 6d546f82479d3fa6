// When each token was said: what the decoder looked at while it wrote, by heads that follow the sound, aligned by dynamic time warping.
#pragma once

#include <optional>
#include <vector>

#include "calque/op/tensor.h"

namespace calque {

struct TokenTimesOptions {
  int64_t prompt = 0;                  // tokens in front, whose time is 0
  std::optional<int64_t> frames = {};  // of the sound that count; a negative number leaves out so many at the end
  bool cut_twice = false;    // transformers cuts so where all rows have as many frames; it shows where they are negative
  int64_t median_width = 7;  // of the filter over time
  double time_precision = 0.02;
};

// `weights` are of one row [heads, prompt + tokens - 1, states]: the last token was written and not looked with. A time for each token
// of the prompt and each that was written.
std::vector<float> token_times(const Tensor& weights, const TokenTimesOptions& options);

}  // namespace calque
