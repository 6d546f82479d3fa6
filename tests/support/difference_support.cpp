#include "support/difference_support.h"

#include <cstring>

#include "calque/op/tree.h"

namespace calque::test {

std::string difference(const Value& a, const Value& b) {
  const FlatTree x = tree_flatten(a), y = tree_flatten(b);
  if (!(x.spec == y.spec)) return "another structure";
  for (size_t i = 0; i < x.leaves.size(); ++i) {
    const Value &p = x.leaves[i], &q = y.leaves[i];
    if (p.kind() != q.kind()) return "another kind";
    if (!p.is_tensor()) {
      if (!p.equals(q) && p.str() != q.str()) return p.str() + " and " + q.str();
      continue;
    }
    const Tensor &s = p.to_tensor(), &t = q.to_tensor();
    if (s.defined() != t.defined()) return "only one is defined";
    if (!s.defined()) continue;
    if (s.dtype() != t.dtype() || s.sizes() != t.sizes() || s.strides() != t.strides()) return "another geometry";
    const Tensor u = s.contiguous(), v = t.contiguous();
    if (u.nbytes() != 0 && std::memcmp(u.data(), v.data(), u.nbytes()) != 0)
      return "other values:\n" + s.str() + "\nand\n" + t.str();
  }
  return {};
}

}  // namespace calque::test
