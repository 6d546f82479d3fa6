#include "calque/graph/graph.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"

namespace calque {
namespace {

// Distance between the order numbers of neighbours: room for insertions before all have to be renumbered.
constexpr uint64_t wide_gap = uint64_t{1} << 32;
constexpr uint64_t narrow_gap = 256;

std::string name_from_target(NodeKind kind, const Target& target) {
  std::string name = target.python_name();
  if (target.is_text()) {
    if (kind == NodeKind::call_function) name = name.substr(name.rfind('.') + 1);
    if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) name = name.substr(2, name.size() - 4);
  }
  return snake_case(name);
}

// The graph for an error message; of a long one the beginning.
std::string shortened(const Graph& graph) {
  constexpr size_t longest = 50;
  if (graph.size() <= longest) return graph.format_graph();
  std::string s = "graph():";
  size_t count = 0;
  for (const Node* n : graph.nodes()) {
    if (count++ == longest) break;
    s += "\n    " + n->format_node();
  }
  return s + "\n    ... and " + std::to_string(graph.size() - longest) + " more";
}

}  // namespace

Graph* GraphOwner::subgraph(const std::string&) const { return nullptr; }

// ---- life -----------------------------------------------------------------------------------------------------------

Graph::~Graph() {
  for (const auto& n : storage_) n->unlink_uses();
  // Nodes of other graphs may have been given nodes of this one by mistake (lint says so); they must not dangle.
  for (const auto& n : storage_)
    for (Node* user : n->users().list()) {
      const NodeFn forget = [&](Node* x) { return x == n.get() ? Value() : Value(x); };
      user->set_args_kwargs(map_nodes(user->args(), forget), map_nodes(user->kwargs(), forget));
    }
}

