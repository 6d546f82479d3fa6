#include "trace/recorder.h"

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/nn/module.h"
#include "calque/nn/typed.h"
#include "calque/op/bind_arguments.h"
#include "calque/op/composite_policy.h"
#include "calque/op/owner.h"
#include "calque/tensor/wrapped_number.h"
#include "op/value_items.h"
#include "op/well_known.h"
#include "trace/capture_scope.h"
#include "trace/pytorch_guards.h"

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

bool is_symbolic(const Value& v) { return v.expr() || (v.is_sequence() && any_item(v, is_symbolic)); }

bool is_data_dependent_value(const Operator& op) {
  if (!op.has_tag(Tag::data_dependent)) return false;
  for (const auto& r : op.schema().returns)
    if (r.type.kind == SchemaType::Kind::tensor) return false;
  return true;
}

Tensor without_data(const Tensor& t) {
  const TensorImpl& from = t.impl();
  if (!from.special) {
    Tensor copy = make_tensor(t.meta(), true);
    copy.impl().take_marks(from);
    copy.impl().env = from.env;
    copy.impl().extra = extra_for_copy(from);
    return copy;
  }
  // Every node has one, so that it is made with what is known: the sizes are good, and whose symbols they are.
  Tensor copy(Ref<TensorImpl>(new TensorImpl(from.storage, Meta{{}, {}, from.dtype, from.device, false}, 0)));
  TensorImpl& impl = copy.impl();
  impl.take_layout(from);
  impl.take_marks(from);
  impl.special = true;
  impl.extra = extra_for_copy(from);
  return copy;
}

}  // namespace

Value snapshot(const Value& v) { return v.is_tensor() ? without_data(v.to_tensor()) : map_items(v, snapshot); }

Value fresh(const Value& v) {
  const FlatTree flat = tree_flatten(v);
  Values leaves;
  for (const Value& leaf : flat.leaves) {
    if (leaf.is_tensor() && leaf.to_tensor().is_fake()) {
      Tensor t = make_tensor(leaf.to_tensor().meta(), true);
      t.impl().env = leaf.to_tensor().impl().env;
      t.impl().extra = extra_for_copy(leaf.to_tensor().impl());
      leaves.emplace_back(std::move(t));
    } else {
      leaves.push_back(leaf.is_tensor() ? Value(leaf.to_tensor().clone()) : leaf);
    }
  }
  return flat.spec.unflatten(leaves);
}

// ---- modules --------------------------------------------------------------------------------------------------------

namespace {

// The name by which a module knows another, itself included: of several, the one by which it was reached. None: it does not.
std::optional<std::string> name_in(Module& caller, const Module& called) {
  const uint64_t reached = std::exchange(thread_context().reached_slot, 0);
  for (const auto& slot : caller.module_slots())
    if (slot->number == reached && slot->module.get() == &called) return slot->name;
  std::optional<std::string> first;
  size_t names = 0;
  const Module::NamedModules modules = caller.named_modules("", false);
  for (const auto& [name, child] : modules)
    if (child == &called && names++ == 0) first = name;
  if (names < 2 || !reached) return first;
  for (const auto& [name, owner] : modules)
    for (const auto& slot : owner->module_slots())
      if (slot->number == reached && slot->module.get() == &called) return name + "." + slot->name;
  return first;
}

}  // namespace

void Recorder::enter(Module& module) {
  if (!options_.record_module_stack || !is_at_work()) return;
  outer_modules_.push_back(modules_);
  const std::optional<std::string> path = path_of(module);
  if (!path) {
    // What it calls is its caller's.
    module_path_.push_back(module_path_.back());
    if (!dynamic_cast<const GraphModule*>(&module))
      warn("Unable to find the path of the module " + module.type_name() +
           ". This might be because the module was not properly registered as a submodule, which is not good practice. We "
           "will trace through the module without recording stack information.");
    return;
  }
  auto stack = modules_ ? std::make_shared<ModuleStack>(*modules_) : std::make_shared<ModuleStack>();
  // A module's second call is path@1.
  const size_t before = calls_[*path]++;
  stack->push_back(
      {(path->empty() ? "root" : *path) + (before ? "@" + std::to_string(before) : ""), *path, module.type_name()});
  modules_ = std::move(stack);
  module_path_.push_back(&module);
}

std::optional<std::string> Recorder::path_of(const Module& module) const {
  if (module_path_.empty()) return "";
  const std::string& outer = modules_->back().path;
  if (const std::optional<std::string> name = name_in(*module_path_.back(), module))
    return outer.empty() || name->empty() ? outer + *name : outer + "." + *name;
  return name_in(*module_path_.front(), module);  // one that belongs to another part of the model
}

