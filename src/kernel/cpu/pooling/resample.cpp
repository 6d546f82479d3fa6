#include "kernel/cpu/pooling/resample.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "calque/base/memory.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/convert.h"

namespace calque::kernel {
namespace {

// What each output position reads: up to `taps` input positions with weights.
template <class T>
struct ResampleAxis {
  int64_t in = 1, out = 1, taps = 1;
  CountedVector<int64_t> index;
  CountedVector<T> weight;
  CountedVector<int64_t> used;  // of each output's taps, where not all are
  int precision = -1;           // weights are integers, to be divided by 2^precision
  int64_t taps_of(int64_t i) const { return used.empty() ? taps : used[static_cast<size_t>(i)]; }
  bool identity() const {
    if (in != out || taps != 1) return false;
    for (int64_t i = 0; i < out; ++i)
      if (index[static_cast<size_t>(i)] != i) return false;
    return true;
  }
};

template <class T>
T step_of(int64_t in, int64_t out, bool align_corners, std::optional<double> scale) {
  if (align_corners) return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
  return scale && *scale > 0 ? static_cast<T>(1.0 / *scale) : static_cast<T>(in) / static_cast<T>(out);
}

// Where an output position lies on the input.
template <class T>
T source(T step, int64_t i, bool align_corners, bool cubic) {
  if (align_corners) return step * static_cast<T>(i);
  const T at = step * (static_cast<T>(i) + T(0.5)) - T(0.5);
  return !cubic && at < 0 ? T(0) : at;
}

// The cubic convolution kernel with parameter a, at distances t + 1, t, 1 - t, 2 - t.
template <class T>
void cubic_weights(T t, T a, T* w) {
  const auto near = [a](T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [a](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  w[0] = far(t + 1);
  w[1] = near(t);
  w[2] = near(1 - t);
  w[3] = far(2 - t);
}

template <class T>
T antialias_filter(T x, bool cubic) {
  x = std::abs(x);
  if (!cubic) return x < 1 ? 1 - x : T(0);
  constexpr T a = T(-0.5);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// A whole number between two others: scales that a program gives may lead anywhere, also to NaN.
template <class T>
int64_t bounded(T where, int64_t low, int64_t high) {
  if (!(where > static_cast<T>(low))) return low;
  return where >= static_cast<T>(high) ? high : static_cast<int64_t>(where);
}
// The nearest index of a dimension.
template <class T>
int64_t inside(T where, int64_t size) {
  return bounded(where, 0, size - 1);
}

template <class T>
void fill_antialias(ResampleAxis<T>& axis, T step, bool cubic) {
  const T half = cubic ? T(2) : T(1);
  const T support = step >= 1 ? half * step : half, inverse = step >= 1 ? 1 / step : T(1);
  axis.taps = std::min<int64_t>(inside(std::ceil(support), axis.in + 1) * 2 + 1, std::max<int64_t>(1, axis.in));
  axis.index.assign(static_cast<size_t>(axis.out * axis.taps), 0);
  axis.weight.assign(static_cast<size_t>(axis.out * axis.taps), 0);
  for (int64_t i = 0; i < axis.out; ++i) {
    const T center = step * (static_cast<T>(i) + T(0.5));
    const int64_t first = inside(center - support + T(0.5), axis.in + 1);
    const int64_t count = std::clamp<int64_t>(inside(center + support + T(0.5), axis.in + 1) - first, 0, axis.taps);
    T total = 0;
    T* const w = &axis.weight[static_cast<size_t>(i * axis.taps)];
    for (int64_t j = 0; j < count; ++j)
      total += w[j] = antialias_filter<T>((static_cast<T>(j + first) - center + T(0.5)) * inverse, cubic);
    for (int64_t j = 0; j < axis.taps; ++j) {
      if (j < count && total != 0) w[j] /= total;
      axis.index[static_cast<size_t>(i * axis.taps + j)] =
          std::min(first + std::min(j, std::max<int64_t>(count - 1, 0)), axis.in - 1);
    }
    axis.used.push_back(std::max<int64_t>(1, count));
  }
}

template <class T>
ResampleAxis<T> make_axis(int64_t in, int64_t out, Resample mode, bool align_corners, std::optional<double> scale,
                          bool single_precision_index) {
  ResampleAxis<T> axis;
  axis.in = in;
  axis.out = out;
  const T step = step_of<T>(in, out, align_corners, scale);
  if (mode == Resample::linear_antialias || mode == Resample::cubic_antialias) {
    if (in == out && step == 1) {  // left as it is
      axis.index.resize(static_cast<size_t>(out));
      std::iota(axis.index.begin(), axis.index.end(), 0);
      axis.weight.assign(static_cast<size_t>(out), 1);
      return axis;
    }
    fill_antialias(axis, step, mode == Resample::cubic_antialias);
    return axis;
  }
  axis.taps = mode == Resample::linear ? 2 : mode == Resample::cubic ? 4 : 1;
  axis.index.resize(static_cast<size_t>(out * axis.taps));
  axis.weight.assign(static_cast<size_t>(out * axis.taps), 1);
  for (int64_t i = 0; i < out; ++i) {
    int64_t* const index = &axis.index[static_cast<size_t>(i * axis.taps)];
    T* const weight = &axis.weight[static_cast<size_t>(i * axis.taps)];
    if (axis.taps == 1) {
      const T at = static_cast<T>(i) + (mode == Resample::nearest_exact ? T(0.5) : T(0));
      const float where = single_precision_index ? static_cast<float>(at) * step_of<float>(in, out, false, scale)
                                                 : static_cast<float>(at * step);
      index[0] = inside(std::floor(where), in);
      continue;
    }
    const T at = source(step, i, align_corners, mode == Resample::cubic);
    // A cubic may begin left of the image; two to the left, all its taps are on the border.
    const int64_t base = bounded(std::floor(static_cast<float>(at)), mode == Resample::cubic ? -2 : 0, in - 1);
    const T t = std::clamp(at - static_cast<T>(base), T(0), T(1));
    if (mode == Resample::linear) {
      index[0] = base;
      index[1] = base + (base < in - 1 ? 1 : 0);
      weight[0] = 1 - t;
      weight[1] = t;
    } else {
      cubic_weights<T>(t, T(-0.75), weight);
      for (int64_t j = 0; j < 4; ++j) index[j] = std::clamp<int64_t>(base - 1 + j, 0, in - 1);
    }
  }
  return axis;
}

// Bytes are resampled with weights of 16 bits, as large as the largest of them allows. Taps on one position count as one.
void quantize(ResampleAxis<double>& axis) {
  if (axis.used.empty()) axis.used.assign(static_cast<size_t>(axis.out), axis.taps);
  double most = 0;
  for (int64_t i = 0; i < axis.out; ++i) {
    int64_t* const index = &axis.index[static_cast<size_t>(i * axis.taps)];
    double* const weight = &axis.weight[static_cast<size_t>(i * axis.taps)];
    int64_t kept = 1;
    for (int64_t t = 1; t < axis.taps_of(i); ++t) {
      if (index[t] == index[kept - 1]) {
        weight[kept - 1] += weight[t];
      } else {
        index[kept] = index[t];
        weight[kept++] = weight[t];
      }
    }
    axis.used[static_cast<size_t>(i)] = kept;
    for (int64_t t = 0; t < kept; ++t) most = std::max(most, weight[t]);
  }
  axis.precision = 0;
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): PyTorch's rounding
  while (axis.precision < 22 && static_cast<int64_t>(0.5 + std::ldexp(most, axis.precision + 1)) < (1 << 15))
    ++axis.precision;
  for (double& w : axis.weight) w = std::trunc(std::ldexp(w, axis.precision) + (w < 0 ? -0.5 : 0.5));
}

// Resamples the middle dimension of [outer, in, inner].
template <class T>
void pass(const ResampleAxis<T>& axis, int64_t outer, int64_t inner, const T* from, T* to) {
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < axis.out; ++i) {
      const int64_t* const index = &axis.index[static_cast<size_t>(i * axis.taps)];
      const T* const weight = &axis.weight[static_cast<size_t>(i * axis.taps)];
      const T* const base = from + o * axis.in * inner;
      T* const line = to + (o * axis.out + i) * inner;
      const int64_t taps = axis.taps_of(i);
      if (axis.taps == 1) {
        std::copy_n(base + index[0] * inner, inner, line);
        continue;
      }
      for (int64_t x = 0; x < inner; ++x) {
        T total = base[index[0] * inner + x] * weight[0];
        for (int64_t t = 1; t < taps; ++t) total += base[index[t] * inner + x] * weight[t];
        line[x] =
            axis.precision < 0 ? total : std::clamp(std::floor(std::ldexp(total, -axis.precision) + T(0.5)), T(0), T(255));
      }
    }
}

// The same backwards: adds the gradient of [outer, out, inner] into that of [outer, in, inner].
template <class T>
void pass_back(const ResampleAxis<T>& axis, int64_t outer, int64_t inner, const T* from, T* to) {
  std::fill_n(to, outer * axis.in * inner, T(0));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < axis.out; ++i) {
      const int64_t* const index = &axis.index[static_cast<size_t>(i * axis.taps)];
      const T* const weight = &axis.weight[static_cast<size_t>(i * axis.taps)];
      T* const base = to + o * axis.in * inner;
      const T* const line = from + (o * axis.out + i) * inner;
      for (int64_t t = 0; t < axis.taps_of(i); ++t) {
        T* const sums = base + index[t] * inner;
        const T w = axis.taps == 1 ? T(1) : weight[t];
        for (int64_t x = 0; x < inner; ++x) sums[x] += line[x] * w;
      }
    }
}

// Depth, height and width of the image and the result, with their strides.
struct ResampleSizes {
  int64_t size[3] = {1, 1, 1}, stride[3] = {};
  ResampleSizes(const TensorBase& t, int spatial) {
    for (int d = 0; d < spatial; ++d) {
      size[3 - spatial + d] = t.size(2 + d);
      stride[3 - spatial + d] = t.stride(2 + d);
    }
  }
  int64_t count() const { return size[0] * size[1] * size[2]; }
};

template <class T>
void run_back(const TensorBase& grad, int spatial, Resample mode, bool align_corners, const ResampleScales& scales,
              const TensorBase& grad_input) {
  const ResampleSizes in(grad_input, spatial), out(grad, spatial);
  const MemoryFormat last = spatial == 3 ? MemoryFormat::channels_last_3d : MemoryFormat::channels_last;
  const bool single = spatial >= 2 && grad.is_contiguous(last) && !grad.is_contiguous();
  ResampleAxis<T> axes[3];
  for (int d = 0; d < 3; ++d) {
    if (d < 3 - spatial)
      axes[d].index = {0}, axes[d].weight = {1};
    else
      axes[d] = make_axis<T>(in.size[d], out.size[d], mode, align_corners, scales[static_cast<size_t>(d)], single);
  }
  const LoadFn load = load_fn(grad.dtype(), compute_of<T>);
  const StoreFn store = store_fn(compute_of<T>, grad_input.dtype());
  const int64_t item = grad.element_size(), channels = grad.size(1);
  const int64_t most =
      std::max({in.count(), in.size[0] * in.size[1] * out.size[2], in.size[0] * out.size[1] * out.size[2], out.count()});
  const auto plane_of = [&](const TensorBase& t, int64_t plane) {
    return (plane / channels * t.stride(0) + plane % channels * t.stride(1)) * item;
  };
  parallel_for(0, grad.size(0) * channels, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, most)),
               [&](int64_t begin, int64_t end) {
                 CountedVector<T> first(static_cast<size_t>(most)), second(static_cast<size_t>(most));
                 for (int64_t plane = begin; plane < end; ++plane) {
                   T *from = first.data(), *to = second.data();
                   const char* const source_plane = static_cast<const char*>(grad.data()) + plane_of(grad, plane);
                   for (int64_t z = 0; z < out.size[0]; ++z)
                     for (int64_t y = 0; y < out.size[1]; ++y)
                       load(source_plane + (z * out.stride[0] + y * out.stride[1]) * item, out.stride[2] * item,
                            from + (z * out.size[1] + y) * out.size[2], out.size[2]);
                   const auto next = [&](const ResampleAxis<T>& axis, int64_t outer, int64_t inner) {
                     if (axis.identity()) return;
                     pass_back(axis, outer, inner, from, to);
                     std::swap(from, to);
                   };
                   next(axes[0], 1, out.size[1] * out.size[2]);
                   next(axes[1], in.size[0], out.size[2]);
                   next(axes[2], in.size[0] * in.size[1], 1);
                   char* const target = static_cast<char*>(grad_input.mutable_data()) + plane_of(grad_input, plane);
                   for (int64_t z = 0; z < in.size[0]; ++z)
                     for (int64_t y = 0; y < in.size[1]; ++y)
                       store(from + (z * in.size[1] + y) * in.size[2], target + (z * in.stride[0] + y * in.stride[1]) * item,
                             in.stride[2] * item, in.size[2]);
                 }
               });
}

