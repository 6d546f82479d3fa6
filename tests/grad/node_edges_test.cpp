// What the nodes of operators look like to those who walk the graph.
#include <gtest/gtest.h>

#include "calque/grad/autograd.h"
#include "calque/op/ops.h"

namespace calque {
namespace {

TEST(GradNode, edges_follow_the_arguments_whatever_order_the_formulas_run_in) {
  const Tensor a = randn({3}).set_requires_grad(), b = randn({3}).set_requires_grad();
  const Ref<GradNode> node = grad_fn(a.mul(b));
  ASSERT_EQ(node->next.size(), 2U);
  EXPECT_EQ(node->next[0].node.get(), accumulator_of(a).get());
  EXPECT_EQ(node->next[1].node.get(), accumulator_of(b).get());
}

TEST(GradNode, each_argument_gets_its_own_gradient) {
  const Tensor a = randn({3}).set_requires_grad(), b = randn({3}).set_requires_grad();
  const TensorVector gradients = grad({a.mul(b).sum()}, {a, b});
  EXPECT_TRUE(equal(gradients[0], b.detach()));
  EXPECT_TRUE(equal(gradients[1], a.detach()));
}

TEST(GradNode, a_piece_that_nobody_used_has_zeros_for_its_gradient) {
  const Tensor a = randn({4}).set_requires_grad();
  const TensorVector pieces = a.split(1);
  const TensorVector gradients = grad({pieces[1].sum()}, {a});
  EXPECT_EQ(gradients[0].to(DType::int64).sum().item<int64_t>(), 1);
  EXPECT_EQ(gradients[0].data_as<float>()[1], 1.0F);
}

}  // namespace
}  // namespace calque
