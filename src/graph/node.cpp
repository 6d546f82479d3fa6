#include "calque/graph/node.h"

#include <algorithm>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/graph/graph.h"
#include "op/value_items.h"

namespace calque {

std::string_view name(NodeKind kind) {
  switch (kind) {
    case NodeKind::placeholder: return "placeholder";
    case NodeKind::get_attr: return "get_attr";
    case NodeKind::call_function: return "call_function";
    case NodeKind::call_module: return "call_module";
    case NodeKind::call_method: return "call_method";
    case NodeKind::output: return "output";
  }
  throw InternalError("a node of no kind");
}

// ---- meta -----------------------------------------------------------------------------------------------------------

const Value* NodeMeta::find(std::string_view key) const {
  for (const auto& [k, v] : custom)
    if (k == key) return &v;
  return nullptr;
}

void NodeMeta::set(std::string_view key, Value value) {
  for (auto& [k, v] : custom)
    if (k == key) {
      v = std::move(value);
      return;
    }
  custom.emplace_back(std::string(key), std::move(value));
}

bool NodeMeta::empty() const {
  return val.is_none() && !nn_module_stack && !source_fn_stack && !torch_fn && !stack_trace && !original_aten &&
         location.line() == 0 && custom.empty();
}

// ---- uses -----------------------------------------------------------------------------------------------------------

bool Node::Users::contains(const Node* user) const {
  // The shorter list decides: the users of this node or the inputs of that one.
  if (user->num_uses_ < node_->num_users_) {
    for (size_t i = 0; i < user->num_uses_; ++i)
      if (user->uses_[i].input == node_) return true;
    return false;
  }
  return std::find(begin(), end(), user) != end();
}

std::vector<Node*> Node::all_input_nodes() const {
  std::vector<Node*> out;
  for (size_t i = 0; i < num_uses_; ++i) out.push_back(uses_[i].input);
  return out;
}

void Node::unlink_uses() {
  for (size_t i = 0; i < num_uses_; ++i) {
    Use& use = uses_[i];
    (use.prev ? use.prev->next : use.input->first_user_) = use.next;
    (use.next ? use.next->prev : use.input->last_user_) = use.prev;
    --use.input->num_users_;
  }
  uses_.reset();
  num_uses_ = 0;
}

namespace {

void refuse_node_keys(const Value& value) {
  if (value.kind() == Value::Kind::dict)
    for (const auto& [key, item] : value.to_dict().items)
      for_each_node(key, [](const Node* n) {
        throw UserError("Keys for dictionaries used as an argument cannot contain a Node. Got key: " + n->name());
      });
  any_item(value, [](const Value& item) {
    refuse_node_keys(item);
    return false;
  });
}

// Distinct nodes in order; a long list gets a table.
class Distinct {
 public:
  void add(Node* n) {
    if (nodes_.size() < 16) {
      if (std::find(nodes_.begin(), nodes_.end(), n) == nodes_.end()) nodes_.push_back(n);
      return;
    }
    if (seen_.empty()) seen_.insert(nodes_.begin(), nodes_.end());
    if (seen_.insert(n).second) nodes_.push_back(n);
  }
  const SmallVector<Node*, 16>& nodes() const { return nodes_; }

