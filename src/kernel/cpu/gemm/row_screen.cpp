#include "kernel/cpu/gemm/row_screen.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "calque/base/thread.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(RowScreenKernels, row_screen_kernels)

namespace {

constexpr double rounding = 0x1p-24;        // of one operation in float32
constexpr float max_sum = 1e37F;            // below it nothing overflows on the way
constexpr int64_t screen_grain = 1024;      // rows for a thread
constexpr int64_t max_candidate_part = 32;  // more than one row in so many: the whole product is as fast

double norm_of(const float* x, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += double{x[i]} * x[i];
  return std::sqrt(sum);
}

// Upwards, so that a bound stays one.
float above(double x) { return std::nextafter(static_cast<float>(x), std::numeric_limits<float>::infinity()); }

}  // namespace

RowScreen::RowScreen(const TensorBase& weight, const TensorBase& bias)
    : weight_(weight),
      bias_(bias),
      rows_(weight.size(0)),
      size_(weight.size(1)),
      stride_((size_ + 63) / 64 * 64),
      scale_(static_cast<size_t>(rows_)),
      reach_(static_cast<size_t>(rows_)),
      weight_version_(weight.version()) {
  rows_in_8_bits_ = make_tensor({rows_, stride_}, DType::int8);
  const float* w = weight_.data_as<float>();
  int8_t* packed = rows_in_8_bits_.mutable_data_as<int8_t>();
  // A sum of n products is off by at most n roundings of the sum of their sizes, and that is at most the product of the norms.
  // Twice: once for the sum over the 8 bits, once for the float32 product that this stands for.
  const double sums = static_cast<double>(2 * size_ + 16) * rounding;
  std::vector<float> norms(static_cast<size_t>(rows_));
  parallel_for(0, rows_, screen_grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float scale, norm, difference;
      row_screen_kernels()->pack(w + r * size_, size_, packed + r * stride_, stride_, scale, norm, difference);
      scale_[static_cast<size_t>(r)] = scale;
      // The norms have roundings too, and the difference one in each of its parts.
      norms[static_cast<size_t>(r)] = above(1.001 * scale * (double{norm} + difference));
      reach_[static_cast<size_t>(r)] = above(1.001 * scale * difference + sums * norms[static_cast<size_t>(r)]);
    }
  });
  for (const float norm : norms)
    longest_ = std::isnan(norm) ? norm : std::isnan(longest_) ? longest_ : std::max(longest_, norm);
  if (bias_.defined()) {
    bias_version_ = bias_.version();
    const float* b = bias_.data_as<float>();
    for (int64_t r = 0; r < rows_; ++r) bias_reach_ = std::max(bias_reach_, above(8 * rounding * std::abs(b[r])));
  }
}

bool RowScreen::is_of(const TensorBase& weight, const TensorBase& bias) const {
  return weight.is_same(weight_) && weight.version() == weight_version_ && bias.is_same(bias_) &&
         (!bias.defined() || bias.version() == bias_version_);
}

bool RowScreen::scores(const float* x, float* out) const {
  const double norm = norm_of(x, size_);
  const float length = above(1.001 * norm);
  if (!(length * longest_ < max_sum) || !std::isfinite(bias_reach_)) return false;
  // x in 16 bits, and the norm of what that leaves out.
  std::vector<int16_t> x_in_16_bits(static_cast<size_t>(stride_));
  float largest = 0;
  for (int64_t i = 0; i < size_; ++i) largest = std::max(largest, std::abs(x[i]));
  const float scale = largest / 32767;
  if (!(scale > std::numeric_limits<float>::min())) return false;
  double left_out = 0;
  for (int64_t i = 0; i < size_; ++i) {
    const float rounded = std::nearbyint(std::clamp(x[i] / scale, -32767.0F, 32767.0F));
    x_in_16_bits[static_cast<size_t>(i)] = static_cast<int16_t>(rounded);
    left_out += (x[i] - double{scale} * rounded) * (x[i] - double{scale} * rounded);
  }
  const float* bias = bias_.defined() ? bias_.data_as<float>() : nullptr;
  const auto* packed = rows_in_8_bits_.data_as<int8_t>();
  // Of what one row at least reaches.
  std::atomic<float> floor = -std::numeric_limits<float>::infinity();
  parallel_for(0, rows_, screen_grain, [&](int64_t begin, int64_t end) {
    row_screen_kernels()->products(packed + begin * stride_, end - begin, stride_, x_in_16_bits.data(),
                                   scale_.data() + begin, out + begin);
    float best = -std::numeric_limits<float>::infinity();
    for (int64_t r = begin; r < end; ++r) {
      out[r] = out[r] * scale + (bias ? bias[r] : 0);
      best = std::max(best, out[r] - length * reach_[static_cast<size_t>(r)]);
    }
    for (float known = floor; known < best && !floor.compare_exchange_weak(known, best);) {
    }
  });
  // Beside roundings: what is left out of x, and products of float32 that come to nothing because they are too small.
  const double lost = 1.001 * std::sqrt(left_out) * longest_ + static_cast<double>(size_ + 16) * 0x1p-149;
  const float threshold = floor - 2 * (bias_reach_ + above(lost));
  std::vector<int64_t> candidates;
  for (int64_t r = 0; r < rows_; ++r)
    if (!(out[r] + length * reach_[static_cast<size_t>(r)] < threshold)) candidates.push_back(r);
  if (std::ssize(candidates) > rows_ / max_candidate_part + 1) return false;
  const float* w = weight_.data_as<float>();
  double first = -std::numeric_limits<double>::infinity(), second = first, margin = 0;
  for (const int64_t r : candidates) {
    double sum = bias ? double{bias[r]} : 0, squares = 0;
    for (int64_t i = 0; i < size_; ++i) {
      const double weight = w[r * size_ + i];
      sum += weight * x[i];
      squares += weight * weight;
    }
    if (!std::isfinite(sum)) return false;
    margin = std::max(margin, std::sqrt(squares) * norm);
    if (sum > first) {
      second = first;
      first = sum;
    } else {
      second = std::max(second, sum);
    }
    out[r] = static_cast<float>(sum);
  }
  return !candidates.empty() &&
         first - second > 2 * (static_cast<double>(size_ + 16) * (rounding * margin + 0x1p-149) + bias_reach_);
}

}  // namespace calque::kernel
