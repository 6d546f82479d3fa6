// What the Tracer makes of values that are used as arguments: nodes of proxies, get_attr of parameters, buffers and
// constants, arithmetic on symbolic numbers.
#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/symbolic_context.h"
#include "calque/tensor/wrapped_number.h"
#include "op/value_items.h"
#include "trace/expression_nodes.h"
#include "trace/tracer_state.h"

namespace calque {

// ---- is it ours? --------------------------------------------------------------------------------------------------------

namespace {

bool belongs(const Expr* e, const std::shared_ptr<ShapeEnv>& env) { return e && env && e->env() == env.get(); }

}  // namespace

Node* Tracer::node_of(const Value& proxy) const {
  if (proxy.is_node()) return proxy.to_node();
  if (!proxy.is_tensor()) return nullptr;
  const auto it = state_->tensors.find(&proxy.to_tensor().impl());
  return it == state_->tensors.end() ? nullptr : it->second.node;
}

bool Tracer::involves_proxy(const Value& v) {
  State& s = *state_;
  if (v.is_node()) return true;
  if (v.is_tensor()) {
    const TensorImpl* impl = &v.to_tensor().impl();
    if (s.tensors.contains(impl)) return true;
    if (const auto it = s.parameters.find(impl); it != s.parameters.end())
      return node_of(get_attr(it->second, v.to_tensor())) != nullptr;
    if (!proxy_buffer_attributes) return false;
    const auto it = s.buffers.find(impl);
    return it != s.buffers.end() && node_of(get_attr(it->second, v.to_tensor())) != nullptr;
  }
  return belongs(v.expr(), s.env) || any_item(v, [&](const Value& item) { return involves_proxy(item); });
}

bool Tracer::involves_proxy(const Values& args, const Kwargs& kwargs) {
  bool any = false;
  for (const Value& v : args) any = involves_proxy(v) || any;
  for (const auto& [key, v] : kwargs) any = involves_proxy(v) || any;
  return any;
}

// Whether everything in it can be computed with: no opaque proxies.
bool Tracer::has_values(const Value& v) const {
  if (v.is_tensor()) return !v.to_tensor().is_opaque();
  return !any_item(v, [&](const Value& item) { return !has_values(item); });
}

bool Tracer::has_values(const Values& args, const Kwargs& kwargs) const {
  if (!state_->fake) return false;
  for (const Value& v : args)
    if (!has_values(v)) return false;
  for (const auto& [key, v] : kwargs)
    if (!has_values(v)) return false;
  return true;
}

// ---- arguments ----------------------------------------------------------------------------------------------------------

Value Tracer::create_arg(const Value& v) {
  if (v.is_tensor()) return tensor_arg(v.to_tensor());
  if (const Expr* e = v.expr()) return number(e);
  if (v.kind() == Value::Kind::dict)
    for (const auto& [key, item] : v.to_dict().items)
      if (key.is_tensor() || key.is_node())
        throw UserError("symbolic_trace: a proxy cannot be the key of a dict; keys cannot contain a Node");
  return map_items(v, [&](const Value& item) { return create_arg(item); });
}

Value Tracer::tensor_arg(const Tensor& t) {
  State& s = *state_;
  if (Node* node = node_of(t)) return node;
  if (t.is_opaque())
    throw UserError("symbolic_trace: a proxy of another trace is used; a trace can only compute with its own");
  if (const auto it = s.parameters.find(&t.impl()); it != s.parameters.end()) {
    if (Node* node = node_of(get_attr(it->second, t))) return node;
    return create_node(NodeKind::get_attr, it->second, {}, {});
  }
  if (const auto it = s.buffers.find(&t.impl()); it != s.buffers.end()) {
    if (proxy_buffer_attributes)
      if (Node* node = node_of(get_attr(it->second, t))) return node;
    return create_node(NodeKind::get_attr, it->second, {}, {});
  }
  if (const auto it = s.plain_tensors.find(&t.impl()); it != s.plain_tensors.end())
    return create_node(NodeKind::get_attr, it->second, {}, {});
  if (t.impl().wrapped_number && !t.is_fake()) return t.item();
  if (const auto symbolic = symbolic_number(t)) return create_arg(*symbolic);
  return constant(t);
}

Value Tracer::get_attr(const std::string& path, const Tensor& tensor) {
  State& s = *state_;
  const auto it = s.attributes.find(path);
  if (it != s.attributes.end()) return it->second;
  ProxyLike like;
  if (s.fake) {  // its sizes are the program's, not an input's
    SymbolicContext fixed;
    fixed.sizes.assign(static_cast<size_t>(tensor.dim()), DimDynamic::static_size);
    like.value = s.fake->from_tensor(tensor, Source::constant(path), &fixed);
  }
  Value proxy = create_proxy(NodeKind::get_attr, path, {}, {}, like);
  s.attributes.emplace(path, proxy);
  return proxy;
}

Value Tracer::constant(const Tensor& t) {
  State& s = *state_;
  Tensor real = t;
  if (t.is_fake()) real = fake_constant(t);
  if (!real.defined())
    throw UserError("symbolic_trace: a tensor without data, of sizes " + str(t.sym_sizes()) +
                    ", is used that this trace did not make; pass it as an input");
  if (!s.root)
    throw UserError(
        "a tensor is used while nodes are appended to a graph: make it an attribute of the graph's module and use a "
        "get_attr node");
  auto [it, fresh] = s.constants.try_emplace(&real.impl());
  if (fresh) {
    size_t n = 0;
    const auto taken = [&](const std::string& name) { return s.root->find_tensor(name) || s.root->find_submodule(name); };
    while (taken("_tensor_constant" + std::to_string(n))) ++n;
    it->second = "_tensor_constant" + std::to_string(n);
    s.root->register_buffer(it->second, real, false);  // holds the tensor, so its address stays its own
  }
  return create_node(NodeKind::get_attr, it->second, {}, {});
}

// ---- symbolic numbers ---------------------------------------------------------------------------------------------------

Node* Tracer::call_of(const char* function, Values args) {
  return create_node(NodeKind::call_function, get_function(function), std::move(args), {});
}

Value Tracer::number(const Expr* e) {
  State& s = *state_;
  if (const auto it = s.numbers.find(e); it != s.numbers.end()) return it->second;
  if (!belongs(e, s.env)) throw UserError("symbolic_trace: the number " + e->str() + " belongs to another trace");
  if (!e->is_boolean() && !e->is_float()) {
    const SymInt now = s.env->simplify(SymInt(e));  // what the guards have made of it since
    if (!now.is_symbolic()) return now;
  }
  Node* node = nullptr;
  if (const auto it = s.sizes.find(e); it != s.sizes.end()) {
    const State::SizeOf& place = it->second;
    node = place.stride ? create_node(NodeKind::call_method, "stride", {place.node, place.dim}, {})
                        : size_node(*place.node, place.dim);
  } else {
    node = write_expression(
        e, {[this](const Expr* part) { return number(part); },
            [this](const char* name, Values args, const Value&) { return call_of(name, std::move(args)); }});
    if (!node)
      throw UserError("symbolic_trace: the number " + e->str() + " is not one that this trace made; pass it as an input");
  }
  s.numbers.emplace(e, node);
  return node;
}

}  // namespace calque
