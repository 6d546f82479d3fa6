// What the Tracer makes of calls: operators and functions become nodes as the user wrote them, nodes become proxies.
#include <algorithm>
#include <mutex>

#include "calque/base/error.h"
#include "calque/graph/stack_trace.h"
#include "calque/op/bind_arguments.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "graph/library_functions.h"
#include "trace/recorder.h"
#include "trace/tracer_state.h"

namespace calque {

// ---- how a call is written in Python ----------------------------------------------------------------------------------

namespace {

constexpr std::string_view method_prefix = "torch.Tensor.";
constexpr std::string_view getter_suffix = ".__get__";

struct Written {
  NodeKind kind = NodeKind::call_function;
  Target target;
  Values args;
  Kwargs kwargs;
};

// Only what stands in torch itself is a method of Tensor too.
bool is_torch_function(std::string_view python) {
  constexpr std::string_view torch = "torch.";
  return python.starts_with(torch) && python.find('.', torch.size()) == std::string_view::npos;
}

bool is_in_place(const Operator& op) {
  return op.has_tag(Tag::in_place) || (op.schema().name.ends_with("_") && !op.schema().name.ends_with("__"));
}

Written as_written(const Operator& op, const Values& args, CallForm form) {
  WrittenArguments written = written_arguments(op.schema(), args);
  Written w;
  w.args = std::move(written.positional);
  w.kwargs = std::move(written.keyword);

  const Operator& base = op.base() ? *op.base() : op;
  const std::string& python = base.python_name();
  const bool on_tensor = !args.empty() && args[0].is_tensor();
  if (python.ends_with(getter_suffix)) {
    const std::string attribute =
        python.substr(method_prefix.size(), python.size() - method_prefix.size() - getter_suffix.size());
    w.target = get_function("builtins.getattr");
    w.args = {args.at(0), attribute};
  } else if (on_tensor && is_in_place(op) && (is_torch_function(python) || python.starts_with(method_prefix))) {
    w.kind = NodeKind::call_method;
    w.target = op.schema().name;
  } else if (on_tensor && (python.starts_with(method_prefix) || (form == CallForm::method && is_torch_function(python)))) {
    w.kind = NodeKind::call_method;
    w.target = python.substr(python.rfind('.') + 1);
  } else {
    const FunctionRef function = op.schema().name_space == "aten" ? find_function(python) : nullptr;
    w.target = function ? Target(function) : Target(op);
    if (const LibraryFunction* library = function ? find_library_function(function->name()) : nullptr) {
      // Its parameters are the operator's in the same order, and whether to write the input.
      Kwargs given;
      for (size_t i = 0; i < library->parameters.size(); ++i) {
        const auto& p = library->parameters[i];
        if (p.name == "inplace")
          given.emplace_back(p.name, is_in_place(op));
        else if (i < args.size() && !(is_default(op.schema().arguments[i], args[i]) && p.default_value))
          given.emplace_back(p.name, args[i]);
      }
      std::tie(w.args, w.kwargs) = library->written(library->bind({}, given));
    }
  }
  return w;
}

// The number of tensors in a list that an operator gives, where its arguments say so.
std::optional<size_t> list_length(const Operator& op, const Values& args) {
  if (args.size() < 2) return std::nullopt;
  const Value& how = args[1];
  const bool is_list = how.kind() == Value::Kind::list || how.kind() == Value::Kind::tuple;
  const bool by_count = op.has_tag(Tag::counts_results);
  const bool by_sizes = op.has_tag(Tag::sizes_results);
  if (by_count && how.kind() == Value::Kind::integer && !how.to_sym_int().is_symbolic())
    return static_cast<size_t>(how.to_int());
  if (by_count && is_list) return how.to_items().size() + 1;
  if (by_sizes && is_list) return how.to_items().size();
  return std::nullopt;
}

Value outline_of(const SchemaType& type, const Operator& op, const Values& args) {
  if (type.list) {
    const std::optional<size_t> n = list_length(op, args);
    return list(Values(n.value_or(0)));
  }
  switch (type.kind) {
    case SchemaType::Kind::integer:
    case SchemaType::Kind::sym_int: return 0;
    case SchemaType::Kind::scalar:
    case SchemaType::Kind::floating: return 0.0;
    case SchemaType::Kind::boolean:
    case SchemaType::Kind::sym_bool: return false;
    case SchemaType::Kind::string: return "";
    case SchemaType::Kind::tensor:
    case SchemaType::Kind::dtype:
    case SchemaType::Kind::device:
    case SchemaType::Kind::layout:
    case SchemaType::Kind::memory_format:
    case SchemaType::Kind::generator:
    case SchemaType::Kind::complex: break;
  }
  return {};
}

Value result_outline(const Operator& op, const Values& args) {
  const auto& returns = op.schema().returns;
  if (returns.size() == 1) return outline_of(returns[0].type, op, args);
  Values items;
  for (const auto& r : returns) items.push_back(outline_of(r.type, op, args));
  return tuple(std::move(items));
}

}  // namespace

// ---- calls --------------------------------------------------------------------------------------------------------------

Value Tracer::call(const Operator& op, const Values& args) {
  if (state_->paused || !involves_proxy(args)) return call_next(op, args);
  return record_operator(op, args);
}

Value Tracer::record_operator(const Operator& op, const Values& args) {
  Written w = as_written(op, args, call_site().form);
  if (check_mutable_operations && w.kind == NodeKind::call_function)
    for (const SchemaArgument& a : op.schema().arguments)
      if (a.is_written())
        throw UserError("Tried to trace mutable operation " + op.schema().str() + ": it writes its argument '" + a.name +
                        "', and this tracer takes functional code only");
  ProxyLike like;
  if (has_values(args)) {
    const Paused paused(*state_);
    like.value = example_result(w.kind, w.target, [&] { return call_next(op, args); });
  }
  if (!like.value) like.outline = result_outline(op, args);
  Value result = create_proxy(w.kind, w.target, w.args, w.kwargs, like);
  return op.schema().returns.empty() ? Value() : result;
}

namespace {

// a < b with a number on the left is asked of the tensor, as Python does it.
std::string_view mirrored(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> pairs[] = {
      {"operator.lt", "operator.gt"}, {"operator.gt", "operator.lt"}, {"operator.le", "operator.ge"},
      {"operator.ge", "operator.le"}, {"operator.eq", "operator.eq"}, {"operator.ne", "operator.ne"}};
  for (const auto& [left, right] : pairs)
    if (left == name) return right;
  return {};
}

struct WrappedResults {
  std::mutex mutex;
  std::unordered_map<std::string, Value> outlines;
  static WrappedResults& instance() {
    static WrappedResults w;
    return w;
  }
  Value find(std::string_view name) {
    const std::lock_guard lock(mutex);
    const auto it = outlines.find(std::string(name));
    return it == outlines.end() ? Value() : it->second;
  }
};

}  // namespace

std::optional<Value> Tracer::call_function(std::string_view name, const Values& args, const Kwargs& kwargs) {
  if (state_->paused || !involves_proxy(args, kwargs)) return std::nullopt;
  // A list or dict that holds proxies is there while tracing; only what stands for one is asked when the graph runs.
  if (name == "operator.getitem" && !args.empty() && args[0].is_container()) return std::nullopt;
  Values written = args;
  if (const std::string_view other = mirrored(name);
      !other.empty() && args.size() == 2 && !args[0].is_tensor() && args[1].is_tensor()) {
    name = other;
    std::swap(written[0], written[1]);
  }
  const FunctionRef function = find_function(name);
  if (!function) return std::nullopt;
  Kwargs keywords = kwargs;
  if (const LibraryFunction* library = find_library_function(function->name()))
    std::tie(written, keywords) = library->written(library->bind(written, keywords));
  ProxyLike like{WrappedResults::instance().find(name), {}};
  if (has_values(written, keywords)) {
    const Paused paused(*state_);
    like.value = example_result(NodeKind::call_function, function, [&] { return (*function)(written, keywords); });
  }
  return create_proxy(NodeKind::call_function, function, written, keywords, like);
}

namespace tracer_detail {

void check_count(size_t expected, size_t found, std::string_view name) {
  if (expected != found)
    throw UserError(std::string(name) + ": takes " + std::to_string(expected) + " arguments, found " +
                    std::to_string(found));
}

FunctionRef register_wrapped(std::string name, Function::Body body, ForwardSignature signature) {
  FunctionRef function = register_function(name, std::move(body));
  WrappedResults& results = WrappedResults::instance();
  const std::lock_guard lock(results.mutex);
  results.outlines[std::move(name)] = std::move(signature.result);
  return function;
}

}  // namespace tracer_detail

// ---- nodes --------------------------------------------------------------------------------------------------------------

Node* Tracer::create_node(NodeKind kind, const Target& target, Values args, Kwargs kwargs, std::string_view name,
                          std::string type) {
  State& s = *state_;
  Node* node = graph().create_node(kind, target, std::move(args), std::move(kwargs), name, std::move(type));
  s.node_scopes[node->name()] = s.scope;
  if (s.modules && !s.modules->empty()) node->meta.nn_module_stack = s.modules;
  const std::source_location where = call_site().where;
  node->meta.location = where.line() != 0 ? where : s.where;
  if (record_stack_traces && kind != NodeKind::output) {
    node->meta.stack_trace = std::make_shared<const std::string>(stack_trace(node->meta.location));
  }
  return node;
}

Value Tracer::create_proxy(NodeKind kind, const Target& target, const Values& args, const Kwargs& kwargs,
                           const ProxyLike& like) {
  Values node_args;
  node_args.reserve(args.size());
  for (const Value& a : args) node_args.push_back(create_arg(a));
  Kwargs node_kwargs;
  for (const auto& [key, a] : kwargs) node_kwargs.emplace_back(key, create_arg(a));
  Node* node = create_node(kind, target, std::move(node_args), std::move(node_kwargs));
  return like.value ? from_value(node, *like.value) : from_outline(node, like.outline);
}

// ---- proxies ------------------------------------------------------------------------------------------------------------

Tracer& ProxyExtra::tracer() const {
  if (!*tracer_) throw UserError("a proxy of a trace that has ended was used: values of a trace must not be kept beyond it");
  return **tracer_;
}
void ProxyExtra::refuse(const char* asked) const { tracer().refuse(*node_, std::string("the ") + asked + " of"); }
SymInt ProxyExtra::size(int64_t d) const { return tracer().size_of(*node_, d); }

Tensor Tracer::proxy(Node* node) {
  Tensor t = make_tensor(Meta{}, true);
  t.impl().opaque = true;
  t.impl().extra = std::make_shared<ProxyExtra>(state_->self, node);
  state_->tensors[&t.impl()] = {node, t};
  return t;
}

SymInt Tracer::size_of(Node& node, int64_t d) {
  if (state_->paused) refuse(node, "the sizes of");
  return from_outline(size_node(node, d), 0).to_sym_int();
}

Node* Tracer::size_node(Node& tensor, int64_t dim) { return create_node(NodeKind::call_method, "size", {&tensor, dim}, {}); }

std::optional<Value> Tracer::example_result(NodeKind, const Target&, const std::function<Value()>& call) { return call(); }

Value Tracer::from_outline(Node* node, const Value& outline) {
  State& s = *state_;
  if (!s.env) s.env = ShapeEnv::make();
  const auto items = [&](const Values& outlines) {
    Values out;
    for (size_t i = 0; i < outlines.size(); ++i)
      out.push_back(
          create_proxy(NodeKind::call_function, get_function("operator.getitem"), {node, i}, {}, {outlines[i], {}}));
    return out;
  };
  switch (outline.kind()) {
    case Value::Kind::none: return proxy(node);
    case Value::Kind::integer: {
      const SymInt symbol = s.env->create_unbacked();
      s.numbers[symbol.expr()] = node;
      return symbol;
    }
    case Value::Kind::floating: {
      const SymFloat symbol = s.env->create_unbacked_float();
      s.numbers[symbol.expr()] = node;
      return symbol;
    }
    case Value::Kind::boolean: return to_bool(*node);
    case Value::Kind::tuple: return tuple(items(outline.to_items()));
    case Value::Kind::list: {
      const size_t n = outline.to_items().empty() ? static_cast<size_t>(iter(*node)) : outline.to_items().size();
      return list(items(Values(n)));
    }
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::slice:
    case Value::Kind::tensor:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node:
    case Value::Kind::dict:
    case Value::Kind::structure: break;
  }
  refuse(*node, "the value of");
}

Value Tracer::from_value(Node* node, const Value& value) {
  State& s = *state_;
  node->meta.val = snapshot(value);
  const auto item = [&](const Value& key, const Value& v) -> Value {
    if (!v.is_tensor() && !v.is_container() && !involves_proxy(v)) return v;
    return create_proxy(NodeKind::call_function, get_function("operator.getitem"), {node, key}, {}, {{}, v});
  };
  switch (value.kind()) {
    case Value::Kind::tensor: {
      Tensor t = value.to_tensor();
      if (!t.is_fake()) t = s.fake->from_tensor(t);
      // A call that gives its argument back: two nodes need two tensors, unless it was written.
      const auto it = s.tensors.find(&t.impl());
      const bool is_other =
          it != s.tensors.end() && !(node->kind() == NodeKind::call_method && node->target().text().ends_with("_"));
      if (is_other) t = snapshot(t).to_tensor();
      s.tensors[&t.impl()] = {node, t};
      for (const bool stride : {false, true}) {
        const SymInts& numbers = stride ? t.impl().strides : t.impl().sizes;
        for (size_t d = 0; d < numbers.size(); ++d)
          if (numbers[d].is_symbolic())
            s.sizes.try_emplace(numbers[d].expr(), State::SizeOf{node, static_cast<int64_t>(d), stride});
      }
      return t;
    }
    case Value::Kind::integer:
      if (value.to_sym_int().is_symbolic()) s.numbers.try_emplace(value.to_sym_int().expr(), node);
      return value;
    case Value::Kind::floating:
      if (value.to_sym_float().is_symbolic()) s.numbers.try_emplace(value.to_sym_float().expr(), node);
      return value;
    case Value::Kind::boolean:
      if (value.to_sym_bool().is_symbolic()) s.numbers.try_emplace(value.to_sym_bool().expr(), node);
      return value;
    case Value::Kind::list:
    case Value::Kind::tuple: {
      Values items;
      for (size_t i = 0; i < value.to_items().size(); ++i) items.push_back(item(i, value.to_items()[i]));
      return value.kind() == Value::Kind::list ? list(std::move(items)) : tuple(std::move(items));
    }
    case Value::Kind::dict: {
      DictValue d = value.to_dict();
      for (auto& [key, v] : d.items) v = item(key, v);
      return d;
    }
    case Value::Kind::structure: {
      StructValue st = value.to_struct();
      for (size_t i = 0; i < st.items.size(); ++i)
        if (st.items[i].is_tensor() || st.items[i].is_container())
          st.items[i] = create_proxy(NodeKind::call_function, get_function("builtins.getattr"), {node, st.fields.at(i)}, {},
                                     {{}, st.items[i]});
      return st;
    }
    case Value::Kind::none:
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::slice:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node: break;
  }
  return value;
}

// ---- what a program may not ask ---------------------------------------------------------------------------------------

namespace {

constexpr const char* advice =
    "Give example inputs (TraceInputs::examples) so that sizes, dimensions and dtypes are known, say the argument's value "
    "in concrete_args, "
    "make the module a leaf (Tracer::is_leaf_module), or wrap() the function that needs the value";

std::string described(const Node& node) {
  const std::string at = place(node.meta.location);
  return node.str() + (at.empty() ? "" : " (" + at + ")");
}

bool is_word(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool names_symbol(std::string_view text, std::string_view symbol) {
  for (size_t at = text.find(symbol); at != std::string_view::npos; at = text.find(symbol, at + 1)) {
    const size_t end = at + symbol.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

}  // namespace

void Tracer::refuse(const Node& node, const std::string& asked) const {
  const std::string at = place(call_site().where);
  throw UserError(ErrorKind::data_dependent, "symbolic_trace: " + asked + " " + described(node) +
                                                 " is not known while tracing" +
                                                 (at.empty() ? "" : ", but was asked for at " + at) + ". " + advice);
}

bool Tracer::to_bool(Node& node) { refuse(node, "control flow depends on the value"); }
int64_t Tracer::iter(Node& node) { refuse(node, "the number of items of"); }

Value Tracer::keys(const Value& proxy) { return create_proxy(NodeKind::call_method, "keys", {proxy}); }

// An error that comes from a symbol says which value the symbol stands for; nothing when no symbol of ours is in it.
std::string Tracer::explained(const UserError& error) const {
  std::string notes;
  for (const auto& [expr, node] : state_->numbers) {
    const std::string symbol = expr->str();
    if (expr->kind() == ExprKind::symbol && names_symbol(error.what(), symbol))
      notes += "\n  " + symbol + " is " + described(*node) + ", which is only known when the program runs";
  }
  return notes.empty() ? notes : error.what() + notes + ". " + advice;
}

}  // namespace calque
