// The gradients of sampling at a grid, in the compute type: every output is a sum of weighted image elements, and the weights
// depend on where the grid points.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "calque/base/thread.h"
#include "kernel/cpu/convolution/folding.h"
#include "kernel/cpu/elementwise/copy.h"

namespace calque::kernel {
namespace {

// A coordinate on the image and how it moves with the grid's number.
template <class C>
struct GridCoordinate {
  C at, slope;
};

template <class C>
GridCoordinate<C> reflected(GridCoordinate<C> x, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return {0, 0};
  const C low = static_cast<C>(twice_low) / 2, span = static_cast<C>(twice_high - twice_low) / 2;
  x.at -= low;
  if (x.at < 0) x.at = -x.at, x.slope = -x.slope;
  const C extra = std::fmod(x.at, span), flips = std::floor(x.at / span);
  if (std::fmod(flips, C(2)) == 0) return {extra + low, x.slope};
  return {span - extra + low, -x.slope};
}

template <class C>
GridCoordinate<C> placed(GridCoordinate<C> x, int64_t size, GridPadding padding, bool align) {
  if (padding == GridPadding::reflection) x = align ? reflected(x, 0, 2 * (size - 1)) : reflected(x, -1, 2 * size - 1);
  if (padding != GridPadding::zeros) {
    const auto last = static_cast<C>(size - 1);
    if (!(x.at > 0))
      x = {0, 0};
    else if (x.at >= last)
      x = {last, 0};
  }
  // Beyond all images, and safe to convert.
  if (!std::isfinite(x.at) || std::fabs(x.at) >= C(1 << 30)) x.at = C(-100);
  return x;
}

// The cubic convolution kernel at t + 1, t, 1 - t, 2 - t, and its derivative.
template <class C>
void cubic_with_slope(C t, C* w, C* slope) {
  constexpr C a = C(-0.75);
  const auto far = [](C x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto near = [](C x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far_slope = [](C x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  const auto near_slope = [](C x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  w[0] = far(t + 1), w[1] = near(t), w[2] = near(1 - t), w[3] = far(2 - t);
  slope[0] = far_slope(t + 1), slope[1] = near_slope(t), slope[2] = -near_slope(1 - t), slope[3] = -far_slope(2 - t);
}

// Of one dimension: which positions are read, with their weights and the weights' slopes.
template <class C>
struct AxisTaps {
  int count = 0;
  int64_t at[4];
  C weight[4], slope[4];
};

struct GridShape {
  int dims;  // 2 or 3
  int64_t size[3], out[3];
  GridMode mode;
  GridPadding padding;
  bool align;
};

template <class C>
AxisTaps<C> axis_taps(C number, int64_t size, const GridShape& s) {
  AxisTaps<C> taps;
  const auto n = static_cast<C>(size);
  GridCoordinate<C> x = s.align ? GridCoordinate<C>{(number + 1) / 2 * (n - 1), (n - 1) / 2}
                                : GridCoordinate<C>{((number + 1) * n - 1) / 2, n / 2};
  if (s.mode == GridMode::bicubic) {
    if (!std::isfinite(x.at) || std::fabs(x.at) >= C(1 << 30)) x.at = C(-100);
    const C first = std::floor(x.at);
    cubic_with_slope(x.at - first, taps.weight, taps.slope);
    taps.count = 4;
    for (int i = 0; i < 4; ++i) {
      const C at = first - 1 + static_cast<C>(i);
      taps.at[i] = static_cast<int64_t>(placed<C>({at, 0}, size, s.padding, s.align).at);
      taps.slope[i] *= x.slope;
    }
    return taps;
  }
  x = placed(x, size, s.padding, s.align);
  if (s.mode == GridMode::nearest) {
    taps.count = 1;
    taps.at[0] = static_cast<int64_t>(std::nearbyint(x.at));
    taps.weight[0] = 1, taps.slope[0] = 0;
    return taps;
  }
  const C first = std::floor(x.at);
  taps.count = 2;
  taps.at[0] = static_cast<int64_t>(first), taps.at[1] = taps.at[0] + 1;
  taps.weight[0] = first + 1 - x.at, taps.weight[1] = x.at - first;
  taps.slope[0] = -x.slope, taps.slope[1] = x.slope;
  return taps;
}

// What one output reads: f(offset, weight, slopes) for each position inside the image. slopes[k] is how the weight changes with the
// grid's number of dimension k (depth, height, width).
template <class C, class F>
void each_tap(const AxisTaps<C>* axes, const GridShape& s, F f) {
  int64_t count = 1;
  for (int k = 0; k < s.dims; ++k) count *= axes[k].count;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0;
    int which[3] = {};
    bool inside = true;
    for (int k = s.dims; k-- > 0;) {
      which[k] = static_cast<int>(rest % axes[k].count);
      rest /= axes[k].count;
      const int64_t at = axes[k].at[which[k]];
      inside = inside && at >= 0 && at < s.size[k];
    }
    if (!inside) continue;
    C weight = 1, slopes[3];
    for (int k = 0; k < s.dims; ++k) {
      offset = offset * s.size[k] + axes[k].at[which[k]];
      weight *= axes[k].weight[which[k]];
      slopes[k] = axes[k].slope[which[k]];
      for (int j = 0; j < s.dims; ++j)
        if (j != k) slopes[k] *= axes[j].weight[which[j]];
    }
    f(offset, weight, slopes);
  }
}

template <class C>
void grid_gradient(const TensorBase& grad, const TensorBase& input, const TensorBase& grid, const GridShape& s,
                   const TensorBase& grad_input, const TensorBase& grad_grid) {
  const int64_t channels = input.size(1), batch = input.size(0);
  int64_t image = 1, points = 1;
  for (int k = 0; k < s.dims; ++k) image *= s.size[k], points *= s.out[k];
  const C *g = grad.data_as<C>(), *from = input.data_as<C>(), *where = grid.data_as<C>();
  const auto taps_of = [&](int64_t point, AxisTaps<C>* axes) {
    for (int k = 0; k < s.dims; ++k) axes[k] = axis_taps<C>(where[point * s.dims + (s.dims - 1 - k)], s.size[k], s);
  };
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, points));
  if (grad_input.defined()) {
    C* to = grad_input.mutable_data_as<C>();
    parallel_for(0, batch * channels, grain, [&](int64_t begin, int64_t end) {
      AxisTaps<C> axes[3];
      for (int64_t plane = begin; plane < end; ++plane)
        for (int64_t p = 0; p < points; ++p) {
          taps_of(plane / channels * points + p, axes);
          each_tap<C>(axes, s, [&](int64_t offset, C weight, const C*) {
            to[plane * image + offset] += weight * g[plane * points + p];
          });
        }
    });
  }
  if (!grad_grid.defined() || s.mode == GridMode::nearest) return;
  C* to = grad_grid.mutable_data_as<C>();
  parallel_for(0, batch * points, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, channels)),
               [&](int64_t begin, int64_t end) {
                 AxisTaps<C> axes[3];
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t n = i / points, p = i % points;
                   taps_of(i, axes);
                   each_tap<C>(axes, s, [&](int64_t offset, C, const C* slopes) {
                     C sum = 0;
                     for (int64_t c = 0; c < channels; ++c)
                       sum += g[(n * channels + c) * points + p] * from[(n * channels + c) * image + offset];
                     for (int k = 0; k < s.dims; ++k) to[i * s.dims + (s.dims - 1 - k)] += sum * slopes[k];
                   });
                 }
               });
}

}  // namespace

