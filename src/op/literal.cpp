#include "calque/op/literal.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "calque/op/aten/copying.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/joining.h"
#include "calque/op/mode.h"

namespace calque {
namespace {

// Values of a tensor are known ones: a symbolic number is specialised.
Scalar known(const Scalar& v) {
  if (!v.is_symbolic()) return v;
  if (v.is_boolean()) return guard(v.sym_bool());
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

// As torch.export writes a literal with symbolic numbers: each value a scalar_tensor, stacked from the last dimension on.
Tensor symbolic_literal(const std::vector<Scalar>& values, IntList sizes, DType dtype, std::source_location where) {
  std::vector<Tensor> parts;
  for (const Scalar& v : values) parts.push_back(scalar_tensor(v, dtype, {}, Device(), false, where));
  for (size_t d = sizes.size(); d-- > 0;) {
    std::vector<Tensor> stacked;
    const auto width = static_cast<size_t>(sizes[d]);
    for (size_t i = 0; i < parts.size(); i += width)
      stacked.push_back(stack(std::vector<Tensor>(parts.begin() + static_cast<std::ptrdiff_t>(i),
                                                  parts.begin() + static_cast<std::ptrdiff_t>(i + width)),
                              0, where));
    parts = std::move(stacked);
  }
  return parts[0].to(Device(), dtype, false, false, {}, where).detach_(where);
}

Tensor literal(const std::vector<Scalar>& values, IntList sizes, std::optional<DType> dtype, std::source_location where) {
  const auto is_symbolic = [](const Scalar& v) { return v.is_symbolic(); };
  if (thread_context().symbolic_literals && modes_active() && std::any_of(values.begin(), values.end(), is_symbolic))
    return symbolic_literal(values, sizes, dtype.value_or(literal_dtype(values)), where);
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
