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

TEST(GradNode, an_argument_that_is_none_has_its_place_among_a_formulas_gradients) {
  const Tensor x = full({3}, Scalar(2.0)), most = full({3}, Scalar(1.0)).set_requires_grad();
  const TensorVector gradients = grad({clamp_Tensor(x, {}, most).sum()}, {most});
  EXPECT_TRUE(equal(gradients[0], ones({3})));
}

TEST(InPlace, what_a_call_overwrites_keeps_its_history) {
  const Tensor x = full({2}, Scalar(0.5), DType::float64).set_requires_grad();
  const Tensor y = x.clone();
  y.sin_();
  const Tensor slope = grad({y.sum()}, {x}, {.create_graph = true})[0];
  const Tensor curve = grad({slope.sum()}, {x})[0];
  EXPECT_TRUE(allclose(curve, x.detach().sin().neg()));
}

TEST(InPlace, a_comparison_forgets_what_it_overwrites) {
  const Tensor x = randn({3}).set_requires_grad(), other = randn({3}).set_requires_grad();
  const Tensor y = x.clone();
  y.lt_(other);
  const TensorVector gradients = grad({y.sum()}, {x, other});
  EXPECT_TRUE(equal(gradients[0], zeros({3})));
  EXPECT_TRUE(equal(gradients[1], zeros({3})));
}

TEST(InPlace, an_argument_that_a_call_writes_is_kept_as_it_is_then) {
  const Tensor x = full({4}, Scalar(-1.0)).set_requires_grad(), noise = empty({4});
  const Tensor y = rrelu_with_noise(x, noise, Scalar(0.25), Scalar(0.75), true);
  EXPECT_TRUE(equal(grad({y.sum()}, {x})[0], noise));
}

}  // namespace
}  // namespace calque