// The owner is the place's, not the nodes': nodes that leave a module do not point to it, which may go before they do.
Graph::Graph(Graph&& other) noexcept
    : storage_(std::move(other.storage_)),
      first_(std::exchange(other.first_, nullptr)),
      last_(std::exchange(other.last_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      anchor_(std::exchange(other.anchor_, nullptr)),
      after_(std::exchange(other.after_, true)),
      names_(std::move(other.names_)),
      pytree_info_(std::move(other.pytree_info_)),
      shape_env_(std::move(other.shape_env_)),
      hooks_(std::move(other.hooks_)) {
  adopt_nodes();
}

Graph& Graph::operator=(Graph&& other) noexcept {
  if (this == &other) return *this;
  std::swap(storage_, other.storage_);
  std::swap(first_, other.first_);
  std::swap(last_, other.last_);
  std::swap(size_, other.size_);
  std::swap(anchor_, other.anchor_);
  std::swap(after_, other.after_);
  std::swap(names_, other.names_);
  std::swap(pytree_info_, other.pytree_info_);
  std::swap(shape_env_, other.shape_env_);
  std::swap(hooks_, other.hooks_);
  adopt_nodes();
  other.adopt_nodes();
  return *this;
}

void Graph::adopt_nodes() {
  ++changes_;
  for (const auto& n : storage_) n->graph_ = this;
}

Graph Graph::copy() const {
  Graph out;
  out.pytree_info_ = pytree_info_;
  out.shape_env_ = shape_env_;
  NodeMapping mapping;
  mapping.reserve(size_);
  if (const std::optional<Value> result = out.graph_copy(*this, mapping)) {
    const Node& before = *output_node();
    Node* after = out.output(*result);
    after->set_type(before.type());
    after->meta = before.meta;
  }
  return out;
}

// ---- the list of nodes ------------------------------------------------------------------------------------------------

void Graph::link(Node* node, Node* before) {
  ++changes_;
  node->next_ = before;
  node->prev_ = before ? before->prev_ : last_;
  (node->prev_ ? node->prev_->next_ : first_) = node;
  (before ? before->prev_ : last_) = node;
}

void Graph::unlink(Node* node) {
  ++changes_;
  // The node keeps its own pointers: who is going through the list finds the way on.
  (node->prev_ ? node->prev_->next_ : first_) = node->next_;
  (node->next_ ? node->next_->prev_ : last_) = node->prev_;
}

// Gives a node that was just linked a number between its neighbours'. `after`: more nodes are likely to come between it
// and its predecessor; otherwise between it and its successor.
void Graph::number(Node* node, bool after) {
  const uint64_t low = node->prev_ ? node->prev_->order_ : 0;
  if (!node->next_) {
    node->order_ = low + wide_gap;
    return;
  }
  const uint64_t high = node->next_->order_;
  if (high - low >= 2) {
    const uint64_t step = std::min((high - low) / 2, narrow_gap);
    node->order_ = after ? high - step : low + step;
    return;
  }
  uint64_t next = wide_gap;
  for (Node* n = first_; n; n = n->next_, next += wide_gap) n->order_ = next;
}

void Graph::check_anchor(const Node* node, const char* what) const {
  if (!node) return;
  if (node->graph_ != this) throw UserError(std::string(what) + ": node " + node->name() + " is not in this graph");
  if (node->erased_) throw UserError(std::string(what) + ": node " + node->name() + " has been erased");
}

void Graph::insert(Node* node) {
  check_anchor(anchor_, "inserting");
  Node* before = after_ ? (anchor_ ? anchor_->next_ : nullptr) : (anchor_ ? anchor_ : first_);
  link(node, before);
  number(node, anchor_ ? after_ : !after_);
}

Graph::InsertScope Graph::inserting_before(Node* node) {
  check_anchor(node, "inserting_before");
  return {*this, node, false};
}
Graph::InsertScope Graph::inserting_after(Node* node) {
  check_anchor(node, "inserting_after");
  return {*this, node, true};
}

void Node::prepend(Node* other) {
  if (other->graph_ != graph_)
    throw UserError("prepend: nodes " + name_ + " and " + other->name_ + " are of different graphs");
  if (other == this) return;
  graph_->check_anchor(this, "prepend");
  graph_->check_anchor(other, "prepend");
  graph_->unlink(other);
  graph_->link(other, this);
  graph_->number(other, false);
}

void Node::append(Node* other) {
  if (other->graph_ != graph_)
    throw UserError("append: nodes " + name_ + " and " + other->name_ + " are of different graphs");
  if (other == this) return;
  graph_->check_anchor(this, "append");
  graph_->check_anchor(other, "append");
  graph_->unlink(other);
  graph_->link(other, next_);
  graph_->number(other, true);
}

// ---- making nodes -----------------------------------------------------------------------------------------------------

Node* Graph::create_node(NodeKind kind, Target target, Values args, Kwargs kwargs, std::string_view name, std::string type) {
  if (kind == NodeKind::call_function && target.is_text()) target = Target::resolve(target.text());
  if (kind != NodeKind::call_function && !target.is_text())
    throw UserError("create_node: a " + std::string(calque::name(kind)) + " node's target is a text, found the function " +
                    target.str());
  std::unique_ptr<Node> node(new Node);
  node->kind_ = kind;
  node->graph_ = this;
  node->id_ = static_cast<uint32_t>(storage_.size());
  node->set_args_kwargs(std::move(args), std::move(kwargs));
  node->name_ = names_.create_name(name.empty() ? name_from_target(kind, target) : std::string(name));
  node->target_ = std::move(target);
  node->set_type(std::move(type));
  Node* n = node.get();
  try {
    insert(n);
  } catch (...) {
    n->unlink_uses();
    throw;
  }
  storage_.push_back(std::move(node));
  ++size_;
  if (hooks_)
    for (const auto& [handle, hook] : hooks_->create) hook(*n);
  return n;
}

Node* Graph::placeholder(std::string target, std::optional<Value> default_value, std::string_view name) {
  Values args;
  if (default_value) args.push_back(*std::move(default_value));
  return create_node(NodeKind::placeholder, std::move(target), std::move(args), {}, name);
}
Node* Graph::get_attr(std::string target, std::string_view name) {
  if (owner_ && !owner_->has_attr(target))
    warn("get_attr: a node was made for " + target +
         ", which does not reference a module, parameter or buffer of the graph's owner; add it before the graph runs");
  return create_node(NodeKind::get_attr, std::move(target), {}, {}, name);
}
Node* Graph::call_function(Target target, Values args, Kwargs kwargs, std::string_view name) {
  return create_node(NodeKind::call_function, std::move(target), std::move(args), std::move(kwargs), name);
}
Node* Graph::call_module(std::string target, Values args, Kwargs kwargs, std::string_view name) {
  return create_node(NodeKind::call_module, std::move(target), std::move(args), std::move(kwargs), name);
}
Node* Graph::call_method(std::string target, Values args, Kwargs kwargs, std::string_view name) {
  return create_node(NodeKind::call_method, std::move(target), std::move(args), std::move(kwargs), name);
}
Node* Graph::output(Value result) { return create_node(NodeKind::output, "output", {std::move(result)}); }

Node* Graph::node_copy(const Node& node, const NodeFn& map) {
  const NodeFn same = [](Node* n) { return Value(n); };
  const NodeFn& fn = map ? map : same;
  Node* copy = create_node(node.kind(), node.target(), map_nodes(node.args(), fn), map_nodes(node.kwargs(), fn), node.name(),
                           node.type());
  copy->meta = node.meta;
  return copy;
}

std::optional<Value> Graph::graph_copy(const Graph& other, NodeMapping& mapping) {
  const NodeFn map = [&](Node* n) {
    const auto it = mapping.find(n);
    if (it == mapping.end()) throw UserError("graph_copy: node " + n->name() + " is used before it is defined");
    return it->second;
  };
  for (const Node* n : other.nodes()) {
    if (mapping.contains(n)) continue;
    if (n->kind() == NodeKind::output) return map_nodes(n->args().at(0), map);
    mapping.emplace(n, node_copy(*n, map));
  }
  return std::nullopt;
}

void Graph::erase_node(Node* node) {
  if (!node->users().empty()) {
    const std::string users = join(node->users(), ", ", [](const Node* u) { return u->name(); });
    throw UserError("Tried to erase Node " + node->name() + " but it still had " + std::to_string(node->users().size()) +
                    " users in the graph: " + users);
  }
  if (node->graph_ != this) throw UserError("Attempting to remove " + node->name() + " from wrong graph!");
  if (node->erased_) return;
  if (hooks_)
    for (const auto& [handle, hook] : hooks_->erase) hook(*node);
  unlink(node);
  node->erased_ = true;
  --size_;
  node->set_args_kwargs({}, {});
  node->meta = {};
}

// ---- reading ----------------------------------------------------------------------------------------------------------

std::vector<Node*> Graph::node_list() const {
  std::vector<Node*> out;
  out.reserve(size_);
  for (Node* n = first_; n; n = n->next_) out.push_back(n);
  return out;
}

std::vector<Node*> Graph::placeholders() const { return find_nodes(NodeKind::placeholder); }

Node* Graph::output_node() const {
  if (!last_ || last_->kind_ != NodeKind::output)
    throw UserError("graph: expected an output node at the end, found " +
                    (last_ ? last_->format_node() : std::string("no node")));
  return last_;
}
const Value& Graph::output_value() const { return output_node()->args()[0]; }

Node* Graph::find_node(std::string_view name) const {
  for (Node* n = first_; n; n = n->next_)
    if (n->name_ == name) return n;
  return nullptr;
}

std::vector<Node*> Graph::find_nodes(NodeKind kind, const std::optional<Target>& target) const {
  std::vector<Node*> out;
  const std::optional<Target> wanted =
      target && kind == NodeKind::call_function && target->is_text() ? Target::resolve(target->text()) : target;
  for (Node* n = first_; n; n = n->next_)
    if (n->kind_ == kind && (!wanted || n->target_ == *wanted)) out.push_back(n);
  return out;
}

void Graph::lint() const {
  std::vector<bool> defined(storage_.size());
  std::unordered_set<std::string_view> names;
  for (const Node* n = first_; n; n = n->next_) {
    for (size_t i = 0; i < n->num_input_nodes(); ++i) {
      const Node* arg = n->input_node(i);
      const auto what = [&] { return "Argument '" + arg->name() + "' of Node '" + n->name() + "' "; };
      if (arg->graph_ != this)
        throw UserError(what() +
                        "does not belong to this Graph, but was used as an argument! If you are copying nodes from another "
                        "graph, map the nodes in their arguments\n" +
                        shortened(*this));
      if (arg->erased_ || !defined[arg->id_])
        throw UserError(
            what() +
            "was used before it has been defined! Please check that Nodes in the graph are topologically ordered\n" +
            shortened(*this));
    }
    defined[n->id_] = true;
    if (!names.insert(n->name_).second) throw UserError("Node redefined name " + n->name_ + "!");
    if (n->kind_ == NodeKind::output && n->next_)
      throw UserError("graph: node " + n->next_->name_ + " comes after the output");
    if (!owner_) continue;
    const std::string& path = n->target_.is_text() ? n->target_.text() : n->name_;
    if (n->kind_ == NodeKind::get_attr && !owner_->has_attr(path) && !owner_->has_module(path))
      throw UserError("Node " + n->name_ + " target " + path + " references a nonexistent attribute");
    if (n->kind_ == NodeKind::call_module && !owner_->has_module(path))
      throw UserError("Node " + n->name_ + " target " + path + " does not reference a module");
  }
}

// ---- rearranging ------------------------------------------------------------------------------------------------------

bool Graph::eliminate_dead_code(const std::function<bool(const Node&)>& is_impure) {
  lint();
  bool changed = false;
  for (Node* n : nodes().reversed())
    if (n->users().empty() && !(is_impure ? is_impure(*n) : n->is_impure())) {
      erase_node(n);
      changed = true;
    }
  if (!owner_) return changed;
  std::unordered_set<const Graph*> seen;
  for (const Node* n : nodes())
    if (n->kind() == NodeKind::get_attr)
      if (Graph* sub = owner_->subgraph(n->target().text()); sub && seen.insert(sub).second)
        changed |= sub->eliminate_dead_code();
  return changed;
}

void Graph::topological_sort() {
  // Of the nodes whose inputs are placed, the one that stands first in the present order is placed next.
  std::vector<size_t> missing(storage_.size());
  std::vector<Node*> present;
  const auto later = [](const Node* a, const Node* b) { return b->order_ < a->order_; };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later)> ready(later);
  for (Node* n = first_; n; n = n->next_) {
    present.push_back(n);
    missing[n->id_] = n->num_uses_;
    if (n->num_uses_ == 0) ready.push(n);
  }
  std::vector<Node*> sorted;
  while (!ready.empty()) {
    Node* n = ready.top();
    ready.pop();
    sorted.push_back(n);
    for (Node* user : n->users())
      if (user->graph_ == this && --missing[user->id_] == 0) ready.push(user);
  }
  if (sorted.size() != present.size()) {
    for (const Node* n : present)
      if (missing[n->id_] != 0)
        throw UserError("topological_sort: node " + n->name() + " depends on itself, or on a node of another graph");
  }
  // An output without inputs would otherwise be placed early.
  std::stable_partition(sorted.begin(), sorted.end(), [](const Node* n) { return n->kind() != NodeKind::output; });
  first_ = last_ = nullptr;
  for (Node* n : sorted) {
    link(n, nullptr);
    number(n, false);
  }
}

// ---- hooks ------------------------------------------------------------------------------------------------------------

int Graph::on_create(std::function<void(Node&)> hook) {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  hooks_->create.emplace_back(hooks_->next_handle, std::move(hook));
  return hooks_->next_handle++;
}
int Graph::on_erase(std::function<void(Node&)> hook) {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  hooks_->erase.emplace_back(hooks_->next_handle, std::move(hook));
  return hooks_->next_handle++;
}
int Graph::on_replace(std::function<void(Node&, const std::string&, Node&)> hook) {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  hooks_->replace.emplace_back(hooks_->next_handle, std::move(hook));
  return hooks_->next_handle++;
}
void Graph::remove_hook(int handle) {
  if (!hooks_) return;
  const auto same = [&](const auto& entry) { return entry.first == handle; };
  std::erase_if(hooks_->create, same);
  std::erase_if(hooks_->erase, same);
  std::erase_if(hooks_->replace, same);
}

}  // namespace calque
