#include "export/capture/runtime_asserts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "export/capture/build.h"
#include "export/capture/expression_values.h"
#include "op/well_known.h"
#include "sym/env_impl.h"
#include "trace/expression_nodes.h"

namespace calque {
namespace {

constexpr const char* no_module_stack = "_empty_nn_module_stack_from_metadata_hook";

// ---- expressions ------------------------------------------------------------------------------------------------------

// PyTorch has no nodes for these.
bool has_no_nodes(const Expr* e) {
  if (e->kind() == ExprKind::to_float || e->kind() == ExprKind::trunc_to_int || e->kind() == ExprKind::ceil_to_int)
    return true;
  return std::any_of(e->args().begin(), e->args().end(), has_no_nodes);
}

// u0 >= 2, u0 <= 7: said by the symbol's range.
bool is_bound_of_symbol(const Expr* e) {
  if (e->kind() != ExprKind::le && e->kind() != ExprKind::ge) return false;
  return (e->arg(0)->kind() == ExprKind::symbol && e->arg(1)->is_integer()) ||
         (e->arg(1)->kind() == ExprKind::symbol && e->arg(0)->is_integer());
}

// Python tries the other side when a number is compared with a proxy: 2 <= x is x >= 2.
const char* reflected(const std::string& function) {
  if (function == "operator.lt") return "operator.gt";
  if (function == "operator.le") return "operator.ge";
  if (function == "operator.gt") return "operator.lt";
  if (function == "operator.ge") return "operator.le";
  return function == "operator.eq" ? "operator.eq" : nullptr;
}

// ---- where values from tensor data appear -----------------------------------------------------------------------------

struct Binding {
  const Expr* symbol;
  BindingPath path;
};
using Bindings = std::unordered_map<const Node*, std::vector<Binding>>;

bool is_from_data(const Expr* e) { return e->kind() == ExprKind::symbol && e->has_unbacked(); }

class BindingFinder {
 public:
  Bindings run(const Graph& graph) {
    Bindings out;
    for (const Node* n : graph.nodes()) {
      found_.clear();
      path_.clear();
      look(n->meta.val);
      if (!found_.empty()) out.emplace(n, std::move(found_));
    }
    return out;
  }

 private:
  bool take(const Expr* symbol, std::optional<BindingKey> last = {}) {
    if (!seen_.insert(symbol).second) return false;
    found_.push_back({symbol, path_});
    if (last) found_.back().path.push_back(*last);
    return true;
  }
  void look(const SymInt& s) {
    const Expr* e = s.expr();
    if (!e) return;
    if (is_from_data(e)) {
      take(e);
    } else if (e->kind() == ExprKind::mul && e->args().size() == 2) {
      const Expr* a = e->arg(0);
      const Expr* b = e->arg(1);
      if (is_from_data(b) && !is_from_data(a) && (a->is_integer() || a->kind() == ExprKind::symbol))
        take(b, BindingKey::divide_by(SymInt(a)));
      else if (is_from_data(a) && !is_from_data(b) && b->kind() == ExprKind::symbol)
        take(a, BindingKey::divide_by(SymInt(b)));
    }
  }
  template <class F>
  void below(BindingKey key, F&& f) {
    path_.push_back(std::move(key));
    f();
    path_.pop_back();
  }
  void look(const Value& v) {
    if (v.is_tensor()) return look(v.to_tensor());
    if (v.is_sequence()) {
      for (size_t i = 0; i < v.to_items().size(); ++i)
        below(BindingKey::item(static_cast<int64_t>(i)), [&] { look(v.to_items()[i]); });
      return;
    }
    if (v.kind() == Value::Kind::integer) return look(v.to_sym_int());
    const Expr* e = v.expr();
    if (!e) return;
    if (v.kind() == Value::Kind::floating && is_from_data(e)) take(e);
    if (v.kind() == Value::Kind::boolean && e->kind() == ExprKind::eq && is_from_data(e->arg(0)) &&
        e->arg(1)->is_integer() && e->arg(1)->integer() == 1)
      take(e->arg(0), BindingKey::to_int());
  }
  void look(const Tensor& t) {
    if (!t.is_symbolic()) return;
    const auto each = [&](const char* method, const auto& values) {
      below(BindingKey::method(method), [&] {
        for (size_t d = 0; d < values.size(); ++d)
          below(BindingKey::item(static_cast<int64_t>(d)), [&] { look(values[d]); });
      });
    };
    each("size", t.sym_sizes());
    each("stride", t.sym_strides());
    below(BindingKey::method("storage_offset"), [&] { look(t.sym_storage_offset()); });
  }

