#include "calque/base/thread_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "support/thread_state.h"

namespace calque::thread_context_test {
namespace {

using test::ThreadState;

TEST(ThreadContext, starts_as_it_is_on_every_thread) {
  const ContextSwitch<&ThreadContext::grad_enabled, false> here;
  bool there = false;
  std::thread([&] { there = thread_context() == ThreadSwitches() && thread_context().modes.empty(); }).join();
  EXPECT_TRUE(there);
  EXPECT_FALSE(thread_context().grad_enabled);
}

TEST(ThreadContext, a_scope_puts_back_what_was_there_also_when_its_body_throws) {
  const ThreadState before;
  {
    const ContextScope<&ThreadContext::guard_operator> outer("aten::view");
    try {
      const ContextScope<&ThreadContext::guard_operator> inner("aten::add");
      const ContextSwitch<&ThreadContext::python_bodies, true> bodies;
      const ContextCount<&ThreadContext::exports> once, twice;
      EXPECT_EQ(thread_context().guard_operator, "aten::add");
      EXPECT_TRUE(thread_context().python_bodies);
      EXPECT_EQ(thread_context().exports, 2);
      EXPECT_NE(ThreadState(), before);
      throw std::runtime_error("from the body");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(thread_context().guard_operator, "aten::view");
  }
  EXPECT_EQ(ThreadState(), before);
}

TEST(PointerList, keeps_its_order_while_it_grows_and_gives_its_memory_back_with_the_last) {
  int items[20];
  PointerList<int> list;
  for (int& item : items) list.insert(list.size() / 2, &item);
  ASSERT_EQ(list.size(), 20U);
  EXPECT_EQ(list[0], &items[1]);
  EXPECT_EQ(list[19], &items[0]);
  EXPECT_EQ(list.find(&items[0]), 19U);
  EXPECT_EQ(list.find(&items[1], 1), 20U);
  list.erase(0);
  EXPECT_EQ(list[0], &items[3]);
  while (!list.empty()) list.erase(list.size() - 1);
  EXPECT_EQ(list.begin(), nullptr);
}

}  // namespace
}  // namespace calque::thread_context_test
