// Convolutions: the one operator that computes them, its gradient, and the forms that are made of it.
#include "kernel/cpu/convolution/convolve.h"
#include "kernel/cpu/not_implemented.h"

#include <algorithm>

#include "op/rule/geometry.h"
#include "op/stanza.h"

#include "calque/base/warning.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/views.h"

namespace calque {
namespace {

using OptSizes = std::optional<SymIntList>;

// One number for all dimensions, or one for each.
SymInts each(const char* op, const char* what, SymIntList values, size_t spatial) {
  if (values.size() == spatial) return SymInts(values.begin(), values.end());
  if (values.size() == 1) return SymInts(spatial, values[0]);
  throw UserError(std::string(op) + ": expected " + what + " to be a single integer value or a list of " +
                  std::to_string(spatial) + " values, but got " + str(values));
}

struct Settings {
  SymInts stride, padding, dilation, output_padding;
  bool transposed = false;
  SymInt groups = 1;
};

Settings settings(const char* op, const Tensor& weight, SymIntList stride, SymIntList padding, SymIntList dilation,
                  bool transposed, SymIntList output_padding, SymInt groups) {
  if (weight.dim() < 3)
    throw UserError(std::string(op) + ": weight should have at least three dimensions, found " + str(weight.sym_sizes()));
  const size_t spatial = static_cast<size_t>(weight.dim()) - 2;
  Settings s{each(op, "stride", stride, spatial),
             each(op, "padding", padding, spatial),
             each(op, "dilation", dilation, spatial),
             each(op, "output_padding", output_padding.empty() ? SymIntList({SymInt(0)}) : output_padding, spatial),
             transposed,
             groups};
  const auto all = [](const SymInts& values, auto&& holds) {
    for (const SymInt v : values)
      if (!holds(v)) return false;
    return true;
  };
  if (!all(s.padding, [](SymInt v) { return check(v >= 0); }))
    throw UserError(std::string(op) + ": negative padding is not supported, found " + str(padding));
  if (!all(s.output_padding, [](SymInt v) { return check(v >= 0); }))
    throw UserError(std::string(op) + ": negative output_padding is not supported, found " + str(output_padding));
  if (!all(s.stride, [](SymInt v) { return check(v > 0); }))
    throw UserError(std::string(op) + ": non-positive stride is not supported, found " + str(stride));
  if (!all(s.dilation, [](SymInt v) { return check(v > 0); }))
    throw UserError(std::string(op) + ": non-positive dilation is not supported, found " + str(dilation));
  if (!check(groups > 0)) throw UserError(std::string(op) + ": non-positive groups is not supported, found " + groups.str());
  return s;
}

// Whether PyTorch hands the problem to oneDNN: that leaves padding out, where PyTorch's own kernels multiply its zeros with
// the weight. Small problems of float32 it computes itself.
bool by_library(const Tensor& input, const Tensor& weight, bool moves, int64_t groups) {
  if (input.dtype() == DType::bfloat16) return true;
  if (input.dtype() != DType::float32) return false;
  const int64_t n = input.size(0);
  const bool wide = weight.size(-1) != 1 || (weight.dim() > 3 && weight.size(-2) != 1);
  const bool tall = weight.dim() > 3 && weight.size(-1) > 3 && weight.size(-2) > 3;
  int64_t first_four = 1;
  for (int64_t d = 0; d < std::min<int64_t>(4, input.dim()); ++d) first_four *= input.size(d);
  return (moves || n >= 16 || wide) && (groups > 1 || tall || n > 1 || first_four > 20480);
}
bool moves(const Settings& s) {
  for (size_t d = 0; d < s.stride.size(); ++d)
    if (!identical(s.dilation[d], 1) || !identical(s.stride[d], 1)) return true;
  return false;
}
// PyTorch's own kernels take a bias of any dtype, transposed ones (of at most two dimensions) one that casts to the result's.
bool takes_bias(const Tensor& input, const Tensor& weight, const Tensor& bias, const Settings& s) {
  if (bias.dtype() == input.dtype()) return true;
  if (input.impl().symbolic || weight.impl().symbolic || s.groups.is_symbolic()) return false;
  if (by_library(input, weight, moves(s), s.groups.as_int())) return false;
  return !s.transposed || (input.dim() < 5 && can_cast(bias.dtype(), input.dtype()));
}

void check_shapes(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias, const Settings& s) {
  const std::string given =
      std::string(op) + ": Given groups=" + s.groups.str() + ", weight of size " + str(weight.sym_sizes());
  if (input.dim() != weight.dim())
    throw UserError(std::string(op) + ": Expected " + std::to_string(weight.dim()) + "-dimensional input for " +
                    std::to_string(weight.dim()) + "-dimensional weight " + str(weight.sym_sizes()) + ", but got " +
                    std::to_string(input.dim()) + "-dimensional input of size " + str(input.sym_sizes()) + " instead");
  if (input.dim() > 5)
    throw UserError(std::string(op) + ": at most three spatial dimensions are supported, found weight of size " +
                    str(weight.sym_sizes()));
  const SymInt channels = input.sym_size(1);
  if (!check(weight.sym_size(0) >= s.groups) || !check(weight.sym_size(0) % s.groups == 0))
    throw UserError(given + ": expected weight to be at least " + s.groups.str() + " and divisible by it at dimension 0");
  if (!s.transposed) {
    if (!check(channels == weight.sym_size(1) * s.groups))
      throw UserError(given + ", expected input" + str(input.sym_sizes()) + " to have " +
                      (weight.sym_size(1) * s.groups).str() + " channels, but got " + channels.str() + " channels instead");
    for (size_t d = 0; d < s.stride.size(); ++d) {
      const SymInt padded = input.sym_sizes()[2 + d] + 2 * s.padding[d],
                   reach = s.dilation[d] * (weight.sym_sizes()[2 + d] - 1) + 1;
      if (!check(padded >= reach))
        throw UserError(std::string(op) + ": Calculated padded input size per channel: " + padded.str() + ". Kernel size: " +
                        reach.str() + ". Kernel size can't be greater than actual input size (spatial dimension " +
                        std::to_string(d) + ")");
    }
  } else {
    if (!check(channels == weight.sym_size(0)))
      throw UserError(given + ", transposed, expected input" + str(input.sym_sizes()) + " to have " +
                      weight.sym_size(0).str() + " channels, but got " + channels.str() + " channels instead");
    for (size_t d = 0; d < s.stride.size(); ++d)
      if (!check(sym_or(s.output_padding[d] < s.stride[d], s.output_padding[d] < s.dilation[d])))
        throw UserError(std::string(op) +
                        ": output padding must be smaller than either stride or dilation, but got output_padding " +
                        s.output_padding[d].str() + ", stride " + s.stride[d].str() + ", dilation " + s.dilation[d].str());
  }
  const SymInt out_channels = s.transposed ? weight.sym_size(1) * s.groups : weight.sym_size(0);
  if (bias.defined() && (bias.dim() != 1 || !check(bias.sym_size(0) == out_channels)))
    throw UserError(given + ", expected bias to be 1-dimensional with " + out_channels.str() +
                    " elements, but got bias of size " + str(bias.sym_sizes()) + " instead");
  if (input.dtype() != weight.dtype())
    throw UserError(std::string(op) + ": Input type (" + std::string(name(input.dtype())) + ") and weight type (" +
                    std::string(name(weight.dtype())) + ") should be the same");
  if (bias.defined() && !takes_bias(input, weight, bias, s))
    throw UserError(std::string(op) + ": Input type (" + std::string(name(input.dtype())) + ") and bias type (" +
                    std::string(name(bias.dtype())) + ") should be the same");
}
void check_dtype(const char* op, DType dtype, const Settings& s) {
  bool supported = is_floating(dtype) && !is_float8(dtype);
  if (is_integral(dtype, false) && !is_barebones_unsigned(dtype)) {
    bool dilated = false;
    for (const SymInt d : s.dilation) dilated = dilated || !guard_or(d == 1, true);
    supported = dtype == DType::int64 || (!s.transposed && !dilated);
  }
  if (!supported) kernel::not_implemented(op, dtype);
}

// Channels last where input or weight lies so. One spatial dimension is computed as two, and a permuted input does not
// count; of three only the library knows channels last.
MemoryFormat output_format(const Tensor& input, const Tensor& weight, const Settings& s) {
  if (input.dim() == 3) {
    const Tensor wide = rule::make(weight, rule::unsqueeze("convolution", rule::geometry(weight), 2));
    return wide.suggest_memory_format() == MemoryFormat::channels_last ? MemoryFormat::channels_last
                                                                       : MemoryFormat::contiguous;
  }
  const MemoryFormat last = input.dim() == 4 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d;
  const bool lies_so = input.suggest_memory_format() == last || weight.suggest_memory_format() == last;
  if (!lies_so) return MemoryFormat::contiguous;
  if (input.dim() == 4) return last;
  const bool known = !input.impl().symbolic && !weight.impl().symbolic && !s.groups.is_symbolic();
  const bool kept = known ? by_library(input, weight, moves(s), s.groups.as_int())
                          : input.dtype() == DType::float32 || is_reduced_float(input.dtype());
  return kept ? last : MemoryFormat::contiguous;
}
SymInts strides_in(MemoryFormat format, const SymInts& sizes) {
  if (sizes.size() == 3 && format == MemoryFormat::channels_last) return {sizes[1] * sizes[2], 1, sizes[1]};
  return strides_for(format, sizes);
}

Meta convolution_rule(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntList stride, SymIntList padding,
                      SymIntList dilation, bool transposed, SymIntList output_padding, SymInt groups) {
  const Settings s = settings("convolution", weight, stride, padding, dilation, transposed, output_padding, groups);
  check_shapes("convolution", input, weight, bias, s);
  check_dtype("convolution", input.dtype(), s);
  Meta m;
  m.dtype = input.dtype();
  m.device = input.device();
  m.sizes = {input.sym_size(0), s.transposed ? weight.sym_size(1) * s.groups : weight.sym_size(0)};
  const bool no_channels = guard_or(input.sym_size(1) == 0, false);
  if (no_channels) m.sizes[1] = 0;
  for (size_t d = 0; d < s.stride.size(); ++d) {
    const SymInt in = input.sym_sizes()[2 + d], reach = s.dilation[d] * (weight.sym_sizes()[2 + d] - 1);
    m.sizes.push_back(s.transposed ? (in - 1) * s.stride[d] - 2 * s.padding[d] + reach + s.output_padding[d] + 1
                                   : floor_div(in + 2 * s.padding[d] - reach - 1, s.stride[d]) + 1);
    if (s.transposed && !check(m.sizes.back() >= 0))
      throw UserError("convolution: Given input size per channel " + in.str() + ", the calculated output size is " +
                      m.sizes.back().str() + ", too small");
  }
  const bool empty = no_channels || guard_or(input.sym_size(0) == 0, false);
  if (!empty && guard_or(input.sym_numel() == 0, false))
    throw UserError("convolution: Only zero batch or zero channel inputs are supported, but got input shape: " +
                    str(input.sym_sizes()));
  m.strides = strides_in(empty ? MemoryFormat::contiguous : output_format(input, weight, s), m.sizes);
  return m;
}
// The library's own ways of leaving padding out end where it is wider than the kernel reaches, and with most groups.
bool padding_counts(const Tensor& input, const Tensor& weight, const kernel::ConvolutionShape& s) {
  const bool depthwise = s.groups > 1 && s.groups == input.size(1);
  bool moves = false, wide = false;
  for (int d = 0; d < 3; ++d) {
    const int64_t from = weight.dim() - 3 + d;
    const int64_t reach = from >= 2 ? (weight.size(from) - 1) * s.dilation[d] : 0;
    moves = moves || s.stride[d] != 1 || s.dilation[d] != 1;
    wide = wide || s.padding[d] > reach;
  }
  return wide || !by_library(input, weight, moves, s.groups) || !(s.groups == 1 || depthwise);
}
bool is_dilated(const kernel::ConvolutionShape& s) { return s.dilation[0] != 1 || s.dilation[1] != 1 || s.dilation[2] != 1; }
kernel::ConvolutionShape plain(const Tensor& weight, SymIntList stride, SymIntList padding, SymIntList dilation,
                               bool transposed, SymInt groups) {
  kernel::ConvolutionShape shape;
  const size_t spatial = static_cast<size_t>(weight.dim()) - 2;
  const auto fill = [&](SymIntList from, int64_t* to) {
    for (size_t d = 0; d < spatial; ++d) {
      const int64_t value = from[from.size() == 1 ? 0 : d].as_int();
      if (value > INT32_MAX)  // positions are products of these with sizes
        throw UserError("convolution: expected stride, padding and dilation of at most " + std::to_string(INT32_MAX) +
                        ", found " + std::to_string(value));
      to[3 - spatial + d] = value;
    }
  };
  fill(stride, shape.stride);
  fill(padding, shape.padding);
  fill(dilation, shape.dilation);
  shape.transposed = transposed;
  shape.groups = groups.as_int();
  return shape;
}
void convolution_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntList stride, SymIntList padding,
                        SymIntList dilation, bool transposed, SymIntList, SymInt groups, const Tensor& out) {
  kernel::ConvolutionShape shape = plain(weight, stride, padding, dilation, transposed, groups);
  if (weight.numel() == 0 && input.numel() != 0)
    throw UserError("convolution: kernel size should be greater than zero, but got weight of size " +
                    str(weight.sym_sizes()));
  shape.padding_counts = !transposed && padding_counts(input, weight, shape);
  kernel::convolve(input, weight, bias.defined() && bias.dtype() != input.dtype() ? bias.to(input.dtype()) : bias, shape,
                   out);
}

std::array<Meta, 3> backward_rule(const Tensor& grad_output, const Tensor& input, const Tensor& weight, OptSizes bias_sizes,
                                  SymIntList stride, SymIntList padding, SymIntList dilation, bool transposed,
                                  SymIntList output_padding, SymInt groups, BoolMask mask) {
  const Settings s = settings("convolution_backward", weight, stride, padding, dilation, transposed, output_padding, groups);
  check_shapes("convolution_backward", input, weight, {}, s);
  if (!is_floating(input.dtype()) || is_float8(input.dtype())) check_dtype("convolution_backward", DType::bool_, s);
  if (grad_output.dtype() != input.dtype())
    throw UserError("convolution_backward: expected grad_output of input's dtype " + std::string(name(input.dtype())) +
                    ", found " + std::string(name(grad_output.dtype())));
  const MemoryFormat format = output_format(input, weight, s);
  const auto like = [&](const Tensor& t, bool wanted) {
    Meta m = t.meta();
    m.strides = strides_in(format, m.sizes);
    m.undefined = !wanted;
    return m;
  };
  const SymInt channels = s.transposed ? weight.sym_size(1) * s.groups : weight.sym_size(0);
  Meta bias{{channels}, {1}, input.dtype(), input.device(), !mask[2]};
  if (bias_sizes && mask[2]) bias.sizes = SymInts(bias_sizes->begin(), bias_sizes->end());
  return {like(input, mask[0]), like(weight, mask[1]), bias};
}
void backward_kernel(const Tensor& grad_output, const Tensor& input, const Tensor& weight, OptSizes, SymIntList stride,
                     SymIntList padding, SymIntList dilation, bool transposed, SymIntList output_padding, SymInt groups,
                     BoolMask, const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias) {
  // PyTorch's shape rule has no guard for it.
  const Meta forward = convolution_rule(input, weight, {}, stride, padding, dilation, transposed, output_padding, groups);
  if (!rule::equal_sizes(grad_output.sym_sizes(), forward.sizes))
    throw UserError("convolution_backward: expected grad_output of sizes " + str(SymIntList(forward.sizes)) + ", found " +
                    str(grad_output.sym_sizes()));
  if (grad_bias.defined() && (grad_bias.dim() != 1 || grad_bias.size(0) != grad_output.size(1)))
    throw UserError("convolution_backward: expected bias_sizes [" + std::to_string(grad_output.size(1)) + "], found " +
                    str(grad_bias.sym_sizes()));
  kernel::ConvolutionShape shape = plain(weight, stride, padding, dilation, transposed, groups);
  shape.padding_counts = padding_counts(input, weight, shape);
  shape.padding_counts_for_weight = shape.padding_counts || shape.groups != 1 || weight.dim() == 5 || is_dilated(shape);
  kernel::convolve_backward(grad_output, input, weight, shape, grad_input, grad_weight, grad_bias);
}

// ---- gradients ----------------------------------------------------------------------------------------------------
struct ConvolutionCall {
  SymInts stride, padding, dilation, output_padding;
  bool transposed;
  SymInt groups;

