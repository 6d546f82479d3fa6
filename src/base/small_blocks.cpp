#include "calque/base/small_blocks.h"

#include <bit>
#include <cstdlib>
#include <utility>

#include "calque/base/memory.h"

namespace calque {
namespace {

constexpr size_t alignment = 64;
constexpr int classes = 42;

struct Class {
  int index;
  size_t bytes;
};

// Multiples of 64 to 256, then four steps for each doubling.
constexpr Class class_of(size_t bytes) {
  const size_t units = bytes <= alignment ? 1 : (bytes + alignment - 1) / alignment;
  if (units <= 4) return {static_cast<int>(units) - 1, units * alignment};
  const int shift = static_cast<int>(std::bit_width(units - 1)) - 3;  // 4..7 steps of 2^shift units cover it
  const size_t steps = ((units - 1) >> shift) + 1;
  return {4 * shift + static_cast<int>(steps) - 1, (steps << shift) * alignment};
}
static_assert(class_of(small_block_limit).index < classes);
static_assert(class_of(257).bytes == 320 && class_of(320).index == 4 && class_of(513).bytes == 640 &&
              class_of(640).index == 8);

struct Block {
  Block* next;
};

// Trivially destructible, so that blocks freed after the thread's own destructors ran still find it; `closed` sends
// them to free().
struct Kept {
  Block* free[classes] = {};
  size_t bytes = 0;
  bool open = false;
  bool closed = false;
};
constinit thread_local Kept kept;

struct Closer {
  ~Closer() {
    for (Block*& head : kept.free)
      while (head) std::free(std::exchange(head, head->next));
    release_memory(kept.bytes);
    kept.bytes = 0;
    kept.closed = true;
  }
};

[[maybe_unused]] void open_kept() {
  thread_local Closer closer;
  (void)closer;
  kept.open = true;
}

}  // namespace

void* take_small_block(size_t bytes) {
  const Class c = class_of(bytes);
  if constexpr (!memory_is_watched) {
    if (Block* b = kept.free[c.index]) {
      kept.free[c.index] = b->next;
      kept.bytes -= c.bytes;
      return b;
    }
  }
  claim_memory(c.bytes);
  void* block = nullptr;
  if (posix_memalign(&block, alignment, memory_is_watched ? bytes : c.bytes) != 0) {
    release_memory(c.bytes);
    refuse_memory(c.bytes);
  }
  return block;
}

void give_small_block(void* block, size_t bytes) noexcept {
  const Class c = class_of(bytes);
  if constexpr (!memory_is_watched) {
    if (!kept.closed && kept.bytes + c.bytes <= small_blocks_kept) {
      if (!kept.open) [[unlikely]]
        open_kept();
      auto* b = static_cast<Block*>(block);
      b->next = kept.free[c.index];
      kept.free[c.index] = b;
      kept.bytes += c.bytes;
      return;
    }
  }
  std::free(block);
  release_memory(c.bytes);
}

}  // namespace calque
