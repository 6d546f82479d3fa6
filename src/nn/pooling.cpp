#include "calque/nn/pooling.h"

#include "calque/nn/functional.h"
#include "calque/op/aten/pooling.h"

namespace calque {

MaxPoolBase::MaxPoolBase(const Sizes& kernel_size, const MaxPoolOptions& options)
    : kernel_size(kernel_size),
      stride(options.stride.value_or(kernel_size)),
      padding(options.padding),
      dilation(options.dilation),
      ceil_mode(options.ceil_mode) {}

std::string MaxPoolBase::extra_repr() const {
  return "kernel_size=" + kernel_size.str() + ", stride=" + stride.str() + ", padding=" + padding.str() +
         ", dilation=" + dilation.str() + ", ceil_mode=" + nn_detail::text(ceil_mode);
}

// PyTorch keeps the numbers of AvgPool1d as tuples.
static Sizes as_tuple(const Sizes& sizes, size_t dims) { return dims == 1 ? Sizes(sizes.expanded(1, "AvgPool1d")) : sizes; }

AvgPoolBase::AvgPoolBase(size_t dims, const Sizes& kernel_size, const AvgPoolOptions& options)
    : kernel_size(as_tuple(kernel_size, dims)),
      stride(as_tuple(options.stride.value_or(kernel_size), dims)),
      padding(as_tuple(options.padding, dims)),
      ceil_mode(options.ceil_mode),
      count_include_pad(options.count_include_pad),
      divisor_override(options.divisor_override) {
  if (dims == 1 && divisor_override) throw UserError("AvgPool1d has no divisor_override");
}

std::string AvgPoolBase::extra_repr() const {
  return "kernel_size=" + kernel_size.str() + ", stride=" + stride.str() + ", padding=" + padding.str();
}

#define CALQUE_POOLING(DIMS)                                                                                     \
  Tensor MaxPool##DIMS##d::forward(const Tensor& input) {                                                        \
    return max_pool##DIMS##d(input, kernel_size.expanded(DIMS, "kernel_size"), stride.expanded(DIMS, "stride"),  \
                             padding.expanded(DIMS, "padding"), dilation.expanded(DIMS, "dilation"), ceil_mode); \
  }                                                                                                              \
  Tensor AdaptiveAvgPool##DIMS##d::forward(const Tensor& input) {                                                \
    return functional::adaptive_avg_pool##DIMS##d(input, output_size);                                           \
  }                                                                                                              \
  Tensor AdaptiveMaxPool##DIMS##d::forward(const Tensor& input) {                                                \
    return std::get<0>(functional::adaptive_max_pool##DIMS##d(input, output_size));                              \
  }
CALQUE_POOLING(1)
CALQUE_POOLING(2)
CALQUE_POOLING(3)
#undef CALQUE_POOLING

Tensor AvgPool1d::forward(const Tensor& input) {
  return avg_pool1d(input, kernel_size.values(), stride.values(), padding.values(), ceil_mode, count_include_pad);
}
Tensor AvgPool2d::forward(const Tensor& input) {
  return avg_pool2d(input, kernel_size.expanded(2, "kernel_size"), stride.expanded(2, "stride"),
                    padding.expanded(2, "padding"), ceil_mode, count_include_pad, divisor_override);
}
Tensor AvgPool3d::forward(const Tensor& input) {
  return avg_pool3d(input, kernel_size.expanded(3, "kernel_size"), stride.expanded(3, "stride"),
                    padding.expanded(3, "padding"), ceil_mode, count_include_pad, divisor_override);
}

}  // namespace calque
