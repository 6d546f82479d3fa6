#include "kernel/cpu/pooling/unpooling.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "calque/base/error.h"
#include "kernel/cpu/not_implemented.h"
#include "kernel/cpu/random/random_fill.h"

namespace calque::kernel {

void max_unpool(const char* op, const TensorBase& self, const TensorBase& indices, int64_t planes, const TensorBase& out) {
  if (!is_floating(self.dtype()) || is_float8(self.dtype())) not_implemented(op, self.dtype());
  const int64_t count = planes ? self.numel() / planes : 0;
  const int64_t volume = planes ? out.numel() / planes : 0;
  dispatch_floating(self.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = self.data_as<T>();
    const int64_t* at = indices.data_as<int64_t>();
    T* y = out.mutable_data_as<T>();
    std::fill_n(y, out.numel(), from_double<T>(0));
    for (int64_t p = 0; p < planes; ++p)
      for (int64_t i = 0; i < count; ++i) {
        const int64_t place = at[p * count + i];
        if (place < 0 || place >= volume)
          throw UserError(std::string(op) + ": found an invalid max index: " + std::to_string(place) +
                          " (the output is of size " + str(out.sizes()) + ")");
        y[p * volume + place] = x[p * count + i];
      }
  });
}

namespace {

// Where the windows along one dimension begin. Every step is rounded to T.
template <class T>
std::vector<int64_t> window_starts(double sample, int64_t input, int64_t output, int64_t window) {
  const auto rounded = [](double v) { return static_cast<double>(static_cast<calque::Compute<T>>(from_double<T>(v))); };
  std::vector<int64_t> starts(static_cast<size_t>(output));
  if (output > 1) {
    const double alpha = rounded(static_cast<double>(input - window) / static_cast<double>(output - 1));
    const auto first = static_cast<int64_t>(rounded(sample * alpha));
    for (int64_t i = 0; i + 1 < output; ++i)
      starts[static_cast<size_t>(i)] =
          static_cast<int64_t>(rounded(rounded(static_cast<double>(i) + sample) * alpha)) - first;
  }
  if (output > 0) starts.back() = input - window;
  return starts;
}

}  // namespace

void fractional_max_pool(const char* op, const TensorBase& self, const TensorBase& samples, std::span<const int64_t> sizes,
                         std::span<const int64_t> kernel, std::span<const int64_t> output, bool last_dimension_first,
                         int64_t planes, const TensorBase& out, const TensorBase& indices) {
  if (!is_floating(self.dtype()) || is_float8(self.dtype())) not_implemented(op, self.dtype());
  const size_t dims = sizes.size();
  // Two-dimensional planes are three-dimensional ones of depth 1.
  std::array<int64_t, 3> in{1, 1, 1}, window{1, 1, 1}, to{1, 1, 1};
  for (size_t d = 0; d < dims; ++d) {
    in[3 - dims + d] = sizes[d];
    window[3 - dims + d] = kernel[d];
    to[3 - dims + d] = output[d];
  }
  const int64_t volume = in[0] * in[1] * in[2];
  dispatch_floating(self.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = calque::Compute<T>;
    T* y = out.mutable_data_as<T>();
    int64_t* places = indices.mutable_data_as<int64_t>();
    for (int64_t p = 0; p < planes; ++p) {
      const T* x = self.data_as<T>() + p * volume;
      std::array<std::vector<int64_t>, 3> starts{std::vector<int64_t>{0}, {0}, {0}};
      for (size_t d = 0; d < dims; ++d) {
        const T sample = samples.data_as<T>()[p * static_cast<int64_t>(dims) +
                                              static_cast<int64_t>(last_dimension_first ? dims - 1 - d : d)];
        const size_t axis = 3 - dims + d;
        const double at = static_cast<double>(static_cast<C>(sample));
        // PyTorch's planes of two dimensions compute in float32, its volumes in the dtype itself.
        starts[axis] = dims == 2 ? window_starts<C>(at, in[axis], to[axis], window[axis])
                                 : window_starts<T>(at, in[axis], to[axis], window[axis]);
      }
      for (const int64_t t : starts[0])
        for (const int64_t h : starts[1])
          for (const int64_t w : starts[2]) {
            C best = -std::numeric_limits<C>::infinity();
            int64_t place = (t * in[1] + h) * in[2] + w;
            for (int64_t i = t; i < t + window[0]; ++i)
              for (int64_t j = h; j < h + window[1]; ++j)
                for (int64_t k = w; k < w + window[2]; ++k) {
                  const int64_t at = (i * in[1] + j) * in[2] + k;
                  const C v = static_cast<C>(x[at]);
                  if (v > best || std::isnan(v)) {
                    best = v;
                    place = at;
                  }
                }
            *y++ = static_cast<T>(best);
            *places++ = place;
          }
    }
  });
}

}  // namespace calque::kernel
