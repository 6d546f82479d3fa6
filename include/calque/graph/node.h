// Node: one step of a Graph, FX's kinds. The graph owns its nodes; a Node* stays valid until the graph goes (an erased
// node is an empty husk until then). Arguments are Value trees that hold Node*; they change through setters, which keep
// the users of every node right at a cost of O(inputs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/graph/function.h"

namespace calque {

class Graph;

enum class NodeKind : uint8_t { placeholder, get_attr, call_function, call_module, call_method, output };
std::string_view name(NodeKind kind);

// One module that a node was made under.
struct ModuleStackEntry {
  std::string key;   // unique for the call
  std::string path;  // "model.layers.0"
  std::string type;  // "torch.nn.modules.linear.Linear"
  bool operator==(const ModuleStackEntry&) const = default;
};
using ModuleStack = std::vector<ModuleStackEntry>;  // outermost first

struct SourceFn {
  std::string name;    // of the node as the user's level saw it
  std::string target;  // the function or module class that it called
  bool operator==(const SourceFn&) const = default;
};

// What is known of a node beside its meaning. Copied with the node; the larger parts are shared between nodes.
struct NodeMeta {
  Value val;  // the fake value: shape, dtype, device, or a symbolic number
  std::shared_ptr<const ModuleStack> nn_module_stack;
  std::shared_ptr<const std::vector<SourceFn>> source_fn_stack;
  std::shared_ptr<const std::pair<std::string, std::string>> torch_fn;
  std::shared_ptr<const std::string> stack_trace;
  const Operator* original_aten = nullptr;
  std::source_location location;  // the line of user code; line() is 0 when it is not known
  std::vector<std::pair<std::string, Value>> custom;

  const Value* find(std::string_view key) const;
  void set(std::string_view key, Value value);
  bool empty() const;
};

class Node {
  // One distinct input of `user`; linked into the input's list of users.
  struct Use {
    Node* user;
    Node* input;
    Use* prev;
    Use* next;
  };

 public:
  NodeKind kind() const { return kind_; }
  const std::string& name() const { return name_; }
  const Target& target() const { return target_; }
  const Operator* op() const { return target_.op(); }  // null unless the node calls an operator of the table
  const Values& args() const { return args_; }
  const Kwargs& kwargs() const { return kwargs_; }
  const Value* find_kwarg(std::string_view key) const;
  const std::string& type() const;  // the type annotation, usually empty
  Graph& graph() const { return *graph_; }
  Node* prev() const { return prev_; }  // null at the ends
  Node* next() const { return next_; }
  bool erased() const { return erased_; }
  // Unique in the graph, never reused, below Graph::id_bound(): an index for tables of nodes.
  uint32_t id() const { return id_; }
  // Whether this node comes before another of the same graph. O(1).
  bool comes_before(const Node& other) const { return order_ < other.order_; }

  NodeMeta meta;

  // The nodes that use this one's value, each once, in the order in which they came to use it.
  class Users {
   public:
    class iterator {
     public:
      using value_type = Node*;
      using difference_type = std::ptrdiff_t;
      using iterator_category = std::forward_iterator_tag;
      using pointer = Node* const*;
      using reference = Node*;
      iterator() = default;
      explicit iterator(const Use* use) : use_(use) {}
      Node* operator*() const { return use_->user; }
      iterator& operator++() {
        use_ = use_->next;
        return *this;
      }
      iterator operator++(int) {
        iterator before = *this;
        ++*this;
        return before;
      }
      bool operator==(const iterator&) const = default;

     private:
      const Use* use_ = nullptr;
    };
    explicit Users(const Node& node) : node_(&node) {}
    iterator begin() const { return iterator(node_->first_user_); }
    iterator end() const { return iterator(); }
    size_t size() const { return node_->num_users_; }
    bool empty() const { return node_->num_users_ == 0; }
    bool contains(const Node* user) const;
    std::vector<Node*> list() const { return {begin(), end()}; }  // to change the graph while going through it

