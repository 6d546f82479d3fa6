#include "trace/decompositions/layout.h"

#include <algorithm>
#include <numeric>

namespace calque {
namespace {

// a >= b as far as it is known, for sizes and strides.
bool at_least(SymInt a, SymInt b) {
  if (guard_or(b == SymInt(0), false)) return true;
  if (guard_or(a == SymInt(0), false)) return false;
  return guard_or(a >= b, false) || guard_or(a % b == SymInt(0), false);
}

// Whether dimension a belongs inside (-1) or outside (1) of dimension b; 0 where nothing tells.
int order_of(const Tensor& t, int64_t a, int64_t b) {
  const SymInt stride_a = t.sym_stride(a), stride_b = t.sym_stride(b);
  if (guard_or(stride_a == SymInt(0), false) || guard_or(stride_b == SymInt(0), false)) return 0;
  if (guard_or(stride_a == stride_b, false)) return at_least(t.sym_size(b), t.sym_size(a)) ? 0 : 1;
  if (at_least(stride_b, stride_a)) return -1;
  return at_least(stride_a, stride_b) ? 1 : 0;
}

}  // namespace

std::vector<int64_t> physical_order(const Tensor& t) {
  const auto n = static_cast<size_t>(t.dim());
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  if (n < 2) return order;
  const bool contiguous = t.is_contiguous();
  const bool channels_last = n == 4 && t.is_contiguous(MemoryFormat::channels_last);
  if (contiguous && !channels_last) return order;
  if (channels_last && !contiguous) return {0, 2, 3, 1};
  // An insertion sort, from the innermost dimension, that leaves pairs alone of which nothing is known.
  std::reverse(order.begin(), order.end());
  for (size_t i = 1; i < n; ++i) {
    size_t at = i;
    for (size_t before = i; before-- > 0;) {
      const int comparison = order_of(t, order[before], order[at]);
      if (comparison < 0) break;
      if (comparison == 0) continue;
      std::swap(order[before], order[at]);
      at = before;
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace calque
