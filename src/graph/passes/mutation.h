// Which tensors of a graph are written, and between which writes a node stands.
#pragma once

#include <vector>

#include "calque/graph/graph.h"

namespace calque {

class Mutations {
 public:
  // `is_fresh`: nodes known to share no memory with what they take, where their operator does not say so.
  explicit Mutations(const Graph& graph, bool (*is_fresh)(const Node&) = nullptr);
  // Whether the node's tensor, or one that may share its memory, is written anywhere in the graph.
  bool is_written(const Node& n) const { return written_[find(n.id())]; }
  // Counts the writes before the node.
  uint32_t region(const Node& n) const { return regions_[n.id()]; }
  bool any() const { return any_; }

 private:
  uint32_t find(uint32_t id) const {
    while (parent_[id] != id) id = parent_[id];
    return id;
  }
  void join(uint32_t a, uint32_t b);
  std::vector<uint32_t> parent_;  // sets of nodes that may share memory
  std::vector<uint32_t> size_;
  std::vector<bool> written_;  // by a set's representative
  std::vector<uint32_t> regions_;
  bool any_ = false;
};

}  // namespace calque
