#include "kernel/cpu/convolution/convolve.h"

#include <cmath>
#include <type_traits>

#include "calque/base/thread.h"
#include "kernel/cpu/convolution/convolution.h"
#include "kernel/cpu/convolution/weight_gradient.h"
#include "kernel/cpu/elementwise/convert.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/reduce/reduce.h"

namespace calque::kernel {
namespace {

// Strides as the kernel wants them: two leading dimensions, then depth, height, width.
void describe(const TensorBase& t, int64_t* strides, int64_t* sizes) {
  const int64_t spatial = t.dim() - 2;
  strides[0] = t.stride(0);
  strides[1] = t.stride(1);
  for (int64_t d = 0; d < 3; ++d) {
    const int64_t from = d - (3 - spatial);
    strides[2 + d] = from >= 0 ? t.stride(2 + from) : 0;
    if (sizes) sizes[d] = from >= 0 ? t.size(2 + from) : 1;
  }
}

template <class T>
Convolution<T> problem(const TensorBase& input, const TensorBase& weight, const TensorBase& bias,
                       const ConvolutionShape& shape, const TensorBase& out) {
  Convolution<T> g;
  g.batch = input.size(0);
  g.in_channels = input.size(1);
  g.out_channels = out.size(1);
  g.groups = shape.groups;
  g.transposed = shape.transposed;
  for (int d = 0; d < 3; ++d)
    g.stride[d] = shape.stride[d], g.padding[d] = shape.padding[d], g.dilation[d] = shape.dilation[d];
  g.in = input.data_as<T>();
  describe(input, g.in_strides, g.in_size);
  g.weight = weight.data_as<T>();
  describe(weight, g.weight_strides, g.kernel);
  g.out = out.mutable_data_as<T>();
  describe(out, g.out_strides, g.out_size);
  if (bias.defined()) {
    g.bias = bias.data_as<T>();
    g.bias_stride = bias.stride(0);
  }
  return g;
}

// Any type, one output number at a time; positions outside the image are left out.
template <class T>
void convolve_plainly(const Convolution<T>& g) {
  using U = std::conditional_t<!is_integral_type<T>, std::conditional_t<std::is_same_v<T, double>, double, float>,
                               std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;  // integers wrap
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  const int64_t per_channel = g.out_size[0] * g.out_size[1] * g.out_size[2];
  const int64_t* const ws = g.weight_strides;
  parallel_for(0, g.batch * g.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / g.out_channels, o = item % g.out_channels, group = o / out_group;
      for (int64_t at = 0; at < per_channel; ++at) {
        const int64_t out[3] = {at / g.out_size[2] / g.out_size[1], at / g.out_size[2] % g.out_size[1], at % g.out_size[2]};
        U total = g.bias ? static_cast<U>(g.bias[o * g.bias_stride]) : U{0};
        for (int64_t tap = 0; tap < g.kernel[0] * g.kernel[1] * g.kernel[2]; ++tap) {
          const int64_t k[3] = {tap / g.kernel[2] / g.kernel[1], tap / g.kernel[2] % g.kernel[1], tap % g.kernel[2]};
          int64_t from = n * g.in_strides[0], by = 0;
          bool inside = true;
          for (int d = 0; d < 3; ++d) {
            int64_t x;
            if (g.transposed) {
              x = out[d] + g.padding[d] - k[d] * g.dilation[d];
              inside = inside && x >= 0 && x % g.stride[d] == 0;
              x /= g.stride[d];
            } else {
              x = out[d] * g.stride[d] - g.padding[d] + k[d] * g.dilation[d];
            }
            inside = inside && x >= 0 && x < g.in_size[d];
            if (!inside) break;
            from += x * g.in_strides[2 + d];
            by += k[d] * ws[2 + d];
          }
          if (!inside) continue;
          for (int64_t c = 0; c < in_group; ++c) {
            const int64_t channel = group * in_group + c;
            const int64_t w = g.transposed ? channel * ws[0] + (o % out_group) * ws[1] : o * ws[0] + c * ws[1];
            total += static_cast<U>(g.in[from + channel * g.in_strides[1]]) * static_cast<U>(g.weight[w + by]);
          }
        }
        g.out[n * g.out_strides[0] + o * g.out_strides[1] + out[0] * g.out_strides[2] + out[1] * g.out_strides[3] +
              out[2] * g.out_strides[4]] = static_cast<T>(total);
      }
    }
  });
}

template <class T>
bool all_finite(const T* at, const int64_t* sizes, const int64_t* strides, int dims) {
  if (dims == 0) return std::isfinite(static_cast<float>(*at));
  for (int64_t i = 0; i < sizes[0]; ++i)
    if (!all_finite(at + i * strides[0], sizes + 1, strides + 1, dims - 1)) return false;
  return true;
}
// The fast kernel multiplies zeros outside the image with the weight. An infinite weight then shows in the results: in all
// of its channel, as it is multiplied with something everywhere, or, transposed, wherever it is used. Weights are many, so they
// are looked at only where that happened.
template <class T>
void convolve_floats(const Convolution<T>& g, bool padding_counts) {
  convolution(g);
  if (padding_counts || !(g.transposed || g.padding[0] || g.padding[1] || g.padding[2])) return;
  const int64_t results[5] = {g.transposed ? g.batch : 1, g.out_channels, g.transposed ? g.out_size[0] : 1,
                              g.transposed ? g.out_size[1] : 1, g.transposed ? g.out_size[2] : 1};
  if (all_finite(static_cast<const T*>(g.out), results, g.out_strides, 5)) return;
  const int64_t weights[5] = {g.transposed ? g.in_channels : g.out_channels,
                              (g.transposed ? g.out_channels : g.in_channels) / g.groups, g.kernel[0], g.kernel[1],
                              g.kernel[2]};
  if (!all_finite(g.weight, weights, g.weight_strides, 5)) convolve_plainly(g);
}

