// What factory operators share: the dtype, device and layout keywords, and the layout of "like" results.
#pragma once

#include <optional>

#include "calque/op/tensor.h"

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

}  // namespace calque::rule