   private:
    const Node* node_;
  };
  Users users() const { return Users(*this); }
  // The distinct nodes among args and kwargs, in their order.
  std::vector<Node*> all_input_nodes() const;
  size_t num_input_nodes() const { return num_uses_; }
  Node* input_node(size_t i) const { return uses_[i].input; }

  void set_args(Values args);
  void set_kwargs(Kwargs kwargs);
  void set_args_kwargs(Values args, Kwargs kwargs);
  void update_arg(size_t index, Value arg);
  void update_kwarg(std::string_view key, Value arg);
  void insert_arg(size_t index, Value arg);
  void set_target(Target target);
  void set_type(std::string type);
  void rename(std::string_view candidate);  // made unique in the graph
  // As it is, even a name that FX would avoid ("input"); whoever names nodes so keeps the names apart.
  void set_name(std::string name);
  void replace_input_with(Node* old_input, Node* new_input);
  // Users for which `filter` says no keep this node. Gives the users that were changed.
  std::vector<Node*> replace_all_uses_with(Node* replacement, const std::function<bool(Node*)>& filter = {},
                                           bool propagate_meta = false);
  // Moves `other`, a node of the same graph, to immediately before or after this one.
  void prepend(Node* other);
  void append(Node* other);

  // Whether dropping the node when nobody uses it would change what the program does: it writes its arguments, draws
  // random numbers, checks something, or is a placeholder or the output.
  bool is_impure(bool impure_random = true) const;

  std::string str() const;  // the text form: "%add : f32[s0, 3] = aten.add.Tensor(%x, %y)"
  std::string format_node(bool include_tensor_metadata = false) const;  // as PyTorch prints a node

  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() = default;

 private:
  friend class Graph;
  Node() = default;
  void unlink_uses();
  void link_uses();

  NodeKind kind_ = NodeKind::placeholder;
  bool erased_ = false;
  uint32_t id_ = 0;
  uint32_t num_uses_ = 0;
  uint32_t num_users_ = 0;
  uint64_t order_ = 0;
  Graph* graph_ = nullptr;
  Node* prev_ = nullptr;
  Node* next_ = nullptr;
  Use* first_user_ = nullptr;
  Use* last_user_ = nullptr;
  std::unique_ptr<Use[]> uses_;
  std::string name_;
  Target target_;
  Values args_;
  Kwargs kwargs_;
  std::unique_ptr<std::string> type_;
};

// ---- nodes inside Values ------------------------------------------------------------------------------------------

// Calls `f(Node*)` for each node in the tree, in order.
template <class F>
void for_each_node(const Value& value, F&& f) {
  switch (value.kind()) {
    case Value::Kind::node: f(value.to_node()); return;
    case Value::Kind::list:
    case Value::Kind::tuple:
      for (const Value& item : value.to_items()) for_each_node(item, f);
      return;
    case Value::Kind::dict:
      for (const auto& [key, item] : value.to_dict().items) for_each_node(item, f);
      return;
    case Value::Kind::structure:
      for (const Value& item : value.to_struct().items) for_each_node(item, f);
      return;
    case Value::Kind::slice:
      for_each_node(value.to_slice().start, f);
      for_each_node(value.to_slice().stop, f);
      for_each_node(value.to_slice().step, f);
      return;
    case Value::Kind::none:
    case Value::Kind::boolean:
    case Value::Kind::integer:
    case Value::Kind::floating:
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::tensor:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator: break;
  }
}

// The tree with `fn(node)` in the place of each node; trees without nodes are shared, not copied.
using NodeFn = std::function<Value(Node*)>;
Value map_nodes(const Value& value, const NodeFn& fn);
Values map_nodes(const Values& values, const NodeFn& fn);
Kwargs map_nodes(const Kwargs& kwargs, const NodeFn& fn);

}  // namespace calque
