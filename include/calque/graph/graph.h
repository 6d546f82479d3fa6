// Graph: a list of nodes in execution order, as torch.fx has it, with its naming rules. The graph owns its nodes.
// Symbolic sizes in `meta.val` share ownership of their ShapeEnv through the fake tensors that carry them; symbolic
// numbers do not, therefore a graph may keep an environment alive. A graph knows nothing of the tensors and modules
// behind get_attr and call_module; its owner does. Not thread-safe while it changes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "calque/graph/namespace.h"
#include "calque/graph/node.h"
#include "calque/op/tree.h"

namespace calque {

class Graph;

// What get_attr and call_module nodes refer to, by dotted path.
class GraphOwner {
 public:
  virtual ~GraphOwner() = default;
  virtual bool has_attr(const std::string& path) const = 0;
  virtual bool has_module(const std::string& path) const = 0;
  virtual bool module_is_impure(const std::string& path) const = 0;
  virtual Value attr(const std::string& path) const = 0;  // UserError when there is none
  virtual Value call_module(const std::string& path, const Values& args, const Kwargs& kwargs) const = 0;
  // The graph of a module that has one; null otherwise.
  virtual Graph* subgraph(const std::string& path) const;
};

// How the nested values that a traced function takes and gives became the graph's flat inputs and outputs.
struct PyTreeInfo {
  std::vector<std::string> orig_args;  // the function's own arguments
  TreeSpec in_spec;                    // of the arguments as a tuple, or of (arguments, keyword arguments)
  std::optional<TreeSpec> out_spec;
};

using NodeMapping = std::unordered_map<const Node*, Value>;

class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  Graph copy() const;  // same nodes, names and meta; nothing is shared

  // ---- making nodes, at the insertion point ------------------------------------------------------------------------
  // Without a name one is made from the target by FX's rules. A text as call_function's target is resolved.
  Node* create_node(NodeKind kind, Target target, Values args = {}, Kwargs kwargs = {}, std::string_view name = {},
                    std::string type = {});
  Node* placeholder(std::string target, std::optional<Value> default_value = {}, std::string_view name = {});
  Node* get_attr(std::string target, std::string_view name = {});
  Node* call_function(Target target, Values args = {}, Kwargs kwargs = {}, std::string_view name = {});
  Node* call_module(std::string target, Values args = {}, Kwargs kwargs = {}, std::string_view name = {});
  Node* call_method(std::string target, Values args = {}, Kwargs kwargs = {}, std::string_view name = {});
  Node* output(Value result);
  // A copy of a node, of this graph or another, with `map` applied to the nodes in its arguments.
  Node* node_copy(const Node& node, const NodeFn& map = {});
  // Copies all nodes of `other`. `mapping` is filled, and its entries stand for nodes that are not to be copied. Gives
  // the value that is `other`'s output here; nothing when it has no output.
  std::optional<Value> graph_copy(const Graph& other, NodeMapping& mapping);
  void erase_node(Node* node);  // UserError while it has users

  // Until the scope ends, nodes are made before (or each immediately after) a node. Null means the whole graph: its
  // start for inserting_before, its end for inserting_after.
  class InsertScope {
   public:
    InsertScope(Graph& graph, Node* anchor, bool after) : graph_(graph), anchor_(graph.anchor_), after_(graph.after_) {
      graph.anchor_ = anchor;
      graph.after_ = after;
    }
    ~InsertScope() {
      graph_.anchor_ = anchor_;
      graph_.after_ = after_;
    }
    InsertScope(const InsertScope&) = delete;
    InsertScope& operator=(const InsertScope&) = delete;

   private:
    Graph& graph_;
    Node* anchor_;
    bool after_;
  };
  [[nodiscard]] InsertScope inserting_before(Node* node = nullptr);
  [[nodiscard]] InsertScope inserting_after(Node* node = nullptr);

  // ---- reading -----------------------------------------------------------------------------------------------------
  // The nodes in order. Nodes may be made and erased while going through them.
  template <class N>
  class NodeRange {
   public:
    class iterator {
     public:
      using value_type = N*;
      using difference_type = std::ptrdiff_t;
      using iterator_category = std::forward_iterator_tag;
      using pointer = N* const*;
      using reference = N*;
      iterator() = default;
      iterator(N* node, bool backwards) : node_(node), backwards_(backwards) {}
      N* operator*() const { return node_; }
      iterator& operator++() {
        do node_ = backwards_ ? node_->prev() : node_->next();
        while (node_ && node_->erased());
        return *this;
      }
      iterator operator++(int) {
        iterator before = *this;
        ++*this;
        return before;
      }
      bool operator==(const iterator& other) const { return node_ == other.node_; }