  std::unordered_set<const Expr*> seen_;
  std::vector<Binding> found_;
  BindingPath path_;
};

// ---- the pass ---------------------------------------------------------------------------------------------------------

class Inserter {
 public:
  Inserter(Graph& graph, ShapeEnv& env, const std::vector<KeyPath>& user_inputs, bool in_subgraph)
      : graph_(graph), env_(env), in_subgraph_(in_subgraph), bindings_(BindingFinder().run(graph)) {
    for (const RuntimeAssert& a : env.runtime_asserts())
      if (const Expr* e = a.condition.expr()) asserts_[a.symbol].push_back(e);
    find_owners(user_inputs);
  }

  void run() {
    const std::vector<Node*> nodes = graph_.node_list();
    Node* first_step = nullptr;
    for (Node* n : nodes)
      if (n->kind() != NodeKind::placeholder) {
        first_step = n;
        break;
      }
    for (size_t i = 0; i + 1 < nodes.size(); ++i) {
      current_ = nodes[i];
      if (current_->erased()) continue;
      const bool is_input = current_->kind() == NodeKind::placeholder;
      const auto where = graph_.inserting_before(is_input ? first_step : nodes[i + 1]);
      if (is_input) read_input();
      if (current_ == first_step) add_asserts("");
      const bool is_assert = current_->op() == &ops().assert_scalar;
      if (is_assert && drop_assert()) continue;
      if (!is_input && share_number()) continue;
      if (current_->op() == &ops().sym_constrain_range || current_->op() == &ops().sym_constrain_range_for_size) {
        graph_.erase_node(current_);
        continue;
      }
      bind_values();
    }
    // Sizes that nobody asked for.
    for (const auto& [e, value] : numbers_)
      if (e->kind() == ExprKind::symbol && value.is_node() && value.to_node()->kind() != NodeKind::placeholder &&
          value.to_node()->users().empty())
        graph_.erase_node(value.to_node());
  }

 private:
  void describe(Node* node) {
    node->meta.location = current_->meta.location;
    node->meta.stack_trace = current_->meta.stack_trace;
    node->meta.nn_module_stack = current_->meta.nn_module_stack;
    if (const Value* custom = current_->meta.find("custom")) node->meta.set("custom", *custom);
    if (!node->meta.nn_module_stack && node->num_input_nodes() != 0)
      node->meta.nn_module_stack = node->input_node(0)->meta.nn_module_stack;
    if (!node->meta.nn_module_stack) {
      static const auto empty =
          std::make_shared<const ModuleStack>(ModuleStack{{no_module_stack, no_module_stack, no_module_stack}});
      node->meta.nn_module_stack = empty;
    }
  }

  Node* call(const char* function, Values args) {
    const FunctionRef f = get_function(function);
    const Value val = (*f)(map_nodes(args, [](Node* n) { return n->meta.val; }));
    Node* node = graph_.call_function(f, std::move(args));
    node->meta.val = val;
    describe(node);
    return node;
  }
  Value combine(const char* function, Value a, Value b) {
    if (!a.is_node() && !b.is_node()) return (*get_function(function))({a, b}, {});
    if (!a.is_node())
      if (const char* other = reflected(function)) return call(other, {std::move(b), std::move(a)});
    return call(function, {std::move(a), std::move(b)});
  }

