#include "trace/recorder.h"

#include "calque/base/error.h"
#include "calque/nn/module.h"
#include "calque/tensor/wrapped_number.h"

namespace calque {

namespace {

template <class F>
bool any_of_tensors(const Value& v, F&& f) {
  if (v.is_tensor()) return f(v.to_tensor());
  if (v.kind() == Value::Kind::list || v.kind() == Value::Kind::tuple)
    for (const Value& item : v.to_items())
      if (any_of_tensors(item, f)) return true;
  return false;
}
template <class F>
bool any_of_tensors(const Values& args, F&& f) {
  for (const Value& v : args)
    if (any_of_tensors(v, f)) return true;
  return false;
}

bool is_symbolic(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::boolean: return v.to_sym_bool().is_symbolic();
    case Value::Kind::integer: return v.to_sym_int().is_symbolic();
    case Value::Kind::floating: return v.to_sym_float().is_symbolic();
    case Value::Kind::list:
    case Value::Kind::tuple:
      for (const Value& item : v.to_items())
        if (is_symbolic(item)) return true;
      return false;
    default: return false;
  }
}

bool is_data_dependent_value(const Operator& op) {
  if (!op.has_tag(Tag::data_dependent)) return false;
  for (const auto& r : op.schema().returns)
    if (r.type.kind == SchemaType::Kind::tensor) return false;
  return true;
}

Tensor without_data(const Tensor& t) {
  Tensor copy = t.impl().special ? make_view(t, t.impl().sizes, t.impl().strides, t.impl().offset) : make_tensor(t.meta(), true);
  TensorImpl& impl = copy.impl();
  impl.dtype = t.impl().dtype;
  impl.requires_grad = t.impl().requires_grad;
  impl.is_leaf = t.impl().is_leaf;
  impl.is_view = t.impl().is_view;
  impl.env = t.impl().env;
  impl.extra = t.impl().extra;
  return copy;
}

}  // namespace

Value snapshot(const Value& v) {
  if (v.is_tensor()) return without_data(v.to_tensor());
  if (v.kind() != Value::Kind::list && v.kind() != Value::Kind::tuple) return v;
  Values items;
  items.reserve(v.to_items().size());
  for (const Value& item : v.to_items()) items.push_back(snapshot(item));
  return v.kind() == Value::Kind::list ? list(std::move(items)) : tuple(std::move(items));
}

Value fresh(const Value& v) {
  const FlatTree flat = tree_flatten(v);
  Values leaves;
  for (const Value& leaf : flat.leaves) {
    if (leaf.is_tensor() && leaf.to_tensor().is_fake()) {
      Tensor t = make_tensor(leaf.to_tensor().meta(), true);
      t.impl().env = leaf.to_tensor().impl().env;
      t.impl().extra = leaf.to_tensor().impl().extra;
      leaves.emplace_back(std::move(t));
    } else {
      leaves.push_back(leaf.is_tensor() ? Value(leaf.to_tensor().clone()) : leaf);
    }
  }
  return flat.spec.unflatten(leaves);
}

// ---- modules --------------------------------------------------------------------------------------------------------

void Recorder::enter(Module& module) {
  if (!options_.record_module_stack) return;
  outer_modules_.push_back(modules_);
  auto stack = modules_ ? std::make_shared<ModuleStack>(*modules_) : std::make_shared<ModuleStack>();
  std::string path;
  if (!module_path_.empty()) {
    // The name by which the innermost module that is being called knows it.
    for (const auto& [name, child] : module_path_.back()->named_modules())
      if (child == &module) {
        const std::string& outer = stack->back().path;
        path = outer.empty() ? name : outer + "." + name;
        break;
      }
  }
  stack->push_back({path.empty() ? "root" : path, path, module.type_name()});
  modules_ = std::move(stack);
  module_path_.push_back(&module);
}

