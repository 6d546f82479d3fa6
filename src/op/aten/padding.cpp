// Padding: constant, reflection, replication, circular.
#include "kernel/cpu/pooling/padding.h"
#include "kernel/cpu/not_implemented.h"

#include "calque/op/aten/copying.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/views.h"
#include "calque/sym/unbacked.h"
#include "op/gradient/pooling.h"
#include "op/rule/factory.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Border;

// The part of self that negative pads leave, and whether no pad is positive.
struct Cropped {
  View view;
  bool only_crops = true;
};
Cropped crop(const Tensor& self, SymIntList pad) {
  const auto n = static_cast<size_t>(self.dim());
  if (pad.size() % 2 != 0)
    throw UserError("constant_pad_nd: Length of pad must be even but instead it equals " + std::to_string(pad.size()));
  if (pad.size() / 2 > n)
    throw UserError(
        "constant_pad_nd: Length of pad should be no more than twice the number of dimensions of the input. Pad length is " +
        std::to_string(pad.size()) + " while the input has " + std::to_string(n) + " dimensions");
  Cropped c{rule::geometry(self)};
  const auto narrow = [&](size_t d, SymInt start, SymInt less) {
    const SymInt length = c.view.sizes[d] + less;
    if (!check(length >= 0))
      throw UserError("constant_pad_nd: The input size " + self.sym_sizes()[d].str() + ", plus negative padding " +
                      less.str() + " resulted in a negative output size, which is invalid. Check dimension " +
                      std::to_string(d) + " of your input");
    c.view = rule::narrow(c.view, d, start, length);
  };
  for (size_t k = 0; k < pad.size() / 2; ++k) {
    const size_t d = n - 1 - k;
    const SymInt before = pad[2 * k];
    const SymInt after = pad[2 * k + 1];
    // The sizes are the same either way: what is not known to be cut off asks nothing.
    if (statically_known_true(before < 0)) narrow(d, -before, before);
    if (statically_known_true(after < 0)) narrow(d, 0, after);
    for (const SymInt p : {before, after}) c.only_crops = c.only_crops && !p.is_symbolic() && p.as_int() <= 0;
  }
  return c;
}

Meta constant_pad_rule(const Tensor& self, SymIntList pad, const Scalar&) {
  const Cropped c = crop(self, pad);
  if (c.only_crops) {
    const Tensor part = rule::make(self, c.view);
    return {c.view.sizes, rule::preserved_strides(part), self.dtype(), self.device(), false};
  }
  Meta m{self.impl().sizes, {}, self.dtype(), self.device(), false};
  for (size_t k = 0; k < pad.size() / 2; ++k) {
    const size_t d = m.sizes.size() - 1 - k;
    m.sizes[d] += pad[2 * k] + pad[2 * k + 1];
    if (!check(m.sizes[d] >= 0))
      throw UserError("constant_pad_nd: The input size " + self.sym_sizes()[d].str() + ", plus negative padding " +
                      pad[2 * k].str() + " and " + pad[2 * k + 1].str() +
                      " resulted in a negative output size, which is invalid. Check dimension " + std::to_string(d) +
                      " of your input");
  }
  m.strides = strides_for(self.suggest_memory_format(), m.sizes);
  return m;
}
void constant_pad_kernel(const Tensor& self, SymIntList pad, const Scalar& value, const Tensor& out) {
  const Tensor inside = rule::make(self, crop(self, pad).view);
  SmallVector<int64_t, 8> begin(static_cast<size_t>(self.dim()), 0);
  for (size_t k = 0; k < pad.size() / 2; ++k) begin[begin.size() - 1 - k] = std::max<int64_t>(0, pad[2 * k].as_int());
  kernel::pad_constant(inside, begin, value, out);
}

