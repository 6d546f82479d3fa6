#include "kernel/cpu/convolution/folding.h"
#include "kernel/cpu/elementwise/copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/dispatch_among.h"

namespace calque::kernel {
namespace {

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, std::conditional_t<std::is_same_v<T, Bool>, bool, float>>;

template <class F>
void with_folded(DType d, F&& fn) {
  dispatch_among<Bool, Half, BFloat16, float, double>(d, "folding", fn);
}
template <class F>
void with_float(DType d, F&& fn) {
  with_folded(d, [&](auto tag) {
    if constexpr (!std::is_same_v<typename decltype(tag)::type, Bool>) fn(tag);
  });
}

// fn(image row, image column) of block (by, bx) and tap (ky, kx); false when it lies in the padding.
bool position(const Blocks& b, int64_t by, int64_t bx, int64_t ky, int64_t kx, int64_t& y, int64_t& x) {
  y = by * b.stride[0] - b.padding[0] + ky * b.dilation[0];
  x = bx * b.stride[1] - b.padding[1] + kx * b.dilation[1];
  return y >= 0 && y < b.image[0] && x >= 0 && x < b.image[1];
}

}  // namespace

void im2col(const TensorBase& image, const Blocks& b, const TensorBase& columns) {
  with_folded(image.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = image.data_as<T>();
    T* const to = columns.mutable_data_as<T>();
    const int64_t channels = image.size(1), taps = b.kernel[0] * b.kernel[1];
    parallel_for(0, image.size(0) * channels * taps,
                 std::max<int64_t>(1, 16384 / std::max<int64_t>(1, b.count[0] * b.count[1])),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t n = i / taps / channels, row = i % (channels * taps), c = row / taps, tap = row % taps;
                     const T* const plane = from + n * image.stride(0) + c * image.stride(1);
                     T* const line = to + n * columns.stride(0) + row * columns.stride(1);
                     for (int64_t by = 0; by < b.count[0]; ++by)
                       for (int64_t bx = 0; bx < b.count[1]; ++bx) {
                         int64_t y, x;
                         const bool inside = position(b, by, bx, tap / b.kernel[1], tap % b.kernel[1], y, x);
                         line[(by * b.count[1] + bx) * columns.stride(2)] =
                             inside ? plane[y * image.stride(2) + x * image.stride(3)] : T();
                       }
                   }
                 });
  });
}

void col2im(const TensorBase& columns, const Blocks& b, const TensorBase& image) {
  with_folded(image.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = columns.data_as<T>();
    T* const to = image.mutable_data_as<T>();
    const int64_t channels = image.size(1), taps = b.kernel[0] * b.kernel[1], size = b.image[0] * b.image[1];
    parallel_for(0, image.size(0) * channels, 1, [&](int64_t begin, int64_t end) {
      std::vector<std::conditional_t<std::is_same_v<T, Bool>, uint8_t, Wide<T>>> sums(static_cast<size_t>(size));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / channels, c = i % channels;
        std::fill(sums.begin(), sums.end(), 0);
        for (int64_t tap = 0; tap < taps; ++tap) {
          const T* const line = from + n * columns.stride(0) + (c * taps + tap) * columns.stride(1);
          for (int64_t by = 0; by < b.count[0]; ++by)
            for (int64_t bx = 0; bx < b.count[1]; ++bx) {
              int64_t y, x;
              if (!position(b, by, bx, tap / b.kernel[1], tap % b.kernel[1], y, x)) continue;
              auto& sum = sums[static_cast<size_t>(y * b.image[1] + x)];
              const T value = line[(by * b.count[1] + bx) * columns.stride(2)];
              if constexpr (std::is_same_v<T, Bool>)
                sum = sum || value;
              else
                sum += static_cast<Wide<T>>(value);
            }
        }
        T* const plane = to + n * image.stride(0) + c * image.stride(1);
        for (int64_t y = 0; y < b.image[0]; ++y)
          for (int64_t x = 0; x < b.image[1]; ++x)
            plane[y * image.stride(2) + x * image.stride(3)] = static_cast<T>(sums[static_cast<size_t>(y * b.image[1] + x)]);
      }
    });
  });
}

