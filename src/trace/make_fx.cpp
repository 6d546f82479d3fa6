#include "calque/trace/make_fx.h"

#include <unordered_map>

#include "calque/base/error.h"
#include "calque/op/mode.h"
#include "calque/sym/expr.h"

namespace calque {
namespace {

class Recorder : public Mode {
 public:
  explicit Recorder(Graph& graph) : graph_(graph) {}
  ModeSlot slot() const override { return ModeSlot::recorder; }

  void bind(const Tensor& t, Node* node) {
    node_of_[&t.impl()] = node;
    alive_.push_back(t);  // an address must not be reused while it is a key
    const SymIntList sizes = t.sym_sizes();
    if (node->kind() == NodeKind::placeholder)
      for (size_t d = 0; d < sizes.size(); ++d)
        if (sizes[d].is_symbolic()) size_source_.try_emplace(sizes[d].expr(), node, static_cast<int64_t>(d));
  }

  Value call(const Operator& op, const Values& args) override {
    // Trailing arguments equal to their defaults are left out, as PyTorch's graphs have it.
    const auto& schema = op.schema().arguments;
    size_t count = args.size();
    while (count > 0 && schema[count - 1].default_value && args[count - 1].equals(*schema[count - 1].default_value)) --count;
    Values node_args;
    for (size_t i = 0; i < count; ++i)
      if (!schema[i].keyword_only) node_args.push_back(argument(args[i]));
    Kwargs keywords;
    for (size_t i = 0; i < count; ++i)
      if (schema[i].keyword_only && !(schema[i].default_value && args[i].equals(*schema[i].default_value))) keywords.emplace_back(schema[i].name, argument(args[i]));
    Value result = call_next(op, args);
    Node* node = graph_.call_function(op, std::move(node_args), std::move(keywords), op.schema().name);
    node->meta.val = result;
    if (result.is_tensor()) bind(result.to_tensor(), node);
    else if (result.kind() == Value::Kind::tuple || result.kind() == Value::Kind::list) {
      const Values& items = result.to_items();
      for (size_t i = 0; i < items.size(); ++i) {
        if (!items[i].is_tensor()) continue;
        Node* item = graph_.call_function(get_function("operator.getitem"), {node, i});
        item->meta.val = items[i];
        bind(items[i].to_tensor(), item);
      }
    }
    return result;
  }

  Value argument(const Value& v) {
    switch (v.kind()) {
      case Value::Kind::tensor: {
        const auto it = node_of_.find(&v.to_tensor().impl());
        if (it != node_of_.end()) return it->second;
        if (v.to_tensor().is_fake()) throw UserError("make_fx: a fake tensor that this trace did not make is used; pass it as an input");
        return v;  // a constant
      }
      case Value::Kind::integer: return v.to_sym_int().is_symbolic() ? Value(number(v.to_sym_int().expr())) : v;
      case Value::Kind::list:
      case Value::Kind::tuple: {
        Values items;
        for (const Value& item : v.to_items()) items.push_back(argument(item));
        return v.kind() == Value::Kind::list ? list(std::move(items)) : tuple(std::move(items));
      }
      default: return v;
    }
  }

 private:
  // The node that computes an expression: a placeholder's size, or Python operators over such.
  Node* number(const Expr* e) {
    if (const auto it = number_of_.find(e); it != number_of_.end()) return it->second;
    Node* node = nullptr;
    if (const auto it = size_source_.find(e); it != size_source_.end()) {
      node = graph_.call_function(get_operator("aten::sym_size.int"), {it->second.first, it->second.second});
    } else {
      const char* python = nullptr;
      switch (e->kind()) {
        case ExprKind::add: python = "add"; break;
        case ExprKind::mul: python = "mul"; break;
        case ExprKind::floor_div: python = "floordiv"; break;
        case ExprKind::mod:
        case ExprKind::python_mod: python = "mod"; break;
        default: throw UserError("make_fx: the size " + SymInt(e).str() + " cannot be written as a node yet");
      }
      Value left = operand(e->arg(0));
      for (size_t i = 1; i < e->args().size(); ++i) left = graph_.call_function(get_function(std::string("operator.") + python), {left, operand(e->arg(i))});
      node = left.to_node();
    }
    node->meta.val = SymInt(e);
    number_of_.emplace(e, node);
    return node;
  }
  Value operand(const Expr* e) { return e->is_integer() ? Value(e->integer()) : Value(number(e)); }

  Graph& graph_;
  std::unordered_map<const TensorImpl*, Node*> node_of_;
  std::unordered_map<const Expr*, Node*> number_of_;
  std::unordered_map<const Expr*, std::pair<Node*, int64_t>> size_source_;
  std::vector<Tensor> alive_;
};

// Same sizes (symbolic or not) and strides that follow the example's order, without data.
Tensor fake_like(const Tensor& t, ShapeEnv* env, const std::string& name) {
  Meta m = t.meta();
  if (env) {
    for (size_t d = 0; d < m.sizes.size(); ++d) m.sizes[d] = env->create_size(m.sizes[d].as_int(), name + ", dimension " + std::to_string(d));
    if (!t.is_contiguous()) throw UserError("make_fx: symbolic tracing of the non-contiguous input " + name + " is not supported yet; make it contiguous() first");
    m.strides = contiguous_strides(m.sizes);
  }
  return make_tensor(m, true);
}

}  // namespace

TracedGraph make_fx(const std::function<Value(const std::vector<Tensor>&)>& fn, const std::vector<Tensor>& examples, TracingMode mode) {
  TracedGraph traced;
  if (mode == TracingMode::symbolic) traced.env = ShapeEnv::make();
  Recorder recorder(traced.graph);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < examples.size(); ++i) {
    const std::string name = "arg" + std::to_string(i) + "_1";
    Node* node = traced.graph.placeholder(name);
    inputs.push_back(fake_like(examples[i], traced.env.get(), name));
    node->meta.val = inputs.back();
    recorder.bind(inputs.back(), node);
  }
  Value result;
  {
    const ModeScope scope(recorder);
    result = fn(inputs);
  }
  traced.graph.output(recorder.argument(result));
  traced.graph.lint();
  return traced;
}

}  // namespace calque
