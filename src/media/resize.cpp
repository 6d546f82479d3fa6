// Pillow's resampling of 8-bit channels: the weights of each output pixel as fixed-point numbers of 22 bits, along the rows, then along the
// columns, each rounded to a byte.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "calque/media/picture.h"

namespace calque {
namespace {

constexpr int weight_bits = 22;
constexpr int32_t weight_half = 1 << (weight_bits - 1);

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double filter_value(Resample filter, double x) {
  const double far = std::abs(x);
  switch (filter) {
    case Resample::box: return x > -0.5 && x <= 0.5 ? 1 : 0;
    case Resample::bilinear: return far < 1 ? 1 - far : 0;
    case Resample::hamming: {
      if (far == 0) return 1;
      if (far >= 1) return 0;
      const double angle = far * std::numbers::pi;
      return std::sin(angle) / angle * (0.54f + 0.46f * std::cos(angle));
    }
    case Resample::bicubic:
      if (far < 1) return (1.5 * far - 2.5) * far * far + 1;
      return far < 2 ? (((far - 5) * far + 8) * far - 4) * -0.5 : 0;
    case Resample::lanczos: return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    case Resample::nearest: break;
  }
  throw InternalError("a filter without weights");
}

double filter_reach(Resample filter) {
  switch (filter) {
    case Resample::box: return 0.5;
    case Resample::bilinear:
    case Resample::hamming: return 1;
    case Resample::bicubic: return 2;
    case Resample::lanczos: return 3;
    case Resample::nearest: break;
  }
  throw InternalError("a filter without weights");
}

// For each output place the first input place and its weights.
struct Weights {
  struct Span {
    int64_t first, count;
    const int32_t* weights;
  };
  CountedVector<Span> spans;
  CountedVector<int32_t> numbers;

  Weights(int64_t in, int64_t out, Resample filter) {
    const double scale = static_cast<double>(in) / static_cast<double>(out), wide = std::max(scale, 1.0);
    const double reach = filter_reach(filter) * wide, step = 1 / wide;
    const auto most = static_cast<size_t>(std::ceil(reach)) * 2 + 1;
    spans.resize(static_cast<size_t>(out));
    numbers.resize(static_cast<size_t>(out) * most);
    CountedVector<double> exact(most);
    for (int64_t i = 0; i < out; ++i) {
      const double centre = (static_cast<double>(i) + 0.5) * scale;
      const auto nearest = [](double at) { return static_cast<int64_t>(std::floor(at + 0.5)); };
      const int64_t first = std::max<int64_t>(nearest(centre - reach), 0);
      const int64_t count = std::min<int64_t>(nearest(centre + reach), in) - first;
      double sum = 0;
      for (int64_t k = 0; k < count; ++k)
        sum += exact[static_cast<size_t>(k)] = filter_value(filter, (static_cast<double>(k + first) - centre + 0.5) * step);
      int32_t* const mine = numbers.data() + static_cast<size_t>(i) * most;
      for (int64_t k = 0; k < count; ++k) {
        double weight = exact[static_cast<size_t>(k)];
        if (sum != 0) weight /= sum;
        mine[k] = static_cast<int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << weight_bits));
      }
      spans[static_cast<size_t>(i)] = {first, count, mine};
    }
  }
};

uint8_t byte_of(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> weight_bits, 0, 255)); }

template <int channels>
void resize_row(const uint8_t* in, const Weights& weights, uint8_t* out) {
  for (const Weights::Span& span : weights.spans) {
    int32_t sum[channels];
    std::fill_n(sum, channels, weight_half);
    const uint8_t* pixel = in + span.first * channels;
    for (int64_t k = 0; k < span.count; ++k, pixel += channels)
      for (int c = 0; c < channels; ++c) sum[c] += pixel[c] * span.weights[k];
    for (int c = 0; c < channels; ++c) *out++ = byte_of(sum[c]);
  }
}

Picture resize_rows(const Picture& in, int64_t width, int64_t first_row, int64_t rows, Resample filter) {
  const Weights weights(in.width, width, filter);
  Picture out(rows, width, in.channels);
  parallel_for(0, rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y)
      if (in.channels == 3)
        resize_row<3>(in.row(y + first_row), weights, out.row(y));
      else
        resize_row<1>(in.row(y + first_row), weights, out.row(y));
  });
  return out;
}