 private:
  SmallVector<Node*, 16> nodes_;
  std::unordered_set<Node*> seen_;
};

}  // namespace

void Node::link_uses() {
  ++graph_->changes_;
  Distinct inputs;
  const auto add = [&](Node* n) { inputs.add(n); };
  for (const Value& a : args_) for_each_node(a, add);
  for (const auto& [key, a] : kwargs_) for_each_node(a, add);
  num_uses_ = static_cast<uint32_t>(inputs.nodes().size());
  if (num_uses_ == 0) return;
  uses_ = std::make_unique<Use[]>(num_uses_);
  for (uint32_t i = 0; i < num_uses_; ++i) {
    Node* input = inputs.nodes()[i];
    uses_[i] = {this, input, input->last_user_, nullptr};
    (input->last_user_ ? input->last_user_->next : input->first_user_) = &uses_[i];
    input->last_user_ = &uses_[i];
    ++input->num_users_;
  }
}

// ---- changing -------------------------------------------------------------------------------------------------------

const Value* Node::find_kwarg(std::string_view key) const {
  for (const auto& [k, v] : kwargs_)
    if (k == key) return &v;
  return nullptr;
}

const std::string& Node::type() const {
  static const std::string none;
  return type_ ? *type_ : none;
}

void Node::set_args(Values args) {
  for (const Value& a : args)
    if (a.is_container()) refuse_node_keys(a);
  unlink_uses();
  args_ = std::move(args);
  link_uses();
}

void Node::set_kwargs(Kwargs kwargs) {
  for (const auto& [key, a] : kwargs)
    if (a.is_container()) refuse_node_keys(a);
  unlink_uses();
  kwargs_ = std::move(kwargs);
  link_uses();
}

void Node::set_args_kwargs(Values args, Kwargs kwargs) {
  for (const Value& a : args)
    if (a.is_container()) refuse_node_keys(a);
  for (const auto& [key, a] : kwargs)
    if (a.is_container()) refuse_node_keys(a);
  unlink_uses();
  args_ = std::move(args);
  kwargs_ = std::move(kwargs);
  link_uses();
}

void Node::update_arg(size_t index, Value arg) {
  if (index >= args_.size())
    throw UserError("update_arg: node " + name_ + " has " + std::to_string(args_.size()) + " arguments, index " +
                    std::to_string(index) + " is out of range");
  Values args = args_;
  args[index] = std::move(arg);
  set_args(std::move(args));
}

void Node::update_kwarg(std::string_view key, Value arg) {
  Kwargs kwargs = kwargs_;
  for (auto& [k, v] : kwargs)
    if (k == key) {
      v = std::move(arg);
      set_kwargs(std::move(kwargs));
      return;
    }
  kwargs.emplace_back(std::string(key), std::move(arg));
  set_kwargs(std::move(kwargs));
}

void Node::insert_arg(size_t index, Value arg) {
  if (index > args_.size())
    throw UserError("insert_arg: the index must be between 0 and the number of arguments, " + std::to_string(args_.size()) +
                    ", of node " + name_ + ", got " + std::to_string(index));
  Values args = args_;
  args.insert(args.begin() + static_cast<std::ptrdiff_t>(index), std::move(arg));
  set_args(std::move(args));
}

void Node::set_target(Target target) {
  if (kind_ == NodeKind::call_function && target.is_text()) target = Target::resolve(target.text());
  if (kind_ != NodeKind::call_function && !target.is_text())
    throw UserError("set_target: a " + std::string(calque::name(kind_)) + " node's target is a text, found " + target.str());
  target_ = std::move(target);
  ++graph_->changes_;
}

void Node::set_type(std::string type) { type_ = type.empty() ? nullptr : std::make_unique<std::string>(std::move(type)); }

void Node::rename(std::string_view candidate) {
  if (candidate == name_) return;
  std::string unique = graph_->names_.create_name(candidate);
  if (const Graph::Hooks* hooks = graph_->hooks())
    for (Node* user : users().list())
      for (const auto& [handle, hook] : hooks->replace) hook(*this, unique, *user);
  name_ = std::move(unique);
}

void Node::set_name(std::string name) {
  graph_->names_.add(name);
  name_ = std::move(name);
}

void Node::replace_input_with(Node* old_input, Node* new_input) {
  if (const Graph::Hooks* hooks = graph_->hooks())
    for (const auto& [handle, hook] : hooks->replace) hook(*old_input, new_input->name(), *this);
  const NodeFn map = [&](Node* n) { return Value(n == old_input ? new_input : n); };
  set_args_kwargs(map_nodes(args_, map), map_nodes(kwargs_, map));
}

std::vector<Node*> Node::replace_all_uses_with(Node* replacement, const std::function<bool(Node*)>& filter,
                                               bool propagate_meta) {
  if (propagate_meta) {
    if (!replacement->meta.empty())
      throw UserError("replace_all_uses_with: meta cannot be propagated from " + name_ + " because " + replacement->name() +
                      " already has meta of its own");
    replacement->meta = meta;
  }
  std::vector<Node*> changed;
  for (Node* user : users().list()) {
    if (filter && !filter(user)) continue;
    changed.push_back(user);
    user->replace_input_with(this, replacement);
  }
  return changed;
}

bool Node::is_impure(bool impure_random) const {
  switch (kind_) {
    case NodeKind::placeholder:
    case NodeKind::output: return true;
    case NodeKind::get_attr:
    case NodeKind::call_method: return false;
    case NodeKind::call_module: {
      const GraphOwner* owner = graph_->owner();
      if (!owner)
        throw UserError("is_impure: node " + name_ + " calls the module " + target_.str() +
                        ", but the graph has no owner that could say whether it is pure");
      return owner->module_is_impure(target_.text());
    }
    case NodeKind::call_function: break;
  }
  const auto op_is_impure = [&](const Operator& op) {
    if (op.has_tag(Tag::side_effect) || (impure_random && op.has_tag(Tag::random))) return true;
    return std::any_of(op.schema().arguments.begin(), op.schema().arguments.end(),
                       [](const SchemaArgument& a) { return a.is_written(); });
  };
  if (const Operator* op = target_.op()) return op_is_impure(*op);
  if (const Function* f = target_.function()) {
    if (f->is_impure()) return true;
    const Operator* op = f->packet().empty() ? nullptr : find_operator(f->packet());
    if (!op && !f->packet().empty())
      if (const auto overloads = overloads_of(f->packet()); !overloads.empty()) op = overloads.front();
    return op && op_is_impure(*op);
  }
  return true;  // nobody knows what it does: it may send, wait or count
}

// ---- nodes inside Values ----------------------------------------------------------------------------------------------

namespace {

bool has_node(const Value& value) { return value.is_node() || any_item(value, has_node); }

}  // namespace

Values map_nodes(const Values& values, const NodeFn& fn) {
  Values out;
  out.reserve(values.size());
  for (const Value& v : values) out.push_back(map_nodes(v, fn));
  return out;
}

Kwargs map_nodes(const Kwargs& kwargs, const NodeFn& fn) {
  Kwargs out;
  out.reserve(kwargs.size());
  for (const auto& [key, v] : kwargs) out.emplace_back(key, map_nodes(v, fn));
  return out;
}

Value map_nodes(const Value& value, const NodeFn& fn) {
  if (value.is_node()) return fn(value.to_node());
  if (!has_node(value)) return value;
  return map_items(value, [&](const Value& item) { return map_nodes(item, fn); });
}

}  // namespace calque
