#include "kernel/cpu/pooling/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/dispatch_among.h"
#include "kernel/cpu/pooling/max_line.h"
#include "kernel/cpu/require.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(MaxLineKernels, max_line_kernels)

namespace {

template <class T>
using Sum = std::conditional_t<is_integral_type<T>, int64_t, std::conditional_t<std::is_same_v<T, double>, double, float>>;

// A tensor as planes of depth, height, width: one for each batch item and channel.
template <class T>
struct Planes {
  T* data;
  int64_t batch, channels, size[3], stride[5];

  T* plane(int64_t i) const { return data + i / channels * stride[0] + i % channels * stride[1]; }
  int64_t offset(int64_t z, int64_t y, int64_t x) const { return z * stride[2] + y * stride[3] + x * stride[4]; }
  int64_t count() const { return batch * channels; }
  int64_t plane_size() const { return size[0] * size[1] * size[2]; }
};
template <class T>
Planes<T> planes(const TensorBase& t, int spatial) {
  Planes<T> p{};
  p.data = static_cast<T*>(const_cast<void*>(t.data()));
  const int64_t lead = t.dim() - spatial;
  p.batch = lead == 2 ? t.size(0) : 1;
  p.channels = t.size(lead - 1);
  p.stride[0] = lead == 2 ? t.stride(0) : 0;
  p.stride[1] = t.stride(lead - 1);
  for (int d = 0; d < 3; ++d) {
    const int from = d - (3 - spatial);
    p.size[d] = from >= 0 ? t.size(lead + from) : 1;
    p.stride[2 + d] = from >= 0 ? t.stride(lead + from) : 0;
  }
  return p;
}

// Runs fn(plane index, z, y, x) for every position of `out`, planes in parallel.
template <class T, class F>
void each_output(const Planes<T>& out, int64_t work, F&& fn) {
  if (out.plane_size() == 0) return;
  const int64_t per_plane = std::min<int64_t>(out.plane_size(), 16384) * std::clamp<int64_t>(work, 1, 16384);
  parallel_for(0, out.count(), std::max<int64_t>(1, 16384 / per_plane), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t z = 0; z < out.size[0]; ++z)
        for (int64_t y = 0; y < out.size[1]; ++y)
          for (int64_t x = 0; x < out.size[2]; ++x) fn(i, z, y, x);
  });
}

// One dimension of a window, within the input.
struct Range {
  int64_t begin, end, step;
};
Range window_range(const PoolWindow& w, int d, int64_t out, int64_t size) {
  int64_t begin = out * w.stride[d] - w.padding[d];
  const int64_t end = std::min(begin + (w.kernel[d] - 1) * w.dilation[d] + 1, size);
  if (begin < 0) begin += (-begin + w.dilation[d] - 1) / w.dilation[d] * w.dilation[d];
  return {begin, end, w.dilation[d]};
}
Range adaptive_range(int64_t out, int64_t out_size, int64_t size) {
  return {out * size / out_size, ((out + 1) * size + out_size - 1) / out_size, 1};
}

template <class T, class Ranges>
void maximum(const Planes<T>& in, const Planes<T>& out, const Planes<int64_t>& at, int64_t work, Ranges&& ranges) {
  each_output(out, work, [&](int64_t i, int64_t z, int64_t y, int64_t x) {
    const Range rz = ranges(0, z), ry = ranges(1, y), rx = ranges(2, x);
    const T* const from = in.plane(i);
    using Value = std::conditional_t<is_integral_type<T>, T, Sum<T>>;
    Value best = std::numeric_limits<Value>::has_infinity ? -std::numeric_limits<Value>::infinity()
                                                          : std::numeric_limits<Value>::lowest();
    int64_t index = (rz.begin * in.size[1] + ry.begin) * in.size[2] + rx.begin;
    for (int64_t a = rz.begin; a < rz.end; a += rz.step)
      for (int64_t b = ry.begin; b < ry.end; b += ry.step)
        for (int64_t c = rx.begin; c < rx.end; c += rx.step) {
          const auto v = static_cast<Value>(from[in.offset(a, b, c)]);
          if (v > best || v != v) {
            best = v;
            index = (a * in.size[1] + b) * in.size[2] + c;
          }
        }
    out.plane(i)[out.offset(z, y, x)] = static_cast<T>(best);
    at.plane(i)[at.offset(z, y, x)] = index;
  });
}

// Planes whose lines lie contiguous, line by line; false for others.
template <class T>
bool maximum_by_lines(const Planes<T>& in, const Planes<T>& out, const Planes<int64_t>& at, const PoolWindow& w) {
  if (w.spatial != 2 || in.stride[4] != 1 || out.stride[4] != 1 || at.stride[4] != 1) return false;
  if (in.plane_size() > std::numeric_limits<int32_t>::max() || in.plane_size() == 0) return false;
  const int64_t height = out.size[1], width = out.size[2], work = width * w.kernel[1] * w.kernel[2];
  parallel_for(0, out.count() * height, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, work)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t line = begin; line < end; ++line) {
                   const int64_t i = line / height, y = line % height;
                   const Range rows = window_range(w, 1, y, in.size[1]);
                   const MaxLine<T> of{in.plane(i), in.stride[3], in.size[2],  rows.begin,   rows.end,
                                       rows.step,   w.kernel[2],  w.stride[2], w.padding[2], w.dilation[2]};
                   T* const to = out.plane(i) + out.offset(0, y, 0);
                   int64_t* const places = at.plane(i) + at.offset(0, y, 0);
                   if constexpr (std::is_same_v<T, float>)
                     max_line_kernels()->floats(of, width, to, places);
                   else
                     max_line_kernels()->bfloats(of, width, to, places);
                 }
               });
  return true;
}

