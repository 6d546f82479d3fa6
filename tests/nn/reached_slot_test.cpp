// The place through which a module was reached: by it a trace knows by which of its names a module is called.
#include <gtest/gtest.h>

#include <set>

#include "calque/nn/container.h"
#include "calque/nn/linear.h"
#include "calque/nn/typed.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/zeros.h"

namespace calque::reached_slot_test {
namespace {

struct Holder : Typed<Holder> {
  Child<Linear> linear = child<Linear>("linear", 1, 1);
  Tensor forward(const Tensor& x) { return linear(x); }
};

TEST(ReachedSlot, numbers_are_not_used_twice_though_modules_come_and_go) {
  std::set<uint64_t> seen{0};
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(seen.insert(std::make_shared<Holder>()->module_slots().at(0)->number).second);
}

TEST(ReachedSlot, a_copy_has_slots_of_its_own) {
  const auto holder = std::make_shared<Holder>();
  EXPECT_NE(holder->deep_copy()->module_slots().at(0)->number, holder->module_slots().at(0)->number);
}

TEST(ReachedSlot, is_that_of_the_call_of_the_name_and_of_the_index) {
  const auto holder = std::make_shared<Holder>();
  const ContextScope<&ThreadContext::reached_slot> scope(0);
  (*holder)(ones({1, 1}));
  EXPECT_EQ(thread_context().reached_slot, holder->module_slots()[0]->number);
  thread_context().reached_slot = 0;
  holder->get_submodule("linear");
  EXPECT_EQ(thread_context().reached_slot, holder->module_slots()[0]->number);
  Sequential list(std::vector<std::shared_ptr<Module>>{holder, holder});
  list.ptr(1);
  EXPECT_EQ(thread_context().reached_slot, list.module_slots()[1]->number);
}

}  // namespace
}  // namespace calque::reached_slot_test
