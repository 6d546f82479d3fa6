#include "calque/op/literal.h"

#include <vector>

#include "calque/op/ops.h"

namespace calque {
namespace {

// Values of a tensor are known ones: a symbolic number is specialised.
Scalar known(const Scalar& v) {
  if (!v.is_symbolic()) return v;
  return v.kind() == Scalar::Kind::integer ? Scalar(v.sym_int().guard_int()) : Scalar(v.sym_float().guard_float());
}

DType literal_dtype(const std::vector<Scalar>& values) {
  DType dtype = DType::bool_;
  for (const Scalar& v : values) {
    if (v.kind() == Scalar::Kind::complex) return DType::complex64;
    if (v.kind() == Scalar::Kind::floating)
      dtype = DType::float32;
    else if (v.kind() == Scalar::Kind::integer && dtype == DType::bool_)
      dtype = DType::int64;
  }
  return values.empty() ? DType::float32 : dtype;
}

Tensor literal(const std::vector<Scalar>& values, IntList sizes, std::optional<DType> dtype, std::source_location where) {
  Tensor made;
  {
    const NoModesScope plain;
    made = make_tensor(sizes, dtype.value_or(literal_dtype(values)));
    const Tensor flat = made.view(SymIntList{static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) flat.select(0, i).fill_(known(values[i]));
  }
  const Tensor lifted = lift_fresh(made, where);
  return modes_active() ? lifted.detach_() : lifted;  // who records calls before dispatch sees both, as of torch.tensor
}

}  // namespace

Tensor tensor(const Scalar& value, std::optional<DType> dtype, std::source_location where) {
  return literal({value}, {}, dtype, where);
}

Tensor tensor(std::initializer_list<Scalar> values, std::optional<DType> dtype, std::source_location where) {
  return literal(values, {static_cast<int64_t>(values.size())}, dtype, where);
}

Tensor tensor(std::initializer_list<std::initializer_list<Scalar>> rows, std::optional<DType> dtype,
              std::source_location where) {
  std::vector<Scalar> values;
  const size_t width = rows.size() == 0 ? 0 : rows.begin()->size();
  for (const auto& row : rows) {
    if (row.size() != width)
      throw UserError("tensor: rows of " + std::to_string(width) + " and of " + std::to_string(row.size()) +
                      " values; all rows must have one length");
    values.insert(values.end(), row.begin(), row.end());
  }
  return literal(values, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)}, dtype, where);
}

}  // namespace calque