  explicit ConvolutionCall(const Gradients& g)
      : stride(g.sym_ints("stride")),
        padding(g.sym_ints("padding")),
        dilation(g.sym_ints("dilation")),
        output_padding(g.sym_ints("output_padding")),
        transposed(g.flag("transposed")),
        groups(g.sym_int("groups")) {}

  Tensor forward(const Tensor& input, const Tensor& weight) const {
    return convolution(input, weight, {}, stride, padding, dilation, transposed, output_padding, groups);
  }
  std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                              OptionalList<SymInt> bias_sizes, BoolMask mask) const {
    return convolution_backward(grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
                                groups, mask);
  }
};
TensorVector of_convolution(const Gradients& g) {
  const Meta& bias = g.meta("bias");
  const SymInts bias_sizes = bias.undefined ? SymInts{0} : bias.sizes;
  auto [of_input, of_weight, of_bias] = ConvolutionCall(g).backward(g.grad(), g["input"], g["weight"], bias_sizes,
                                                                    {g.needs("input"), g.needs("weight"), g.needs("bias")});
  return {of_input, of_weight, of_bias};
}
// A convolution is linear in the input and in the weight.
TensorVector of_convolution_backward(const Gradients& g) {
  const ConvolutionCall call(g);
  const Tensor &by_input = g.grad(0), &by_weight = g.grad(1), &by_bias = g.grad(2);
  const Tensor grad = g["grad_output"], input = g["input"], weight = g["weight"];
  TensorVector out(3);
  const auto add = [&](const Tensor& t) { out[0] = out[0].defined() ? out[0] + t : t; };
  if (g.needs("grad_output")) {
    if (by_input.defined()) add(call.forward(by_input, weight));
    if (by_weight.defined()) add(call.forward(input, by_weight));
    if (by_bias.defined()) {
      SymInts along(static_cast<size_t>(grad.dim()), 1);
      along[1] = by_bias.sym_size(0);
      add(by_bias.reshape(along).expand(grad.sym_sizes()));
    }
  }
  if (g.needs("input") && by_weight.defined())
    out[1] = std::get<0>(call.backward(grad, input, by_weight, std::nullopt, {true, false, false}));
  if (g.needs("weight") && by_input.defined())
    // Laid out as PyTorch's, which is a convolution of transposed tensors.
    out[2] = std::get<1>(call.backward(grad, by_input, weight, std::nullopt, {false, true, false}))
                 .transpose(0, 1)
                 .contiguous()
                 .transpose(0, 1);
  return out;
}

