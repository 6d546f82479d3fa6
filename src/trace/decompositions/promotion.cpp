// Dtypes around the bodies, and the small things that many of them share.

#include <algorithm>
#include <cmath>

#include "calque/base/error.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/sym_math.h"
#include "calque/tensor/promotion.h"
#include "calque/tensor/wrapped_number.h"
#include "op/value_items.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

using Kind = DecompositionBuilder::Kind;

bool is_number_tensor(const Tensor& t) { return t.impl().wrapped_number || symbolic_number(t).has_value(); }

// bool < integer < floating < complex
int rank_of(DType d) { return static_cast<int>(category(d)); }

struct Gathered {
  int highest = 0;
  std::vector<std::pair<DType, bool>> tensors;  // and whether it has dimensions
};

void gather_dtypes(const Value& v, Gathered& found) {
  if (v.is_tensor()) {
    const Tensor& t = v.to_tensor();
    if (!t.defined()) return;
    found.highest = std::max(found.highest, rank_of(t.dtype()));
    if (!is_number_tensor(t)) found.tensors.emplace_back(t.dtype(), t.dim() > 0);
    return;
  }
  if (v.is_sequence())
    for (const Value& item : v.to_items()) gather_dtypes(item, found);
  if (v.kind() == Value::Kind::integer) found.highest = std::max(found.highest, 1);
  if (v.kind() == Value::Kind::floating) found.highest = std::max(found.highest, 2);
  if (v.kind() == Value::Kind::complex) found.highest = std::max(found.highest, 3);
}

void gather_tensors(const Value& v, Values& out) {
  if (v.is_tensor()) {
    if (v.to_tensor().defined() && !is_number_tensor(v.to_tensor())) out.push_back(v);
  } else if (v.kind() == Value::Kind::list || v.kind() == Value::Kind::tuple) {
    for (const Value& item : v.to_items()) gather_tensors(item, out);
  }
}

DType complex_of(DType d) { return d == DType::float64 || d == DType::complex128 ? DType::complex128 : DType::complex64; }

Value converted_tree(const Value& v, DType dtype) {
  if (v.is_tensor())
    return v.to_tensor().defined() && !is_number_tensor(v.to_tensor()) ? Value(converted(v.to_tensor(), dtype)) : v;
  return map_items(v, [&](const Value& item) { return converted_tree(item, dtype); });
}

// A promoted argument: numbers take Python's type for the dtype.
Value promoted_value(const Value& v, DType dtype) {
  if (v.is_tensor()) {
    const Tensor& t = v.to_tensor();
    if (!t.defined() || !is_number_tensor(t)) return converted_tree(v, dtype);
    if (const auto symbolic = symbolic_number(t)) return Value(number_tensor(converted(*symbolic, dtype)));
    return Value(number_tensor(converted(t.item(), dtype)));
  }
  if (v.kind() == Value::Kind::boolean || v.kind() == Value::Kind::integer || v.kind() == Value::Kind::floating)
    return Value(converted(v.to_scalar(), dtype));
  return converted_tree(v, dtype);
}

}  // namespace

DType computation_dtype(DType dtype) { return is_reduced_float(dtype) ? DType::float32 : dtype; }

ElementwiseDTypes elementwise_dtypes(const Values& args, Kind kind) {
  Gathered found;
  for (const Value& v : args) gather_dtypes(v, found);
  // Tensors of the highest kind decide, those with dimensions before the others.
  std::optional<DType> with_dims, without;
  for (auto [dtype, has_dims] : found.tensors) {
    if (found.highest == 3 ? rank_of(dtype) < 2 : rank_of(dtype) != found.highest) continue;
    if (found.highest == 3) dtype = complex_of(dtype);
    std::optional<DType>& slot = has_dims ? with_dims : without;
    slot = slot ? promote_types(*slot, dtype) : dtype;
  }
  DType result = DType::bool_;
  if (with_dims)
    result = *with_dims;
  else if (without)
    result = *without;
  else if (found.highest == 1)
    result = DType::int64;
  else if (found.highest == 2)
    result = default_dtype();
  else if (found.highest == 3)
    result = complex_of(default_dtype());
  switch (kind) {
    case Kind::standard: return {computation_dtype(result), result};
    case Kind::int_to_float: {
      const DType floating = float_type(result);
      return {computation_dtype(floating), floating};
    }
    case Kind::always_bool: return {computation_dtype(result), DType::bool_};
  }
  throw InternalError("elementwise_dtypes: unknown kind");
}

