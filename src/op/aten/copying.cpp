// Copies and conversions: copy, clone, contiguous, to, detach, lift and the reading of single values.
#include "calque/op/aten/like.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "op/rule/factory.h"
#include "op/stanza.h"

#include "calque/op/aten/copying.h"
#include "calque/op/grad_node.h"
#include "calque/op/owner.h"
#include "calque/sym/shape_env.h"

namespace calque {
namespace {

void copy_rule(const Tensor& self, const Tensor& src, bool) {
  const SymInts sizes = broadcast_sizes(self.sym_sizes(), src.sym_sizes(), "copy_");
  bool fits = sizes.size() == self.sym_sizes().size();
  for (size_t d = 0; d < sizes.size() && fits; ++d) fits = check(sizes[d] == self.sym_sizes()[d]);
  if (!fits)
    throw UserError("copy_: a source of sizes " + str(src.sym_sizes()) + " does not broadcast to self's " +
                    str(self.sym_sizes()) + "; expand self or slice the source");
}
void copy_into(const Tensor& self, const Tensor& src, bool non_blocking) {
  copy_rule(self, src, non_blocking);
  switch (memory_overlap(self, src)) {
    case Overlap::none:
    case Overlap::full: return kernel::copy(src, self);
    case Overlap::partial:
      throw UserError(
          "copy_: some elements of the source and of self refer to a single memory location; clone() the source first");
    case Overlap::unknown: break;
  }
  // Views of one storage that may share elements: what is read must not have been written.
  Meta aside = src.meta();
  aside.strides = contiguous_strides(aside.sizes);
  const Tensor values = make_tensor(aside);
  kernel::copy(src, values);
  kernel::copy(values, self);
}

Meta clone_rule(const Tensor& self, OptFormat format) { return rule::like("clone", self, {}, {}, {}, {}, format); }
void clone_kernel(const Tensor& self, OptFormat, const Tensor& out) { kernel::copy(self, out); }

Meta to_copy_rule(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin, bool,
                  OptFormat format) {
  return rule::like("_to_copy", self, dtype, layout, device, pin, format);
}
void to_copy_kernel(const Tensor& self, OptDType, OptLayout, OptDevice, OptBool, bool, OptFormat, const Tensor& out) {
  if (!out.is_fake()) kernel::copy(self, out);  // to the meta device: the shape alone
}

// Unchanged if nothing would change, a copy otherwise.
Tensor convert(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin, bool non_blocking,
               bool copy, OptFormat format) {
  const bool same_format = !format || *format == MemoryFormat::preserve || self.is_contiguous(*format);
  if (!copy && (!dtype || *dtype == self.dtype()) && (!device || *device == self.device()) && same_format) return self;
  return _to_copy(self, dtype, layout, device, pin, non_blocking, format);
}

Tensor detached(const Tensor& self) {
  const SymIntList sizes = self.sym_sizes();
  const SymIntList strides = self.sym_strides();
  const Tensor t = make_view(self, SymInts(sizes.begin(), sizes.end()), SymInts(strides.begin(), strides.end()),
                             self.sym_storage_offset());
  t.impl().is_view = self.impl().is_view;
  return t;
}
View alias_rule(const Tensor& self) {
  const SymIntList sizes = self.sym_sizes();
  const SymIntList strides = self.sym_strides();
  return {SymInts(sizes.begin(), sizes.end()), SymInts(strides.begin(), strides.end()), self.sym_storage_offset()};
}

Scalar read_value(const Tensor& self) {
  if (self.numel() != 1)
    throw UserError("item: a Tensor with " + std::to_string(self.numel()) + " elements cannot be converted to Scalar");
  return dispatch(self.dtype(), [&](auto tag) -> Scalar {
    using T = typename decltype(tag)::type;
    const T x = *static_cast<const T*>(self.data());
    if constexpr (std::is_same_v<T, Complex64>)
      return Scalar(Complex128(x));
    else if constexpr (std::is_same_v<T, Bool>)
      return Scalar(static_cast<bool>(x));
    else if constexpr (std::is_same_v<T, Complex128> || std::is_arithmetic_v<T>)
      return Scalar(x);
    else
      return Scalar(static_cast<float>(x));
  });
}
// While tracing, the value becomes an unbacked symbol of the tensor's environment.
Scalar fake_value(const Tensor& self) {
  if (TensorOwner* owner = owner_of(self))
    if (const Value value = owner->unknown(self, TensorOwner::Unknown::value); !value.is_none()) return value.to_scalar();
  if (!self.impl().env || !is_integral(self.dtype(), false))
    throw UserError(ErrorKind::data_dependent,
                    "item: the value of a tensor of dtype " + std::string(name(self.dtype())) +
                        " without data was asked for; keep the computation in tensors, or pass the number as an input");
  return Scalar(self.impl().env->create_unbacked());
}

void resize_rule(const Tensor& self, SymIntList sizes, OptFormat format) {
  if (format == MemoryFormat::preserve) throw UserError("resize_: preserve_format is not a memory format to resize to");
  const MemoryFormat wanted = format.value_or(MemoryFormat::preserve);
  TensorImpl& impl = self.impl();
  for (const SymInt s : sizes)
    if (!check(s >= 0)) throw UserError("resize_: sizes must not be negative, found " + str(sizes));
  const bool same = sizes.size() == impl.sizes.size() && std::equal(sizes.begin(), sizes.end(), impl.sizes.begin(),
                                                                    [](SymInt a, SymInt b) { return identical(a, b); });
  if (!same || wanted != MemoryFormat::preserve)
    set_geometry(self, SymInts(sizes.begin(), sizes.end()), rule::strides_in("resize_", wanted, sizes), impl.offset, true);
}

void resize_as_rule(const Tensor& self, const Tensor& like, OptFormat format) {
  if (format == MemoryFormat::preserve) format = like.suggest_memory_format();
  resize_rule(self, like.sym_sizes(), format);
}

}  // namespace

void register_copying(Library& aten);
void register_copying(Library& aten) {
  aten.def("copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)")
      .tags(Tag::number_for_tensor)
      .mutate(copy_rule, copy_into)
      .tags(Tag::any_device)
      .gradient("self", "",
                [](const Gradients& g) { return zeros_like(g.grad(), {}, {}, {}, {}, MemoryFormat::contiguous); })
      .gradient("src", "", [](const Gradients& g) { return g.grad(); });
  aten.def("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor")
      .tags(Tag::number_for_tensor)
      .compute(
          [](const Tensor& self, const Tensor& src, bool) {
            copy_rule(self, src, false);
            Meta m = rule::like("copy", self, {}, {}, {}, {}, {});
            if (!has_internal_overlap(self)) m.strides = self.impl().strides;  // the whole memory is cloned, gaps and all
            return m;
          },
          [](const Tensor&, const Tensor& src, bool, const Tensor& out) { kernel::copy(src, out); })
      .out("copy.out", Tag::number_for_tensor)
      .tags(Tag::any_device, Tag::dense_out, Tag::core);
  aten.def("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
      .compute(clone_rule, clone_kernel)
      .out("clone.out")
      .tags(Tag::dense_out, Tag::core)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def(
          "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None, bool non_blocking=False, "
          "MemoryFormat? memory_format=None) -> Tensor")
      .tags(Tag::number_for_tensor)
      .compute(to_copy_rule, to_copy_kernel)
      .tags(Tag::core)
      .gradient("self", "",
                [](const Gradients& g) { return g.grad().to(g.dtype("self"), Layout::strided, g.meta("self").device); });
  aten.def("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)")
      .python("torch.Tensor.contiguous")
      .composite([](const Tensor& self, MemoryFormat format) -> Tensor {
        if (self.is_contiguous(format == MemoryFormat::preserve ? MemoryFormat::contiguous : format)) return self;
        if (format == MemoryFormat::preserve)
          throw UserError("contiguous: preserve_format is not a memory format to be contiguous in");
        return clone(self, format);
      })
      .tags(Tag::may_alias);
  aten.def(
          "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
          "MemoryFormat? memory_format=None) -> Tensor(a)")
      .tags(Tag::number_for_tensor)
      .python("torch.Tensor.to")
      .composite([](const Tensor& self, Device device, DType dtype, bool non_blocking, bool copy, OptFormat f) {
        return convert(self, dtype, {}, device, {}, non_blocking, copy, f);
      })
      .tags(Tag::may_alias);
  aten.def(
          "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
          "memory_format=None) -> Tensor(a)")
      .tags(Tag::number_for_tensor)
      .python("torch.Tensor.to")
      .composite([](const Tensor& self, DType dtype, bool non_blocking, bool copy, OptFormat f) {
        return convert(self, dtype, {}, {}, {}, non_blocking, copy, f);
      })
      .tags(Tag::may_alias);
  aten.def(
          "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? "
          "memory_format=None) -> Tensor(a)")
      .tags(Tag::number_for_tensor)
      .python("torch.Tensor.to")
      .composite([](const Tensor& self, const Tensor& other, bool non_blocking, bool copy, OptFormat f) {
        return convert(self, other.dtype(), {}, other.device(), {}, non_blocking, copy, f);
      })
      .tags(Tag::may_alias);
  aten.def(
          "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None, bool non_blocking=False, "
          "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)")
      .tags(Tag::number_for_tensor)
      .composite(convert)
      .tags(Tag::may_alias);
  aten.def("type_as(Tensor self, Tensor other) -> Tensor")
      .python("torch.Tensor.type_as")
      .composite([](const Tensor& self, const Tensor& other) -> Tensor {
        return convert(self, other.dtype(), Layout::strided, other.device(), {}, false, false, {});
      })
      .tags(Tag::may_alias);
  aten.def("alias(Tensor(a) self) -> Tensor(a)")
      .view(alias_rule)
      .tags(Tag::core)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("detach(Tensor(a) self) -> Tensor(a)").own(detached, detached).tags(Tag::view).no_gradient();
  aten.def("detach_(Tensor(a!) self) -> Tensor(a!)")
      .tags(Tag::left_whole)
      .own([](const Tensor& self) { return forget_history(self); }, [](const Tensor& self) { return forget_history(self); })
      .no_gradient();
  aten.def("requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)")
      .composite([](const Tensor& self, bool requires_grad) -> Tensor { return self.set_requires_grad(requires_grad); });
  aten.def("lift(Tensor self) -> Tensor")
      .own([](const Tensor& self) { return self; }, [](const Tensor& self) { return self; })
      .tags(Tag::lifts, Tag::may_alias)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("lift_fresh(Tensor(a) self) -> Tensor(a)")
      .own([](const Tensor& self) { return self; }, [](const Tensor& self) { return self; })
      .tags(Tag::lifts, Tag::view)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("lift_fresh_copy(Tensor self) -> Tensor")
      .compute([](const Tensor& self) { return clone_rule(self, MemoryFormat::contiguous); },
               [](const Tensor& self, const Tensor& out) { kernel::copy(self, out); })
      .out("lift_fresh_copy.out")
      .tags(Tag::lifts, Tag::dense_out)
      .gradient("self", "", [](const Gradients& g) { return g.grad(); });
  aten.def("_local_scalar_dense(Tensor self) -> Scalar")
      .own(fake_value, read_value)
      .tags(Tag::core, Tag::data_dependent)
      .no_gradient();
  aten.def("item(Tensor self) -> Scalar")
      .tags(Tag::repeatable)
      .python("torch.Tensor.item")
      .composite([](const Tensor& self) -> Scalar {
        if (!check(self.sym_numel() == 1))
          throw UserError("item: a Tensor with " + self.sym_numel().str() + " elements cannot be converted to Scalar");
        return _local_scalar_dense(self);
      })
      .tags(Tag::data_dependent);
  aten.def("resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)")
      .mutate(resize_rule, resize_rule)
      .tags(Tag::overlap_ok, Tag::core, Tag::inplace_view);
  aten.def("resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)")
      .mutate(resize_as_rule, resize_as_rule)
      .tags(Tag::any_device, Tag::inplace_view);
  aten.def("is_same_size(Tensor self, Tensor other) -> bool")
      .tags(Tag::own_composite)
      .composite([](const Tensor& a, const Tensor& b) {
        const SymIntList x = a.sym_sizes();
        const SymIntList y = b.sym_sizes();
        return x.size() == y.size() &&
               std::equal(x.begin(), x.end(), y.begin(), [](SymInt p, SymInt q) { return guard(p == q); });
      });
  aten.def("is_floating_point(Tensor self) -> bool").composite([](const Tensor& self) { return is_floating(self.dtype()); });
  aten.def("is_complex(Tensor self) -> bool").composite([](const Tensor& self) { return is_complex(self.dtype()); });
}

}  // namespace calque