namespace {

template <class A>
A reflect(A x, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return 0;
  const A low = static_cast<A>(twice_low) / 2, span = static_cast<A>(twice_high - twice_low) / 2;
  x = std::fabs(x - low);
  const A extra = std::fmod(x, span);
  const A flips = std::floor(x / span);
  return std::fmod(flips, A(2)) == 0 ? extra + low : span - extra + low;
}

// Where a coordinate outside the image is taken to lie.
template <class A>
A place(A x, int64_t size, GridPadding padding, bool align_corners) {
  if (padding == GridPadding::reflection)
    x = align_corners ? reflect<A>(x, 0, 2 * (size - 1)) : reflect<A>(x, -1, 2 * size - 1);
  if (padding != GridPadding::zeros) x = x > 0 ? std::min(static_cast<A>(size - 1), x) : A(0);
  // Beyond all images, and safe to convert.
  return std::isfinite(x) && std::fabs(x) < A(1 << 30) ? x : A(-100);
}
template <class A>
A unnormalize(A x, int64_t size, bool align_corners) {
  return align_corners ? (x + 1) / 2 * static_cast<A>(size - 1) : ((x + 1) * static_cast<A>(size) - 1) / 2;
}

// Input positions with weights: what every channel of one output reads.
template <class A>
struct Taps {
  int count = 0;
  int64_t offset[16];
  A weight[16];
};

template <class A>
void cubic(A t, A* w) {
  constexpr A a = A(-0.75);
  const auto far = [](A x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto near = [](A x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  w[0] = far(t + 1);
  w[1] = near(t);
  w[2] = near(1 - t);
  w[3] = far(2 - t);
}

}  // namespace

void grid_sample(const TensorBase& input, const TensorBase& grid, GridMode mode, GridPadding padding, bool align,
                 const TensorBase& out) {
  with_float(input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T* const from = input.data_as<T>();
    const T* const where = grid.data_as<T>();
    T* const to = out.mutable_data_as<T>();
    const int64_t h = input.size(2), w = input.size(3), sh = input.stride(2), sw = input.stride(3), channels = input.size(1),
                  width = out.size(3);
    parallel_for(
        0, out.size(0) * out.size(2), std::max<int64_t>(1, 4096 / std::max<int64_t>(1, channels * width)),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            for (int64_t ox = 0; ox < width; ++ox) {
              const int64_t n = i / out.size(2), oy = i % out.size(2);
              const T* const at = where + n * grid.stride(0) + oy * grid.stride(1) + ox * grid.stride(2);
              A x = unnormalize<A>(static_cast<A>(at[0]), w, align),
                y = unnormalize<A>(static_cast<A>(at[grid.stride(3)]), h, align);
              Taps<A> taps;
              const auto add = [&](int64_t iy, int64_t ix, A weight) {
                if (ix < 0 || ix >= w || iy < 0 || iy >= h) return;
                taps.offset[taps.count] = iy * sh + ix * sw;
                taps.weight[taps.count++] = weight;
              };
              if (mode == GridMode::bicubic) {
                x = std::isfinite(x) && std::fabs(x) < A(1 << 30) ? x : A(-100);
                y = std::isfinite(y) && std::fabs(y) < A(1 << 30) ? y : A(-100);
                const A x0 = std::floor(x), y0 = std::floor(y);
                A wx[4], wy[4];
                cubic<A>(x - x0, wx);
                cubic<A>(y - y0, wy);
                for (int r = 0; r < 4; ++r)
                  for (int c = 0; c < 4; ++c)
                    add(static_cast<int64_t>(place<A>(y0 - 1 + static_cast<A>(r), h, padding, align)),
                        static_cast<int64_t>(place<A>(x0 - 1 + static_cast<A>(c), w, padding, align)), wx[c] * wy[r]);
              } else {
                x = place(x, w, padding, align);
                y = place(y, h, padding, align);
                if (mode == GridMode::nearest) {
                  add(static_cast<int64_t>(std::nearbyint(y)), static_cast<int64_t>(std::nearbyint(x)), 1);
                } else {
                  const A x0 = std::floor(x), y0 = std::floor(y), x1 = x0 + 1, y1 = y0 + 1;
                  const auto ix = static_cast<int64_t>(x0), iy = static_cast<int64_t>(y0);
                  add(iy, ix, (x1 - x) * (y1 - y));
                  add(iy, ix + 1, (x - x0) * (y1 - y));
                  add(iy + 1, ix, (x1 - x) * (y - y0));
                  add(iy + 1, ix + 1, (x - x0) * (y - y0));
                }
              }
              for (int64_t c = 0; c < channels; ++c) {
                const T* const plane = from + n * input.stride(0) + c * input.stride(1);
                A sum = 0;
                for (int t = 0; t < taps.count; ++t) sum += static_cast<A>(plane[taps.offset[t]]) * taps.weight[t];
                to[n * out.stride(0) + c * out.stride(1) + oy * out.stride(2) + ox * out.stride(3)] = static_cast<T>(sum);
              }
            }
        });
  });
}

