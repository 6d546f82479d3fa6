#include "op/rule/joining.h"

#include "calque/tensor/promotion.h"

namespace calque::rule {
namespace {

// Empty one-dimensional tensors are skipped, whatever the others' sizes: an old rule that programs rely on.
bool is_skipped(const Tensor& t) { return t.dim() == 1 && guard_or(t.sym_sizes()[0] == 0, false); }

MemoryFormat common_format(TensorList tensors) {
  MemoryFormat format = tensors[0].suggest_memory_format();
  for (size_t i = 1; i < tensors.size() && format != MemoryFormat::contiguous; ++i)
    if (tensors[i].suggest_memory_format() != format) format = MemoryFormat::contiguous;
  return format;
}

}  // namespace

int64_t cat_dim(const char* op, TensorList tensors, int64_t dim) {
  for (const Tensor& t : tensors)
    if (!is_skipped(t)) return wrap_dim(dim, t.dim(), op);
  return dim;
}

Meta cat(const char* op, TensorList tensors, int64_t dim) {
  const std::string prefix = std::string(op) + ": ";
  if (tensors.empty()) throw UserError(prefix + "expected a non-empty list of Tensors");
  TypePromotion promotion;
  const Tensor* example = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (!t.defined()) throw UserError(prefix + "expected a Tensor at position " + std::to_string(i) + ", found None");
    if (t.dim() == 0)
      throw UserError(prefix + "zero-dimensional tensor (at position " + std::to_string(i) + ") cannot be concatenated");
    if (!(t.device() == tensors[0].device()))
      throw UserError(prefix + "expected all tensors to be on the same device, found " + tensors[0].device().str() +
                      " and " + t.device().str());
    promotion.add(t);
    if (!example && !is_skipped(t)) example = &t;
  }
  Meta m;
  m.dtype = promotion.result();
  m.device = tensors[0].device();
  if (!example) {
    m.sizes = {0};
    m.strides = {1};
    return m;
  }
  const auto d = static_cast<size_t>(wrap_dim(dim, example->dim(), op));
  m.sizes = example->impl().sizes;
  SymInt total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (is_skipped(t)) continue;
    const SymIntList sizes = t.sym_sizes();
    if (sizes.size() != m.sizes.size())
      throw UserError(prefix + "Tensors must have same number of dimensions: got " + std::to_string(m.sizes.size()) +
                      " and " + std::to_string(sizes.size()));
    for (size_t k = 0; k < sizes.size(); ++k) {
      if (k == d) continue;
      if (!identical(sizes[k], m.sizes[k]) && !check(sizes[k] == m.sizes[k]))
        throw UserError(prefix + "Sizes of tensors must match except in dimension " + std::to_string(d) +
                        ". Expected size " + m.sizes[k].str() + " but got size " + sizes[k].str() + " for tensor number " +
                        std::to_string(i) + " in the list");
      if (m.sizes[k].is_symbolic() && !sizes[k].is_symbolic()) m.sizes[k] = sizes[k];
    }
    total += sizes[d];
  }
  m.sizes[d] = total;
  m.strides = strides_for(common_format(tensors), m.sizes);
  return m;
}

}  // namespace calque::rule