void Recorder::leave(Module&) {
  if (!options_.record_module_stack) return;
  modules_ = outer_modules_.back();
  outer_modules_.pop_back();
  module_path_.pop_back();
}

void Recorder::describe(Node* node) {
  node->meta.location = call_site().where;
  if (options_.record_module_stack) node->meta.nn_module_stack = modules_;
}

namespace {
thread_local bool tracing_off = false;
}  // namespace

NoTraceScope::NoTraceScope() : before_(tracing_off) { tracing_off = true; }
NoTraceScope::~NoTraceScope() { tracing_off = before_; }

// ---- calls ----------------------------------------------------------------------------------------------------------

Value Recorder::call(const Operator& called, const Values& args) {
  if (tracing_off || inner_) return call_next(called, args);
  const Operator* op = &called;
  if (options_.decompositions) {
    if (const auto it = options_.decompositions->find(op); it != options_.decompositions->end()) {
      const ModeScope again(*this);
      if (auto result = it->second(args)) return *std::move(result);
    }
  }
  bool all_constant = true;
  bool any_constant = false;
  any_of_tensors(args, [&](const Tensor& t) {
    const auto it = tensors_.find(&t.impl());
    if (it == tensors_.end()) return false;
    if (it->second.constant.defined()) any_constant = true;
    else all_constant = false;
    return false;
  });
  for (const Value& v : args) all_constant = all_constant && !is_symbolic(v);

  if (is_data_dependent_value(*op)) {
    if (all_constant && any_constant) {
      const NoModesScope real_work;
      Values values;
      for (const Value& v : args) values.push_back(constant_values(v));
      return op->run_eager(values);
    }
    const bool any_fake = any_of_tensors(args, [](const Tensor& t) { return t.is_fake(); });
    if (options_.error_on_data_dependent && !any_fake && any_of_tensors(args, [&](const Tensor& t) { return tracks(t); }))
      throw UserError(ErrorKind::data_dependent, op->schema().name + ": reads the value of a tensor that is being traced (data-dependent control flow, or the like), which would be burnt into the graph; "
                                                                     "trace with symbolic sizes, or keep the computation in tensors");
  }
  static const Operator& lift_fresh = get_operator("aten::lift_fresh");
  static const Operator& lift_fresh_copy = get_operator("aten::lift_fresh_copy");
  if (op == &lift_fresh) op = &lift_fresh_copy;  // what is stored must not be written by the program

  // Arguments equal to their defaults are left out, as PyTorch's graphs have it: positional ones from the end.
  const auto& schema = op->schema().arguments;
  const auto is_default = [&](size_t i) { return schema[i].default_value && args[i].equals(*schema[i].default_value); };
  size_t positional = 0;
  for (size_t i = 0; i < args.size(); ++i)
    if (!schema[i].keyword_only && !is_default(i)) positional = i + 1;
  Values node_args;
  Kwargs keywords;
  for (size_t i = 0; i < args.size(); ++i) {
    if (schema[i].keyword_only) {
      if (!is_default(i)) keywords.emplace_back(schema[i].name, argument(args[i]));
    } else if (i < positional) {
      node_args.push_back(argument(args[i]));
    }
  }
  Node* node = graph_.call_function(op, std::move(node_args), std::move(keywords), op->schema().name);
  describe(node);

  Value result;
  try {
    result = call_next(*op, args);
  } catch (...) {
    graph_.erase_node(node);
    throw;
  }
  node->meta.val = snapshot(result);

  Value constants;
  if (op == &lift_fresh_copy && !result.to_tensor().is_symbolic() && result.to_tensor().numel() <= 1 && !tracks(args[0].to_tensor())) {
    const NoModesScope real_work;
    constants = lift_fresh_copy.run_eager(args);
  } else if (all_constant && any_constant && !op->has_tag(Tag::random) &&
             !any_of_tensors(result, [](const Tensor& t) { return t.is_symbolic() || t.numel() > 1; })) {
    const NoModesScope real_work;
    Values values;
    for (const Value& v : args) values.push_back(constant_values(v));
    constants = op->run_eager(values);
  }
  track(result, node, constants);
  return result;
}

