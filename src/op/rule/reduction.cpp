#include "op/rule/reduction.h"
#include "kernel/cpu/not_implemented.h"

#include <string>

namespace calque::rule {

uint64_t all_dims(int64_t ndim) { return ndim >= 64 ? ~uint64_t{0} : (uint64_t{1} << ndim) - 1; }

uint64_t dim_bits(const char* op, IntList dims, int64_t ndim) {
  if (ndim > 64)
    throw UserError(std::string(op) + ": only tensors with up to 64 dimensions are supported, found " +
                    std::to_string(ndim));
  uint64_t bits = 0;
  for (const int64_t d : dims) {
    const int64_t at = wrap_dim(d, ndim, op);
    const uint64_t bit = uint64_t{1} << at;
    if (bits & bit)
      throw UserError(std::string(op) + ": dim " + std::to_string(at) + " appears multiple times in the list of dims");
    bits |= bit;
  }
  return ndim == 0 ? 0 : bits;
}

Meta contiguous_like(const Tensor& self, DType dtype) {
  const SymIntList sizes = self.sym_sizes();
  return {SymInts(sizes.begin(), sizes.end()), contiguous_strides(sizes), dtype, self.device(), false};
}

Meta reduction(const Tensor& self, uint64_t dims, bool keepdim, DType dtype) {
  Meta m;
  const SymIntList sizes = self.sym_sizes();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!(dims >> d & 1U))
      m.sizes.push_back(sizes[d]);
    else if (keepdim)
      m.sizes.push_back(1);
  }
  m.strides = contiguous_strides(m.sizes);
  m.dtype = dtype;
  m.device = self.device();
  return m;
}

void check_non_empty(const char* op, const Tensor& self, uint64_t dims, bool dims_given) {
  const SymIntList sizes = self.sym_sizes();
  if (!dims_given) {
    for (const SymInt s : sizes)
      if (guard_or(s == 0, false))
        throw UserError(std::string(op) +
                        "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
                        "the 'dim' argument. (input has sizes " +
                        str(sizes) + ")");
    return;
  }
  for (size_t d = 0; d < sizes.size(); ++d)
    if ((dims >> d & 1U) && guard_or(sizes[d] == 0, false))
      throw UserError(std::string(op) + "(): Expected reduction dim " + std::to_string(d) +
                      " to have non-zero size, found input of sizes " + str(sizes));
}

int64_t one_dim(const char* op, int64_t dim, const Tensor& self) { return wrap_dim(dim, self.dim(), op); }

void check_kinds(const char* kernel_name, DType dtype, Kinds kinds) {
  const bool plain_float = is_floating(dtype) && !is_float8(dtype);
  const bool plain_integer = is_integral(dtype, false) && !is_barebones_unsigned(dtype);
  if (plain_float || (kinds != Kinds::floats && plain_integer) || (kinds == Kinds::reals_and_bool && dtype == DType::bool_))
    return;
  kernel::not_implemented(kernel_name, dtype);
}

}  // namespace calque::rule
