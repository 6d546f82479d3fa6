// What the tests of graphs, tracers and passes share: small tensors, and graphs as texts.
#pragma once

#include <string>
#include <vector>

#include "calque/graph/graph_module.h"
#include "calque/nn/linear.h"
#include "calque/nn/typed.h"
#include "calque/op/aten/arange.h"
#include "calque/op/literal.h"
#include "calque/op/operators.h"

namespace calque::fx_support {

inline Tensor numbers(IntList sizes) {
  int64_t count = 1;
  for (const int64_t s : sizes) count *= s;
  return (arange(count, DType::float32) * 0.25 - 1).view(as_sym(sizes));
}
inline Tensor floats(std::vector<float> v) { return tensor_of<float>(v, {static_cast<int64_t>(v.size())}); }
inline Tensor integers(std::vector<int64_t> v) { return tensor_of<int64_t>(v, {static_cast<int64_t>(v.size())}); }
inline bool same(const Value& a, const Tensor& b) { return a.to_tensor().equal(b); }
template <class R>
std::vector<std::string> names_of(const R& nodes) {
  std::vector<std::string> out;
  for (const Node* n : nodes) out.push_back(n->name());
  return out;
}
inline std::string listed(const Graph& g) {
  std::string out;
  for (const Node* n : g.nodes()) out += n->str() + "\n";
  return out;
}
inline std::string body(const GraphModule& m) {
  const std::string code = m.code();
  return code.substr(code.find("def forward"));
}

struct Nested : Typed<Nested> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> st = child<Linear>("st", 4, 4);
  Tensor forward(const Tensor& x) { return st(x); }
};

}  // namespace calque::fx_support