void Recorder::leave(Module&) {
  if (!options_.record_module_stack || !is_at_work()) return;
  modules_ = outer_modules_.back();
  outer_modules_.pop_back();
  module_path_.pop_back();
}

void Recorder::describe(Node* node) {
  node->meta.original_aten = original_;
  if (const NodeMeta* origin = thread_context().origin_meta) {
    NodeMeta& meta = node->meta;
    meta.location = origin->location;
    meta.stack_trace = origin->stack_trace;
    meta.nn_module_stack = origin->nn_module_stack;
    meta.source_fn_stack = origin->source_fn_stack;
    meta.torch_fn = origin->torch_fn;
    meta.custom = origin->custom;
    return;
  }
  node->meta.location = call_site().where;
  if (options_.record_module_stack) node->meta.nn_module_stack = modules_;
}

bool Recorder::in_same_call(const Node& node) const {
  if (const NodeMeta* origin = thread_context().origin_meta) {
    const Value* now = origin->find(from_node);
    const Value* then = node.meta.find(from_node);
    return now && then && now->equals(*then);
  }
  const std::source_location now = call_site().where, then = node.meta.location;
  return thread_context().call_site && now.line() == then.line() && now.column() == then.column();
}

bool Recorder::is_off() const { return thread_context().recorder != this; }
bool Recorder::is_at_work() const {
  for (const Recorder* r = thread_context().recorder; r; r = r->outer_)
    if (r == this) return true;
  return false;
}

const ProxyMode* get_innermost_proxy_mode() { return thread_context().recorder; }

const Node* Recorder::node_of(const Tensor& t) const {
  const auto it = tensors_.find(&t.impl());
  return it == tensors_.end() ? nullptr : it->second.node;
}

// ---- calls ----------------------------------------------------------------------------------------------------------

namespace {

// add.Tensor and the like with a number, as ATen's own bodies call them: add.Scalar.
const Operator* overload_for_number(const Operator& op, const Values& args, const Values& given) {
  static const std::unordered_map<const Operator*, const Operator*> overloads = [] {
    std::unordered_map<const Operator*, const Operator*> out;
    for (const Operator* number : all_operators()) {
      if (!number->has_tag(Tag::wraps_numbers)) continue;
      const Schema& s = number->schema();
      const Operator& tensor = get_operator(s.name_space + "::" + s.name + ".Tensor" + s.overload.substr(6));
      out.emplace(&tensor, number);
      if (tensor.in_place() && number->in_place()) out.emplace(tensor.in_place(), number->in_place());
    }
    return out;
  }();
  const auto it = overloads.find(&op);
  if (it == overloads.end() || !args[1].is_tensor()) return nullptr;
  const Tensor& number = args[1].to_tensor();
  if (!number.defined() || !(number.impl().wrapped_number || symbolic_number(number))) return nullptr;
  const bool handed_on = std::any_of(given.begin(), given.end(), [&](const Value& v) {
    return v.is_tensor() && v.to_tensor().defined() && v.to_tensor().is_same(number);
  });
  return handed_on ? nullptr : it->second;
}

}  // namespace

Value Recorder::call(const Operator& called, const Values& args) {
  if (is_off()) return call_next(called, args);
  if (const Values* given = composite_arguments())
    if (const Operator* other = overload_for_number(called, args, *given)) {
      Values with_number = args;
      const Tensor& number = args[1].to_tensor();
      const auto symbolic = symbolic_number(number);
      with_number[1] = symbolic ? *symbolic : number.item();
      return record(*other, with_number);
    }
  return record(called, args);
}

Value Recorder::record(const Operator& called, const Values& args) {
  const Operator* op = &called;
  if (options_.pre_dispatch) {
    // What Python's own functions do with a call before it is an operator's.
    if (op == &ops().contiguous && args[0].to_tensor().is_contiguous(args[1].to_memory_format())) return args[0];
    if (op == &ops().split_sizes) op = &ops().split_with_sizes;
  } else {
    if (op == &ops().detach_) return call_next(called, args);  // the gradient's business alone
  }
  const OriginalScope original(*this, called);
  if (auto result = decomposed(*op, args)) return *std::move(result);
  // What is computed to answer the call is not the program's arithmetic.
  const SymObserverScope quiet(nullptr);
  const bool known = are_known(args);
  if (is_data_dependent_value(*op)) {
    if (known) return value_of_known(*op, args);
    refuse_data_dependence(*op, args);
  }
  if (op == &ops().lift_fresh) op = &ops().lift_fresh_copy;  // what is stored must not be written by the program

  Node* node = node_of_call(*op, args);
  Value result;
  try {
    result = call_next(*op, args);
  } catch (...) {
    graph_.erase_node(node);
    throw;
  }
  node->meta.val = snapshot(result);

  const bool lifts_number = op == &ops().lift_fresh_copy && !result.to_tensor().is_symbolic() &&
                            result.to_tensor().numel() <= 1 && !tracks(args[0].to_tensor());
  const bool stays_known = known && !op->has_tag(Tag::random) &&
                           !any_of_tensors(result, [](const Tensor& t) { return t.is_symbolic() || t.numel() > 1; });
  track(result, node, lifts_number || stays_known ? value_of_known(*op, args) : Value());
  return result;
}

