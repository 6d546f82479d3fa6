#include "calque/base/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "calque/base/error.h"
#include "support/error_support.h"

namespace calque::thread_test {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

class ThreadPool : public ::testing::Test {
 protected:
  void SetUp() override { before_ = num_threads(); }
  void TearDown() override { set_num_threads(before_); }

 private:
  int before_ = 1;
};

Ranges ranges_of(int64_t begin, int64_t end, int64_t grain) {
  std::mutex mutex;
  Ranges ranges;
  parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(b, e);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

TEST_F(ThreadPool, covers_the_range_once_for_many_shapes) {
  for (const int threads : {1, 2, 3, 7, 16}) {
    set_num_threads(threads);
    for (const int64_t size : {0, 1, 2, 3, 5, 16, 100, 1001}) {
      for (const int64_t grain : {0, 1, 4, 64}) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(size));
        parallel_for(10, 10 + size, grain, [&](int64_t b, int64_t e) {
          for (int64_t i = b; i < e; ++i) ++hits[static_cast<size_t>(i - 10)];
        });
        for (const auto& hit : hits) ASSERT_EQ(hit, 1) << threads << ' ' << size << ' ' << grain;
      }
    }
  }
}

TEST_F(ThreadPool, an_empty_or_reversed_range_calls_nothing) {
  EXPECT_TRUE(ranges_of(3, 3, 1).empty());
  EXPECT_TRUE(ranges_of(3, 2, 1).empty());
}

TEST_F(ThreadPool, splits_the_same_way_every_time) {
  set_num_threads(3);
  const Ranges expected = {{0, 33}, {33, 66}, {66, 100}};
  for (int i = 0; i < 50; ++i) EXPECT_EQ(ranges_of(0, 100, 1), expected);
}

TEST_F(ThreadPool, chunks_are_at_least_the_grain) {
  set_num_threads(8);
  for (const auto& [b, e] : ranges_of(0, 100, 30)) EXPECT_GE(e - b, 30);
  EXPECT_EQ(ranges_of(0, 29, 30).size(), 1U);
  EXPECT_EQ(parallel_chunks(100, 30), 3);
}

TEST_F(ThreadPool, huge_ranges_do_not_overflow) {
  set_num_threads(4);
  const int64_t most = std::numeric_limits<int64_t>::max();
  const Ranges ranges = ranges_of(0, most, 1);
  ASSERT_EQ(ranges.size(), 4U);
  EXPECT_EQ(ranges.front().first, 0);
  EXPECT_EQ(ranges.back().second, most);
  for (size_t i = 1; i < ranges.size(); ++i) EXPECT_EQ(ranges[i].first, ranges[i - 1].second);
}

TEST_F(ThreadPool, nested_calls_run_the_same_chunks_on_one_thread) {
  set_num_threads(4);
  const Ranges expected = ranges_of(0, 40, 1);
  std::mutex mutex;
  std::vector<Ranges> inner;
  EXPECT_FALSE(in_parallel_region());
  parallel_for(0, 4, 1, [&](int64_t, int64_t) {
    EXPECT_TRUE(in_parallel_region());
    const auto self = std::this_thread::get_id();
    Ranges ranges;
    parallel_for(0, 40, 1, [&](int64_t b, int64_t e) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      ranges.emplace_back(b, e);
    });
    const std::lock_guard lock(mutex);
    inner.push_back(ranges);
  });
  EXPECT_FALSE(in_parallel_region());
  ASSERT_EQ(inner.size(), 4U);
  for (const Ranges& ranges : inner) EXPECT_EQ(ranges, expected);
}

TEST_F(ThreadPool, the_first_exception_in_range_order_reaches_the_caller) {
  set_num_threads(4);
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> ran = 0;
    try {
      parallel_for(0, 4, 1, [&](int64_t b, int64_t) {
        ++ran;
        if (b >= 1) throw std::runtime_error("chunk " + std::to_string(b));
      });
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "chunk 1");
    }
    EXPECT_EQ(ran, 4);
  }
  EXPECT_EQ(ranges_of(0, 4, 1).size(), 4U);
}

TEST_F(ThreadPool, many_callers_at_once_get_the_same_chunks) {
  set_num_threads(3);
  const Ranges expected = ranges_of(0, 1000, 1);
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 6; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        if (ranges_of(0, 1000, 1) != expected) ++wrong;
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ThreadPool, thread_count_may_change_while_others_compute) {
  std::atomic<bool> stop = false;
  std::thread caller([&] {
    while (!stop) {
      std::atomic<int64_t> sum = 0;
      parallel_for(0, 100, 1, [&](int64_t b, int64_t e) { sum += e - b; });
      EXPECT_EQ(sum, 100);
    }
  });
  for (int i = 0; i < 50; ++i) set_num_threads(1 + i % 5);
  stop = true;
  caller.join();
}

TEST_F(ThreadPool, refuses_a_bad_count_and_a_nested_change) {
  EXPECT_THAT(test::error_of([] { set_num_threads(0); }), ::testing::HasSubstr("at least 1, found 0"));
  set_num_threads(2);
  EXPECT_THAT(test::error_of([] { parallel_for(0, 2, 1, [](int64_t, int64_t) { set_num_threads(3); }); }),
              ::testing::HasSubstr("inside a parallel_for"));
}

}  // namespace
}  // namespace calque::thread_test