// PyTorch's kernel computes places and weights in the tensors' own dtype: 16-bit floats are rounded after every step, so
// that the same voxels are read.
void grid_sample_3d(const TensorBase& input, const TensorBase& grid, GridMode mode, GridPadding padding, bool align,
                    const TensorBase& out) {
  with_float(input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto rounded = [](A x) { return static_cast<A>(static_cast<T>(x)); };
    const T* const from = input.data_as<T>();
    const T* const where = grid.data_as<T>();
    T* const to = out.mutable_data_as<T>();
    const int64_t channels = input.size(1), od = out.size(2), oh = out.size(3), ow = out.size(4);
    parallel_for(
        0, out.size(0) * od * oh, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, channels * ow)),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            for (int64_t ox = 0; ox < ow; ++ox) {
              const int64_t n = i / (od * oh), oz = i / oh % od, oy = i % oh;
              const T* const at =
                  where + n * grid.stride(0) + oz * grid.stride(1) + oy * grid.stride(2) + ox * grid.stride(3);
              A point[3];  // z, y, x, as the dimensions of the input
              for (int k = 0; k < 3; ++k) {
                const int64_t size = input.size(2 + k);
                const A x = static_cast<A>(at[(2 - k) * grid.stride(4)]);
                A p;
                if (align)
                  p = rounded(rounded(rounded(x + 1) / 2) * static_cast<A>(size - 1));
                else
                  p = rounded(rounded(rounded(rounded(x + 1) * static_cast<A>(size)) - 1) / 2);
                point[k] = rounded(place(p, size, padding, align));
              }
              Taps<A> taps;
              const auto add = [&](int64_t z, int64_t y, int64_t x, A weight) {
                if (z < 0 || z >= input.size(2) || y < 0 || y >= input.size(3) || x < 0 || x >= input.size(4)) return;
                taps.offset[taps.count] = z * input.stride(2) + y * input.stride(3) + x * input.stride(4);
                taps.weight[taps.count++] = weight;
              };
              if (mode == GridMode::nearest) {
                add(static_cast<int64_t>(std::nearbyint(point[0])), static_cast<int64_t>(std::nearbyint(point[1])),
                    static_cast<int64_t>(std::nearbyint(point[2])), 1);
              } else {
                int64_t low[3];
                A below[3], above[3];  // weights of the voxel below and of the next one
                for (int k = 0; k < 3; ++k) {
                  const A floor = std::floor(point[k]);
                  low[k] = static_cast<int64_t>(floor);
                  below[k] = rounded(rounded(floor + 1) - point[k]);
                  above[k] = rounded(point[k] - floor);
                }
                for (int corner = 0; corner < 8; ++corner) {
                  const int x = corner & 1, y = corner >> 1 & 1, z = corner >> 2;
                  add(low[0] + z, low[1] + y, low[2] + x,
                      rounded(rounded((x ? above[2] : below[2]) * (y ? above[1] : below[1])) * (z ? above[0] : below[0])));
                }
              }
              for (int64_t c = 0; c < channels; ++c) {
                const T* const volume = from + n * input.stride(0) + c * input.stride(1);
                A sum = 0;
                for (int t = 0; t < taps.count; ++t)
                  sum = rounded(sum + rounded(static_cast<A>(volume[taps.offset[t]]) * taps.weight[t]));
                to[n * out.stride(0) + c * out.stride(1) + oz * out.stride(2) + oy * out.stride(3) + ox * out.stride(4)] =
                    static_cast<T>(sum);
              }
            }
        });
  });
}

