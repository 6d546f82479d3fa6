#include "calque/base/memory.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "calque/base/error.h"

namespace calque {
namespace {

// "500M" is 500 * 2^20; 0 for what is no such text.
size_t bytes_from_text(const char* text) {
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  int shift = 0;
  switch (*end) {
    case 'k':
    case 'K': shift = 10; break;
    case 'm':
    case 'M': shift = 20; break;
    case 'g':
    case 'G': shift = 30; break;
    case 't':
    case 'T': shift = 40; break;
    default: break;
  }
  if (end == text) return 0;
  return number > (SIZE_MAX >> shift) ? SIZE_MAX : static_cast<size_t>(number) << shift;
}

size_t machine_memory() {
  size_t bytes = 0;
#if defined(_SC_PHYS_PAGES) && defined(_SC_PAGESIZE)
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) bytes = static_cast<size_t>(pages) * static_cast<size_t>(page);
#endif
  // A container may have less than its machine; "max" there is no number.
  std::ifstream group("/sys/fs/cgroup/memory.max");
  size_t allowed = 0;
  if (group >> allowed && allowed > 0) bytes = bytes == 0 ? allowed : std::min(bytes, allowed);
  return bytes;
}

size_t default_limit() {
  if (const char* text = std::getenv("CALQUE_MEMORY_LIMIT"))
    if (const size_t bytes = bytes_from_text(text)) return bytes;
  return machine_memory();
}

std::atomic<size_t>& limit() {
  static std::atomic<size_t> bytes{default_limit()};
  return bytes;
}
std::atomic<size_t> in_use{0};

}  // namespace

void set_memory_limit(size_t bytes) { limit().store(bytes, std::memory_order_relaxed); }
size_t memory_limit() { return limit().load(std::memory_order_relaxed); }
size_t memory_in_use() { return in_use.load(std::memory_order_relaxed); }

bool try_claim_memory(size_t bytes) noexcept {
  const size_t most = memory_limit();
  if (most != 0 && bytes > most) return false;
  const size_t before = in_use.fetch_add(bytes, std::memory_order_relaxed);
  if (most == 0 || before <= most - bytes) [[likely]]
    return true;
  in_use.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void refuse_memory(size_t bytes) {
  throw UserError("out of memory: " + std::to_string(bytes) + " bytes were asked for, " + std::to_string(memory_in_use()) +
                  " are in use, and the limit is " + std::to_string(memory_limit()) +
                  " (set it with --memory-limit, CALQUE_MEMORY_LIMIT or set_memory_limit)");
}

void claim_memory(size_t bytes) {
  if (!try_claim_memory(bytes)) refuse_memory(bytes);
}

void* allocate_counted(size_t bytes) {
  claim_memory(bytes);
  void* p = std::malloc(bytes == 0 ? 1 : bytes);
  if (p == nullptr) {
    release_memory(bytes);
    refuse_memory(bytes);
  }
  return p;
}

void free_counted(void* p, size_t bytes) noexcept {
  std::free(p);
  release_memory(bytes);
}

void release_memory(size_t bytes) noexcept { in_use.fetch_sub(bytes, std::memory_order_relaxed); }

}  // namespace calque
