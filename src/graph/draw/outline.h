// What a picture of a graph shows: its nodes as boxes inside the modules that made them. Weights, sizes and items of tuples are no
// boxes; they are folded into the boxes that use or make them. An outline refers to the graph's nodes and must not outlive them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "calque/graph/draw.h"

namespace calque::draw {

constexpr uint32_t no_box = UINT32_MAX;

struct FoldedWeight {
  const Node* node = nullptr;  // the placeholder or get_attr
  std::string path;            // "encoder.layer.0.query.weight"
  std::string view;            // what the box takes of it: "t"; usually empty
  std::string val;             // of what the box takes
};

struct OutlineBox {
  const Node* node = nullptr;  // null: a module
  uint32_t parent = no_box;
  uint32_t end = 0;   // after the last box inside; boxes stand in the order of a walk in depth
  std::string path;   // of a module, and of the innermost module of a node
  std::string type;   // of a module: its class
  uint32_t part = 0;  // of modules with one path: which
  std::vector<uint32_t> children;
  std::vector<FoldedWeight> weights;
  std::vector<const Node*> folded;  // sizes, checks and items of tuples
  size_t operators = 0;             // of a module: inside
  int64_t parameters = 0;           // of a module: elements of the weights inside, each counted once
  uint32_t kind = 0;                // modules that hold the same have the same number, from 1; 0 where it is the only one
  bool is_module() const { return node == nullptr; }
};

struct Outline {
  std::vector<OutlineBox> boxes;             // the first is the whole graph
  std::vector<std::vector<uint32_t>> users;  // by box of a node: the boxes of nodes that use its value, each once, in order
  std::vector<uint32_t> box_of;    // by node id: its box, or that which it is folded into; no_box for what is left out
  std::vector<const Node*> nodes;  // of the graph, in order

  bool holds(uint32_t module, uint32_t box) const { return box >= module && box < boxes[module].end; }
  uint32_t child_with(uint32_t module, uint32_t box) const;  // the child of the module that is or holds the box
};

Outline outline_of(const Graph& graph, const DrawOptions& options);

}  // namespace calque::draw
