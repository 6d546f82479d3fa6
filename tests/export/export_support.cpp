#include "export/export_support.h"

#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/tree.h"

namespace calque {

size_t count(const Graph& graph, const std::string& target) {
  size_t n = 0;
  for (const Node* node : graph.nodes()) n += node->kind() == NodeKind::call_function && node->target().str() == target;
  return n;
}

size_t count(const ExportedProgram& program, const std::string& target, bool subgraphs) {
  size_t n = count(program.graph(), target);
  if (!subgraphs) return n;
  for (const auto& [path, m] : const_cast<GraphModule&>(program.graph_module()).named_modules())
    if (const auto* gm = dynamic_cast<const GraphModule*>(m); gm && !path.empty()) n += count(gm->graph(), target);
  return n;
}

std::string calls(const Graph& graph) {
  std::string text;
  for (const Node* n : graph.nodes())
    if (n->kind() == NodeKind::call_function) text += (text.empty() ? "" : " ") + n->target().str();
  return text;
}

std::string inputs(const ExportedProgram& program) {
  std::string text;
  for (const Node* n : program.graph().placeholders()) text += (text.empty() ? "" : ", ") + n->name();
  return text;
}

const Node* find(const Graph& graph, const std::string& target) {
  for (const Node* n : graph.nodes())
    if (n->kind() == NodeKind::call_function && n->target().str() == target) return n;
  return nullptr;
}

bool same(const Value& a, const Value& b) {
  const FlatTree x = tree_flatten(a), y = tree_flatten(b);
  if (!(x.spec == y.spec)) return false;
  for (size_t i = 0; i < x.leaves.size(); ++i) {
    if (x.leaves[i].is_tensor() != y.leaves[i].is_tensor()) return false;
    if (!x.leaves[i].is_tensor()) {
      if (!x.leaves[i].equals(y.leaves[i])) return false;
      continue;
    }
    const Tensor &s = x.leaves[i].to_tensor(), &t = y.leaves[i].to_tensor();
    if (s.dtype() != t.dtype() || str(s.sizes()) != str(t.sizes()) || !allclose(s, t, 1e-5, 1e-6, true)) return false;
  }
  return true;
}

Value copied(const Value& v) {
  return tree_map_tensors([](const Tensor& t) -> Value { return t.detach().clone(); }, v);
}

Values copied(const Values& v) {
  Values out;
  for (const Value& item : v) out.push_back(copied(item));
  return out;
}

void expect_equal_to_eager(Module& module, const ExportedProgram& program, const Values& args, const Kwargs& kwargs) {
  const auto state = [](Module& m) {
    Values out;
    for (const auto& [name, t] : m.named_buffers("", true, false)) out.emplace_back(t.clone());
    return out;
  };
  const Values before = state(module);
  const auto restore = [&] {
    size_t i = 0;
    for (const auto& [name, t] : module.named_buffers("", true, false)) t.copy_(before[i++].to_tensor());
  };
  Values eager_args = copied(args);
  const Value eager = copied(module.call(eager_args, kwargs));
  const Values after = state(module);
  restore();
  const auto check = [&](const char* how, const std::function<Value(const Values&)>& run) {
    Values given = copied(args);
    EXPECT_TRUE(same(run(given), eager)) << how;
    EXPECT_TRUE(same(list(given), list(eager_args))) << how << ": the inputs";
    EXPECT_TRUE(same(list(state(module)), list(after))) << how << ": the buffers";
    restore();
  };
  check("call", [&](const Values& in) { return program.call(in, kwargs); });
  check("module", [&](const Values& in) { return program.module()->call(in, kwargs); });
  const ExportedProgram functional = program.run_decompositions({});
  check("functional", [&](const Values& in) { return functional.call(in, kwargs); });
  check("functional module", [&](const Values& in) { return functional.module()->call(in, kwargs); });
  const ExportedProgram core = program.run_decompositions();
  check("core", [&](const Values& in) { return core.call(in, kwargs); });
}

}  // namespace calque
