// Which strings of a set begin at a place: a trie over bytes, kept as one hash table of its edges, so that a set made to be
// awkward costs no more than any other. Immutable once it is filled.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace calque {

class ByteTrie {
 public:
  // The root is 0. The top bit says that a string ends here.
  using Node = uint32_t;
  static constexpr Node root = 0, none = std::numeric_limits<Node>::max();

  // Of two strings that are equal, the first keeps its value. The empty string is none of the set. UserError when there are
  // too many.
  void insert(std::string_view string, uint32_t value);
  bool empty() const { return values_.size() == 1; }

  Node next(Node node, char byte) const {
    if (edges_.empty()) return none;
    const uint32_t key = key_of(node, byte);
    for (size_t at = place(key);; at = (at + 1) & mask()) {
      if (edges_[at].key == key) return edges_[at].to;
      if (edges_[at].key == none) return none;
    }
  }
  static bool ends(Node node) { return (node & end_bit) != 0; }
  uint32_t value(Node node) const { return values_[node & ~end_bit]; }

 private:
  struct Edge {
    uint32_t key = none;  // a node << 8 | a byte
    Node to = none;
  };
  static constexpr uint32_t end_bit = uint32_t{1} << 31;
  static constexpr size_t most_nodes = (size_t{1} << 24) - 1;

  static uint32_t key_of(Node node, char byte) { return (node & ~end_bit) << 8 | static_cast<unsigned char>(byte); }
  size_t mask() const { return edges_.size() - 1; }
  size_t place(uint32_t key) const { return (uint64_t{key} * 0x9E3779B97F4A7C15 >> 32) & mask(); }
  Edge& edge(uint32_t key);
  void grow();

  std::vector<Edge> edges_;             // a power of two of places, at most half of them used
  std::vector<uint32_t> values_ = {0};  // by node
};

}  // namespace calque