// reflection_padNd and replication_padNd: the input may come with or without a batch dimension.
Meta border_rule(const char* op, Border border, int64_t dims, const Tensor& self, SymIntList pad) {
  const std::string prefix = std::string(op) + ": ";
  if (pad.size() != 2 * static_cast<size_t>(dims))
    throw UserError(prefix + "padding size is expected to be " + std::to_string(2 * dims) +
                    ", but got: " + std::to_string(pad.size()));
  const bool batched = self.dim() == dims + 2;
  bool valid = batched || self.dim() == dims + 1;
  // An empty batch is fine (so is an empty channel dimension without one where ATen lets it pass), other empty sizes are not.
  for (int64_t d = 1; valid && d < self.dim(); ++d) valid = check(self.sym_size(d) != 0);
  if (valid && !batched) valid = check(self.sym_size(0) != 0);
  if (!valid)
    throw UserError(prefix + "Expected " + std::to_string(dims + 1) + "D or " + std::to_string(dims + 2) +
                    "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: " +
                    str(self.sym_sizes()));
  if (!(is_integral(self.dtype(), false) || is_floating(self.dtype()) || is_complex(self.dtype())) ||
      is_barebones_unsigned(self.dtype()) || is_float8(self.dtype()))
    kernel::not_implemented(op, self.dtype());
  Meta m{self.impl().sizes, {}, self.dtype(), self.device(), false};
  SymBool large_enough = false;
  for (int64_t k = 0; k < dims; ++k) {
    const auto d = static_cast<size_t>(self.dim() - 1 - k);
    const SymInt before = pad[2 * static_cast<size_t>(k)];
    const SymInt after = pad[2 * static_cast<size_t>(k) + 1];
    if (border == Border::reflection && !check(sym_and(before < m.sizes[d], after < m.sizes[d])))
      throw UserError(prefix + "Padding size should be less than the corresponding input dimension, but got: padding (" +
                      before.str() + ", " + after.str() + ") at dimension " + std::to_string(d) + " of input " +
                      str(self.sym_sizes()));
    m.sizes[d] += before + after;
    large_enough = sym_or(large_enough, m.sizes[d] >= 1);
    if (!check(m.sizes[d] >= 0))
      throw UserError(prefix + "negative output size " + m.sizes[d].str() + " at dimension " + std::to_string(d));
  }
  if (!check(large_enough))
    throw UserError(prefix + "input " + str(self.sym_sizes()) +
                    " is too small. Calculated output: " + str(SymIntList(m.sizes)));
  m.strides = strides_for(dims > 1 && self.dim() >= 4 ? self.suggest_memory_format() : MemoryFormat::contiguous, m.sizes);
  return m;
}
template <Border border>
void border_kernel(const Tensor& self, SymIntList pad, const Tensor& out) {
  SmallVector<int64_t, 8> plain;
  for (const SymInt p : pad) {
    if (p.as_int() > INT32_MAX || p.as_int() < INT32_MIN)  // two that cancel each other
      throw UserError("expected padding between " + std::to_string(INT32_MIN) + " and " + std::to_string(INT32_MAX) +
                      ", found " + p.str());
    plain.push_back(p.as_int());
  }
  kernel::pad_border(border, self, plain, out);
}

Tensor circular_body(const Tensor& self, SymIntList padding) {
  const int64_t first =
      self.dim() - static_cast<int64_t>(padding.size() / 2);  // a batch and channels, or channels alone, stay
  if (first != 1 && first != 2)
    throw UserError(
        "_pad_circular: Invalid padding size, expected 1 or 2 non-padded dimensions, which would be equivalent to padding "
        "of length " +
        std::to_string(2 * (self.dim() - 1)) + " or " + std::to_string(2 * (self.dim() - 2)) + " respectively but got " +
        std::to_string(padding.size()));
  SymInts shape = self.impl().sizes;
  const auto pad = [&](int64_t dim, size_t side) { return padding[2 * static_cast<size_t>(self.dim() - 1 - dim) + side]; };
  for (int64_t d = first; d < self.dim(); ++d) {
    SymInt& size = shape[static_cast<size_t>(d)];
    if (!check(sym_and(pad(d, 0) <= size, pad(d, 1) <= size)))
      throw UserError("_pad_circular: Padding value causes wrapping around more than once: padding (" + pad(d, 0).str() +
                      ", " + pad(d, 1).str() + ") of size " + size.str());
    size += pad(d, 0) + pad(d, 1);
    if (!check(size >= 0))
      throw UserError("_pad_circular: Negative padding value is resulting in an empty dimension " + std::to_string(d));
  }
  const Tensor out = self.new_empty(shape);
  Tensor to = out;
  Tensor from = self;
  for (int64_t d = self.dim() - 1; d >= first; --d) {
    to = to.slice(d, sym_max(pad(d, 0), 0), shape[static_cast<size_t>(d)] - sym_max(pad(d, 1), 0), 1);
    from = from.slice(d, sym_max(-pad(d, 0), 0), self.sym_size(d) - sym_max(-pad(d, 1), 0), 1);
  }
  to.copy_(from);
  // From the last dimension on: the slabs that a later copy takes have their own borders by then.
  for (int64_t d = self.dim() - 1; d >= first; --d) {
    const SymInt size = shape[static_cast<size_t>(d)];
    const SymInt before = sym_max(pad(d, 0), 0);
    const SymInt after = sym_max(pad(d, 1), 0);
    if (guard(pad(d, 0) > 0)) out.slice(d, 0, before, 1).copy_(out.slice(d, size - before - after, size - after, 1));
    if (guard(pad(d, 1) > 0)) out.slice(d, size - after, size, 1).copy_(out.slice(d, before, before + after, 1));
  }
  return out;
}

enum PadMode : int64_t { constant, reflect, replicate, circular };  // ATen's numbers

