#include "kernel/cpu/convolution/weight_gradient.h"

#include <algorithm>
#include <array>
#include <vector>

#include "calque/base/half.h"
#include "calque/base/memory.h"
#include "calque/base/thread.h"
#include "kernel/cpu/dispatch_among.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/gemm/matmul.h"

namespace calque::kernel {
namespace {

// Batch, channel, depth, height, width.
struct Volume {
  std::array<int64_t, 3> size = {1, 1, 1};
  std::array<int64_t, 5> stride = {};

  explicit Volume(const TensorBase& t) {
    const size_t spatial = static_cast<size_t>(t.dim()) - 2;
    stride[0] = t.stride(0), stride[1] = t.stride(1);
    for (size_t d = 0; d < spatial; ++d) {
      size[3 - spatial + d] = t.sizes()[2 + d];
      stride[5 - spatial + d] = t.strides()[2 + d];
    }
  }
  int64_t count() const { return size[0] * size[1] * size[2]; }
  // The one stride of all positions, or 0 where there is none.
  int64_t step() const {
    int64_t count = 1, step = 1;
    for (size_t d = 3; d-- > 0;) {
      if (size[d] == 1) continue;
      if (count == 1)
        step = stride[2 + d];
      else if (stride[2 + d] != step * count)
        return 0;
      count *= size[d];
    }
    return step;
  }
};

template <class T, class C>
class WeightGradient {
 public:
  WeightGradient(const TensorBase& image, const TensorBase& other, const ConvolutionShape& shape, const TensorBase& sums)
      : shape_(shape),
        image_(image),
        other_(other),
        taps_(sums),
        from_(image.data_as<T>()),
        slope_(other.data_as<C>()),
        to_(sums.mutable_data_as<C>()),
        batch_(image.size(0)),
        in_group_(image.size(1) / shape.groups),
        out_group_(other.size(1) / shape.groups),
        rows_(in_group_ * taps_.count()),
        positions_(other_.count()),
        // What of the columns stays in the second-level cache with the rest.
        stretch_(std::min(positions_, std::max<int64_t>(64, (int64_t{1} << 19) / std::max<int64_t>(1, rows_)))) {}

  void run() const {
    if (is_pointwise()) return each_group(1, [&](int64_t group, C*) { add_pointwise(group); });
    each_group(static_cast<size_t>(rows_ * stretch_), [&](int64_t group, C* columns) { add_group(group, columns); });
  }

 private:
  template <class F>
  void each_group(size_t numbers, F add) const {
    // Many groups are shared among the threads; the products of a few are.
    const int64_t grain = shape_.groups >= 4 ? 1 : shape_.groups;
    parallel_for(0, shape_.groups, grain, [&](int64_t begin, int64_t end) {
      CountedVector<C> columns(numbers);
      for (int64_t group = begin; group < end; ++group) add(group, columns.data());
    });
  }

  bool is_pointwise() const {
    bool plain = std::is_same_v<T, C> && taps_.count() == 1 && image_.step() != 0;
    for (int d = 0; d < 3; ++d) plain = plain && shape_.stride[d] == 1 && shape_.padding[d] == 0;
    return plain;
  }

  Product product(int64_t n, int64_t group, int64_t first, int64_t count) const {
    Product p;
    p.dtype = dtype_v<C>;
    p.m = out_group_, p.n = rows_, p.k = count;
    p.a = slope_ + n * other_.stride[0] + group * out_group_ * other_.stride[1] + first * other_.step();
    p.a_row = other_.stride[1], p.a_col = other_.step();
    p.c = to_ + group * out_group_ * rows_;
    p.c_row = rows_, p.c_col = 1;
    if (n > 0 || first > 0) p.beta = 1;
    return p;
  }

  void add_pointwise(int64_t group) const {
    for (int64_t n = 0; n < batch_; ++n) {
      Product p = product(n, group, 0, positions_);
      p.b = from_ + n * image_.stride[0] + group * in_group_ * image_.stride[1];
      p.b_row = image_.step(), p.b_col = image_.stride[1];
      multiply(p);
    }
  }

  void add_group(int64_t group, C* columns) const {
    for (int64_t n = 0; n < batch_; ++n) {
      const T* image = from_ + n * image_.stride[0] + group * in_group_ * image_.stride[1];
      for (int64_t first = 0; first < positions_; first += stretch_) {
        const int64_t count = std::min(stretch_, positions_ - first);
        parallel_for(0, rows_, std::max<int64_t>(1, 32768 / count), [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) fill_row(image, row, first, count, columns + row * count);
        });
        Product p = product(n, group, first, count);
        p.b = columns, p.b_row = 1, p.b_col = count;
        multiply(p);
      }
    }
  }

  // What one tap of one channel meets at the positions from `first` on.
  void fill_row(const T* image, int64_t row, int64_t first, int64_t count, C* to) const {
    const int64_t tap = row % taps_.count();
    const int64_t at[3] = {tap / taps_.size[2] / taps_.size[1], tap / taps_.size[2] % taps_.size[1], tap % taps_.size[2]};
    const T* channel = image + row / taps_.count() * image_.stride[1];
    const int64_t width = other_.size[2];
    while (count > 0) {
      const int64_t line = first / width, x = first % width, n = std::min(count, width - x);
      const int64_t z = place(0, line / other_.size[1], at[0]), y = place(1, line % other_.size[1], at[1]);
      if (z < 0 || z >= image_.size[0] || y < 0 || y >= image_.size[1])
        std::fill_n(to, n, C{0});
      else
        fill_line(channel + z * image_.stride[2] + y * image_.stride[3], place(2, x, at[2]), n, to);
      first += n, count -= n, to += n;
    }
  }
  int64_t place(int d, int64_t position, int64_t tap) const {
    return position * shape_.stride[d] - shape_.padding[d] + tap * shape_.dilation[d];
  }
  // n numbers of a line from `start` on, `step` apart; zeros outside of it.
  void fill_line(const T* line, int64_t start, int64_t n, C* to) const {
    const int64_t step = shape_.stride[2], width = image_.size[2], stride = image_.stride[4];
    const int64_t before = std::min(n, start >= 0 ? 0 : (-start + step - 1) / step);
    const int64_t end = start >= width ? before : std::clamp<int64_t>((width - start + step - 1) / step, before, n);
    std::fill_n(to, before, C{0});
    const T* from = line + (start + before * step) * stride;
    for (int64_t i = before; i < end; ++i, from += step * stride) to[i] = static_cast<C>(*from);
    std::fill_n(to + end, n - end, C{0});
  }

  const ConvolutionShape& shape_;
  Volume image_, other_, taps_;
  const T* from_;
  const C* slope_;
  C* to_;
  int64_t batch_, in_group_, out_group_, rows_, positions_, stretch_;
};

}  // namespace

void weight_gradient_by_columns(const TensorBase& image, const TensorBase& other, const ConvolutionShape& shape,
                                const TensorBase& grad_weight) {
  const DType wide = image.dtype() == DType::float64 ? DType::float64 : DType::float32;
  const TensorBase slope = other.dtype() == wide && Volume(other).step() != 0 ? other : contiguous_as(other, wide);
  const bool direct = grad_weight.dtype() == wide && grad_weight.is_contiguous();
  const TensorBase sums = direct ? grad_weight : make_tensor(grad_weight.sizes(), wide);
  dispatch_among<float, double, BFloat16, Half>(image.dtype(), "convolution_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    WeightGradient<T, C>(image, slope, shape, sums).run();
  });
  if (!direct) copy(sums, grad_weight);
}

}  // namespace calque::kernel
