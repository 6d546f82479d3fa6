#include "generate/token_times.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calque/base/error.h"
#include "calque/op/operators.h"

namespace calque {
namespace {

// A table of rows.
struct Rows {
  size_t height = 0, width = 0;
  std::vector<float> values;
  Rows(size_t rows, size_t columns, float value = 0) : height(rows), width(columns), values(rows * columns, value) {}
  float& at(size_t row, size_t column) { return values[row * width + column]; }
  float at(size_t row, size_t column) const { return values[row * width + column]; }
};

// Each column less its mean, over its deviation; rounded where PyTorch rounds, since ties decide the alignment of a few tokens.
void standardize(Rows& rows) {
  const auto height = static_cast<float>(rows.height);
  for (size_t x = 0; x < rows.width; ++x) {
    float sum = 0;
    double exact = 0, squares = 0;
    for (size_t y = 0; y < rows.height; ++y) sum += rows.at(y, x), exact += static_cast<double>(rows.at(y, x));
    exact /= static_cast<double>(rows.height);
    for (size_t y = 0; y < rows.height; ++y) squares += std::pow(static_cast<double>(rows.at(y, x)) - exact, 2);
    const float mean = sum / height, deviation = static_cast<float>(std::sqrt(squares / static_cast<double>(rows.height)));
    for (size_t y = 0; y < rows.height; ++y) rows.at(y, x) = (rows.at(y, x) - mean) / deviation;
  }
}

// The median of `width` neighbours in each row, mirrored at its ends. A row that is not wider than half of that stays as it is.
void median_filter(Rows& rows, size_t width) {
  const size_t half = width / 2;
  if (rows.width <= half) return;
  std::vector<float> padded(rows.width + 2 * half), window(width);
  const auto less = [](float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; };  // NaN behind all others
  for (size_t y = 0; y < rows.height; ++y) {
    float* row = rows.values.data() + y * rows.width;
    std::copy_n(row, rows.width, padded.data() + half);
    for (size_t i = 0; i < half; ++i) {
      padded[half - 1 - i] = row[i + 1];
      padded[half + rows.width + i] = row[rows.width - 2 - i];
    }
    for (size_t x = 0; x < rows.width; ++x) {
      std::copy_n(padded.data() + x, width, window.data());
      std::nth_element(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(half), window.end(), less);
      row[x] = window[half];
    }
  }
}

// The cheapest way through -values from the first token and state to the last: at which state each token begins.
std::vector<int64_t> first_states(const Rows& values) {
  const size_t tokens = values.height, states = values.width;
  enum Step : uint8_t { both, token, state };
  Rows cost(tokens + 1, states + 1, std::numeric_limits<float>::infinity());
  std::vector<Step> steps((tokens + 1) * (states + 1), both);
  cost.at(0, 0) = 0;
  for (size_t j = 1; j <= states; ++j)
    for (size_t i = 1; i <= tokens; ++i) {
      const float diagonal = cost.at(i - 1, j - 1), above = cost.at(i - 1, j), left = cost.at(i, j - 1);
      Step step = state;
      float before = left;
      if (diagonal < above && diagonal < left)
        step = both, before = diagonal;
      else if (above < diagonal && above < left)
        step = token, before = above;
      cost.at(i, j) = static_cast<float>(-static_cast<double>(values.at(i - 1, j - 1)) + static_cast<double>(before));
      steps[i * (states + 1) + j] = step;
    }
  std::vector<int64_t> out(tokens);
  size_t i = tokens, j = states;
  while (i > 0 || j > 0) {
    if (i > 0) out[i - 1] = static_cast<int64_t>(j) - 1;  // the way goes back in time: what is written last stands
    const Step step = i == 0 ? state : j == 0 ? token : steps[i * (states + 1) + j];
    i -= step == state ? 0 : 1;
    j -= step == token ? 0 : 1;
  }
  return out;
}

// Two frames for a state. A part behind the sound's end has a negative number, which counts from the end as Python's slices do.
size_t states_of(int64_t frames, size_t all) {
  const int64_t states = (frames - (frames < 0 && frames % 2 != 0 ? 1 : 0)) / 2, most = static_cast<int64_t>(all);
  return static_cast<size_t>(std::clamp<int64_t>(states < 0 ? most + states : states, 0, most));
}

}  // namespace

std::vector<float> token_times(const Tensor& given, const TokenTimesOptions& options) {
  if (options.median_width <= 0 || options.median_width % 2 == 0)
    throw UserError("Whisper: median_filter_width has to be an odd number, but is " + std::to_string(options.median_width));
  const Tensor weights = given.to(DType::float32).contiguous();
  const auto heads = static_cast<size_t>(weights.size(0)), looked = static_cast<size_t>(weights.size(1)),
             all_states = static_cast<size_t>(weights.size(2)), prompt = static_cast<size_t>(options.prompt);
  std::vector<float> out(looked + 1, 0.0F);
  if (looked <= prompt) return out;
  const size_t tokens = looked - prompt;
  size_t states = all_states;
  for (int cuts = options.frames ? (options.cut_twice ? 2 : 1) : 0; cuts > 0; --cuts)
    states = states_of(*options.frames, states);
  Rows mean(tokens, states);
  for (size_t head = 0; head < heads; ++head) {
    Rows rows(tokens, states);
    for (size_t t = 0; t < tokens; ++t)
      std::copy_n(weights.data_as<float>() + (head * looked + prompt + t) * all_states, states,
                  rows.values.data() + t * states);
    standardize(rows);
    median_filter(rows, static_cast<size_t>(options.median_width));
    for (size_t i = 0; i < rows.values.size(); ++i) mean.values[i] += rows.values[i];
  }
  for (float& value : mean.values) value /= static_cast<float>(heads);
  const std::vector<int64_t> begins = first_states(mean);
  for (size_t t = 0; t < tokens; ++t)
    out[prompt + t] = static_cast<float>(static_cast<double>(begins[t]) * options.time_precision);
  out[looked] = out[looked - 1];
  return out;
}

}  // namespace calque