Decomposition DecompositionBuilder::cast(Decomposition body, Kind kind, bool compute_only) {
  return [body = std::move(body), kind, compute_only](const Values& args) -> std::optional<Value> {
    Values tensors;
    for (const Value& v : args) gather_tensors(v, tensors);
    const auto [computation, result] = elementwise_dtypes(tensors, kind);
    Values increased;
    for (const Value& v : args) increased.push_back(converted_tree(v, computation));
    const auto out = body(increased);
    if (!out || compute_only) return out;
    return converted_tree(*out, result);
  };
}

Decomposition DecompositionBuilder::promote(Decomposition body, Kind kind, std::vector<size_t> promoted) {
  return [body = std::move(body), kind, promoted = std::move(promoted)](const Values& args) -> std::optional<Value> {
    Values decide;
    for (const size_t i : promoted) decide.push_back(args[i]);
    const auto [computation, result] = elementwise_dtypes(decide, kind);
    Values increased = args;
    for (const size_t i : promoted) increased[i] = promoted_value(args[i], computation);
    const auto out = body(increased);
    if (!out) return out;
    return converted_tree(*out, result);
  };
}

Tensor converted(const Tensor& x, DType dtype) { return !x.defined() || x.dtype() == dtype ? x : to(x, dtype); }

Scalar converted(const Scalar& x, DType dtype) {
  switch (category(dtype)) {
    case DTypeCategory::boolean: return x.is_symbolic() ? x : Scalar(x.to_bool());
    case DTypeCategory::integral:
      if (x.is_symbolic()) return x.is_floating() ? Scalar(sym_int(x.sym_float())) : x;
      return Scalar(x.to_int());
    case DTypeCategory::floating:
      if (x.is_symbolic()) return x.is_floating() ? x : Scalar(sym_float(x.sym_int()));
      return Scalar(x.to_double());
    case DTypeCategory::complex: return x.is_symbolic() ? x : Scalar(x.to_complex());
  }
  return x;
}

Scalar times(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return Scalar(a.to_complex() * b.to_complex());
  if (a.is_floating() || b.is_floating()) {
    const auto as_float = [](const Scalar& s) { return s.is_floating() ? s.sym_float() : sym_float(s.sym_int()); };
    return Scalar(as_float(a) * as_float(b));
  }
  return Scalar(a.sym_int() * b.sym_int());
}

Tensor number_tensor(const Scalar& value) { return wrapped_scalar(value); }

Tensor arange_on(const Tensor& like, const Scalar& end, std::optional<DType> dtype) {
  return arange(end, dtype, std::nullopt, like.device(), false);
}
Tensor arange_on(const Tensor& like, const Scalar& start, const Scalar& end, std::optional<DType> dtype) {
  return arange(start, end, dtype, std::nullopt, like.device(), false);
}
Tensor zeros_on(const Tensor& like, SymIntList size, DType dtype) {
  return zeros(size, dtype, std::nullopt, like.device(), false);
}

Tensor unsqueezed_to(Tensor x, int64_t dim) {
  for (int64_t i = x.dim(); i < dim; ++i) x = x.unsqueeze(-1);
  return x;
}

Tensor masked(const Tensor& mask, const Tensor& x) {
  return x.dtype() == DType::bool_ ? mask.logical_and(x) : where(mask, x, Scalar(0));
}

Tensor reduced_loss(const Tensor& loss, int64_t reduction) {
  return reduction == 1 ? mean(loss) : reduction == 2 ? sum(loss) : loss;
}

void require(SymBool condition, const char* op, const char* what) {
  if (!check(condition)) throw UserError(std::string(op) + ": " + what);
}

}  // namespace calque