Tensor pad_by(const Tensor& self, SymIntList pad, int64_t mode, std::optional<double> value) {
  if (mode == constant) return self.constant_pad_nd(pad, value.value_or(0));
  if (value && *value != 0) throw UserError("pad: a padding mode other than \"constant\" doesn't take in value argument");
  const int64_t n = self.dim();
  if (pad.size() == 2 && (n == 2 || n == 3)) {
    if (mode == reflect) return self.reflection_pad1d(pad);
    if (mode == replicate) return self.replication_pad1d(pad);
    if (mode == circular) return _pad_circular(self, pad);
  } else if (pad.size() == 4 && (n == 3 || n == 4)) {
    if (mode == reflect) return self.reflection_pad2d(pad);
    if (mode == replicate) return self.replication_pad2d(pad);
    if (mode == circular) return _pad_circular(self, pad);
  } else if (pad.size() == 6 && (n == 4 || n == 5)) {
    if (mode == reflect) return self.reflection_pad3d(pad);
    if (mode == replicate) return self.replication_pad3d(pad);
    if (mode == circular) return _pad_circular(self, pad);
  }
  throw UserError(
      ErrorKind::unsupported_operator,
      "pad: padding size " + std::to_string(pad.size()) + " is not supported for " + std::to_string(n) +
          "D input tensor (non-constant padding takes 2 numbers for 2D or 3D, 4 for 3D or 4D, 6 for 4D or 5D input)");
}
Tensor pad_body(const Tensor& self, SymIntList pad, std::string_view mode, std::optional<double> value) {
  static constexpr std::string_view names[] = {"constant", "reflect", "replicate", "circular"};
  for (int64_t i = constant; i <= circular; ++i)
    if (mode == names[i]) return pad_by(self, pad, i, value);
  throw UserError(ErrorKind::unsupported_operator, "pad: Unrecognised padding mode " + std::string(mode) +
                                                       "; expected constant, reflect, replicate or circular");
}

template <rule::OpName op, Border border, int64_t dims>
Meta named_rule(const Tensor& self, SymIntList padding) {
  return border_rule(op.text, border, dims, self, padding);
}

Meta border_back_rule(const char* op, Border border, int64_t dims, const Tensor& grad_output, const Tensor& self,
                      SymIntList padding) {
  const Meta padded = border_rule(op, border, dims, self, padding);
  if (!rule::equal_sizes(grad_output.sym_sizes(), padded.sizes))
    throw UserError(std::string(op) + ": expected grad_output of sizes " + str(SymIntList(padded.sizes)) + ", found " +
                    str(grad_output.sym_sizes()));
  if (!is_floating(grad_output.dtype()) || is_float8(grad_output.dtype())) kernel::not_implemented(op, grad_output.dtype());
  Meta m{self.impl().sizes, {}, grad_output.dtype(), self.device(), false};
  m.strides = strides_for(dims > 1 && self.dim() >= 4 ? self.suggest_memory_format() : MemoryFormat::contiguous, m.sizes);
  return m;
}
template <Border border>
void border_back_kernel(const Tensor& grad_output, const Tensor&, SymIntList padding, const Tensor& grad_input) {
  SmallVector<int64_t, 8> plain;
  for (const SymInt p : padding) plain.push_back(p.as_int());
  kernel::pad_border_backward(border, grad_output, plain, grad_input);
}
template <rule::OpName op, Border border, int64_t dims>
Meta named_back_rule(const Tensor& grad_output, const Tensor& self, SymIntList padding) {
  return border_back_rule(op.text, border, dims, grad_output, self, padding);
}

Tensor of_constant_pad(const Gradients& g) {
  SymInts pad = g.sym_ints("pad");
  for (SymInt& p : pad) p = -p;
  return constant_pad_nd(g.grad(), pad);
}

}  // namespace