  Node* size_node(const Operator& op, Node* tensor, std::optional<int64_t> dim, const SymInt& val) {
    Values args{tensor};
    if (dim) args.emplace_back(*dim);
    Node* node = graph_.call_function(op, std::move(args));
    node->meta.val = val;
    describe(node);
    return node;
  }

  // Of the inputs that have a symbol among their sizes, the one whose size it was made for: the others came to have it by
  // an equality.
  void find_owners(const std::vector<KeyPath>& user_inputs) {
    const std::vector<Node*> inputs = graph_.placeholders();
    for (size_t i = 0; i < user_inputs.size(); ++i) {
      Node* input = inputs.at(inputs.size() - user_inputs.size() + i);
      if (!input->meta.val.is_tensor()) continue;
      const std::string sizes = source_of(user_inputs[i]).name() + ".size()[";
      for (const SymInt& s : input->meta.val.to_tensor().sym_sizes()) {
        if (!s.is_symbolic() || s.expr()->kind() != ExprKind::symbol) continue;
        const auto& sources = env_.impl().sources;
        const auto at = sources.find(s.expr()->symbol_index());
        if (at != sources.end() && !at->second.empty() && at->second[0].name().starts_with(sizes))
          owners_.emplace(s.expr(), input);
      }
    }
  }

  void read_input() {
    const Value& val = current_->meta.val;
    const auto symbol = [&](const SymInt& s) {
      if (!s.is_symbolic() || s.expr()->kind() != ExprKind::symbol || numbers_.contains(s.expr())) return false;
      const auto owner = owners_.find(s.expr());
      return owner == owners_.end() || owner->second == current_;
    };
    if (val.kind() == Value::Kind::integer) {
      if (symbol(val.to_sym_int())) numbers_.emplace(val.to_sym_int().expr(), current_);
      return;
    }
    if (!val.is_tensor()) return;
    const Tensor& t = val.to_tensor();
    const auto read = [&](const Operator& op, const SymInt& s, std::optional<int64_t> dim) {
      if (symbol(s)) numbers_.emplace(s.expr(), size_node(op, current_, dim, s));
    };
    for (size_t d = 0; d < t.sym_sizes().size(); ++d) read(ops().sym_size, t.sym_sizes()[d], static_cast<int64_t>(d));
    for (size_t d = 0; d < t.sym_strides().size(); ++d) read(ops().sym_stride, t.sym_strides()[d], static_cast<int64_t>(d));
    read(ops().sym_storage_offset, t.sym_storage_offset(), {});
  }

  // The node (or number) for an expression whose symbols are known.
  Value number(const Expr* e) {
    if (const auto it = numbers_.find(e); it != numbers_.end()) return it->second;
    if (is_literal(e)) return literal_value(e);
    internal_assert(e->kind() != ExprKind::symbol, "a symbol in an assert that nothing in the graph computes");
    Values parts;
    if (e->kind() == ExprKind::pow) {
      parts = {number(e->arg(0)), e->exponent()};
    } else {
      for (const Expr* part : ordered_parts(e)) parts.push_back(number(part));
    }
    const Value result = compute(e, parts);
    if (result.is_node()) result.to_node()->meta.val = value_of(e);
    numbers_.emplace(e, result);
    return result;
  }
  Value compute(const Expr* e, const Values& parts) {
    if (e->kind() == ExprKind::ne) return call("torch.sym_not", {combine("operator.eq", parts[0], parts[1])});
    const char* function = python_function(e);
    if (!function)
      throw UserError(ErrorKind::unsupported_operator,
                      "export: the condition " + e->str() + " cannot be computed by a graph");
    if (parts.size() == 1 || e->kind() == ExprKind::where || e->kind() == ExprKind::piecewise) return call(function, parts);
    Value left = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) left = combine(function, left, parts[i]);
    return left;
  }

  void add_assert(const Expr* e) {
    const Value condition = number(e);
    if (!condition.is_node()) return;
    Node* node =
        graph_.call_function(ops().assert_scalar, {condition, "Runtime assertion failed for expression " + e->str() +
                                                                  " on node '" + condition.to_node()->name() + "'"});
    describe(node);
    asserted_.insert(e);
  }

