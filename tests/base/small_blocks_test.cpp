#include "calque/base/small_blocks.h"

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace calque {
namespace {

TEST(SmallBlocks, AreAlignedAndAsLargeAsAsked) {
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
TEST(SmallBlocks, AreHandedOutAgain) {
  void* p = take_small_block(200);
  give_small_block(p, 200);
  EXPECT_EQ(take_small_block(250), p);  // of the same class
  give_small_block(p, 250);
}
#endif

TEST(SmallBlocks, MayBeFreedByAnotherThreadAndAfterIt) {
  std::vector<void*> taken(100);
  std::thread([&] {
    for (void*& p : taken) p = take_small_block(1000);
  }).join();
  std::thread([&] {
    for (size_t i = 0; i < 50; ++i) give_small_block(taken[i], 1000);
  }).join();
  for (size_t i = 50; i < 100; ++i) give_small_block(taken[i], 1000);
}

// Blocks that a static object frees after the thread's own destructors ran.
struct Late {
  void* block = nullptr;
  ~Late() {
    if (block) give_small_block(block, 64);
  }
};
TEST(SmallBlocks, MayBeFreedWhenTheThreadIsEnding) {
  std::thread([] {
    thread_local Late late;  // made before the thread's store of blocks, so destroyed after it
    late.block = take_small_block(64);
    give_small_block(take_small_block(64), 64);
  }).join();
}

}  // namespace
}  // namespace calque
