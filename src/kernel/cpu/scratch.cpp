#include "kernel/cpu/scratch.h"

#include <array>
#include <memory>
#include <new>

namespace calque {
namespace {

constexpr auto alignment = std::align_val_t(64);

struct Free {
  void operator()(void* p) const noexcept { ::operator delete(p, alignment); }
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
    buffer.memory.reset(::operator new(bytes, alignment));
    buffer.bytes = bytes;
  }
  return buffer.memory.get();
}

}  // namespace calque