void register_padding(Library& aten);
void register_padding(Library& aten) {
  aten.def("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor")
      .compute(constant_pad_rule, constant_pad_kernel)
      .out("constant_pad_nd.out")
      .tags(Tag::dense_out, Tag::strided_out, Tag::core)
      .gradient("self", "", of_constant_pad);
  aten.def("pad(Tensor self, SymInt[] pad, str mode='constant', float? value=None) -> Tensor")
      .python("torch.nn.functional.pad")
      .composite(pad_body);
  aten.def("_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor")
      .python("torch._C._nn._pad_enum")
      .composite(pad_by);
  aten.def("_pad_circular(Tensor self, SymInt[] pad) -> Tensor")
      .python("torch._C._nn._pad_circular")
      .composite(circular_body);

  aten.def("reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.reflection_pad1d")
      .compute(named_rule<"reflection_pad1d", Border::reflection, 1>, border_kernel<Border::reflection>)
      .out("reflection_pad1d.out")
      .tags(Tag::strided_out, Tag::core)
      .gradient("self", "self",
                [](const Gradients& g) { return reflection_pad1d_backward(g.grad(), g["self"], g.sym_ints("padding")); });
  aten.def("reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.reflection_pad2d")
      .compute(named_rule<"reflection_pad2d", Border::reflection, 2>, border_kernel<Border::reflection>)
      .out("reflection_pad2d.out")
      .tags(Tag::restrides_image, Tag::strided_out, Tag::core)
      .gradient("self", "self",
                [](const Gradients& g) { return reflection_pad2d_backward(g.grad(), g["self"], g.sym_ints("padding")); });
  aten.def("reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor")
      .python("torch._C._nn.reflection_pad3d")
      .compute(named_rule<"reflection_pad3d", Border::reflection, 3>, border_kernel<Border::reflection>)
      .out("reflection_pad3d.out")
      .tags(Tag::restrides_out, Tag::strided_out, Tag::core)
      .gradient("self", "self",
                [](const Gradients& g) { return reflection_pad3d_backward(g.grad(), g["self"], g.sym_ints("padding")); });
  aten.def("replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.replication_pad1d")
      .compute(named_rule<"replication_pad1d", Border::replication, 1>, border_kernel<Border::replication>)
      .out("replication_pad1d.out")
      .tags(Tag::strided_out)
      .gradient("self", "self",
                [](const Gradients& g) { return replication_pad1d_backward(g.grad(), g["self"], g.sym_ints("padding")); });
  aten.def("replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.replication_pad2d")
      .compute(named_rule<"replication_pad2d", Border::replication, 2>, border_kernel<Border::replication>)
      .out("replication_pad2d.out")
      .tags(Tag::restrides_out, Tag::strided_out, Tag::core)
      .gradient("self", "self",
                [](const Gradients& g) { return replication_pad2d_backward(g.grad(), g["self"], g.sym_ints("padding")); });
  aten.def("replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.replication_pad3d")
      .compute(named_rule<"replication_pad3d", Border::replication, 3>, border_kernel<Border::replication>)
      .out("replication_pad3d.out")
      .tags(Tag::restrides_out, Tag::strided_out, Tag::core)
      .gradient("self", "self",
                [](const Gradients& g) { return replication_pad3d_backward(g.grad(), g["self"], g.sym_ints("padding")); });
  aten.def("reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor")
      .compute(named_back_rule<"reflection_pad1d_backward", Border::reflection, 1>, border_back_kernel<Border::reflection>)
      .out("reflection_pad1d_backward.grad_input(grad_input)")
      .gradient("grad_output", "", [](const Gradients& g) { return reflection_pad1d(g.grad(), g.sym_ints("padding")); })
      .gradient("self", "", gradient::no_second);
  aten.def("reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor")
      .compute(named_back_rule<"reflection_pad2d_backward", Border::reflection, 2>, border_back_kernel<Border::reflection>)
      .out("reflection_pad2d_backward.grad_input(grad_input)")
      .gradient("grad_output", "", [](const Gradients& g) { return reflection_pad2d(g.grad(), g.sym_ints("padding")); })
      .gradient("self", "", gradient::no_second);
  aten.def("reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor")
      .compute(named_back_rule<"reflection_pad3d_backward", Border::reflection, 3>, border_back_kernel<Border::reflection>)
      .out("reflection_pad3d_backward.grad_input(grad_input)")
      .gradient("grad_output", "", [](const Gradients& g) { return reflection_pad3d(g.grad(), g.sym_ints("padding")); })
      .gradient("self", "", gradient::no_second);
  aten.def("replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor")
      .compute(named_back_rule<"replication_pad1d_backward", Border::replication, 1>,
               border_back_kernel<Border::replication>)
      .out("replication_pad1d_backward.grad_input(grad_input)")
      .gradient("grad_output", "", [](const Gradients& g) { return replication_pad1d(g.grad(), g.sym_ints("padding")); })
      .gradient("self", "", gradient::no_second);
  aten.def("replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor")
      .compute(named_back_rule<"replication_pad2d_backward", Border::replication, 2>,
               border_back_kernel<Border::replication>)
      .out("replication_pad2d_backward.grad_input(grad_input)")
      .gradient("grad_output", "", [](const Gradients& g) { return replication_pad2d(g.grad(), g.sym_ints("padding")); })
      .gradient("self", "", gradient::no_second);
  aten.def("replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor")
      .compute(named_back_rule<"replication_pad3d_backward", Border::replication, 3>,
               border_back_kernel<Border::replication>)
      .out("replication_pad3d_backward.grad_input(grad_input)")
      .gradient("grad_output", "", [](const Gradients& g) { return replication_pad3d(g.grad(), g.sym_ints("padding")); })
      .gradient("self", "", gradient::no_second);
}

}  // namespace calque