// Some columns at a time, so that their sums stay in registers.
Picture resize_columns(const Picture& in, int64_t height, const Weights& weights, int64_t first_row) {
  Picture out(height, in.width, in.channels);
  const int64_t columns = in.width * in.channels;
  constexpr int64_t block = 32;
  parallel_for(0, height, 16, [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y) {
      const Weights::Span& span = weights.spans[static_cast<size_t>(y)];
      const uint8_t* const top = in.row(span.first - first_row);
      uint8_t* const to = out.row(y);
      for (int64_t x = 0; x < columns; x += block) {
        int32_t sum[block];
        std::fill_n(sum, block, weight_half);
        const int64_t count = std::min(block, columns - x);
        if (count == block)
          for (int64_t k = 0; k < span.count; ++k)
            for (int64_t i = 0; i < block; ++i) sum[i] += top[k * columns + x + i] * span.weights[k];
        else
          for (int64_t k = 0; k < span.count; ++k)
            for (int64_t i = 0; i < count; ++i) sum[i] += top[k * columns + x + i] * span.weights[k];
        for (int64_t i = 0; i < count; ++i) to[x + i] = byte_of(sum[i]);
      }
    }
  });
  return out;
}

// Places add up step by step, as Pillow's do.
std::vector<int64_t> nearest_places(int64_t in, int64_t out) {
  const double step = static_cast<double>(in) / static_cast<double>(out);
  std::vector<int64_t> places;
  double at = step * 0.5;
  for (int64_t i = 0; i < out; ++i, at += step) places.push_back(static_cast<int64_t>(at));
  return places;
}

Picture resize_nearest(const Picture& in, int64_t height, int64_t width) {
  Picture out(height, width, in.channels);
  const std::vector<int64_t> xs = nearest_places(in.width, width), ys = nearest_places(in.height, height);
  for (int64_t y = 0; y < height; ++y) {
    if (ys[static_cast<size_t>(y)] >= in.height) continue;  // the last place of all, rounded up: Pillow leaves it black
    const uint8_t* const from = in.row(ys[static_cast<size_t>(y)]);
    uint8_t* to = out.row(y);
    for (const int64_t x : xs) {
      if (x < in.width) std::memcpy(to, from + x * in.channels, static_cast<size_t>(in.channels));
      to += in.channels;
    }
  }
  return out;
}

}  // namespace

Picture resized(const Picture& picture, int64_t height, int64_t width, Resample filter) {
  if (height < 1 || width < 1)
    throw UserError("resize: a picture of " + std::to_string(height) + " x " + std::to_string(width) +
                    " was asked for; both have to be at least 1");
  if (height == picture.height && width == picture.width) return picture;
  if (filter == Resample::nearest) return resize_nearest(picture, height, width);
  if (height == picture.height) return resize_rows(picture, width, 0, height, filter);
  const Weights weights(picture.height, height, filter);
  if (width == picture.width) return resize_columns(picture, height, weights, 0);
  // As Pillow since release 13: the columns come first where the height shrinks by more than twice of what the width does.
  if (height < picture.height && picture.height - height > 2 * (picture.width - width))
    return resize_rows(resize_columns(picture, height, weights, 0), width, 0, height, filter);
  const int64_t first = weights.spans.front().first;  // rows that no output row needs are left out
  const int64_t last = weights.spans.back().first + weights.spans.back().count;
  return resize_columns(resize_rows(picture, width, first, last - first, filter), height, weights, first);
}

Picture center_cropped(const Picture& picture, int64_t height, int64_t width) {
  const auto half_down = [](int64_t n) { return n >= 0 ? n / 2 : -((1 - n) / 2); };
  const auto half_up = [](int64_t n) { return (n + 1) / 2; };
  // The picture on a black ground that is large enough, and where the cut begins there.
  const int64_t ground_height = std::max(height, picture.height), ground_width = std::max(width, picture.width);
  const int64_t down = half_up(ground_height - picture.height), right = half_up(ground_width - picture.width);
  const int64_t top = std::max<int64_t>(0, half_down(picture.height - height) + down);
  const int64_t left = std::max<int64_t>(0, half_down(picture.width - width) + right);
  Picture out(std::min(height, ground_height - top), std::min(width, ground_width - left), picture.channels);
  const int64_t from = std::max(left, right), to = std::min(left + out.width, right + picture.width);
  for (int64_t y = 0; y < out.height; ++y) {
    const int64_t row = y + top - down;
    if (row < 0 || row >= picture.height || to <= from) continue;
    std::memcpy(out.row(y) + (from - left) * picture.channels, picture.row(row) + (from - right) * picture.channels,
                static_cast<size_t>((to - from) * picture.channels));
  }
  return out;
}

}  // namespace calque