// An averaging window and what its sum is divided by.
struct AverageWindow {
  Range range[3];
  int64_t divisor;
};
AverageWindow average_window(const PoolWindow& w, const AverageRule& rule, const int64_t* size, const int64_t* out) {
  AverageWindow a{};
  int64_t padded = 1, inside = 1;
  for (int d = 0; d < 3; ++d) {
    const int64_t begin = out[d] * w.stride[d] - w.padding[d], end = std::min(begin + w.kernel[d], size[d] + w.padding[d]);
    padded *= end - begin;
    a.range[d] = {std::max<int64_t>(begin, 0), std::min(end, size[d]), 1};
    inside *= a.range[d].end - a.range[d].begin;
  }
  a.divisor = rule.divisor ? *rule.divisor : rule.count_include_pad ? padded : inside;
  return a;
}

// Integers wrap.
template <class S>
void add_to(S& sum, S value) {
  if constexpr (std::is_integral_v<S>)
    sum = static_cast<S>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(value));
  else
    sum += value;
}

template <class T>
Sum<T> sum_of(const Planes<T>& in, const T* from, const Range& rz, const Range& ry, const Range& rx) {
  Sum<T> total = 0;
  for (int64_t a = rz.begin; a < rz.end; ++a)
    for (int64_t b = ry.begin; b < ry.end; ++b)
      for (int64_t c = rx.begin; c < rx.end; ++c) add_to(total, static_cast<Sum<T>>(from[in.offset(a, b, c)]));
  return total;
}

// Gradients are gathered in the type of the sums, one plane at a time, and rounded once.
template <class T, class F>
void each_gradient_plane(const Planes<T>& grad_input, F&& fn) {
  const int64_t size = grad_input.plane_size();
  parallel_for(0, grad_input.count(), std::max<int64_t>(1, 16384 / std::max<int64_t>(1, size)),
               [&](int64_t begin, int64_t end) {
                 std::vector<Sum<T>> sums(static_cast<size_t>(size));
                 for (int64_t i = begin; i < end; ++i) {
                   std::fill(sums.begin(), sums.end(), Sum<T>(0));
                   fn(i, sums.data());
                   T* const to = grad_input.plane(i);
                   const Sum<T>* from = sums.data();
                   for (int64_t z = 0; z < grad_input.size[0]; ++z)
                     for (int64_t y = 0; y < grad_input.size[1]; ++y)
                       for (int64_t x = 0; x < grad_input.size[2]; ++x)
                         to[grad_input.offset(z, y, x)] = static_cast<T>(*from++);
                 }
               });
}
template <class T>
void spread(Sum<T> value, const Range* r, const int64_t* size, Sum<T>* sums) {
  for (int64_t a = r[0].begin; a < r[0].end; ++a)
    for (int64_t b = r[1].begin; b < r[1].end; ++b)
      for (int64_t c = r[2].begin; c < r[2].end; ++c) add_to(sums[(a * size[1] + b) * size[2] + c], value);
}
// fn(z, y, x, value of the gradient there)
template <class T, class F>
void each_gradient(const Planes<T>& grad, int64_t i, F&& fn) {
  const T* const from = grad.plane(i);
  for (int64_t z = 0; z < grad.size[0]; ++z)
    for (int64_t y = 0; y < grad.size[1]; ++y)
      for (int64_t x = 0; x < grad.size[2]; ++x) fn(z, y, x, static_cast<Sum<T>>(from[grad.offset(z, y, x)]));
}

// Averages are sums of these, maxima of any number.
template <class F>
void with_sum(const TensorBase& t, F&& fn) {
  dispatch_among<int64_t, Half, BFloat16, float, double>(t.dtype(), "pooling", fn);
}
template <class F>
void with_number(const TensorBase& t, F&& fn) {
  dispatch_among<uint8_t, int8_t, int16_t, int32_t, int64_t, Half, BFloat16, float, double>(t.dtype(), "pooling", fn);
}

}  // namespace

void max_pool(const TensorBase& input, const PoolWindow& window, const TensorBase& out, const TensorBase& indices) {
  with_number(input, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto in = planes<T>(input, window.spatial), to = planes<T>(out, window.spatial);
    const auto at = planes<int64_t>(indices, window.spatial);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, BFloat16>)
      if (maximum_by_lines(in, to, at, window)) return;
    maximum<T>(in, to, at, window.kernel[0] * window.kernel[1] * window.kernel[2],
               [&](int d, int64_t o) { return window_range(window, d, o, in.size[d]); });
  });
}

