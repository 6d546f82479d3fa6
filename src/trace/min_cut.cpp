#include "trace/min_cut.h"

#include <algorithm>

#include "calque/base/error.h"

namespace calque {

void MinCut::add_edge(size_t from, size_t to, int64_t capacity) {
  edges_of_[from].push_back(edges_.size());
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}

bool MinCut::find_levels(size_t source, size_t sink) {
  level_.assign(edges_of_.size(), SIZE_MAX);
  level_[source] = 0;
  std::vector<size_t> reached{source};
  for (size_t i = 0; i < reached.size(); ++i)
    for (const size_t e : edges_of_[reached[i]])
      if (edges_[e].left > 0 && level_[edges_[e].to] == SIZE_MAX) {
        level_[edges_[e].to] = level_[reached[i]] + 1;
        reached.push_back(edges_[e].to);
      }
  return level_[sink] != SIZE_MAX;
}

// Along one way of rising levels, without recursion; 0 when there is none left.
int64_t MinCut::push(size_t source, size_t sink) {
  std::vector<size_t> way;
  size_t at = source;
  while (at != sink) {
    size_t& next = next_[at];
    while (next < edges_of_[at].size()) {
      const Edge& e = edges_[edges_of_[at][next]];
      if (e.left > 0 && level_[e.to] == level_[at] + 1) break;
      ++next;
    }
    if (next < edges_of_[at].size()) {
      way.push_back(edges_of_[at][next]);
      at = edges_[way.back()].to;
    } else {
      if (way.empty()) return 0;
      at = edges_[way.back() ^ 1].to;
      way.pop_back();
      ++next_[at];
    }
  }
  int64_t amount = unbounded;
  for (const size_t e : way) amount = std::min(amount, edges_[e].left);
  for (const size_t e : way) {
    edges_[e].left -= amount;
    edges_[e ^ 1].left += amount;
  }
  return amount;
}

std::vector<bool> MinCut::source_side(size_t source, size_t sink) {
  while (find_levels(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    while (const int64_t amount = push(source, sink))
      if (amount >= unbounded)
        throw InternalError("a value is needed by the backward pass that can be neither kept nor computed again");
  }
  std::vector<bool> out(edges_of_.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = level_[i] != SIZE_MAX;
  return out;
}

}  // namespace calque
