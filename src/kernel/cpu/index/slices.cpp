#include "kernel/cpu/index/slices.h"

#include "calque/base/error.h"

namespace calque::kernel {

TensorBase with_reduced_dim(const TensorBase& t, int64_t dim) {
  SymInts sizes(t.sym_sizes().begin(), t.sym_sizes().end());
  SymInts strides(t.sym_strides().begin(), t.sym_strides().end());
  sizes.insert(sizes.begin() + dim, SymInt(1));
  strides.insert(strides.begin() + dim, SymInt(1));
  return make_view(t, sizes, strides, t.sym_storage_offset());
}

Slices::Slices(int64_t dim, std::initializer_list<const TensorBase*> tensors) : tensors_(tensors.size()) {
  internal_assert(tensors_ <= most, "too many tensors to slice");
  const TensorBase& first = **tensors.begin();
  const auto ndim = static_cast<size_t>(first.dim());
  SmallVector<Axis, 6> axes;
  for (size_t d = 0; d < ndim; ++d) {
    const bool along = static_cast<int64_t>(d) == dim;
    Axis a{first.sizes()[d], {}};
    size_t k = 0;
    for (const TensorBase* t : tensors) {
      a.step[k] = t->strides()[d] * t->element_size();
      ++k;
    }
    if (along) {
      length_ = a.size;
      std::copy_n(a.step, most, step_);
    } else {
      count_ *= a.size;
      if (a.size != 1) axes.push_back(a);
    }
  }
  if (ndim == 0) {
    size_t k = 0;
    for (const TensorBase* t : tensors) step_[k++] = t->element_size();
  }
  size_t k = 0;
  for (const TensorBase* t : tensors) data_[k++] = t->numel() ? static_cast<char*>(const_cast<void*>(t->data())) : nullptr;
  if (axes.empty() || count_ == 0) return;
  // The innermost other dimension is the one with the smallest stride in the first tensor.
  size_t inner = 0;
  for (size_t d = 1; d < axes.size(); ++d)
    if (axes[d].step[0] <= axes[inner].step[0]) inner = d;
  neighbours_ = axes[inner].size;
  std::copy_n(axes[inner].step, most, neighbour_step_);
  axes.erase(axes.begin() + inner);
  outer_ = axes;
}

void Slices::locate(int64_t outer, int64_t neighbour, char** at) const {
  for (size_t k = 0; k < tensors_; ++k) at[k] = data_[k] + neighbour * neighbour_step_[k];
  for (size_t d = outer_.size(); d-- > 0;) {
    const int64_t index = outer % outer_[d].size;
    outer /= outer_[d].size;
    for (size_t k = 0; k < tensors_; ++k) at[k] += index * outer_[d].step[k];
  }
}

}  // namespace calque::kernel