template <class T>
bool is_finite(const TensorBase& weight) {
  int64_t strides[5], sizes[5] = {weight.size(0), weight.size(1)};
  describe(weight, strides, sizes + 2);
  return all_finite(weight.data_as<T>(), sizes, strides, 5);
}

template <class T>
constexpr bool is_real =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>;

// The weight's gradient, positions outside the image left out where one is infinite. It is a convolution too: of the image, channels taken for the batch, with the other gradient as the
// weight; strides and dilations change places, and each group stands alone.
template <class T>
void weight_gradient(const TensorBase& image, const TensorBase& other, const ConvolutionShape& shape,
                     const TensorBase& grad_weight) {
  Convolution<T> g;
  int64_t image_strides[5], other_strides[5], out_strides[5];
  describe(image, image_strides, g.in_size);
  describe(other, other_strides, g.kernel);
  describe(grad_weight, out_strides, g.out_size);
  for (int d = 0; d < 3; ++d)
    g.stride[d] = shape.dilation[d], g.dilation[d] = shape.stride[d], g.padding[d] = shape.padding[d];
  const int64_t image_group = image.size(1) / shape.groups, other_group = other.size(1) / shape.groups;
  g.batch = image_group;
  g.in_channels = image.size(0);
  g.out_channels = other_group;
  for (int d = 0; d < 5; ++d) {
    const int from = d == 0 ? 1 : d == 1 ? 0 : d;
    g.in_strides[d] = image_strides[from];
    g.weight_strides[d] = other_strides[from];
    g.out_strides[d] = out_strides[from];
  }
  for (int64_t i = 0; i < shape.groups; ++i) {
    g.in = image.data_as<T>() + i * image_group * image_strides[1];
    g.weight = other.data_as<T>() + i * other_group * other_strides[1];
    g.out = grad_weight.mutable_data_as<T>() + i * other_group * out_strides[0];
    convolve_floats(g, shape.padding_counts_for_weight);
  }
}

// Of a plain convolution with one tap the gradient of the input is such a convolution, its weight transposed.
bool is_pointwise(const TensorBase& weight, const ConvolutionShape& shape) {
  bool plain = !shape.transposed && shape.groups == 1;
  for (int d = 0; d < 3; ++d) plain = plain && shape.stride[d] == 1 && shape.padding[d] == 0;
  for (int64_t d = 2; d < weight.dim(); ++d) plain = plain && weight.size(d) == 1;
  return plain;
}
TensorBase transposed(const TensorBase& weight) {
  SymInts sizes = weight.impl().sizes, strides = weight.impl().strides;
  std::swap(sizes[0], sizes[1]);
  std::swap(strides[0], strides[1]);
  return make_view(weight, sizes, strides, weight.storage_offset());
}

template <class T>
void input_gradient(const TensorBase& grad_output, const TensorBase& weight, const ConvolutionShape& shape,
                    const TensorBase& grad_input) {
  if (is_pointwise(weight, shape))
    return convolve_floats(problem<T>(grad_output, transposed(weight), {}, shape, grad_input), true);
  ConvolutionShape reverse = shape;
  reverse.transposed = !shape.transposed;
  // Of a transposed problem the gradient is a plain one, which counts padding as the forward one would.
  convolve_floats(problem<T>(grad_output, weight, {}, reverse, grad_input), shape.transposed && shape.padding_counts);
}

}  // namespace

void convolve(const TensorBase& input, const TensorBase& weight, const TensorBase& bias, const ConvolutionShape& shape,
              const TensorBase& out) {
  if (out.numel() == 0) return;
  dispatch(input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_real<T>)
      convolve_floats(problem<T>(input, weight, bias, shape, out), shape.padding_counts);
    else if constexpr (is_integral_type<T> && !std::is_same_v<T, Bool>)
      convolve_plainly(problem<T>(input, weight, bias, shape, out));
    else
      throw InternalError("convolve: no kernel for dtype " + std::string(name(input.dtype())));
  });
}

void convolve_backward(const TensorBase& grad_output, const TensorBase& input, const TensorBase& weight,
                       const ConvolutionShape& shape, const TensorBase& grad_input, const TensorBase& grad_weight,
                       const TensorBase& grad_bias) {
  const bool empty = grad_output.numel() == 0 || input.numel() == 0;
  const auto zero = [](const TensorBase& t) {
    if (t.defined()) copy(wrapped_scalar(Scalar(0), t.dtype()), t);
  };
  if (empty) {
    zero(grad_input);
    zero(grad_weight);
    zero(grad_bias);
    return;
  }
  dispatch(input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_real<T>) {
      if (grad_input.defined()) input_gradient<T>(grad_output, weight, shape, grad_input);
      if (grad_weight.defined()) {
        const TensorBase& image = shape.transposed ? grad_output : input;
        const TensorBase& other = shape.transposed ? input : grad_output;
        weight_gradient_by_columns(image, other, shape, grad_weight);
        if (!shape.padding_counts_for_weight && !is_finite<T>(grad_weight))
          weight_gradient<T>(image, other, shape, grad_weight);
      }
      // Sums over all but the channels.
      if (grad_bias.defined())
        reduce(Reduction::sum, grad_output.dtype(), grad_output, ~uint64_t{2} & ((uint64_t{1} << grad_output.dim()) - 1),
               grad_bias);
    } else {
      throw InternalError("convolve_backward: no kernel for dtype " + std::string(name(input.dtype())));
    }
  });
}

}  // namespace calque::kernel
