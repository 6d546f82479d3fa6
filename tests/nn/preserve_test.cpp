// Inputs that are copied, parameters and random streams that are put back.
#include "calque/nn/preserve.h"

#include <gtest/gtest.h>

#include "calque/nn/nn.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/clone_input.h"
#include "calque/tensor/generator.h"

namespace calque::preserve_test {
namespace {

TEST(CloneInput, keeps_strides_alignment_and_the_need_of_gradients) {
  const Tensor base = rand({6, 8});
  for (const Tensor& t : {base, base.t(), base.slice(1, 1, 7, 2), base.select(0, 3), base.slice(0, 1),
                          base.view({2, 3, 8}).permute({2, 0, 1}), base.select(0, 0).select(0, 5)}) {
    const Tensor copy = clone_input(t);
    EXPECT_TRUE(equal(copy, t));
    EXPECT_EQ(str(copy.strides()), str(t.strides()));
    EXPECT_NE(copy.data(), t.data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(copy.data()) % 32, reinterpret_cast<uintptr_t>(t.data()) % 32);
    EXPECT_FALSE(copy.requires_grad());
  }
  Tensor parameter = rand({3});
  parameter.requires_grad_();
  EXPECT_TRUE(clone_input(parameter).requires_grad());
  EXPECT_TRUE(clone_input(parameter).is_leaf());
}

TEST(CloneInput, shared_elements_become_a_plain_clone) {
  const Tensor t = rand({3, 1}).expand({3, 4});
  const Tensor copy = clone_input(t);
  EXPECT_TRUE(equal(copy, t));
  EXPECT_EQ(clone_input(empty({0, 3})).numel(), 0);
}

TEST(CloneInput, one_tensor_twice_stays_one) {
  const Tensor t = rand({3});
  const Values copies = clone_inputs(list({t, 5, tuple({t})})).to_items();
  EXPECT_EQ(&copies[0].to_tensor().impl(), &copies[2].to_items()[0].to_tensor().impl());
  EXPECT_EQ(copies[1].to_int(), 5);
}

TEST(Preserve, the_random_stream_goes_on_from_where_it_was) {
  manual_seed(3);
  const Tensor first = rand({4});
  manual_seed(3);
  {
    const RngStateScope scope;
    rand({100});
  }
  EXPECT_TRUE(equal(rand({4}), first));
}

TEST(Preserve, parameters_and_buffers_come_back) {
  const auto module = std::make_shared<Sequential>();
  module->append(std::make_shared<Linear>(3, 3));
  module->append(std::make_shared<BatchNorm1d>(3));
  const StateDict before = module->state_dict();
  std::vector<std::pair<std::string, Tensor>> held;
  for (const auto& [name, t] : module->named_parameters()) held.emplace_back(name, t.clone());
  for (const auto& [name, t] : module->named_buffers()) held.emplace_back(name, t.clone());
  const Tensor weight = module->get_parameter("0.weight");
  {
    const StateScope scope(*module);
    module->call({rand({5, 3})});  // running statistics move
    const GradModeScope no_grad(false);
    weight.fill_(7);
    module->set_tensor("0.bias", zeros({3}));
  }
  EXPECT_EQ(&module->get_parameter("0.weight").impl(), &weight.impl());
  for (const auto& [name, t] : held) EXPECT_TRUE(equal(*module->find_tensor(name), t)) << name;
}

}  // namespace
}  // namespace calque::preserve_test
