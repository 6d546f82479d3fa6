#include "op/rule/factory.h"

#include <string>

#include "op/rule/pointwise.h"

namespace calque::rule {
namespace {

void check_keywords(const char* op, std::optional<Layout> layout, std::optional<bool> pin_memory) {
  if (layout && *layout != Layout::strided)
    throw UserError(std::string(op) + ": only strided tensors are supported, found layout " + std::string(name(*layout)));
  if (pin_memory && *pin_memory)
    throw UserError(std::string(op) + ": pinned memory needs an accelerator, and there is none");
}

}  // namespace

Meta factory(const char* op, SymIntList sizes, std::optional<DType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin_memory, DType default_to) {
  check_keywords(op, layout, pin_memory);
  for (const SymInt s : sizes)
    if (!check(s >= 0))
      throw UserError(std::string(op) + ": Trying to create tensor with negative dimension " + s.str() + ": " + str(sizes));
  return Meta{SymInts(sizes.begin(), sizes.end()), contiguous_strides(sizes), dtype.value_or(default_to),
              device.value_or(Device{}), false};
}

SymInts preserved_strides(const Tensor& self) {
  if (self.is_non_overlapping_and_dense()) {
    const SymIntList s = self.sym_strides();
    return SymInts(s.begin(), s.end());
  }
  const SymIntList sizes = self.sym_sizes();
  return pointwise_strides(SymInts(sizes.begin(), sizes.end()), {&self});
}

SymInts strides_in(const char* op, MemoryFormat format, SymIntList sizes) {
  const size_t rank = format == MemoryFormat::channels_last      ? 4
                      : format == MemoryFormat::channels_last_3d ? 5
                                                                 : sizes.size();
  if (sizes.size() != rank)
    throw UserError(std::string(op) + ": required rank " + std::to_string(rank) + " tensor to use " +
                    std::string(name(format)) + " format, found sizes " + str(sizes));
  return strides_for(format, sizes);
}

Meta like(const char* op, const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
          std::optional<Device> device, std::optional<bool> pin_memory, std::optional<MemoryFormat> format) {
  check_keywords(op, layout, pin_memory);
  const SymIntList sizes = self.sym_sizes();
  const MemoryFormat f = format.value_or(MemoryFormat::preserve);
  return Meta{SymInts(sizes.begin(), sizes.end()),
              f == MemoryFormat::preserve ? preserved_strides(self) : strides_in(op, f, sizes), dtype.value_or(self.dtype()),
              device.value_or(self.device()), false};
}

}  // namespace calque::rule
