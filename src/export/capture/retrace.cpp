#include "export/capture/retrace.h"

#include "calque/trace/make_fx.h"
#include "export/capture/runtime_asserts.h"
#include "trace/recorder.h"

namespace calque {
namespace {

// The leaves of a node's value by which unbacked symbols are found again.
void add_leaves(const Value& v, const BindingPath& path, std::vector<ResultLeaf>& out) {
  if (v.is_tensor()) {
    const TensorImpl& t = v.to_tensor().impl();
    out.push_back({path, TensorGeometry{t.sizes, t.strides, t.offset}});
  } else if (v.kind() == Value::Kind::integer) {
    out.push_back({path, v.to_sym_int()});
  } else if (v.kind() == Value::Kind::floating) {
    out.push_back({path, v.to_sym_float()});
  } else if (v.kind() == Value::Kind::boolean) {
    out.push_back({path, v.to_sym_bool()});
  } else if (v.is_sequence()) {
    for (size_t i = 0; i < v.to_items().size(); ++i) {
      BindingPath inner = path;
      inner.push_back(BindingKey::item(static_cast<int64_t>(i)));
      add_leaves(v.to_items()[i], inner, out);
    }
  }
}

}  // namespace

Retracer::Retracer(const Graph& graph, const GraphOwner* owner, ShapeEnv* env, bool names_origin)
    : Interpreter(graph, owner), env_(env), names_origin_(names_origin) {
  if (env_) bindings_ = find_unbacked_bindings(graph);
}

Value Retracer::run_node(const Node& node) {
  NodeMeta meta = node.meta;
  if (names_origin_) meta.set(from_node, node.name());
  const NodeMetaScope origin(meta);
  Value result = Interpreter::run_node(node);
  const auto it = bindings_.find(&node);
  if (it == bindings_.end() || node.kind() == NodeKind::placeholder) return result;
  std::vector<ResultLeaf> leaves;
  add_leaves(result, {}, leaves);
  rebind_unbacked(*env_, it->second, leaves);
  return result;
}

}  // namespace calque
