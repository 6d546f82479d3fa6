// The operators that other rooms write into graphs, call or compare with one by one. What holds of several operators is a
// tag of their stanzas instead. The names are checked when the table is filled.
#pragma once

#include "calque/op/operator.h"

namespace calque {

#define CALQUE_WELL_KNOWN_OPERATORS(X)                                  \
  X(add_scalar, "aten::add.Scalar")                                     \
  X(alias, "aten::alias")                                               \
  X(as_strided, "aten::as_strided")                                     \
  X(assert_scalar, "aten::_assert_scalar")                              \
  X(assert_tensor_metadata, "aten::_assert_tensor_metadata")            \
  X(clone, "aten::clone")                                               \
  X(contiguous, "aten::contiguous")                                     \
  X(convolution, "aten::convolution")                                   \
  X(copy, "aten::copy")                                                 \
  X(copy_, "aten::copy_")                                               \
  X(detach, "aten::detach")                                             \
  X(detach_, "aten::detach_")                                           \
  X(functional_assert_scalar, "aten::_functional_assert_scalar")        \
  X(item, "aten::item")                                                 \
  X(lift_fresh, "aten::lift_fresh")                                     \
  X(lift_fresh_copy, "aten::lift_fresh_copy")                           \
  X(mul, "aten::mul.Tensor")                                            \
  X(native_group_norm, "aten::native_group_norm")                       \
  X(reciprocal, "aten::reciprocal")                                     \
  X(rsub, "aten::rsub.Tensor")                                          \
  X(slice, "aten::slice.Tensor")                                        \
  X(split_sizes, "aten::split.sizes")                                   \
  X(split_with_sizes, "aten::split_with_sizes")                         \
  X(sym_constrain_range, "aten::sym_constrain_range")                   \
  X(sym_constrain_range_for_size, "aten::sym_constrain_range_for_size") \
  X(sym_numel, "aten::sym_numel")                                       \
  X(sym_size, "aten::sym_size.int")                                     \
  X(sym_storage_offset, "aten::sym_storage_offset")                     \
  X(sym_stride, "aten::sym_stride.int")                                 \
  X(to_device, "aten::to.device")                                       \
  X(to_dtype, "aten::to.dtype")                                         \
  X(to_dtype_layout, "aten::to.dtype_layout")                           \
  X(unsafe_view, "aten::_unsafe_view")                                  \
  X(view, "aten::view")

struct WellKnownOperators {
#define CALQUE_MEMBER(member, name) const Operator& member;
  CALQUE_WELL_KNOWN_OPERATORS(CALQUE_MEMBER)
#undef CALQUE_MEMBER
};

const WellKnownOperators& ops();
void check_well_known_operators();  // UserError names one that is not in the table

}  // namespace calque
