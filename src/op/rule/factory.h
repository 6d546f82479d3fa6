// What factory operators share: the dtype, device and layout keywords, and the layout of "like" results.
#pragma once

#include <optional>

#include "calque/op/tensor.h"
#include "op/rule/pointwise.h"

namespace calque {

// The keywords of a factory, as its rule and its kernel take them.
using OptDType = std::optional<DType>;
using OptLayout = std::optional<Layout>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;
using OptFormat = std::optional<MemoryFormat>;

}  // namespace calque

namespace calque::rule {

// A fresh contiguous tensor's Meta. UserError for negative sizes, unknown layouts and pinned memory.
Meta factory(const char* op, SymIntList sizes, std::optional<DType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin_memory, DType default_to = default_dtype());
// Like `self` with these changes; strides kept where they are dense (preserve_format), as empty_like has it.
Meta like(const char* op, const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
          std::optional<Device> device, std::optional<bool> pin_memory, std::optional<MemoryFormat> format);
// The strides of a memory format that was asked for; UserError where the number of dimensions does not suit it.
SymInts strides_in(const char* op, MemoryFormat format, SymIntList sizes);
// The strides that clone and empty_like give under preserve_format.
SymInts preserved_strides(const Tensor& self);

// Whole rules of the operator that they name: by sizes, like another tensor, new from another tensor.
template <OpName op>
Meta by_sizes(SymIntList size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  return factory(op.text, size, dtype, layout, device, pin);
}
template <OpName op>
Meta like_of(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin, OptFormat format) {
  return like(op.text, self, dtype, layout, device, pin, format);
}
template <OpName op>
Meta new_from(const Tensor& self, SymIntList size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  return factory(op.text, size, dtype ? dtype : self.dtype(), layout, device ? device : self.device(), pin);
}

}  // namespace calque::rule
