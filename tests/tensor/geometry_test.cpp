// No tensor reaches outside its storage, however it is made; and what a bool's byte means.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/memory.h"
#include "calque/tensor/tensor_base.h"
#include "support/error_support.h"

namespace calque::geometry_test {
namespace {

using test::error_of;
using testing::HasSubstr;

constexpr int64_t huge = INT64_MAX;

TEST(Geometry, a_view_stays_inside_its_storage) {
  const TensorBase base = make_tensor({4, 3}, DType::float32);
  EXPECT_EQ(make_view(base, {2, 3}, {6, 1}, 3).numel(), 6);
  EXPECT_THAT(error_of([&] { make_view(base, {5, 3}, {3, 1}, 0); }), HasSubstr("reach 60 bytes into a storage of 48"));
  EXPECT_THAT(error_of([&] { make_view(base, {4, 3}, {3, 1}, 1); }), HasSubstr("reach 52 bytes"));
  EXPECT_THAT(error_of([&] { make_view(base, {1}, {1}, -1); }), HasSubstr("cannot begin before its storage"));
  EXPECT_THAT(error_of([&] { make_view(base, {2}, {-1}, 1); }), HasSubstr("strides must be 0 or more"));
  EXPECT_THAT(error_of([&] { make_view(base, {-2}, {1}, 0); }), HasSubstr("sizes must be 0 or more"));
  EXPECT_THAT(error_of([&] { make_view(base, {2, 2}, {1}, 0); }), HasSubstr("one stride for each size"));
  EXPECT_THAT(error_of([&] { make_view(base, {4, 3}, {3, 1}, 0, DType::float64); }), HasSubstr("reach 96 bytes"));
  EXPECT_EQ(make_view(base, {0, 3}, {3, 1}, 0).numel(), 0);
}

TEST(Geometry, arithmetic_on_sizes_does_not_wrap) {
  const TensorBase base = make_tensor({1}, DType::float32);
  EXPECT_THAT(error_of([&] { make_view(base, {huge, 2}, {0, 0}, 0); }), HasSubstr("overflows"));
  EXPECT_THAT(error_of([&] { make_view(base, {2, 2}, {huge, huge}, 0); }), HasSubstr("overflows"));
  EXPECT_THAT(error_of([&] { make_view(base, {1}, {1}, huge); }), HasSubstr("overflows"));
  EXPECT_THAT(error_of([] { make_tensor({huge, 0, huge}, DType::float32); }), HasSubstr("overflow"));
  EXPECT_THAT(error_of([] { make_tensor({huge / 2}, DType::float64); }), HasSubstr("overflow"));
}

TEST(Geometry, a_reversed_view_stays_inside_too) {
  const TensorBase base = make_tensor({4}, DType::float32);
  EXPECT_EQ(make_reversed_view(base, {4}, {-1}, 3).numel(), 4);
  EXPECT_NE(error_of([&] { make_reversed_view(base, {4}, {-1}, 2); }), "");
  EXPECT_NE(error_of([&] { make_reversed_view(base, {4}, {-1}, 4); }), "");
}

TEST(Geometry, a_tensor_that_cannot_become_another_stays_what_it_was) {
  const TensorBase t = make_tensor({2, 3}, DType::float32);
  EXPECT_NE(error_of([&] { set_geometry(t, {7}, {1}, 0); }), "");
  EXPECT_EQ(str(t.sizes()), "[2, 3]");
  const size_t before = memory_limit();
  set_memory_limit(memory_in_use() + (1U << 20));
  EXPECT_THAT(error_of([&] { set_geometry(t, {1 << 28}, {1}, 0, true); }), HasSubstr("out of memory"));
  set_memory_limit(before);
  EXPECT_EQ(str(t.sizes()), "[2, 3]");
  set_geometry(t, {7}, {1}, 0, true);
  EXPECT_GE(t.storage()->nbytes(), 28U);
}

TEST(Geometry, memory_has_a_limit) {
  const size_t before = memory_limit();
  set_memory_limit(memory_in_use() + (1U << 20));
  EXPECT_THAT(error_of([] { make_tensor({1000000}, DType::float64); }), HasSubstr("out of memory: "));
  set_memory_limit(before);
  const size_t used = memory_in_use();
  {
    const TensorBase t = make_tensor({1000000}, DType::float64);
    EXPECT_GE(memory_in_use(), used + 8000000);
  }
  clear_block_cache();
  EXPECT_LT(memory_in_use(), used + 8000000);
}

TEST(Bool, is_true_for_every_byte_but_zero) {
  for (int byte = 0; byte < 256; ++byte) {
    Bool b;
    b.byte = static_cast<uint8_t>(byte);
    EXPECT_EQ(static_cast<bool>(b), byte != 0);
  }
  EXPECT_EQ(Bool(true).byte, 1);
  EXPECT_EQ(Bool(false).byte, 0);
  EXPECT_EQ(std::numeric_limits<Bool>::max(), true);
}

}  // namespace
}  // namespace calque::geometry_test