Value Recorder::constant_values(const Value& v) const {
  if (v.is_tensor()) {
    const auto it = tensors_.find(&v.to_tensor().impl());
    return it != tensors_.end() && it->second.constant.defined() ? Value(it->second.constant) : v;
  }
  if (v.kind() != Value::Kind::list && v.kind() != Value::Kind::tuple) return v;
  Values items;
  for (const Value& item : v.to_items()) items.push_back(constant_values(item));
  return v.kind() == Value::Kind::list ? list(std::move(items)) : tuple(std::move(items));
}

void Recorder::remember(const Expr* e, Node* node) {
  if (e && !e->is_integer()) numbers_.try_emplace(e, node);
}

void Recorder::track(const Value& value, Node* node, const Value& constants) {
  switch (value.kind()) {
    case Value::Kind::tensor: {
      const Tensor& t = value.to_tensor();
      tensors_[&t.impl()] = {node, constants.is_tensor() ? constants.to_tensor() : Tensor(), t};
      if (!t.is_symbolic()) return;
      const auto source = [&](SymInt s, SizeOf::What what, size_t d) {
        if (s.is_symbolic()) sizes_.try_emplace(s.expr(), SizeOf{what, node, static_cast<int64_t>(d)});
      };
      for (size_t d = 0; d < t.sym_sizes().size(); ++d) source(t.sym_sizes()[d], SizeOf::What::size, d);
      for (size_t d = 0; d < t.sym_strides().size(); ++d) source(t.sym_strides()[d], SizeOf::What::stride, d);
      source(t.sym_storage_offset(), SizeOf::What::offset, 0);
      return;
    }
    case Value::Kind::integer: remember(value.to_sym_int().expr(), node); return;
    case Value::Kind::floating: remember(value.to_sym_float().expr(), node); return;
    case Value::Kind::boolean: remember(value.to_sym_bool().expr(), node); return;
    case Value::Kind::list:
    case Value::Kind::tuple: {
      static const FunctionRef getitem = get_function("operator.getitem");
      const Values& items = value.to_items();
      for (size_t i = 0; i < items.size(); ++i) {
        if (items[i].is_none()) continue;
        Node* item = graph_.call_function(getitem, {node, i});
        describe(item);
        item->meta.val = snapshot(items[i]);
        const bool parts = constants.kind() == Value::Kind::list || constants.kind() == Value::Kind::tuple;
        track(items[i], item, parts ? constants.to_items()[i] : Value());
      }
      return;
    }
    default: return;
  }
}

// ---- arguments ------------------------------------------------------------------------------------------------------

Value Recorder::attribute(const Tensor& t) {
  auto [it, fresh] = attributes_.try_emplace(&t.impl());
  if (fresh) {
    const char* kind = t.requires_grad() && t.is_leaf() ? "_param_constant" : "_tensor_constant";
    size_t n = 0;
    while (traced_.has_attr(kind + std::to_string(n))) ++n;
    it->second = kind + std::to_string(n);
    traced_.attributes.emplace_back(it->second, t);
  }
  Node* node = graph_.get_attr(it->second);
  describe(node);
  node->meta.val = snapshot(t);
  return node;
}

