#include "calque/base/counters.h"

#include <atomic>
#include <mutex>

namespace calque {
namespace {

struct Counted {
  std::mutex mutex;
  CountersByCategory by_category;
  std::atomic<uint64_t> frame = 0;
  std::atomic<uint64_t> operators = 0;
};

Counted& counted() {
  static Counted c;
  return c;
}

}  // namespace

Counters& counters() {
  static Counters c;
  return c;
}

void Counters::add(std::string_view category, std::string_view name, uint64_t times) {
  Counted& c = counted();
  const std::lock_guard lock(c.mutex);
  auto at = c.by_category.find(category);
  if (at == c.by_category.end()) at = c.by_category.emplace(category, CountersByName()).first;
  const auto found = at->second.find(name);
  if (found == at->second.end())
    at->second.emplace(name, times);
  else
    found->second += times;
}

uint64_t Counters::get(std::string_view category, std::string_view name) const {
  Counted& c = counted();
  const std::lock_guard lock(c.mutex);
  const auto at = c.by_category.find(category);
  if (at == c.by_category.end()) return 0;
  const auto found = at->second.find(name);
  return found == at->second.end() ? 0 : found->second;
}

CountersByCategory Counters::all() const {
  const std::lock_guard lock(counted().mutex);
  return counted().by_category;
}

void Counters::clear() {
  const std::lock_guard lock(counted().mutex);
  counted().by_category.clear();
}

void Counters::clear(std::string_view category) {
  const std::lock_guard lock(counted().mutex);
  const auto at = counted().by_category.find(category);
  if (at != counted().by_category.end()) counted().by_category.erase(at);
}

uint64_t increment_frame() {
  counters().add("frames", "total");
  return ++counted().frame;
}
uint64_t current_frame() { return counted().frame; }
void reset_frame_count() { counted().frame = 0; }

void increment_op_count(uint64_t count) { counted().operators += count; }
uint64_t op_count() { return counted().operators; }

}  // namespace calque