     private:
      N* node_ = nullptr;
      bool backwards_ = false;
    };
    NodeRange(N* first, N* last, size_t size, bool backwards)
        : first_(first), last_(last), size_(size), backwards_(backwards) {}
    iterator begin() const { return {backwards_ ? last_ : first_, backwards_}; }
    iterator end() const { return {}; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    N* front() const { return backwards_ ? last_ : first_; }
    N* back() const { return backwards_ ? first_ : last_; }
    NodeRange reversed() const { return {first_, last_, size_, !backwards_}; }

   private:
    N* first_;
    N* last_;
    size_t size_;
    bool backwards_;
  };
  NodeRange<Node> nodes() { return {first_, last_, size_, false}; }
  NodeRange<const Node> nodes() const { return {first_, last_, size_, false}; }
  size_t size() const { return size_; }
  // How often nodes were changed (not their meta): a plan made from the graph compares it to see whether it is out of date.
  uint64_t changes() const { return changes_; }
  uint32_t id_bound() const { return static_cast<uint32_t>(storage_.size()); }

  std::vector<Node*> node_list() const;  // as they are now
  std::vector<Node*> placeholders() const;
  Node* output_node() const;                     // UserError unless the last node is one
  const Value& output_value() const;             // what the graph gives: the argument of that node
  Node* find_node(std::string_view name) const;  // null when there is none
  // In order. Without a target all nodes of the kind.
  std::vector<Node*> find_nodes(NodeKind kind, const std::optional<Target>& target = {}) const;

  GraphOwner* owner() const { return owner_; }
  void set_owner(GraphOwner* owner) { owner_ = owner; }
  // Null where inputs and outputs are as the function has them.
  const std::shared_ptr<const PyTreeInfo>& pytree_info() const { return pytree_info_; }
  void set_pytree_info(std::shared_ptr<const PyTreeInfo> info) { pytree_info_ = std::move(info); }
  // The environment of the symbols in arguments and meta, kept alive by the graph; null where nobody set it.
  const std::shared_ptr<ShapeEnv>& shape_env() const { return shape_env_; }
  void set_shape_env(std::shared_ptr<ShapeEnv> env) { shape_env_ = std::move(env); }

  // UserError that names the node when a node is used before it is defined or belongs to another graph, when a name is
  // there twice, when something comes after the output, and, where the graph has an owner, when a path leads nowhere.
  void lint() const;
  // Removes nodes that nobody uses, unless they are impure (`is_impure` decides, where given), here and in the graphs
  // that get_attr nodes refer to.
  bool eliminate_dead_code(const std::function<bool(const Node&)>& is_impure = {});
  // Puts nodes into an order in which each comes after its inputs, changing as little as possible. UserError on a cycle.
  void topological_sort();

  std::string str() const;           // the text form (graph/text.h), one node a line
  std::string format_graph() const;  // as PyTorch prints a graph

  // ---- hooks -------------------------------------------------------------------------------------------------------
  struct Hooks {
    std::vector<std::pair<int, std::function<void(Node&)>>> create, erase;
    // (old node, the name of what replaces it, the user)
    std::vector<std::pair<int, std::function<void(Node&, const std::string&, Node&)>>> replace;
    int next_handle = 0;
  };
  // Each gives a handle for remove_hook.
  int on_create(std::function<void(Node&)> hook);
  int on_erase(std::function<void(Node&)> hook);
  int on_replace(std::function<void(Node&, const std::string&, Node&)> hook);
  void remove_hook(int handle);
  const Hooks* hooks() const { return hooks_.get(); }

 private:
  friend class Node;
  void insert(Node* node);
  void link(Node* node, Node* before);  // before null: at the end
  void unlink(Node* node);
  void number(Node* node, bool after);
  void adopt_nodes();
  void check_anchor(const Node* node, const char* what) const;

  std::vector<std::unique_ptr<Node>> storage_;  // by id; erased nodes too
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  size_t size_ = 0;
  uint64_t changes_ = 0;
  Node* anchor_ = nullptr;
  bool after_ = true;  // with a null anchor: at the end
  Namespace names_;
  GraphOwner* owner_ = nullptr;
  std::shared_ptr<const PyTreeInfo> pytree_info_;
  std::shared_ptr<ShapeEnv> shape_env_;
  std::unique_ptr<Hooks> hooks_;
};

// The same program: kinds, targets, arguments, order; names do not count, meta does not either unless asked for (then
// val's shapes and dtypes do). `why` receives the first difference.
bool same_graph(const Graph& a, const Graph& b, std::string* why = nullptr, bool compare_val = false);

}  // namespace calque