Value Recorder::argument(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::tensor: {
      const Tensor& t = v.to_tensor();
      if (const auto it = tensors_.find(&t.impl()); it != tensors_.end()) return it->second.node;
      if (outer_ && outer_->knows(v)) return lifted(v);
      if (t.impl().wrapped_number && !t.is_fake()) return t.item();
      if (const auto symbolic = symbolic_number(t)) return argument(*symbolic);
      if (t.is_fake()) {
        if (const Tensor real = fake_constant(t); real.defined()) return attribute(real);
        throw UserError("make_fx: a fake tensor of sizes " + str(t.sym_sizes()) + " that this trace did not make is used; pass it as an input");
      }
      return attribute(t);
    }
    case Value::Kind::boolean: return v.to_sym_bool().is_symbolic() ? number(v.to_sym_bool().expr()) : v;
    case Value::Kind::integer: return v.to_sym_int().is_symbolic() ? number(v.to_sym_int().expr()) : v;
    case Value::Kind::floating: return v.to_sym_float().is_symbolic() ? number(v.to_sym_float().expr()) : v;
    case Value::Kind::list:
    case Value::Kind::tuple: {
      Values items;
      items.reserve(v.to_items().size());
      for (const Value& item : v.to_items()) items.push_back(argument(item));
      return v.kind() == Value::Kind::list ? list(std::move(items)) : tuple(std::move(items));
    }
    case Value::Kind::dict: {
      DictValue d = v.to_dict();
      for (auto& [key, item] : d.items) item = argument(item);
      return d;
    }
    case Value::Kind::structure: {
      StructValue s = v.to_struct();
      for (Value& item : s.items) item = argument(item);
      return s;
    }
    case Value::Kind::slice: return SliceValue{argument(v.to_slice().start), argument(v.to_slice().stop), argument(v.to_slice().step)};
    case Value::Kind::none:
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node: return v;
  }
  return v;
}

// ---- graphs in graphs -----------------------------------------------------------------------------------------------

namespace {

const Expr* expression_of(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::boolean: return v.to_sym_bool().expr();
    case Value::Kind::integer: return v.to_sym_int().expr();
    case Value::Kind::floating: return v.to_sym_float().expr();
    default: return nullptr;
  }
}

}  // namespace

bool Recorder::knows(const Value& v) const {
  bool here = false;
  if (v.is_tensor()) here = tensors_.contains(&v.to_tensor().impl());
  else if (const Expr* e = expression_of(v)) here = numbers_.contains(e) || sizes_.contains(e);
  return here || (outer_ && outer_->knows(v));
}

// Something of the outer trace: an input of this graph from now on.
Value Recorder::lifted(const Value& v) {
  Node* node = nullptr;
  {
    Node* last = nullptr;
    for (Node* n : graph_.nodes())
      if (n->kind() == NodeKind::placeholder) last = n;
    const auto scope = last ? graph_.inserting_after(last) : graph_.inserting_before();
    node = graph_.placeholder("arg" + std::to_string(graph_.placeholders().size()) + "_1");
  }
  node->meta.val = snapshot(v);
  track(v, node);
  lifted_.push_back(v);
  return node;
}