template <class T>
void run(const TensorBase& input, int spatial, Resample mode, bool align_corners, const ResampleScales& scales,
         const TensorBase& out) {
  int64_t in_size[3] = {1, 1, 1}, out_size[3] = {1, 1, 1}, in_stride[3] = {}, out_stride[3] = {};
  for (int d = 0; d < spatial; ++d) {
    const int at = 3 - spatial + d;
    in_size[at] = input.size(2 + d), out_size[at] = out.size(2 + d);
    in_stride[at] = input.stride(2 + d), out_stride[at] = out.stride(2 + d);
  }
  // Channels-last images and volumes are indexed in single precision whatever their dtype.
  const MemoryFormat last = spatial == 3 ? MemoryFormat::channels_last_3d : MemoryFormat::channels_last;
  const bool single = spatial >= 2 && input.is_contiguous(last) && !input.is_contiguous();
  ResampleAxis<T> axes[3];
  for (int d = 0; d < 3; ++d) {
    if (d < 3 - spatial)
      axes[d].index = {0}, axes[d].weight = {1};
    else
      axes[d] = make_axis<T>(in_size[d], out_size[d], mode, align_corners, scales[static_cast<size_t>(d)], single);
    if constexpr (std::is_same_v<T, double>)
      if (input.dtype() == DType::uint8 && axes[d].taps > 1) quantize(axes[d]);
  }
  const Compute compute = compute_of<T>;
  const LoadFn load = load_fn(input.dtype(), compute);
  const StoreFn store = store_fn(compute, out.dtype());
  const int64_t item = input.element_size();
  const int64_t most = std::max({in_size[0] * in_size[1] * in_size[2], in_size[0] * in_size[1] * out_size[2],
                                 in_size[0] * out_size[1] * out_size[2], out_size[0] * out_size[1] * out_size[2]});
  const int64_t channels = input.size(1);
  parallel_for(
      0, input.size(0) * channels, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, most)), [&](int64_t begin, int64_t end) {
        CountedVector<T> first(static_cast<size_t>(most)), second(static_cast<size_t>(most));
        for (int64_t plane = begin; plane < end; ++plane) {
          T *from = first.data(), *to = second.data();
          const char* const source_plane = static_cast<const char*>(input.data()) +
                                           (plane / channels * input.stride(0) + plane % channels * input.stride(1)) * item;
          for (int64_t z = 0; z < in_size[0]; ++z)
            for (int64_t y = 0; y < in_size[1]; ++y)
              load(source_plane + (z * in_stride[0] + y * in_stride[1]) * item, in_stride[2] * item,
                   from + (z * in_size[1] + y) * in_size[2], in_size[2]);
          const auto next = [&](const ResampleAxis<T>& axis, int64_t outer, int64_t inner) {
            if (axis.identity()) return;
            pass(axis, outer, inner, from, to);
            std::swap(from, to);
          };
          next(axes[2], in_size[0] * in_size[1], 1);
          next(axes[1], in_size[0], out_size[2]);
          next(axes[0], 1, out_size[1] * out_size[2]);
          char* const target = static_cast<char*>(out.mutable_data()) +
                               (plane / channels * out.stride(0) + plane % channels * out.stride(1)) * item;
          for (int64_t z = 0; z < out_size[0]; ++z)
            for (int64_t y = 0; y < out_size[1]; ++y)
              store(from + (z * out_size[1] + y) * out_size[2], target + (z * out_stride[0] + y * out_stride[1]) * item,
                    out_stride[2] * item, out_size[2]);
        }
      });
}

}  // namespace

void resample(const TensorBase& input, int spatial, Resample mode, bool align_corners, const ResampleScales& scales,
              const TensorBase& out) {
  if (out.numel() == 0) return;
  const bool nearest = mode == Resample::nearest || mode == Resample::nearest_exact;
  if (input.dtype() == DType::float64 || (input.dtype() == DType::uint8 && !nearest))
    run<double>(input, spatial, mode, align_corners, scales, out);
  else
    run<float>(input, spatial, mode, align_corners, scales, out);
}

void resample_backward(const TensorBase& grad_output, int spatial, Resample mode, bool align_corners,
                       const ResampleScales& scales, const TensorBase& grad_input) {
  if (grad_input.numel() == 0) return;
  if (grad_output.dtype() == DType::float64)
    run_back<double>(grad_output, spatial, mode, align_corners, scales, grad_input);
  else
    run_back<float>(grad_output, spatial, mode, align_corners, scales, grad_input);
}

}  // namespace calque::kernel