// ---- the composite forms ------------------------------------------------------------------------------------------
// Runs `body` with a batch dimension, adding and removing it for an unbatched input.
template <class F>
Tensor batched(const char* op, const Tensor& input, int64_t spatial, F&& body) {
  if (input.dim() == spatial + 2) return body(input);
  if (input.dim() != spatial + 1)
    throw UserError(std::string(op) + ": Expected " + std::to_string(spatial + 1) + "D (unbatched) or " +
                    std::to_string(spatial + 2) + "D (batched) input, but got input of size: " + str(input.sym_sizes()));
  return squeeze(body(unsqueeze(input, 0)), 0);
}
template <int spatial>
Tensor conv(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntList stride, SymIntList padding,
            SymIntList dilation, SymInt groups) {
  static constexpr const char* names[] = {"conv1d", "conv2d", "conv3d"};
  const SymInts none(spatial, 0);
  if (bias.defined() && bias.dtype() != input.dtype())
    throw UserError(std::string(names[spatial - 1]) + ": Input type (" + std::string(name(input.dtype())) +
                    ") and bias type (" + std::string(name(bias.dtype())) + ") should be the same");
  return batched(names[spatial - 1], input, spatial, [&](const Tensor& x) {
    return convolution(x, weight, bias, stride, padding, dilation, false, none, groups);
  });
}
template <int spatial>
Tensor conv_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntList stride,
                    std::string_view padding, SymIntList dilation, SymInt groups) {
  static constexpr const char* names[] = {"conv1d", "conv2d", "conv3d"};
  return batched(names[spatial - 1], input, spatial,
                 [&](const Tensor& x) { return _convolution_mode(x, weight, bias, stride, padding, dilation, groups); });
}
template <int spatial>
Tensor conv_transpose(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntList stride, SymIntList padding,
                      SymIntList output_padding, SymInt groups, SymIntList dilation) {
  static constexpr const char* names[] = {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"};
  return batched(names[spatial - 1], input, spatial, [&](const Tensor& x) {
    return convolution(x, weight, bias, stride, padding, dilation, true, output_padding, groups);
  });
}

Tensor same_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntList stride, SymIntList dilation,
                    SymInt groups) {
  const Settings s = settings("_convolution_mode", weight, stride, {SymInt(0)}, dilation, false, {SymInt(0)}, groups);
  if (input.dim() != weight.dim())
    throw UserError("_convolution_mode: Expected " + std::to_string(weight.dim()) + "-dimensional input for weight " +
                    str(weight.sym_sizes()) + ", but got " + str(input.sym_sizes()));
  const size_t spatial = s.stride.size();
  SymInts before, after, extra(2 * spatial, 0);
  bool symmetric = true;
  for (size_t d = 0; d < spatial; ++d) {
    if (!guard(s.stride[d] == 1))
      throw UserError("_convolution_mode: padding='same' is not supported for strided convolutions, found stride " +
                      str(stride));
    const SymInt total = s.dilation[d] * (weight.sym_sizes()[2 + d] - 1);
    before.push_back(floor_div(total, 2));
    after.push_back(total - before[d]);
    symmetric = symmetric && guard(before[d] == after[d]);
  }
  const SymInts none(spatial, 0);
  if (symmetric) return convolution(input, weight, bias, stride, before, dilation, false, none, groups);
  warn(
      "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be "
      "created");
  for (size_t d = 0; d < spatial; ++d) extra[2 * (spatial - 1 - d) + 1] = after[d] - before[d];
  return convolution(constant_pad_nd(input, extra, 0), weight, bias, stride, before, dilation, false, none, groups);
}
Tensor mode_body(const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntList stride, std::string_view padding,
                 SymIntList dilation, SymInt groups) {
  if (padding == "same") return same_padding(input, weight, bias, stride, dilation, groups);
  if (padding == "valid") return convolution(input, weight, bias, stride, {SymInt(0)}, dilation, false, {SymInt(0)}, groups);
  throw UserError("_convolution_mode: Invalid padding string: '" + std::string(padding) + "', expected 'same' or 'valid'");
}

}  // namespace