  void add_asserts(const std::string& symbol) {
    const auto it = asserts_.find(symbol);
    if (it == asserts_.end()) return;
    const std::vector<const Expr*> due = std::move(it->second);
    asserts_.erase(it);
    for (const Expr* e : due) {
      const std::vector<const Expr*> symbols = symbols_of(e);
      if (asserted_.contains(e) || has_no_nodes(e)) continue;
      if (symbols.size() == 1 && constrained_.contains(symbols[0]) && is_bound_of_symbol(e)) continue;
      const std::string* missing = nullptr;
      for (const Expr* s : symbols)
        if (!numbers_.contains(s) && (!missing || symbol_name(s) < *missing)) missing = &symbol_name(s);
      if (missing)
        asserts_[*missing].push_back(e);  // when that one is computed
      else
        add_assert(e);
    }
  }

  // An assert of the program itself that says nothing, or nothing new.
  bool drop_assert() {
    const Value condition = current_->args().empty() ? Value() : current_->args()[0];
    const Expr* e = condition.is_node() ? condition.to_node()->meta.val.expr() : nullptr;
    const bool is_true = !condition.is_node() && condition.kind() == Value::Kind::boolean && condition.to_sym_bool().plain();
    if (!is_true && !(e && numbers_.contains(e) && asserted_.contains(e))) {
      if (e) asserted_.insert(e);
      return false;
    }
    graph_.erase_node(current_);
    if (condition.is_node() && condition.to_node()->users().empty()) {
      std::erase_if(numbers_, [&](const auto& known) {
        return known.second.is_node() && known.second.to_node() == condition.to_node();
      });
      graph_.erase_node(condition.to_node());
    }
    return true;
  }

  bool reads_intermediate_tensor(const Expr* e) const {
    if (has_no_nodes(e)) return false;
    for (const Value& arg : current_->args())
      if (arg.is_node() && arg.to_node()->meta.val.is_tensor() && arg.to_node()->kind() != NodeKind::placeholder)
        return true;
    return false;
  }

  // A number that is there already takes this one's place; the size of an intermediate is computed from the inputs'.
  bool share_number() {
    const Value& val = current_->meta.val;
    const Expr* e = val.expr();
    if (!e || is_literal(e)) return false;
    const std::vector<const Expr*> symbols = symbols_of(e);
    const auto known = [&](const Expr* s) { return numbers_.contains(s); };
    const bool intermediate = reads_intermediate_tensor(e);
    const auto own = bindings_.find(current_);
    const bool binds = own != bindings_.end() && std::any_of(own->second.begin(), own->second.end(),
                                                             [&](const Binding& b) { return !known(b.symbol); });
    const bool computable = numbers_.contains(e) || (intermediate && std::all_of(symbols.begin(), symbols.end(), known));
    if (computable && !binds) {
      const Value same = number(e);
      if (same.is_node()) {
        if (same.to_node() == current_) return false;
        current_->replace_all_uses_with(same.to_node());
      } else {
        const NodeFn literal = [&](Node* n) { return n == current_ ? same : Value(n); };
        for (Node* user : current_->users().list())
          user->set_args_kwargs(map_nodes(user->args(), literal), map_nodes(user->kwargs(), literal));
      }
      graph_.erase_node(current_);
      return true;
    }
    numbers_.try_emplace(e, current_);
    return false;
  }

  Node* follow(Node* node, const BindingPath& path) {
    for (size_t i = 0; i < path.size(); ++i) {
      const BindingKey& key = path[i];
      switch (key.kind) {
        case BindingKey::Kind::item: node = call("operator.getitem", {node, key.index}); break;
        case BindingKey::Kind::to_int: node = call("torch.sym_ite", {node, 1, 0}); break;
        case BindingKey::Kind::divide_by:
          node =
              call("operator.floordiv", {node, key.divisor.is_symbolic() ? number(key.divisor.expr()) : Value(key.divisor)});
          break;
        case BindingKey::Kind::method: {
          const Tensor& t = node->meta.val.to_tensor();
          if (key.name == "storage_offset") {
            node = size_node(ops().sym_storage_offset, node, {}, t.sym_storage_offset());
            break;
          }
          const auto d = static_cast<size_t>(path.at(++i).index);
          node = key.name == "size" ? size_node(ops().sym_size, node, path[i].index, t.sym_sizes()[d])
                                    : size_node(ops().sym_stride, node, path[i].index, t.sym_strides()[d]);
          break;
        }
      }
    }
    return node;
  }

