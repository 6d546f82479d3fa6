// Counters: what happened how often, by category and name: counters().add("graph_break", reason). One set a process, for the books of
// capture and compilation; a count costs a lock, so kernels keep none. Frames are numbered from 1 in the order in which their capture
// began. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace calque {

using CountersByName = std::map<std::string, uint64_t, std::less<>>;
using CountersByCategory = std::map<std::string, CountersByName, std::less<>>;

class Counters {
 public:
  void add(std::string_view category, std::string_view name, uint64_t times = 1);
  uint64_t get(std::string_view category, std::string_view name) const;  // 0 where nothing was counted
  CountersByCategory all() const;
  void clear();
  void clear(std::string_view category);
};
Counters& counters();

// "frames" of the counters, and the number of the one that was begun last.
uint64_t increment_frame();
uint64_t current_frame();
void reset_frame_count();

// Operators captured so far.
void increment_op_count(uint64_t count);
uint64_t op_count();

}  // namespace calque