void grid_sample_backward(const TensorBase& grad, const TensorBase& input, const TensorBase& grid, GridMode mode,
                          GridPadding padding, bool align, const TensorBase& grad_input, const TensorBase& grad_grid) {
  const DType wide = input.dtype() == DType::float64 ? DType::float64 : DType::float32;
  GridShape shape{static_cast<int>(input.dim()) - 2, {1, 1, 1}, {1, 1, 1}, mode, padding, align};
  for (int k = 0; k < shape.dims; ++k) shape.size[k] = input.size(2 + k), shape.out[k] = grid.size(1 + k);
  const auto aside = [&](const TensorBase& t) {
    if (!t.defined()) return t;
    const TensorBase work = t.dtype() == wide && t.is_contiguous() ? t : make_tensor(t.sizes(), wide);
    copy(wrapped_scalar(Scalar(0), wide), work);
    return work;
  };
  const TensorBase to_input = aside(grad_input), to_grid = aside(grad_grid);
  const TensorBase g = contiguous_as(grad, wide), from = contiguous_as(input, wide), where = contiguous_as(grid, wide);
  if (g.numel() != 0) {
    if (wide == DType::float64)
      grid_gradient<double>(g, from, where, shape, to_input, to_grid);
    else
      grid_gradient<float>(g, from, where, shape, to_input, to_grid);
  }
  if (grad_input.defined() && !to_input.is_same(grad_input)) copy(to_input, grad_input);
  if (grad_grid.defined() && !to_grid.is_same(grad_grid)) copy(to_grid, grad_grid);
}

}  // namespace calque::kernel