  void bind_values() {
    const auto it = bindings_.find(current_);
    if (it == bindings_.end()) return;
    // What a subgraph is given was checked where it was found.
    if (in_subgraph_ && current_->kind() == NodeKind::placeholder) return;
    for (const Binding& b : it->second)
      if (!numbers_.contains(b.symbol)) numbers_.emplace(b.symbol, follow(current_, b.path));
    for (const Binding& b : it->second) {
      const Expr* s = b.symbol;
      if (!constrained_.contains(s) && !env_.symbols()[s->symbol_index()].is_float) {
        const ValueRange range = env_.symbols()[s->symbol_index()].range;
        constexpr int64_t greatest_size = ValueRange::unbounded_above - 1;
        ExprPool& pool = env_.impl().pool;
        // As written: what is known of the range would make them true.
        if (range.lower != ValueRange::unbounded_below)
          add_assert(pool.relation_as_written(ExprKind::ge, s, pool.integer(range.lower)));
        if (range.upper < greatest_size) add_assert(pool.relation_as_written(ExprKind::le, s, pool.integer(range.upper)));
      }
      constrained_.insert(s);
      add_asserts(symbol_name(s));
    }
  }

  Graph& graph_;
  ShapeEnv& env_;
  const bool in_subgraph_;
  Bindings bindings_;
  std::unordered_map<const Expr*, const Node*> owners_;
  std::map<std::string, std::vector<const Expr*>> asserts_;  // by the symbol that they wait for
  std::unordered_map<const Expr*, Value> numbers_;           // what is computed already
  std::unordered_set<const Expr*> asserted_;
  std::unordered_set<const Expr*> constrained_;
  Node* current_ = nullptr;
};

}  // namespace

std::unordered_map<const Node*, UnbackedBindings> find_unbacked_bindings(const Graph& graph) {
  std::unordered_map<const Node*, UnbackedBindings> out;
  for (const auto& [node, found] : BindingFinder().run(graph))
    for (const Binding& b : found) out[node].emplace(symbol_name(b.symbol), b.path);
  return out;
}

void insert_runtime_asserts(GraphModule& module, ShapeEnv& env, const std::vector<KeyPath>& user_inputs) {
  for_each_graph_module(module, [&](GraphModule& m) {
    const bool is_whole = &m == &module;
    Inserter(m.graph(), env, is_whole ? user_inputs : std::vector<KeyPath>{}, !is_whole).run();
  });
}

void insert_metadata_asserts(Graph& graph) {
  const Operator& check = ops().assert_tensor_metadata;
  const std::set<const Operator*> casts = {&ops().to_device, &ops().to_dtype, &ops().to_dtype_layout};
  for (Node* n : graph.node_list()) {
    if (!n->op() || !casts.contains(n->op()) || !n->args()[0].is_node()) continue;
    Node* tensor = n->args()[0].to_node();
    if (n->prev() && n->prev()->op() == &check && n->prev()->args()[0].equals(n->args()[0])) continue;
    if (!tensor->meta.val.is_tensor()) continue;
    const Tensor& val = tensor->meta.val.to_tensor();
    const auto where = graph.inserting_before(n);
    Node* node = graph.call_function(check, {tensor},
                                     {{"dtype", val.dtype()}, {"device", val.device()}, {"layout", Layout::strided}});
    node->meta.location = n->meta.location;
    node->meta.stack_trace = n->meta.stack_trace;
    node->meta.nn_module_stack = n->meta.nn_module_stack;
  }
}

}  // namespace calque
