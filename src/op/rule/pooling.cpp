#include "op/rule/pooling.h"
#include "kernel/cpu/not_implemented.h"

#include <string>

namespace calque::rule {
namespace {

void fill(const char* op, const char* what, IntList from, int spatial, int64_t* to) {
  const auto n = static_cast<size_t>(spatial);
  if (from.size() != 1 && from.size() != n)
    throw UserError(std::string(op) + ": " + what + " must either be a single int, or a tuple of " +
                    std::to_string(spatial) + " ints, found " + str(from));
  for (size_t d = 0; d < n; ++d) to[3 - n + d] = from[from.size() == 1 ? 0 : d];
}

}  // namespace

kernel::PoolWindow pool_window(const char* op, int spatial, IntList kernel_size, IntList stride, IntList padding,
                               IntList dilation) {
  kernel::PoolWindow w;
  w.spatial = spatial;
  fill(op, "kernel_size", kernel_size, spatial, w.kernel);
  if (stride.empty()) stride = kernel_size;
  fill(op, "stride", stride, spatial, w.stride);
  fill(op, "padding", padding, spatial, w.padding);
  fill(op, "dilation", dilation, spatial, w.dilation);
  SymInt taps = 1;  // of a window; throws where they are more than can be counted
  for (int d = 3 - spatial; d < 3; ++d) {
    const std::string name = op;
    for (const auto& [what, value] : {std::pair("kernel_size", w.kernel[d]), std::pair("stride", w.stride[d]),
                                      std::pair("padding", w.padding[d]), std::pair("dilation", w.dilation[d])})
      if (value > INT32_MAX)  // positions are products of these with sizes
        throw UserError(name + ": expected " + what + " of at most " + std::to_string(INT32_MAX) + ", found " +
                        std::to_string(value));
    taps *= w.kernel[d];
    if (w.stride[d] <= 0) throw UserError(name + ": stride should not be zero or negative, found " + str(stride));
    if (w.kernel[d] <= 0) throw UserError(name + ": kernel size should be greater than zero, found " + str(kernel_size));
    if (w.dilation[d] <= 0) throw UserError(name + ": dilation should be greater than zero, found " + str(dilation));
    if (w.padding[d] < 0) throw UserError(name + ": pad must be non-negative, but got padding " + str(padding));
    if (w.padding[d] > ((SymInt(w.kernel[d]) - 1) * w.dilation[d] + 1).as_int() / 2)
      throw UserError(name +
                      ": pad should be at most half of effective kernel size, but got pad=" + std::to_string(w.padding[d]) +
                      ", kernel_size=" + std::to_string(w.kernel[d]) + " and dilation=" + std::to_string(w.dilation[d]));
  }
  return w;
}

SymInts pooled_sizes(const char* op, const Tensor& input, const kernel::PoolWindow& w, bool ceil_mode) {
  const SymIntList in = input.sym_sizes();
  const size_t lead = in.size() - static_cast<size_t>(w.spatial);
  SymInts sizes(in.begin(), in.begin() + lead);
  for (int d = 0; d < w.spatial; ++d) {
    const int at = 3 - w.spatial + d;
    const SymInt size = in[lead + static_cast<size_t>(d)];
    const SymInt padded = size + SymInt(2) * w.padding[at] - SymInt(w.dilation[at]) * (w.kernel[at] - 1) - 1 +
                          (ceil_mode ? w.stride[at] - 1 : 0);
    SymInt out = floor_div(padded, w.stride[at]) + 1;
    // The last window must start inside the image or its left padding.
    if (ceil_mode && guard((out - 1) * w.stride[at] >= size + w.padding[at])) out = out - 1;
    if (!check(out >= 1))
      throw UserError(std::string(op) + ": Given input size: " + str(in) + ". Calculated output size: " + out.str() +
                      " in spatial dimension " + std::to_string(d) + ". Output size is too small");
    sizes.push_back(out);
  }
  return sizes;
}

void check_pool_input(const char* op, const Tensor& input, int spatial) {
  const int64_t lead = input.dim() - spatial;
  bool fits = lead == 1 || lead == 2;
  for (int64_t d = lead == 2 ? 1 : 0; d < input.dim() && fits; ++d) fits = check(input.sym_size(d) > 0);
  if (!fits)
    throw UserError(std::string(op) + ": Expected " + std::to_string(spatial + 1) + "D or " + std::to_string(spatial + 2) +
                    "D (batch mode) tensor with optional 0 dim batch size for input, but got: " + str(input.sym_sizes()));
}

Meta pooled(const Tensor& input, SymInts sizes, int spatial, bool channels_last_allowed) {
  Meta m;
  m.dtype = input.dtype();
  m.device = input.device();
  const bool batched = input.dim() == spatial + 2;
  const MemoryFormat format =
      channels_last_allowed && batched && spatial >= 2 ? input.suggest_memory_format() : MemoryFormat::contiguous;
  m.strides = strides_for(format, sizes);
  m.sizes = std::move(sizes);
  return m;
}

void check_pool_dtype(const char* op, DType d, PoolDTypes kinds) {
  bool fits = d == DType::float32 || d == DType::float64;
  if (kinds != PoolDTypes::wide_floats_and_int64) fits = fits || is_reduced_float(d);
  if (kinds == PoolDTypes::reals) fits = fits || (is_integral(d, false) && !is_barebones_unsigned(d));
  if (kinds == PoolDTypes::floats_and_int64 || kinds == PoolDTypes::wide_floats_and_int64) fits = fits || d == DType::int64;
  if (!fits) kernel::not_implemented(op, d);
}

}  // namespace calque::rule