void register_convolution(Library& aten);
void register_convolution(Library& aten) {
  aten.def(
          "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
          "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor")
      .compute(convolution_rule, convolution_kernel)
      .out("convolution.out")
      .tags(Tag::dense_out, Tag::core)
      .gradient("input weight bias", "input weight", of_convolution);
  aten.def(
          "_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
          "bool transposed, SymInt[] output_padding, SymInt groups, "
          "bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor")
      .compute(
          [](const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntList stride, SymIntList padding,
             SymIntList dilation, bool transposed, SymIntList output_padding, SymInt groups, bool, bool, bool, bool) {
            return convolution_rule(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
          },
          [](const Tensor& input, const Tensor& weight, const Tensor& bias, SymIntList stride, SymIntList padding,
             SymIntList dilation, bool transposed, SymIntList output_padding, SymInt groups, bool, bool, bool, bool,
             const Tensor& out) {
            convolution_kernel(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, out);
          })
      .out("_convolution.out")
      .tags(Tag::dense_out)
      .gradient("input weight bias", "input weight", of_convolution);
  aten.def(
          "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, "
          "SymInt[] padding, SymInt[] dilation, bool transposed, "
          "SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
      .compute(backward_rule, backward_kernel)
      .tags(Tag::core)
      .gradient("grad_output input weight", "grad_output input weight", of_convolution_backward);
  aten.def(
          "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, "
          "SymInt groups) -> Tensor")
      .composite(mode_body);
  aten.def(
          "conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] "
          "dilation=[1], SymInt groups=1) -> Tensor")
      .python_alias("torch.nn.functional.conv1d", "torch.conv1d")
      .tags(Tag::autocast_lower)
      .composite(conv<1>);
  aten.def(
          "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
          "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor")
      .python_alias("torch.nn.functional.conv2d", "torch.conv2d")
      .tags(Tag::autocast_lower)
      .composite(conv<2>);
  aten.def(
          "conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], "
          "SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor")
      .python_alias("torch.nn.functional.conv3d", "torch.conv3d")
      .tags(Tag::autocast_lower)
      .composite(conv<3>);
  aten.def(
          "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding='valid', "
          "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor")
      .tags(Tag::autocast_lower)
      .cpp_name("conv1d_padding")
      .composite(conv_padding<1>);
  aten.def(
          "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding='valid', "
          "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor")
      .tags(Tag::autocast_lower)
      .cpp_name("conv2d_padding")
      .composite(conv_padding<2>);
  aten.def(
          "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str padding='valid', "
          "SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor")
      .tags(Tag::autocast_lower)
      .cpp_name("conv3d_padding")
      .composite(conv_padding<3>);
  aten.def(
          "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], "
          "SymInt[1] output_padding=[0], SymInt groups=1, "
          "SymInt[1] dilation=[1]) -> Tensor")
      .python_alias("torch.nn.functional.conv_transpose1d", "torch.conv_transpose1d")
      .tags(Tag::autocast_lower)
      .composite(conv_transpose<1>);
  aten.def(
          "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] "
          "padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, "
          "SymInt[2] dilation=[1, 1]) -> Tensor")
      .python_alias("torch.nn.functional.conv_transpose2d", "torch.conv_transpose2d")
      .tags(Tag::autocast_lower)
      .composite(conv_transpose<2>);
  aten.def(
          "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] "
          "padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, "
          "SymInt[3] dilation=[1, 1, 1]) -> Tensor")
      .python_alias("torch.nn.functional.conv_transpose3d", "torch.conv_transpose3d")
      .tags(Tag::autocast_lower)
      .composite(conv_transpose<3>);
}

}  // namespace calque
