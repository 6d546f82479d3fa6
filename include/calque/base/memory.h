// The limit on memory: how many bytes tensors and the kernels' buffers may hold together, in the whole process. A program
// from a file can ask for any amount; with a limit the answer is a UserError instead of a machine without memory. Mapped
// files are not counted. Whoever allocates claims first and releases after freeing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace calque {

// 0: no limit. The default is CALQUE_MEMORY_LIMIT ("8G", "500M", "1000000"), else all of the memory that this machine or its
// control group has.
void set_memory_limit(size_t bytes);
size_t memory_limit();
size_t memory_in_use();

void claim_memory(size_t bytes);  // UserError when the limit would be passed; nothing is claimed then
bool try_claim_memory(size_t bytes) noexcept;
[[noreturn]] void refuse_memory(size_t bytes);  // the error of claim_memory
void release_memory(size_t bytes) noexcept;

void* allocate_counted(size_t bytes);  // claimed; UserError when there is no more
void free_counted(void* p, size_t bytes) noexcept;

// An allocator for the vectors of kernels, whose lengths come from arguments.
template <class T>
struct CountedAllocator {
  static_assert(alignof(T) <= alignof(std::max_align_t));
  using value_type = T;
  CountedAllocator() = default;
  template <class U>
  CountedAllocator(const CountedAllocator<U>&) {}
  T* allocate(size_t n) {
    return static_cast<T*>(allocate_counted(n <= SIZE_MAX / 2 / sizeof(T) ? n * sizeof(T) : SIZE_MAX / 2));
  }
  void deallocate(T* p, size_t n) noexcept { free_counted(p, n * sizeof(T)); }
  bool operator==(const CountedAllocator&) const = default;
};

template <class T>
using CountedVector = std::vector<T, CountedAllocator<T>>;

}  // namespace calque
