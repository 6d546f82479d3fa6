// What compiled functions allocate: a check of guards nothing, a million calls nothing that stays. This program counts with its own
// operator new. CALQUE_RANDOM_CALLS=1000000 makes so many calls.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include "calque/compile/compile.h"
#include "calque/nn/nn.h"
#include "calque/op/make.h"
#include "calque/op/ops.h"

namespace calque::allocations_test {
namespace {

std::atomic<int64_t> made = 0, freed = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  void* memory =
      std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment + (bytes == 0 ? alignment : 0));
  if (memory) ++made;
  return memory;
}
void* counted_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* memory = counted(bytes, alignment)) return memory;
  throw std::bad_alloc();
}
void release(void* memory) noexcept {
  if (memory) ++freed;
  std::free(memory);
}

}  // namespace
}  // namespace calque::allocations_test

// NOLINTBEGIN
using calque::allocations_test::counted;
using calque::allocations_test::counted_or_throw;
using calque::allocations_test::release;
constexpr std::size_t usual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
void* operator new(std::size_t n) { return counted_or_throw(n, usual); }
void* operator new[](std::size_t n) { return counted_or_throw(n, usual); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return counted(n, usual); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return counted(n, usual); }
void* operator new(std::size_t n, std::align_val_t a) { return counted_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return counted_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return counted(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return counted(n, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }
// NOLINTEND

namespace calque::allocations_test {
namespace {

TEST(CompileAllocations, a_check_of_guards_allocates_nothing) {
  const NoGradGuard no_grad;
  const auto model = std::make_shared<Sequential>();
  for (int i = 0; i < 100; ++i) model->append(std::make_shared<Linear>(4, 4));  // 200 parameters
  const Compiled f = compile(model, {.backend = "eager"});
  const Values small{ones({2, 4})}, big{ones({3, 4})}, other{ones({7, 4})};
  for (const Values* args : {&small, &big}) f.call(*args);  // the second makes the size a symbol
  EXPECT_EQ(f.cache_size(), 2u);
  const int64_t before = made;
  for (int i = 0; i < 100; ++i)
    for (const Values* args : {&small, &big, &other})
      if (!f.serves(*args)) std::abort();
  EXPECT_EQ(made - before, 0);
  f.call(big);
  EXPECT_GT(made, before);  // it counts
}

TEST(CompileAllocations, calls_with_random_sizes_leave_nothing_behind) {
  const char* asked = std::getenv("CALQUE_RANDOM_CALLS");
  const size_t calls = asked ? std::strtoull(asked, nullptr, 10) : 10000;
  const NoGradGuard no_grad;
  const auto linear = std::make_shared<Linear>(5, 3);
  const auto f = compile([linear](const Tensor& x, const Tensor& bias) {
    const Tensor y = (*linear)(x).relu() + bias;
    if (y.sum().gt(1).item<bool>()) return y.softmax(-1);
    return y.transpose(0, 1).contiguous();
  });
  std::mt19937_64 random(1);
  const Tensor rows = randn({64, 5}), biases = randn({64, 3});
  const auto run = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const auto n = static_cast<int64_t>(random() % 62 + 2);
      f(rows.narrow(0, 0, n), biases.narrow(0, 0, n));
    }
  };
  run(1000);  // captures, and pools that fill
  const size_t entries = f.cache_size();
  const int64_t alive = made - freed;
  run(calls);
  EXPECT_EQ(f.cache_size(), entries);
  EXPECT_LE(made - freed - alive, 20);  // as many for ten thousand calls as for a million
}

}  // namespace
}  // namespace calque::allocations_test
