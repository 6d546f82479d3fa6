// The cheapest cut between two places of a network (Dinic's algorithm).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace calque {

class MinCut {
 public:
  static constexpr int64_t unbounded = int64_t{1} << 60;
  explicit MinCut(size_t places) : edges_of_(places) {}
  void add_edge(size_t from, size_t to, int64_t capacity);
  // Which places are on the source's side: of equally cheap cuts the one nearest to the source.
  // InternalError where every cut is unbounded.
  std::vector<bool> source_side(size_t source, size_t sink);

 private:
  struct Edge {
    size_t to;
    int64_t left;  // capacity that is not used
  };
  bool find_levels(size_t source, size_t sink);
  int64_t push(size_t source, size_t sink);

  std::vector<Edge> edges_;  // each followed by its reverse
  std::vector<std::vector<size_t>> edges_of_;
  std::vector<size_t> level_, next_;
};

}  // namespace calque
