// What passes that compute nodes beforehand share: the values of nodes whose inputs are known, and constants in their place. Which
// nodes may be computed, and what becomes of the values, the pass says.
#pragma once

#include <string>
#include <vector>

#include "calque/graph/graph_module.h"
#include "mutation.h"

namespace calque {

class NodeFolding {
 public:
  NodeFolding(GraphModule& module, std::string prefix);
  virtual ~NodeFolding() = default;

 protected:
  // May the node be computed once its inputs are known?
  virtual bool may_fold(const Node& n) const = 0;
  virtual bool may_keep(const Node&, const Value&) const { return true; }

  // A read of the state that the graph does not write; a function whose result depends on its inputs alone.
  bool is_steady_state(const Node& n) const;
  bool is_steady_function(const Node& n) const;
  bool is_written(const Node& n) const { return mutations_.is_written(n); }

  // Computes the node if it may. A call that fails is left to the graph: it says so itself when it runs.
  void evaluate(const Node& n);
  bool is_known(const Node& n) const { return known_[n.id()]; }
  const Value& value_of(const Node& n) const { return values_[n.id()]; }
  bool feeds_others(const Node& n) const;

  // The value stands in the node's users; or in an attribute of the module, whose name is the result.
  void replace_by_literal(Node& n) const;
  std::string replace_by_attribute(Node& n, const Tensor& value);

  GraphModule& module_;
  Graph& graph_;

 private:
  std::string prefix_;
  size_t next_ = 0;
  Mutations mutations_;
  Values values_;
  std::vector<bool> known_;
};

}  // namespace calque
