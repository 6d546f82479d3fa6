#include "trace/functionalized_view.h"

#include <optional>

namespace calque {
namespace {

bool known_equal(SymIntList a, SymIntList b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!guard_or(a[i] == b[i], false)) return false;
  return true;
}

Value sizes_value(SymIntList numbers) {
  Values out;
  for (const SymInt n : numbers) out.emplace_back(n);
  return tuple(std::move(out));
}

// The one dimension in which the view is shorter, where it is a slice of the base.
std::optional<size_t> sliced_dimension(const Tensor& base, const Tensor& view) {
  if (!known_equal(base.sym_strides(), view.sym_strides())) return std::nullopt;
  std::optional<size_t> found;
  for (size_t d = 0; d < base.sym_sizes().size(); ++d) {
    if (guard(base.sym_sizes()[d] == view.sym_sizes()[d])) continue;
    if (found) return std::nullopt;
    found = d;
  }
  if (!found || !guard(view.sym_storage_offset() % view.sym_strides()[*found] == 0)) return std::nullopt;
  return found;
}

}  // namespace

void describe_view(Kwargs& entries, const std::string& prefix, const Tensor& base, const Tensor& view) {
  if (guard_or(base.sym_storage_offset() == view.sym_storage_offset(), false) &&
      known_equal(base.sym_strides(), view.sym_strides()) && known_equal(base.sym_sizes(), view.sym_sizes())) {
    entries.emplace_back(prefix + "_alias", true);
    return;
  }
  if (const std::optional<size_t> d = sliced_dimension(base, view)) {
    const SymInt start = floor_div(view.sym_storage_offset(), view.sym_strides()[*d]);
    entries.emplace_back(prefix + "_slice_dim", static_cast<int64_t>(*d));
    entries.emplace_back(prefix + "_slice_start", start);
    entries.emplace_back(prefix + "_slice_end", start + view.sym_sizes()[*d]);
    return;
  }
  entries.emplace_back(prefix + "_size", sizes_value(view.sym_sizes()));
  entries.emplace_back(prefix + "_stride", sizes_value(view.sym_strides()));
  entries.emplace_back(prefix + "_storage_offset", view.sym_storage_offset());
}

}  // namespace calque
