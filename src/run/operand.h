// Operand: an argument of a step, resolved when the plan is made: a constant, the value with an id, or a tree of such.
#pragma once

#include <cstdint>
#include <vector>

#include "calque/graph/graph.h"
#include "run/frame.h"

namespace calque::run {

// Where the values of a graph's nodes are: in a frame, by id, or known already.
class ValueIds {
 public:
  explicit ValueIds(const Graph& graph) : ids_(graph.id_bound(), none), constants_(graph.id_bound()) {}
  void add(const Node& n) { ids_[n.id()] = count_++; }
  void add_constant(const Node& n, Value value) { constants_[n.id()] = std::move(value); }

  static constexpr uint32_t none = UINT32_MAX;
  uint32_t id_of(const Node& n) const { return ids_[n.id()]; }
  const Value& constant_of(const Node& n) const { return constants_[n.id()]; }
  uint32_t count() const { return count_; }

 private:
  std::vector<uint32_t> ids_;
  Values constants_;
  uint32_t count_ = 0;
};

class Operand {
 public:
  Operand(const Value& argument, const ValueIds& ids) : ids_(&ids) {
    if (argument.is_node() && ids.id_of(*argument.to_node()) != ValueIds::none) {
      id_ = ids.id_of(*argument.to_node());
      return;
    }
    value_ = map_nodes(argument, [&](Node* n) { return ids.id_of(*n) == ValueIds::none ? ids.constant_of(*n) : Value(n); });
    bool refers = false;
    for_each_node(value_, [&](const Node*) { refers = true; });
    is_tree_ = refers;
  }

  bool is_constant() const { return id_ == ValueIds::none && !is_tree_; }
  bool is_value() const { return id_ != ValueIds::none; }
  uint32_t id() const { return id_; }
  const Value& constant() const { return value_; }

  Value read(const Frame& frame) const {
    if (is_value()) return frame.values[id_];
    if (!is_tree_) return value_;
    return map_nodes(value_, [&](Node* n) { return frame.values[ids_->id_of(*n)]; });
  }

 private:
  const ValueIds* ids_;
  uint32_t id_ = ValueIds::none;
  bool is_tree_ = false;
  Value value_;
};

}  // namespace calque::run
