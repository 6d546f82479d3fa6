// What the files of normalisation share: parameters in the compute type, the table's row of a dtype.
#pragma once

#include <vector>

#include "calque/tensor/tensor_base.h"
#include "kernel/cpu/reduce/norm_table.h"

namespace calque::kernel {

constexpr int64_t norm_grain = 16384;  // elements below which a thread is not worth waking

const NormRow& norm_row(DType dtype, const char* what);

// A parameter vector as an array of C, converted where it has to be; null for an undefined tensor.
template <class C>
class ParameterArray {
 public:
  explicit ParameterArray(const TensorBase& t);
  const C* data() const { return data_; }

 private:
  const C* data_ = nullptr;
  std::vector<C> copy_;
};

}  // namespace calque::kernel
