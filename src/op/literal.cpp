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

// Sizes by the first item of each depth, then every list is held against them.
void collect_numbers(const NumberTree& tree, size_t depth, const std::vector<int64_t>& sizes, std::vector<Scalar>& out) {
  if (tree.is_list() != (depth < sizes.size()))
    throw UserError("tensor: the lists are not nested alike: at depth " + std::to_string(depth) +
                    " there are both numbers and lists");
  if (!tree.is_list()) {
    out.push_back(tree.number());
    return;
  }
  if (std::ssize(tree.items()) != sizes[depth])
    throw UserError("tensor: the lists at depth " + std::to_string(depth + 1) + " have different lengths: expected " +
                    std::to_string(sizes[depth]) + ", found " + std::to_string(tree.items().size()));
  for (const NumberTree& item : tree.items()) collect_numbers(item, depth + 1, sizes, out);
}

DType literal_dtype(const std::vector<Scalar>& numbers) {
  Scalar::Kind widest = Scalar::Kind::boolean;
  for (const Scalar& number : numbers) widest = std::max(widest, number.kind());
  if (numbers.empty() || widest == Scalar::Kind::floating) return Scalar(0.0).dtype();
  if (widest == Scalar::Kind::complex) return Scalar(std::complex<double>()).dtype();
  return widest == Scalar::Kind::boolean ? DType::bool_ : DType::int64;
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
    dispatch(made.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = made.mutable_data_as<T>();
      for (const Scalar& value : values) *to++ = known(value).to<T>();
    });
  }
  const Tensor lifted = lift_fresh(made, where);
  return modes_active() ? lifted.detach_() : lifted;  // who records calls before dispatch sees both, as of torch.tensor
}

}  // namespace

Tensor tensor(const NumberTree& numbers, std::optional<DType> dtype, std::source_location where) {
  std::vector<int64_t> sizes;
  for (const NumberTree* at = &numbers; at->is_list(); at = &at->items().front()) {
    sizes.push_back(std::ssize(at->items()));
    if (at->items().empty()) break;
  }
  std::vector<Scalar> values;
  collect_numbers(numbers, 0, sizes, values);
  return literal(values, sizes, dtype, where);
}

}  // namespace calque
