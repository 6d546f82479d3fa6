#include "calque/base/small_blocks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace calque::small_blocks_test {
namespace {

TEST(SmallBlocks, are_aligned_and_as_large_as_asked) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t bytes = 0; bytes <= small_block_limit; bytes = bytes * 5 / 4 + 1) {
    auto* p = static_cast<unsigned char*>(take_small_block(bytes));
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0U);
    std::memset(p, static_cast<int>(bytes % 251), bytes);
    blocks.emplace_back(p, bytes);
  }
  for (const auto& [p, bytes] : blocks) {  // no block reaches into another
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(p[i], bytes % 251);
    give_small_block(p, bytes);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(SmallBlocks, are_handed_out_again) {
  void* p = take_small_block(200);
  give_small_block(p, 200);
  EXPECT_EQ(take_small_block(250), p);  // of the same class
  give_small_block(p, 250);
}
#endif

TEST(SmallBlocks, may_be_freed_by_another_thread_and_after_it) {
  std::vector<void*> taken(100);
  std::thread([&] {
    for (size_t i = 0; i < 100; ++i) std::memset(taken[i] = take_small_block(1000), static_cast<int>(i), 1000);
  }).join();
  std::thread([&] {
    for (size_t i = 0; i < 50; ++i) give_small_block(taken[i], 1000);
    for (int i = 0; i < 200; ++i) {  // what is handed out again is none of those that are still held
      void* again = take_small_block(1000);
      EXPECT_EQ(std::find(taken.begin() + 50, taken.end(), again), taken.end());
      std::memset(again, 0xff, 1000);
      give_small_block(again, 1000);
    }
  }).join();
  for (size_t i = 50; i < 100; ++i) {
    const auto* bytes = static_cast<const unsigned char*>(taken[i]);
    EXPECT_TRUE(std::all_of(bytes, bytes + 1000, [&](unsigned char b) { return b == i; })) << i;
    give_small_block(taken[i], 1000);
  }
}

// Blocks that a static object frees after the thread's own destructors ran.
struct Late {
  void* block = nullptr;
  bool* freed = nullptr;
  ~Late() {
    if (block) give_small_block(block, 64);
    if (freed) *freed = true;
  }
};
TEST(SmallBlocks, may_be_freed_when_the_thread_is_ending) {
  bool freed = false;
  std::thread([&] {
    thread_local Late late;  // made before the thread's store of blocks, so destroyed after it
    late.block = take_small_block(64);
    late.freed = &freed;
    give_small_block(take_small_block(64), 64);
  }).join();
  EXPECT_TRUE(freed);
  void* next = take_small_block(64);  // the store is whole
  std::memset(next, 1, 64);
  give_small_block(next, 64);
}

}  // namespace
}  // namespace calque::small_blocks_test
