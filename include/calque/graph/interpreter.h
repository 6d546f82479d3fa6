// Interpreter: runs a graph node by node, on whatever modes are active. Subclasses change what a kind of node does.
// Transformer: an Interpreter whose values are nodes of a new graph. Neither owns the graph; one object serves one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "calque/graph/graph.h"

namespace calque {

class Module;

class Interpreter {
 public:
  // `owner` answers get_attr and call_module; by default the graph's own.
  explicit Interpreter(const Graph& graph, const GraphOwner* owner = nullptr, bool release_values = true);
  virtual ~Interpreter() = default;
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // `inputs` in the order of the placeholders; nodes in `initial` have these values and are not run. Gives the output's
  // value, None for a graph without output. An error that leaves a node says which.
  Value run(const Values& inputs = {}, const std::unordered_map<const Node*, Value>& initial = {});

  // The values that are there now: all, or with release_values those still needed; after run the output's alone.
  const Value* find_value(const Node& node) const { return present_[node.id()] ? &values_[node.id()] : nullptr; }
  size_t num_values() const;
  const Graph& graph() const { return graph_; }

 protected:
  virtual Value run_node(const Node& node);
  virtual Value placeholder(const Target& target, const Values& args, const Kwargs& kwargs);
  virtual Value get_attr(const Target& target, const Values& args, const Kwargs& kwargs);
  virtual Value call_function(const Target& target, const Values& args, const Kwargs& kwargs);
  virtual Value call_method(const Target& target, const Values& args, const Kwargs& kwargs);
  virtual Value call_module(const Target& target, const Values& args, const Kwargs& kwargs);
  virtual Value output(const Target& target, const Values& args, const Kwargs& kwargs);
  // Called before anything runs: throws one error that lists all functions that nobody knows.
  virtual void check_targets() const;

  Values fetch_args(const Node& node) const { return fetch(node.args(), node); }
  Kwargs fetch_kwargs(const Node& node) const;
  const Node& current_node() const { return *current_; }
  const GraphOwner* owner() const { return owner_; }

 private:
  Value fetch(const Value& value, const Node& user) const;
  Values fetch(const Values& values, const Node& user) const;

  const Graph& graph_;
  const GraphOwner* owner_;
  const bool release_values_;
  std::vector<std::vector<const Node*>> last_uses_;  // by node id: what is not needed after it
  std::vector<Value> values_;                        // by node id
  std::vector<bool> present_;
  const Values* inputs_ = nullptr;
  size_t next_input_ = 0;
  const Node* current_ = nullptr;
};

// ---- single nodes -----------------------------------------------------------------------------------------------------

// What one node gives on these values, real or fake. An error shows the node, the line it came from and the arguments.
Value run_node(const Node& node, const Values& args, const Kwargs& kwargs = {}, const GraphOwner* owner = nullptr);
// The same on the fake values (meta.val) of its inputs, which must be there; a placeholder's is its own.
Value fake_value(const Node& node, const GraphOwner* owner = nullptr);

// The arguments of a call as its signature has them: what was given by position stays so, the rest is by name and in the
// signature's order, defaults included. With `only_keywords` everything is by name. The first argument of torch's functions is
// `input`. Which overload is meant follows from the inputs' fake values; without one a node counts as a tensor. Modules are
// looked up in `root`. Nothing for a node that is no call, or whose signature is not known.
struct NormalizedArguments {
  Values args;
  Kwargs kwargs;
};
std::optional<NormalizedArguments> normalized_arguments(const Node& node, const Module* root = nullptr,
                                                        bool only_keywords = false);

// Real values of nodes, computed when asked for together with what they depend on by their arguments (not by writes), and
// kept. Does not own the graph.
class RealValues {
 public:
  // `inputs` in the order of the placeholders.
  RealValues(const Graph& graph, Values inputs, const GraphOwner* owner = nullptr);
  const Value& of(const Node& node);
  size_t num_computed() const { return values_.size(); }

 private:
  const Graph& graph_;
  const GraphOwner* owner_;
  std::unordered_map<const Node*, Value> values_;
};

// How many nodes call something; how often each target is called, by its text.
size_t count_calls(const Graph& graph);
std::map<std::string, size_t> count_targets(const Graph& graph);

// The value of a get_attr node that names a module: its path. Functions that take modules (cond, map, ...) get it.
Value module_value(std::string path);
bool is_module_value(const Value& value);
// From within a function that an Interpreter runs: calls such a module of the owner.
Value call_module_value(const Value& module, const Values& args, const Kwargs& kwargs = {});

// Overridden functions get Values that hold nodes of the new graph, and make nodes by calling the base's functions.
// Each new node takes the meta of the node that it was made for.
class Transformer : public Interpreter {
 public:
  explicit Transformer(const Graph& graph, const GraphOwner* owner = nullptr) : Interpreter(graph, owner, false) {}
  Graph transform();

 protected:
  Value placeholder(const Target& target, const Values& args, const Kwargs& kwargs) override;
  Value get_attr(const Target& target, const Values& args, const Kwargs& kwargs) override;
  Value call_function(const Target& target, const Values& args, const Kwargs& kwargs) override;
  Value call_method(const Target& target, const Values& args, const Kwargs& kwargs) override;
  Value call_module(const Target& target, const Values& args, const Kwargs& kwargs) override;
  void check_targets() const override {}
  Graph& new_graph() { return new_graph_; }

 private:
  Value make(NodeKind kind, const Target& target, const Values& args, const Kwargs& kwargs);
  Graph new_graph_;
};

}  // namespace calque
