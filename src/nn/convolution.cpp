#include "calque/nn/convolution.h"

#include <algorithm>
#include <cmath>

#include "calque/nn/init.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/reductions.h"

namespace calque {

using nn_detail::sym;
using nn_detail::tuple_text;

static Tensor made_weight(int64_t in_channels, int64_t out_channels, const std::vector<int64_t>& kernel, int64_t groups,
                          bool transposed, const Factory& factory) {
  if (groups <= 0) throw UserError("groups must be a positive integer");
  if (in_channels % groups != 0) throw UserError("in_channels must be divisible by groups");
  if (out_channels % groups != 0) throw UserError("out_channels must be divisible by groups");
  SymInts sizes{transposed ? in_channels : out_channels, (transposed ? out_channels : in_channels) / groups};
  for (const int64_t k : kernel) sizes.push_back(k);
  return empty(sizes, factory.dtype, std::nullopt, factory.device);
}

static std::vector<int64_t> numbers(const std::variant<Sizes, std::string>& padding, size_t dims) {
  if (const auto* sizes = std::get_if<Sizes>(&padding)) return sizes->expanded(dims, "padding");
  return std::vector<int64_t>(dims, 0);
}

ConvBase::ConvBase(size_t dims, int64_t in_channels, int64_t out_channels, const Sizes& kernel, const ConvOptions& options,
                   bool transposed, const Sizes& output_padding)
    : dims(dims),
      in_channels(in_channels),
      out_channels(out_channels),
      kernel_size(kernel.expanded(dims, "kernel_size")),
      stride(options.stride.expanded(dims, "stride")),
      padding(numbers(options.padding, dims)),
      padding_name(std::holds_alternative<std::string>(options.padding) ? std::get<std::string>(options.padding) : ""),
      dilation(options.dilation.expanded(dims, "dilation")),
      output_padding(output_padding.expanded(dims, "output_padding")),
      groups(options.groups),
      padding_mode(options.padding_mode),
      weight(register_parameter("weight",
                                made_weight(in_channels, out_channels, kernel_size, groups, transposed, options.factory))),
      bias(register_parameter(
          "bias",
          options.bias ? empty({out_channels}, options.factory.dtype, std::nullopt, options.factory.device) : Tensor())) {
  if (!padding_name.empty()) {
    if (padding_name != "same" && padding_name != "valid")
      throw UserError("Invalid padding string '" + padding_name + "', should be one of {'same', 'valid'}");
    if (padding_name == "same" && std::any_of(stride.begin(), stride.end(), [](int64_t s) { return s != 1; }))
      throw UserError("padding='same' is not supported for strided convolutions");
  }
  if (padding_mode != "zeros" && padding_mode != "reflect" && padding_mode != "replicate" && padding_mode != "circular")
    throw UserError("padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, but got padding_mode='" +
                    padding_mode + "'");
  reset_parameters();
}

void ConvBase::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const int64_t fan_in = init::fan_in_and_fan_out(weight).first;
  if (fan_in == 0) return;
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  init::uniform_(bias, -bound, bound);
}

std::string ConvBase::extra_repr() const {
  const auto all = [](const std::vector<int64_t>& values, int64_t of) {
    return std::all_of(values.begin(), values.end(), [of](int64_t v) { return v == of; });
  };
  std::string out = std::to_string(in_channels) + ", " + std::to_string(out_channels) +
                    ", kernel_size=" + tuple_text(kernel_size) + ", stride=" + tuple_text(stride);
  if (!padding_name.empty())
    out += ", padding=" + padding_name;
  else if (!all(padding, 0))
    out += ", padding=" + tuple_text(padding);
  if (!all(dilation, 1)) out += ", dilation=" + tuple_text(dilation);
  if (!all(output_padding, 0)) out += ", output_padding=" + tuple_text(output_padding);
  if (groups != 1) out += ", groups=" + std::to_string(groups);
  if (!bias.defined()) out += ", bias=False";
  if (padding_mode != "zeros") out += ", padding_mode=" + padding_mode;
  return out;
}

Tensor ConvBase::convolve(const Tensor& input) {
  const SymInts strides = sym(stride), dilations = sym(dilation);
  if (padding_mode != "zeros") {
    SymInts around;  // the last dimension first
    for (size_t d = dims; d-- > 0;) {
      const int64_t total = padding_name == "same" ? dilation[d] * (kernel_size[d] - 1) : padding[d] * 2;
      around.push_back(total / 2);
      around.push_back(total - total / 2);
    }
    const Tensor padded = pad(input, around, padding_mode);
    const SymInts none(dims, SymInt(0));
    if (dims == 1) return conv1d(padded, weight, bias, strides, none, dilations, groups);
    if (dims == 2) return conv2d(padded, weight, bias, strides, none, dilations, groups);
    return conv3d(padded, weight, bias, strides, none, dilations, groups);
  }
  if (!padding_name.empty()) {
    if (dims == 1) return conv1d_padding(input, weight, bias, strides, padding_name, dilations, groups);
    if (dims == 2) return conv2d_padding(input, weight, bias, strides, padding_name, dilations, groups);
    return conv3d_padding(input, weight, bias, strides, padding_name, dilations, groups);
  }
  const SymInts paddings = sym(padding);
  if (dims == 1) return conv1d(input, weight, bias, strides, paddings, dilations, groups);
  if (dims == 2) return conv2d(input, weight, bias, strides, paddings, dilations, groups);
  return conv3d(input, weight, bias, strides, paddings, dilations, groups);
}

Tensor ConvBase::convolve_transposed(const Tensor& input, const std::optional<std::vector<SymInt>>& output_size) {
  SymInts more = sym(output_padding);
  if (output_size) {
    const auto leading = static_cast<size_t>(input.dim() == static_cast<int64_t>(dims) + 2 ? 2 : 1);
    const size_t skip = output_size->size() == leading + dims ? leading : 0;
    if (output_size->size() - skip != dims) {
      throw UserError("ConvTranspose" + std::to_string(dims) + "D: for " + std::to_string(input.dim()) +
                      "D input, output_size must have " + std::to_string(dims) + " or " + std::to_string(leading + dims) +
                      " elements (got " + std::to_string(output_size->size()) + ")");
    }
    for (size_t d = 0; d < dims; ++d) {
      const SymInt least = (input.sym_size(static_cast<int64_t>(d + leading)) - 1) * stride[d] - 2 * padding[d] +
                           dilation[d] * (kernel_size[d] - 1) + 1;
      const SymInt wanted = (*output_size)[d + skip];
      if (guard(wanted < least) || guard(wanted > least + stride[d] - 1)) {
        throw UserError(class_name() + ": requested an output size of " + calque::str(SymIntList(*output_size)) +
                        ", but valid sizes of dimension " + std::to_string(d) + " range from " + least.str() + " to " +
                        (least + stride[d] - 1).str());
      }
      more[d] = wanted - least;
    }
  }
  const SymInts strides = sym(stride), paddings = sym(padding), dilations = sym(dilation);
  if (dims == 1) return conv_transpose1d(input, weight, bias, strides, paddings, more, groups, dilations);
  if (dims == 2) return conv_transpose2d(input, weight, bias, strides, paddings, more, groups, dilations);
  return conv_transpose3d(input, weight, bias, strides, paddings, more, groups, dilations);
}

}  // namespace calque
