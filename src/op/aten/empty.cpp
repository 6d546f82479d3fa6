// Tensors whose values nobody has set: empty, its strided and permuted forms, empty_like and new_empty.
// A fifth of all sources call one of them, so nothing else is here.
#include "op/rule/factory.h"
#include "op/stanza.h"

namespace calque {
namespace {

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

}  // namespace

void register_empty(Library& aten);
void register_empty(Library& aten) {
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
      .compute(rule::like_of<"empty_like">,
               [](const Tensor&, OptDType, OptLayout, OptDevice, OptBool, OptFormat, const Tensor&) {})
      .no_gradient();
  aten.def(
          "new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
          "pin_memory=None) -> Tensor")
      .python("torch.Tensor.new_empty")
      .compute(rule::new_from<"new_empty">,
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
}

}  // namespace calque
