// Operators of other stanza files that composite bodies need, called by name.
#pragma once

#include <string_view>
#include <utility>

#include "calque/op/mode.h"
#include "calque/op/unbox.h"

namespace calque::by_name {

inline Tensor one(std::string_view op, Values args) { return call(op, std::move(args)).to_tensor(); }
inline Value ints(SymIntList x) { return Argument<SymIntList>::box(x); }
inline Value ints(IntList x) { return Argument<IntList>::box(x); }

inline Tensor expand(const Tensor& x, SymIntList sizes) { return one("aten::expand", {x, ints(sizes)}); }
inline Tensor reshape(const Tensor& x, SymIntList sizes) { return one("aten::reshape", {x, ints(sizes)}); }
inline Tensor view(const Tensor& x, SymIntList sizes) { return one("aten::view", {x, ints(sizes)}); }
inline Tensor unsafe_view(const Tensor& x, SymIntList sizes) { return one("aten::_unsafe_view", {x, ints(sizes)}); }
inline Tensor transpose(const Tensor& x, int64_t a, int64_t b) { return one("aten::transpose.int", {x, a, b}); }
inline Tensor t(const Tensor& x) { return one("aten::t", {x}); }
inline Tensor permute(const Tensor& x, IntList dims) { return one("aten::permute", {x, ints(dims)}); }
inline Tensor squeeze(const Tensor& x, int64_t dim) { return one("aten::squeeze.dim", {x, dim}); }
inline Tensor unsqueeze(const Tensor& x, int64_t dim) { return one("aten::unsqueeze", {x, dim}); }
inline Tensor diagonal(const Tensor& x, int64_t a, int64_t b) { return one("aten::diagonal", {x, 0, a, b}); }
inline Tensor movedim(const Tensor& x, int64_t from, int64_t to) { return one("aten::movedim.int", {x, from, to}); }
inline Tensor sum(const Tensor& x, IntList dims, bool keepdim) { return one("aten::sum.dim_IntList", {x, ints(dims), keepdim}); }
inline Tensor slice(const Tensor& x, int64_t dim, SymInt start, SymInt end) { return one("aten::slice.Tensor", {x, dim, start, end}); }
inline Tensor pad_zero(const Tensor& x, SymIntList pad) { return one("aten::constant_pad_nd", {x, ints(pad), 0}); }
inline Tensor where_number(const Tensor& condition, const Scalar& self, const Tensor& other) { return one("aten::where.ScalarSelf", {condition, self, other}); }

}  // namespace calque::by_name