std::optional<Value> Recorder::decomposed(const Operator& op, const Values& args) {
  if (!options_.decompositions) return std::nullopt;
  const auto it = options_.decompositions->find(&op);
  if (it == options_.decompositions->end()) return std::nullopt;
  const ModeScope again(*this);
  const SymObserverScope arithmetic(this);
  const CompositeBodyScope body(nullptr);
  return it->second(args);
}

bool Recorder::are_known(const Values& args) const {
  bool any = false;
  const bool unknown = any_of_tensors(args, [&](const Tensor& t) {
    const auto it = tensors_.find(&t.impl());
    if (it == tensors_.end()) return false;
    any = true;
    return !it->second.constant.defined();
  });
  return any && !unknown && std::none_of(args.begin(), args.end(), is_symbolic);
}

Value Recorder::value_of_known(const Operator& op, const Values& args) const {
  const NoModesScope real_work;
  Values values;
  for (const Value& v : args) values.push_back(constant_values(v));
  return op.run_eager(values);
}

void Recorder::refuse_data_dependence(const Operator& op, const Values& args) const {
  if (!options_.error_on_data_dependent || any_of_tensors(args, [](const Tensor& t) { return t.is_fake(); })) return;
  if (any_of_tensors(args, [&](const Tensor& t) { return tracks(t); }))
    throw UserError(ErrorKind::data_dependent, op.schema().name +
                                                   ": reads the value of a tensor that is being traced (data-dependent "
                                                   "control flow, or the like), which would be burnt into the graph; "
                                                   "trace with symbolic sizes, or keep the computation in tensors");
}

Node* Recorder::node_of_call(const Operator& op, const Values& args) {
  WrittenArguments written = written_arguments(op.schema(), args);
  for (Value& v : written.positional) v = argument(v);
  for (auto& [name, v] : written.keyword) v = argument(v);
  Node* node = graph_.call_function(&op, std::move(written.positional), std::move(written.keyword), op.schema().name);
  describe(node);
  return node;
}

Value Recorder::constant_values(const Value& v) const {
  if (v.is_tensor()) {
    const auto it = tensors_.find(&v.to_tensor().impl());
    return it != tensors_.end() && it->second.constant.defined() ? Value(it->second.constant) : v;
  }
  return map_items(v, [&](const Value& item) { return constant_values(item); });
}

void Recorder::remember(const Expr* e, Node* node) {
  if (e && !e->is_integer()) numbers_.try_emplace(e, node);
}

void Recorder::track(const Value& value, Node* node, const Value& constants) {
  if (value.is_tensor()) {
    const Tensor& t = value.to_tensor();
    tensors_[&t.impl()] = {node, constants.is_tensor() ? constants.to_tensor() : Tensor(), t};
    if (t.is_symbolic()) unread_.push_back(node);
    if (const FakeMode* mode = fake_mode_of(t); mode && mode->options().pytorch_guards) pytorch_guards::ask_recorded(t);
    return;
  }
  if (value.is_sequence()) {
    static const FunctionRef getitem = get_function("operator.getitem");
    const Values& items = value.to_items();
    for (size_t i = 0; i < items.size(); ++i) {
      Node* item = graph_.call_function(getitem, {node, i});
      describe(item);
      item->meta.val = snapshot(items[i]);
      track(items[i], item, constants.is_sequence() ? constants.to_items()[i] : Value());
    }
    return;
  }
  remember(value.expr(), node);
}

// ---- arguments ------------------------------------------------------------------------------------------------------

std::string Recorder::numbered(const char* name, const char* separator) {
  return name + (separator + std::to_string(next_number_[name]++));
}

Value Recorder::attribute(const Tensor& t) {
  auto [it, fresh] = attributes_.try_emplace(&t.impl());
  if (fresh) {
    const bool is_parameter = t.requires_grad() && t.is_leaf();
    it->second = numbered(is_parameter ? "_param_constant" : "_tensor_constant");
    module_.set_attribute(it->second, is_parameter ? Attribute(t, true) : Attribute(t));
  }
  Node* node = graph_.get_attr(it->second);
  describe(node);
  node->meta.val = snapshot(t);
  return node;
}

