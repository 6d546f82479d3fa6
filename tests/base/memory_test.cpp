#include "calque/base/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/error_support.h"

namespace calque::memory_test {
namespace {

class MemoryLimit : public testing::Test {
 protected:
  ~MemoryLimit() override { set_memory_limit(before_); }

 private:
  const size_t before_ = memory_limit();
};

TEST_F(MemoryLimit, is_what_the_machine_has_unless_set) {
  EXPECT_GT(memory_limit(), size_t{1} << 26);
  set_memory_limit(12345);
  EXPECT_EQ(memory_limit(), 12345U);
}

TEST_F(MemoryLimit, refuses_what_would_pass_it_and_claims_nothing_then) {
  const size_t before = memory_in_use();
  set_memory_limit(before + 1000);
  claim_memory(600);
  EXPECT_EQ(memory_in_use(), before + 600);
  EXPECT_THAT(
      test::error_of([] { claim_memory(600); }),
      testing::AllOf(testing::HasSubstr("out of memory: 600 bytes were asked for"), testing::HasSubstr("--memory-limit")));
  EXPECT_EQ(memory_in_use(), before + 600);
  release_memory(600);
  EXPECT_FALSE(try_claim_memory(SIZE_MAX));  // sums of claims cannot wrap
  EXPECT_EQ(memory_in_use(), before);
}

TEST_F(MemoryLimit, of_zero_is_none) {
  set_memory_limit(0);
  EXPECT_TRUE(try_claim_memory(size_t{1} << 60));
  release_memory(size_t{1} << 60);
}

TEST_F(MemoryLimit, counts_the_vectors_of_kernels) {
  const size_t before = memory_in_use();
  set_memory_limit(before + 1000);
  {
    std::vector<int64_t, CountedAllocator<int64_t>> some(100);
    EXPECT_EQ(memory_in_use(), before + 800);
    EXPECT_THROW((std::vector<int64_t, CountedAllocator<int64_t>>(100)), UserError);
  }
  EXPECT_EQ(memory_in_use(), before);
}

}  // namespace
}  // namespace calque::memory_test