Value Recorder::trace(const char* target, std::vector<Branch> branches, const std::function<Values(const Values&, const Values&)>& arguments,
                      const std::function<Value(const std::vector<Value>&)>& result) {
  if (inner_) return inner_->trace(target, std::move(branches), arguments, result);
  // What the branches close over becomes an input of all of them: found by tracing them once, given when they are traced
  // again.
  Values shared;
  std::vector<std::shared_ptr<TracedGraph>> graphs;
  std::vector<Value> results;
  std::vector<Values> given;
  for (const Branch& branch : branches) {
    const NoTraceScope quiet;
    given.push_back(branch.inputs());
  }
  for (bool again = true; again;) {
    again = false;
    graphs.clear();
    results.clear();
    for (size_t b = 0; b < branches.size(); ++b) {
      const Branch& branch = branches[b];
      auto graph = std::make_shared<TracedGraph>();
      graph->env = traced_.env;
      graph->fake = traced_.fake;
      Recorder inner(*graph, options_, this);
      Values inputs = given[b];
      inputs.insert(inputs.end(), shared.begin(), shared.end());
      for (size_t i = 0; i < inputs.size(); ++i) {
        Node* node = graph->graph.placeholder("arg" + std::to_string(i) + "_1");
        node->meta.val = snapshot(inputs[i]);
        inner.track(inputs[i], node);
      }
      graph->in_spec = tree_structure(tuple(inputs));
      Value out;
      inner_ = &inner;
      try {
        const ModeScope scope(inner);
        out = branch.function(inputs);
      } catch (...) {
        inner_ = nullptr;
        throw;
      }
      inner_ = nullptr;
      graph->graph.output(inner.argument(out));
      if (!inner.lifted_.empty()) {
        shared.insert(shared.end(), inner.lifted_.begin(), inner.lifted_.end());
        again = true;
        break;
      }
      remove_unused(graph->graph);
      results.push_back(out);
      graphs.push_back(std::move(graph));
    }
  }
  Values names;
  for (size_t i = 0; i < graphs.size(); ++i) {
    size_t n = 0;
    while (traced_.has_module(branches[i].name + ("_" + std::to_string(n)))) ++n;
    traced_.subgraphs.emplace_back(branches[i].name + ("_" + std::to_string(n)), graphs[i]);
    Node* node = graph_.get_attr(traced_.subgraphs.back().first);
    describe(node);
    names.emplace_back(node);
  }
  Values node_args;
  for (const Value& v : arguments(names, shared)) node_args.push_back(argument(v));
  Value out;
  {
    const NoTraceScope quiet;
    out = fresh(result(results));  // what the call gives is not what a branch gave
  }
  Node* node = graph_.call_function(get_function(target), std::move(node_args));
  describe(node);
  node->meta.val = snapshot(out);
  track(out, node);
  return out;
}

// ---- symbolic numbers -----------------------------------------------------------------------------------------------

Node* Recorder::function(const char* name, Values args) {
  Node* node = graph_.call_function(get_function(name), std::move(args));
  describe(node);
  return node;
}

Value Recorder::operand(const Expr* e) {
  if (e->is_integer()) return e->integer();
  if (e->kind() == ExprKind::float_number) return e->float_value();
  return number(e);
}

namespace {

const char* opaque_function(OpaqueFunction function) {
  switch (function) {
    case OpaqueFunction::sqrt: return "torch._sym_sqrt";
    case OpaqueFunction::cos: return "torch._sym_cos";
    case OpaqueFunction::cosh: return "torch._sym_cosh";
    case OpaqueFunction::sin: return "torch._sym_sin";
    case OpaqueFunction::sinh: return "torch._sym_sinh";
    case OpaqueFunction::tan: return "torch._sym_tan";
    case OpaqueFunction::tanh: return "torch._sym_tanh";
    case OpaqueFunction::asin: return "torch._sym_asin";
    case OpaqueFunction::acos: return "torch._sym_acos";
    case OpaqueFunction::atan: return "torch._sym_atan";
    case OpaqueFunction::log2: return "torch._sym_log2";
    default: return nullptr;
  }
}

const char* python_function(const Expr* e) {
  switch (e->kind()) {
    case ExprKind::opaque_unary: return opaque_function(e->opaque_function());
    case ExprKind::round_to_int:
    case ExprKind::round_decimal: return "builtins.round";
    case ExprKind::absolute: return "operator.abs";
    case ExprKind::floor: return "math.floor";
    case ExprKind::bitwise_and: return "operator.and_";
    case ExprKind::bitwise_or: return "operator.or_";
    case ExprKind::bitwise_xor: return "operator.xor";
    case ExprKind::add: return "operator.add";
    case ExprKind::mul: return "operator.mul";
    case ExprKind::pow:
    case ExprKind::pow_by_natural:
    case ExprKind::float_pow: return "operator.pow";
    case ExprKind::floor_div:
    case ExprKind::clean_div: return "operator.floordiv";
    case ExprKind::mod:
    case ExprKind::python_mod: return "operator.mod";
    case ExprKind::max: return "torch.sym_max";
    case ExprKind::min: return "torch.sym_min";
    case ExprKind::where:
    case ExprKind::piecewise: return "torch.sym_ite";
    case ExprKind::to_float: return "torch.sym_float";
    case ExprKind::int_true_div:
    case ExprKind::float_true_div: return "operator.truediv";
    case ExprKind::floor_to_int: return "math.floor";
    case ExprKind::ceil_to_int: return "math.ceil";
    case ExprKind::trunc_to_int: return "math.trunc";
    case ExprKind::eq: return "operator.eq";
    case ExprKind::ne: return "operator.ne";
    case ExprKind::lt: return "operator.lt";
    case ExprKind::le: return "operator.le";
    case ExprKind::gt: return "operator.gt";
    case ExprKind::ge: return "operator.ge";
    case ExprKind::logical_and: return "operator.and_";
    case ExprKind::logical_or: return "operator.or_";
    case ExprKind::logical_not: return "torch.sym_not";
    default: return nullptr;
  }
}

}  // namespace