Value Recorder::argument(const Value& v) {
  if (v.is_tensor()) return tensor_argument(v.to_tensor());
  if (const Expr* e = v.expr()) return number(e);
  return map_items(v, [&](const Value& item) { return argument(item); });
}

Value Recorder::tensor_argument(const Tensor& t) {
  if (const auto it = tensors_.find(&t.impl()); it != tensors_.end()) return it->second.node;
  if (outer_ && outer_->knows(t)) return lifted(t);
  if (t.impl().wrapped_number && !t.is_fake()) return t.item();
  if (const auto symbolic = symbolic_number(t)) return argument(*symbolic);
  if (!t.is_fake()) return attribute(t);
  if (const Tensor real = fake_constant(t); real.defined()) return attribute(real);
  throw UserError("make_fx: a fake tensor of sizes " + str(t.sym_sizes()) +
                  " that this trace did not make is used; pass it as an input");
}

// ---- regions --------------------------------------------------------------------------------------------------------

// Below the composite operators gradient mode and autocast have had their effect already; above them they are calls.
void Recorder::grad_mode_set(bool enabled) {
  if (options_.pre_dispatch && !is_off()) function("torch._C._set_grad_enabled", {enabled});
}

void Recorder::autocast_entered(const AutocastRegion& region) {
  const bool recorded = options_.pre_dispatch && !is_off();
  autocasts_.push_back(recorded ? function("torch.amp.autocast_mode._enter_autocast",
                                           {Device(region.device).str(), region.dtype, region.enabled, region.cache_enabled})
                                : nullptr);
}

void Recorder::autocast_left() {
  Node* enter = autocasts_.back();
  autocasts_.pop_back();
  if (enter) function("torch.amp.autocast_mode._exit_autocast", {enter});
}

// ---- graphs in graphs -----------------------------------------------------------------------------------------------

bool Recorder::knows(const Value& v) {
  bool here = false;
  if (v.is_tensor())
    here = tensors_.contains(&v.to_tensor().impl());
  else if (const Expr* e = v.expr())
    here = numbers_.contains(e) || size_source(e);
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

Value Recorder::trace(const char* target, std::vector<Branch> branches,
                      const std::function<Values(const Values&, const Values&)>& arguments,
                      const std::function<Value(const std::vector<Value>&)>& result) {
  // What the branches close over becomes an input of all of them: found by tracing them once, given when they are traced
  // again.
  Values shared;
  std::vector<std::shared_ptr<GraphModule>> modules;
  std::vector<Value> results;
  std::vector<Values> given;
  for (const Branch& branch : branches) {
    const NoTraceScope quiet;
    given.push_back(branch.inputs());
  }
  for (bool again = true; again;) {
    again = false;
    modules.clear();
    results.clear();
    for (size_t b = 0; b < branches.size(); ++b) {
      const Branch& branch = branches[b];
      auto module = std::make_shared<GraphModule>(Graph());
      Graph& graph = module->graph();
      graph.set_shape_env(graph_.shape_env());
      Recorder inner(*module, options_, this);
      Values inputs = given[b];
      inputs.insert(inputs.end(), shared.begin(), shared.end());
      for (size_t i = 0; i < inputs.size(); ++i) {
        Node* node = graph.placeholder("arg" + std::to_string(i) + "_1");
        node->meta.val = snapshot(inputs[i]);
        inner.track(inputs[i], node);
      }
      Value out;
      {
        const CaptureScope branch_capture({.recorder = &inner});
        out = branch.function(inputs);
      }
      graph.output(inner.argument(out));
      if (!inner.lifted_.empty()) {
        shared.insert(shared.end(), inner.lifted_.begin(), inner.lifted_.end());
        again = true;
        break;
      }
      remove_unused(graph);
      results.push_back(out);
      modules.push_back(std::move(module));
    }
  }
  Values names;
  for (size_t i = 0; i < modules.size(); ++i) {
    const std::string name = numbered(branches[i].name, "_");
    module_.set_attribute(name, Attribute(modules[i]));
    Node* node = graph_.get_attr(name);
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

Value Recorder::trace_call(const char* target, const Values& args, const Kwargs& kwargs,
                           const std::function<Value(const Kwargs&)>& result) {
  Values node_args;
  for (const Value& v : args) node_args.push_back(argument(v));
  Kwargs node_kwargs;
  for (const auto& [name, v] : kwargs) node_kwargs.emplace_back(name, argument(v));
  Value out;
  {
    const NoTraceScope quiet;
    out = fresh(result(kwargs));
  }
  Node* node = graph_.call_function(get_function(target), std::move(node_args), std::move(node_kwargs));
  describe(node);
  node->meta.val = snapshot(out);
  track(out, node);
  return out;
}

}  // namespace calque
