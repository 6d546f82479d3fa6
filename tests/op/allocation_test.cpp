// With no mode, a call reaches its kernel with no allocation but the result's. malloc and its kin are counted by
// standing in for them, which a sanitizer does itself.

#include <cstdlib>

#include <gtest/gtest.h>

#include "calque/base/small_blocks.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/reductions.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
thread_local constinit int allocations = 0;
}

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void* malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
}

namespace calque::allocation_test {
namespace {

// The most allocations that one of a hundred calls makes; their results are kept, so that none can reuse another's memory.
template <class F>
int most_allocations(F&& call) {
  std::vector<Tensor> kept;
  kept.reserve(200);
  for (int i = 0; i < 20; ++i) kept.push_back(call());  // tables that are made on first use
  int most = 0;
  for (int i = 0; i < 100; ++i) {
    const int before = allocations;
    kept.push_back(call());
    most = std::max(most, allocations - before);
  }
  return most;
}

TEST(Allocation, a_call_allocates_its_result_alone) {
  const Tensor a = randn({8}), b = randn({8}), m = randn({4, 4}), big = randn({300, 300});
  constexpr int tensor_and_storage = 2;
  EXPECT_LE(most_allocations([&] { return add(a, b); }), tensor_and_storage);
  EXPECT_LE(most_allocations([&] { return a * 2; }), tensor_and_storage + 2);  // the number is a tensor of its own
  EXPECT_LE(most_allocations([&] { return relu(a); }), tensor_and_storage);
  EXPECT_LE(most_allocations([&] { return sum(m, {1}); }), tensor_and_storage);
  EXPECT_LE(most_allocations([&] { return add(big, big); }), tensor_and_storage + 1);  // its bytes are a block of their own
  EXPECT_LE(most_allocations([&] { return a.view({2, 4}); }), 1);
  EXPECT_LE(most_allocations([&] { return m.transpose(0, 1); }), 1);
}

TEST(Allocation, a_call_whose_result_is_dropped_reuses_its_memory) {
  const Tensor a = randn({8}), b = randn({8});
  for (int i = 0; i < 20; ++i) add(a, b);
  const int before = allocations;
  for (int i = 0; i < 100; ++i) add(a, b);
  EXPECT_EQ(allocations, before);
}

TEST(Allocation, is_counted) {
  const int before = allocations;
  void* volatile p = std::malloc(10);
  std::free(p);
  EXPECT_EQ(allocations, before + 1);
}

}  // namespace
}  // namespace calque::allocation_test
#endif