void adaptive_max_pool(const TensorBase& input, int spatial, const TensorBase& out, const TensorBase& indices) {
  with_sum(input, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto in = planes<T>(input, spatial);
    const auto to = planes<T>(out, spatial);
    maximum<T>(in, to, planes<int64_t>(indices, spatial), 4,
               [&](int d, int64_t o) { return adaptive_range(o, to.size[d], in.size[d]); });
  });
}

void avg_pool(const TensorBase& input, const PoolWindow& window, const AverageRule& rule, const TensorBase& out) {
  with_sum(input, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto in = planes<T>(input, window.spatial);
    const auto to = planes<T>(out, window.spatial);
    each_output(to, window.kernel[0] * window.kernel[1] * window.kernel[2], [&](int64_t i, int64_t z, int64_t y, int64_t x) {
      const int64_t at[3] = {z, y, x};
      const AverageWindow w = average_window(window, rule, in.size, at);
      const bool empty =
          w.range[0].begin >= w.range[0].end || w.range[1].begin >= w.range[1].end || w.range[2].begin >= w.range[2].end;
      T& result = to.plane(i)[to.offset(z, y, x)];
      result =
          empty
              ? static_cast<T>(Sum<T>(0))
              : static_cast<T>(sum_of(in, in.plane(i), w.range[0], w.range[1], w.range[2]) / static_cast<Sum<T>>(w.divisor));
    });
  });
}

void adaptive_avg_pool(const TensorBase& input, int spatial, const TensorBase& out) {
  with_sum(input, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto in = planes<T>(input, spatial);
    const auto to = planes<T>(out, spatial);
    each_output(to, 4, [&](int64_t i, int64_t z, int64_t y, int64_t x) {
      const Range rz = adaptive_range(z, to.size[0], in.size[0]), ry = adaptive_range(y, to.size[1], in.size[1]),
                  rx = adaptive_range(x, to.size[2], in.size[2]);
      Sum<T> mean = sum_of(in, in.plane(i), rz, ry, rx);
      for (const Range& r : {rz, ry, rx}) mean /= static_cast<Sum<T>>(r.end - r.begin);
      to.plane(i)[to.offset(z, y, x)] = static_cast<T>(mean);
    });
  });
}

void max_pool_backward(const TensorBase& grad_output, const TensorBase& indices, int spatial, const TensorBase& grad_input) {
  with_sum(grad_output, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto grad = planes<T>(grad_output, spatial);
    const auto at = planes<int64_t>(indices, spatial);
    const auto to = planes<T>(grad_input, spatial);
    each_gradient_plane(to, [&](int64_t i, Sum<T>* sums) {
      const int64_t* const index = at.plane(i);
      each_gradient(grad, i, [&](int64_t z, int64_t y, int64_t x, Sum<T> value) {
        const int64_t where = index[at.offset(z, y, x)];
        if (where < 0 || where >= to.plane_size())
          throw UserError("max_pool backward: index " + std::to_string(where) + " lies outside the input");
        sums[where] += value;
      });
    });
  });
}

void avg_pool_backward(const TensorBase& grad_output, const PoolWindow& window, const AverageRule& rule,
                       const TensorBase& grad_input) {
  with_sum(grad_output, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto grad = planes<T>(grad_output, window.spatial);
    const auto to = planes<T>(grad_input, window.spatial);
    each_gradient_plane(to, [&](int64_t i, Sum<T>* sums) {
      each_gradient(grad, i, [&](int64_t z, int64_t y, int64_t x, Sum<T> value) {
        const int64_t at[3] = {z, y, x};
        const AverageWindow w = average_window(window, rule, to.size, at);
        spread<T>(value / static_cast<Sum<T>>(w.divisor), w.range, to.size, sums);
      });
    });
  });
}

void adaptive_avg_pool_backward(const TensorBase& grad_output, int spatial, const TensorBase& grad_input) {
  std::vector<int64_t> expected(grad_output.sizes().begin(), grad_output.sizes().end());
  const IntList lead = grad_input.sizes();
  std::copy(lead.begin(), lead.end() - spatial, expected.begin());
  require_sizes("_adaptive_avg_pool2d_backward", "grad_output", grad_output, expected);
  with_sum(grad_output, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto grad = planes<T>(grad_output, spatial);
    const auto to = planes<T>(grad_input, spatial);
    each_gradient_plane(to, [&](int64_t i, Sum<T>* sums) {
      each_gradient(grad, i, [&](int64_t z, int64_t y, int64_t x, Sum<T> value) {
        const int64_t at[3] = {z, y, x};
        Range r[3];
        Sum<T> share = value;
        for (int d = 0; d < 3; ++d) {
          r[d] = adaptive_range(at[d], grad.size[d], to.size[d]);
          share /= static_cast<Sum<T>>(r[d].end - r[d].begin);
        }
        spread<T>(share, r, to.size, sums);
      });
    });
  });
}

}  // namespace calque::kernel