void weight_norm(const TensorBase& v, const TensorBase& g, int64_t dim, const TensorBase& out, const TensorBase& norm) {
  // v as [outer, size, inner], contiguous: the operator's body sees to it.
  int64_t outer = 1, inner = 1;
  const int64_t size = v.size(dim);
  for (int64_t d = 0; d < dim; ++d) outer *= v.size(d);
  for (int64_t d = dim + 1; d < v.dim(); ++d) inner *= v.size(d);
  with_float(v.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T* const from = v.data_as<T>();
    T* const to = out.mutable_data_as<T>();
    A* const norms = norm.mutable_data_as<A>();
    parallel_for(0, size, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, outer * inner)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     double squares = 0;
                     for (int64_t o = 0; o < outer; ++o)
                       for (int64_t x = 0; x < inner; ++x) {
                         const auto value = static_cast<double>(static_cast<A>(from[(o * size + i) * inner + x]));
                         squares += value * value;
                       }
                     const A length = static_cast<A>(std::sqrt(squares));
                     norms[i * norm.stride(dim)] = length;
                     const A scale = static_cast<A>(g.data_as<T>()[i * g.stride(dim)]) / length;
                     for (int64_t o = 0; o < outer; ++o)
                       for (int64_t x = 0; x < inner; ++x) {
                         const int64_t at = (o * size + i) * inner + x;
                         to[at] = static_cast<T>(static_cast<A>(from[at]) * scale);
                       }
                   }
                 });
  });
}

void weight_norm_backward(const TensorBase& grad, const TensorBase& v, const TensorBase& g, const TensorBase& norms,
                          int64_t dim, const TensorBase& grad_v, const TensorBase& grad_g) {
  const DType wide = v.dtype() == DType::float64 ? DType::float64 : DType::float32;
  int64_t outer = 1, inner = 1;
  const int64_t size = v.size(dim);
  for (int64_t d = 0; d < dim; ++d) outer *= v.size(d);
  for (int64_t d = dim + 1; d < v.dim(); ++d) inner *= v.size(d);
  const TensorBase slope = contiguous_as(grad, wide), from = contiguous_as(v, wide), scale = contiguous_as(g, wide),
                   length = contiguous_as(norms, wide);
  const auto aside = [&](const TensorBase& t) {
    return t.dtype() == wide && t.is_contiguous() ? t : make_tensor(t.sizes(), wide);
  };
  const TensorBase to_v = aside(grad_v), to_g = aside(grad_g);
  const auto run = [&]<class C>(C) {
    const C *s = slope.data_as<C>(), *x = from.data_as<C>();
    C *dv = to_v.mutable_data_as<C>(), *dg = to_g.mutable_data_as<C>();
    parallel_for(0, size, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, outer * inner)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     double along = 0;
                     for (int64_t o = 0; o < outer; ++o)
                       for (int64_t k = (o * size + i) * inner; k < (o * size + i + 1) * inner; ++k)
                         along += static_cast<double>(s[k]) * static_cast<double>(x[k]);
                     const auto norm = static_cast<double>(length.data_as<C>()[i]);
                     dg[i] = static_cast<C>(along / norm);
                     const auto factor = static_cast<C>(static_cast<double>(scale.data_as<C>()[i]) / norm);
                     const auto share = static_cast<C>(along / (norm * norm));
                     for (int64_t o = 0; o < outer; ++o)
                       for (int64_t k = (o * size + i) * inner; k < (o * size + i + 1) * inner; ++k)
                         dv[k] = factor * (s[k] - x[k] * share);
                   }
                 });
  };
  if (wide == DType::float64)
    run(double{});
  else
    run(float{});
  if (!to_v.is_same(grad_v)) copy(to_v, grad_v);
  if (!to_g.is_same(grad_g)) copy(to_g, grad_g);
}

}  // namespace calque::kernel