Value Recorder::number(const Expr* e) {
  if (const auto it = numbers_.find(e); it != numbers_.end()) return it->second;
  // What the guards have made of its symbols since. Not what is known of the whole: an assert that says so is a number
  // like this, and must not be taken for true by its own word.
  if (!e->is_boolean() && !e->is_float() && traced_.env)
    if (const std::optional<int64_t> now = traced_.env->evaluate(SymInt(e), {})) return *now;
  if (outer_ && !sizes_.contains(e)) {
    const Value outside = e->is_boolean() ? Value(SymBool(e)) : e->is_float() ? Value(SymFloat(e)) : Value(SymInt(e));
    if (outer_->knows(outside)) return lifted(outside);
  }
  Node* node = nullptr;
  if (const auto it = sizes_.find(e); it != sizes_.end()) {
    const SizeOf& source = it->second;
    static const Operator& sym_size = get_operator("aten::sym_size.int");
    static const Operator& sym_stride = get_operator("aten::sym_stride.int");
    static const Operator& sym_offset = get_operator("aten::sym_storage_offset");
    switch (source.what) {
      case SizeOf::What::size: node = graph_.call_function(sym_size, {source.node, source.dim}, {}, "sym_size_int"); break;
      case SizeOf::What::stride: node = graph_.call_function(sym_stride, {source.node, source.dim}, {}, "sym_stride_int"); break;
      case SizeOf::What::offset: node = graph_.call_function(sym_offset, {source.node}, {}, "sym_storage_offset"); break;
    }
    describe(node);
  } else if (e->kind() == ExprKind::mul && e->coefficient() == -1) {
    node = function("operator.neg", {number(e->without_coefficient())});
  } else if (e->kind() == ExprKind::pow) {
    node = function("operator.pow", {operand(e->arg(0)), e->exponent()});
  } else {
    const char* python = python_function(e);
    if (!python || e->args().empty()) throw UserError("make_fx: the number " + e->str() + " is not one that this trace made; pass it as an input");
    const size_t n = e->args().size();
    if (n == 1) {
      node = function(python, {operand(e->arg(0))});
    } else if (e->kind() == ExprKind::where || e->kind() == ExprKind::piecewise) {
      node = function(python, {operand(e->arg(0)), operand(e->arg(1)), operand(e->arg(2))});
    } else {
      // A sum's or product's number comes last, as a user writes it.
      const bool number_first = (e->kind() == ExprKind::add || e->kind() == ExprKind::mul) && e->arg(0)->is_integer();
      Value left = operand(e->arg(number_first ? 1 : 0));
      for (size_t i = number_first ? 2 : 1; i < n; ++i) left = function(python, {left, operand(e->arg(i))});
      if (number_first) left = function(python, {left, operand(e->arg(0))});
      node = left.to_node();
    }
  }
  node->meta.val = e->is_boolean() ? Value(SymBool(e)) : e->is_float() ? Value(SymFloat(e)) : Value(SymInt(e));
  numbers_.emplace(e, node);
  return node;
}

}  // namespace calque
