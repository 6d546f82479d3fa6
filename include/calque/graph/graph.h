// Graph: a list of nodes in execution order, FX's kinds: placeholder, get_attr, call_function, output. The graph owns
// its nodes; a node lives until it is erased or the graph goes. Symbolic sizes in `val` share ownership of their
// ShapeEnv through the fake tensors that carry them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "calque/op/operator.h"

namespace calque {

class Node;

// An argument of a node: another node's result, a constant, or a list of such.
struct NodeArg {
  std::variant<Value, Node*, std::vector<NodeArg>> v;
  NodeArg() = default;
  NodeArg(Value value) : v(std::move(value)) {}
  NodeArg(Node* node) : v(node) {}
  NodeArg(std::vector<NodeArg> items) : v(std::move(items)) {}
  std::string str() const;
};

enum class NodeKind : uint8_t { placeholder, get_attr, call_function, output };

class Node {
 public:
  NodeKind kind;
  std::string name;
  std::string target;             // operator, attribute or input name, as PyTorch writes it: "aten.add.Tensor"
  const Operator* op = nullptr;   // for call_function of a known operator; null for others (operator.mul, unknown)
  std::vector<NodeArg> args;      // in the schema's order when op is set; trailing ones may be missing
  std::vector<std::pair<std::string, NodeArg>> kwargs;
  Value val;                      // the fake value: shape, dtype
  std::string str() const;        // "%add : f32[s0, 3] = aten.add.Tensor(%x, %y)"

 private:
  friend class Graph;
  Node() = default;
};

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  Node* placeholder(std::string name);
  Node* get_attr(std::string target);
  Node* call_function(const Operator& op, std::vector<NodeArg> args, std::string name = "");
  Node* call_function(std::string target, std::vector<NodeArg> args, std::string name);  // not in the table
  Node* output(NodeArg result);

  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  std::vector<Node*> placeholders() const;
  std::string str() const;  // one node a line
  // UserError unless every argument is defined before its use and there is exactly one output, at the end.
  void lint() const;

 private:
  Node* add(NodeKind kind, std::string target, std::string name);
  std::string unique_name(std::string base);
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unordered_set<std::string> names_;
};

// Runs a graph node by node on the operator table. Attributes and inputs are given by the caller; intermediate values
// are released after their last use. Operators that Calque lacks are reported together, before anything runs.
class Interpreter {
 public:
  explicit Interpreter(const Graph& graph);
  // `inputs` in the order of the placeholders.
  Value run(const Values& inputs) const;

 private:
  const Graph& graph_;
  std::unordered_map<const Node*, size_t> slot_;
  std::vector<std::vector<size_t>> frees_;  // by step: the slots whose last use it is
};

}  // namespace calque
