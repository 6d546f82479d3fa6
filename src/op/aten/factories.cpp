// Tensors from nothing: empty, zeros, full, arange and kin, their *_like and new_* forms, and fill.
#include "calque/op/aten/copying.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "op/rule/factory.h"
#include "op/gradient/formulas.h"
#include "calque/op/aten/reductions.h"
#include "op/stanza.h"

namespace calque {
namespace {

using OptDType = std::optional<DType>;
using OptLayout = std::optional<Layout>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;
using OptFormat = std::optional<MemoryFormat>;
using rule::OpName;

// ---- rules: by sizes, like another tensor, new from another tensor -------------------------------------------------
template <OpName op>
Meta by_sizes(SymIntList size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  return rule::factory(op.text, size, dtype, layout, device, pin);
}
template <OpName op>
Meta like(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin, OptFormat format) {
  return rule::like(op.text, self, dtype, layout, device, pin, format);
}
template <OpName op>
Meta new_from(const Tensor& self, SymIntList size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  return rule::factory(op.text, size, dtype ? dtype : self.dtype(), layout, device ? device : self.device(), pin);
}

Meta strided(const char* op, SymIntList size, SymIntList stride, DType dtype, Device device) {
  if (size.size() != stride.size())
    throw UserError(std::string(op) + ": dimensionality of sizes (" + std::to_string(size.size()) +
                    ") must match dimensionality of strides (" + std::to_string(stride.size()) + ")");
  for (size_t d = 0; d < size.size(); ++d) {
    if (!check(size[d] >= 0))
      throw UserError(std::string(op) + ": Trying to create tensor with negative dimension " + size[d].str());
    if (!check(stride[d] >= 0))
      throw UserError(std::string(op) +
                      ": as_strided: Negative strides are not supported at the moment, got strides: " + str(stride));
  }
  return Meta{SymInts(size.begin(), size.end()), SymInts(stride.begin(), stride.end()), dtype, device, false};
}

template <int value>
void fill_sizes(SymIntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
  kernel::fill(out, value);
}
template <int value>
void fill_like(const Tensor&, OptDType, OptLayout, OptDevice, OptBool, OptFormat, const Tensor& out) {
  kernel::fill(out, value);
}
template <int value>
void fill_new(const Tensor&, SymIntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
  kernel::fill(out, value);
}

// An out= factory gives its out argument the sizes asked for and fills it.
Tensor resized(const Tensor& out, SymIntList size) { return resize_(out, size); }

// full() of an integer or bool without a dtype keeps the number's kind.
DType full_dtype(const Scalar& value, OptDType dtype) {
  if (dtype) return *dtype;
  return value.is_boolean() ? DType::bool_ : value.is_integral(false) ? DType::int64 : value.dtype();
}
Meta full_rule(SymIntList size, const Scalar& value, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  return rule::factory("full", size, full_dtype(value, dtype), layout, device, pin);
}
void full_kernel(SymIntList, const Scalar& value, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
  kernel::fill(out, value);
}

// ---- arange --------------------------------------------------------------------------------------------------------
SymInt arange_length(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype) {
  if (start.is_integral(true) && end.is_integral(true) && step.is_integral(true)) {
    const SymInt a = start.sym_int();
    const SymInt b = end.sym_int();
    const SymInt s = step.sym_int();
    if (guard(s == 0)) throw UserError("arange: step must be nonzero");
    if (guard(s > 0) ? !check(a <= b) : !check(b <= a))
      throw UserError("arange: upper bound and lower bound inconsistent with step sign (start " + a.str() + ", end " +
                      b.str() + ", step " + s.str() + ")");
    const bool up = guard(s > 0);
    return up ? floor_div(b - a + s - 1, s) : floor_div(a - b - s - 1, -s);
  }
  const double a = start.to_double();
  const double b = end.to_double();
  const double s = step.to_double();
  if (s == 0) throw UserError("arange: step must be nonzero");
  if (!std::isfinite(a) || !std::isfinite(b))
    throw UserError("arange: unsupported range: " + start.str() + " -> " + end.str());
  if ((s > 0 && b < a) || (s < 0 && b > a))
    throw UserError("arange: upper bound and lower bound inconsistent with step sign (start " + start.str() + ", end " +
                    end.str() + ", step " + step.str() + ")");
  // Integer results count in integers when the bounds are asked for as such.
  if (dtype == DType::int64) {
    const int64_t i = start.to_int();
    const int64_t j = end.to_int();
    const int64_t k = step.to_int();
    if (k == 0) throw UserError("arange: step must be nonzero");
    const double count = std::ceil(static_cast<double>((SymInt(j) - i).as_int()) / static_cast<double>(k));
    return count < 0x1p63 ? static_cast<int64_t>(count) : INT64_MAX;
  }
  const double n = std::ceil((b - a) / s);
  if (!(n >= 0 && n < 9e18))
    throw UserError("arange: invalid size, possible overflow (start " + start.str() + ", end " + end.str() + ", step " +
                    step.str() + ")");
  return static_cast<int64_t>(n);
}
Meta arange_rule(const Scalar& start, const Scalar& end, const Scalar& step, OptDType dtype, OptLayout layout,
                 OptDevice device, OptBool pin) {
  const bool integers = start.is_integral(true) && end.is_integral(true) && step.is_integral(true);
  const DType d = dtype.value_or(integers ? DType::int64 : default_dtype());
  const SymInt n = arange_length(start, end, step, d);
  return rule::factory("arange", SymIntList(&n, 1), d, layout, device, pin);
}
Meta linspace_rule(const char* op, int64_t steps, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  if (steps < 0) throw UserError(std::string(op) + ": number of steps must be non-negative, found " + std::to_string(steps));
  const SymInt n = steps;
  return rule::factory(op, SymIntList(&n, 1), dtype, layout, device, pin);
}
Meta eye_rule(SymInt n, SymInt m, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  if (!check(n >= 0) || !check(m >= 0))
    throw UserError("eye: n and m must be greater or equal to 0, found " + n.str() + " and " + m.str());
  const SymInt sizes[] = {n, m};
  return rule::factory("eye", SymIntList(sizes, 2), dtype, layout, device, pin);
}

void need_one_value(const Tensor& value) {
  if (value.dim() != 0)
    throw UserError("fill_: fill only supports 0-dimension value tensor, found a value of sizes " + str(value.sym_sizes()));
}



}  // namespace

void register_factories(Library& aten);
void register_factories(Library& aten) {
  aten.def(
          "empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute(
          [](SymIntList size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin, OptFormat format) {
            Meta m = rule::factory("empty", size, dtype, layout, device, pin);
            if (format && *format == MemoryFormat::preserve)
              throw UserError("empty: memory_format=preserve_format is not possible without a tensor to preserve");
            if (format) m.strides = rule::strides_in("empty", *format, size);
            return m;
          },
          [](SymIntList, OptDType, OptLayout, OptDevice, OptBool, OptFormat, const Tensor&) {})
      .tags(Tag::core);
  aten.def(
          "empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .compute(
          [](SymIntList size, SymIntList stride, OptDType dtype, OptLayout, OptDevice device, OptBool) {
            return strided("empty_strided", size, stride, dtype.value_or(default_dtype()), device.value_or(Device{}));
          },
          [](SymIntList, SymIntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor&) {})
      .tags(Tag::core);
  aten.def(
          "empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .compute(
          [](SymIntList size, IntList physical, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
            Meta m = rule::factory("empty_permuted", size, dtype, layout, device, pin);
            SmallVector<int64_t, 8> seen(size.size(), 0);
            if (physical.size() != size.size())
              throw UserError(
                  "empty_permuted: Number of dimensions in size does not match the length of the physical_layout");
            SymInt running = 1;
            for (size_t i = physical.size(); i-- > 0;) {
              if (physical[i] < 0 || physical[i] >= static_cast<int64_t>(size.size()) ||
                  seen[static_cast<size_t>(physical[i])]++)
                throw UserError("empty_permuted: physical_layout " + str(physical) + " is no permutation of the dimensions");
              const auto d = static_cast<size_t>(physical[i]);
              m.strides[d] = running;
              running *= sym_max(size[d], 1);
            }
            return m;
          },
          [](SymIntList, IntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor&) {});
  aten.def(
          "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute(like<"empty_like">, [](const Tensor&, OptDType, OptLayout, OptDevice, OptBool, OptFormat, const Tensor&) {})
      .no_gradient();
  aten.def(
          "new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None) -> Tensor")
      .python("torch.Tensor.new_empty")
      .compute(new_from<"new_empty">,
               [](const Tensor&, SymIntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor&) {})
      .no_gradient();
  aten.def(
          "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
          "Device? device=None, bool? pin_memory=None) -> Tensor")
      .python("torch.Tensor.new_empty_strided")
      .compute(
          [](const Tensor& self, SymIntList size, SymIntList stride, OptDType dtype, OptLayout, OptDevice device, OptBool) {
            return strided("new_empty_strided", size, stride, dtype.value_or(self.dtype()), device.value_or(self.device()));
          },
          [](const Tensor&, SymIntList, SymIntList, OptDType, OptLayout, OptDevice, OptBool, const Tensor&) {})
      .no_gradient();

  aten.def(
          "zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
          "-> Tensor")
      .compute(by_sizes<"zeros">, fill_sizes<0>);
  aten.def(
          "ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
          "-> Tensor")
      .compute(by_sizes<"ones">, fill_sizes<1>);
  aten.def(
          "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute(like<"zeros_like">, fill_like<0>)
      .no_gradient();
  aten.def(
          "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute(like<"ones_like">, fill_like<1>)
      .no_gradient();
  aten.def(
          "new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None) -> Tensor")
      .python("torch.Tensor.new_zeros")
      .compute(new_from<"new_zeros">, fill_new<0>)
      .no_gradient();
  aten.def(
          "new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None) -> Tensor")
      .python("torch.Tensor.new_ones")
      .compute(new_from<"new_ones">, fill_new<1>)
      .no_gradient();
  aten.def(
          "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
          "bool? pin_memory=None) -> Tensor")
      .compute(full_rule, full_kernel)
      .tags(Tag::core);
  aten.def(
          "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
          "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .compute([](const Tensor& self, const Scalar&, OptDType d, OptLayout l, OptDevice v, OptBool p,
                  OptFormat f) { return rule::like("full_like", self, d, l, v, p, f); },
               [](const Tensor&, const Scalar& value, OptDType, OptLayout, OptDevice, OptBool, OptFormat,
                  const Tensor& out) { kernel::fill(out, value); })
      .tags(Tag::core)
      .no_gradient();
  aten.def(
          "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .python("torch.Tensor.new_full")
      .compute([](const Tensor& self, SymIntList size, const Scalar&, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return new_from<"new_full">(self, size, d, l, v, p); },
               [](const Tensor&, SymIntList, const Scalar& value, OptDType, OptLayout, OptDevice, OptBool,
                  const Tensor& out) { kernel::fill(out, value); })
      .no_gradient();
  aten.def(
          "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None) -> Tensor")
      .compute([](const Scalar&, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return rule::factory("scalar_tensor", {}, d, l, v, p); },
               [](const Scalar& s, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { kernel::fill(out, s); })
      .tags(Tag::core);
  aten.def("zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
      .tags(Tag::left_whole)
      .composite([](SymIntList size, const Tensor& out) { return resized(out, size).zero_(); });
  aten.def("ones.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
      .tags(Tag::left_whole)
      .composite([](SymIntList size, const Tensor& out) { return resized(out, size).fill_(Scalar(1)); });
  aten.def("full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)")
      .composite([](SymIntList size, const Scalar& value, const Tensor& out) { return resized(out, size).fill_(value); });

  aten.def(
          "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
          "-> Tensor")
      .compute([](const Scalar& end, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return arange_rule(0, end, 1, d, l, v, p); },
               [](const Scalar&, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { kernel::arange(0, 1, out); });
  aten.def(
          "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
          "bool? pin_memory=None) -> Tensor")
      .compute([](const Scalar& start, const Scalar& end, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return arange_rule(start, end, 1, d, l, v, p); },
               [](const Scalar& start, const Scalar&, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
                 kernel::arange(start, 1, out);
               });
  aten.def(
          "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
          "Device? device=None, bool? pin_memory=None) -> Tensor")
      .compute(arange_rule, [](const Scalar& start, const Scalar&, const Scalar& step, OptDType, OptLayout, OptDevice,
                               OptBool, const Tensor& out) { kernel::arange(start, step, out); })
      .tags(Tag::core);
  aten.def(
          "linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .compute([](const Scalar&, const Scalar&, int64_t steps, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return linspace_rule("linspace", steps, d, l, v, p); },
               [](const Scalar& start, const Scalar& end, int64_t, OptDType, OptLayout, OptDevice, OptBool,
                  const Tensor& out) { kernel::linspace(start, end, out); });
  aten.def(
          "logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, "
          "Device? device=None, bool? pin_memory=None) -> Tensor")
      .compute([](const Scalar&, const Scalar&, int64_t steps, double, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return linspace_rule("logspace", steps, d, l, v, p); },
               [](const Scalar& start, const Scalar& end, int64_t, double base, OptDType, OptLayout, OptDevice, OptBool,
                  const Tensor& out) { kernel::logspace(start, end, base, out); });
  aten.def(
          "eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
          "Tensor")
      .compute([](SymInt n, OptDType d, OptLayout l, OptDevice v, OptBool p) { return eye_rule(n, n, d, l, v, p); },
               [](SymInt, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { kernel::eye(out); });
  aten.def(
          "eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None) -> Tensor")
      .compute(eye_rule,
               [](SymInt, SymInt, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { kernel::eye(out); });

  aten.def("fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)")
      .mutate([](const Tensor&, const Scalar&) {},
              [](const Tensor& self, const Scalar& value) { kernel::fill(self, value); })
      .tags(Tag::overlap_ok)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)")
      .mutate([](const Tensor&, const Tensor& value) { need_one_value(value); },
              [](const Tensor& self, const Tensor& value) {
                need_one_value(value);
                kernel::copy(value, self);
              })
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); })
      .gradient("value", "", [](const Gradients& g) { return g.grad().sum(); });
  aten.def("fill.Scalar(Tensor self, Scalar value) -> Tensor")
      .compute([](const Tensor& self, const Scalar&) { return rule::like("fill", self, {}, {}, {}, {}, {}); },
               [](const Tensor&, const Scalar& value, const Tensor& out) { kernel::fill(out, value); })
      .out("fill.Scalar_out", Tag::left_whole)
      .tags(Tag::dense_out, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("fill.Tensor(Tensor self, Tensor value) -> Tensor")
      .compute(
          [](const Tensor& self, const Tensor& value) {
            need_one_value(value);
            return rule::like("fill", self, {}, {}, {}, {}, {});
          },
          [](const Tensor&, const Tensor& value, const Tensor& out) { kernel::copy(value, out); })
      .out("fill.Tensor_out", Tag::left_whole)
      .tags(Tag::dense_out)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); })
      .gradient("value", "", [](const Gradients& g) { return g.grad().sum(); });
  aten.def("zero_(Tensor(a!) self) -> Tensor(a!)")
      .mutate([](const Tensor&) {}, [](const Tensor& self) { kernel::fill(self, 0); })
      .tags(Tag::overlap_ok)
      .gradient("self", "", [](const Gradients& g) { return gradient::like(g.grad()); });
  aten.def("zero(Tensor self) -> Tensor")
      .compute([](const Tensor& self) { return rule::like("zero", self, {}, {}, {}, {}, {}); },
               [](const Tensor&, const Tensor& out) { kernel::fill(out, 0); })
      .out("zero.out")
      .tags(Tag::dense_out);
}

}  // namespace calque
