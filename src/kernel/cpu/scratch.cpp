#include "kernel/cpu/scratch.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <array>
#include <memory>
#include <new>

#include "calque/base/memory.h"

namespace calque {
namespace {

// Large buffers are whole huge pages, which saves the kernels most address translation misses. Small ones are not: all at the
// start of a page, they would share its sets of the cache.
constexpr size_t huge_page = size_t{2} << 20;
constexpr auto line = std::align_val_t(64);

struct Free {
  std::align_val_t alignment = line;
  size_t bytes = 0;
  void operator()(void* p) const noexcept {
    ::operator delete(p, alignment);
    release_memory(bytes);
  }
};

struct Buffer {
  std::unique_ptr<void, Free> memory;
  size_t bytes = 0;
};

}  // namespace

void* scratch_bytes(Scratch purpose, size_t bytes) {
  thread_local std::array<Buffer, static_cast<size_t>(Scratch::count)> buffers;
  Buffer& buffer = buffers[static_cast<size_t>(purpose)];
  if (buffer.bytes < bytes) {
    buffer.memory.reset();
    buffer.bytes = 0;
    const bool large = bytes > huge_page / 2;
    if (large) bytes = (bytes + huge_page - 1) / huge_page * huge_page;
    const auto alignment = large ? std::align_val_t(huge_page) : line;
    claim_memory(bytes);
    void* memory = ::operator new(bytes, alignment, std::nothrow);
    if (memory == nullptr) {
      release_memory(bytes);
      refuse_memory(bytes);
    }
    buffer.memory = {memory, Free{alignment, bytes}};
    buffer.bytes = bytes;
#if defined(MADV_HUGEPAGE)
    if (large) madvise(buffer.memory.get(), bytes, MADV_HUGEPAGE);
#endif
  }
  return buffer.memory.get();
}

}  // namespace calque
