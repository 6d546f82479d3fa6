// Checkpointing under make_fx: a region leaves no mark in the forward pass, and is computed again in a backward pass that is traced. The
// expected graphs are PyTorch 2.13's.
#include <gtest/gtest.h>

#include "calque/grad/checkpoint.h"
#include "calque/graph/graph_module.h"
#include "calque/graph/text.h"
#include "calque/op/ops.h"
#include "calque/trace/make_fx.h"
#include "support/live_bytes.h"

namespace calque::checkpoint_trace_test {
namespace {

TensorVector body(const TensorVector& x) { return {sigmoid(tanh(x[0]) * 2)}; }

TEST(TracedCheckpoint, is_computed_again_in_the_backward_pass) {
  const auto f = [](const Values& in) -> Value {
    const Tensor x = in[0].to_tensor();
    return grad({checkpoint(body, {x})[0].sum()}, {x})[0];
  };
  EXPECT_EQ(make_fx_values(f, {randn({3}).set_requires_grad()}, {}).module->code(), R"(


def forward(self, arg0_1):
    tanh = torch.ops.aten.tanh.default(arg0_1)
    mul = torch.ops.aten.mul.Tensor(tanh, 2);  tanh = None
    sigmoid = torch.ops.aten.sigmoid.default(mul);  mul = None
    sum_1 = torch.ops.aten.sum.default(sigmoid);  sigmoid = None
    ones_like = torch.ops.aten.ones_like.default(sum_1);  sum_1 = None
    expand = torch.ops.aten.expand.default(ones_like, [3]);  ones_like = None
    tanh_1 = torch.ops.aten.tanh.default(arg0_1);  arg0_1 = None
    detach = torch.ops.aten.detach.default(tanh_1)
    mul_1 = torch.ops.aten.mul.Tensor(tanh_1, 2);  tanh_1 = None
    sigmoid_1 = torch.ops.aten.sigmoid.default(mul_1);  mul_1 = None
    detach_1 = torch.ops.aten.detach.default(sigmoid_1);  sigmoid_1 = None
    detach_2 = torch.ops.aten.detach.default(detach_1);  detach_1 = None
    sigmoid_backward = torch.ops.aten.sigmoid_backward.default(expand, detach_2);  expand = detach_2 = None
    mul_2 = torch.ops.aten.mul.Tensor(sigmoid_backward, 2);  sigmoid_backward = None
    detach_3 = torch.ops.aten.detach.default(detach);  detach = None
    tanh_backward = torch.ops.aten.tanh_backward.default(mul_2, detach_3);  mul_2 = detach_3 = None
    return tanh_backward
    )");
}

TEST(TracedCheckpoint, leaves_no_mark_in_a_forward_pass) {
  const auto plain = [](const Values& in) -> Value { return body({in[0].to_tensor()})[0]; };
  for (const bool reentrant : {false, true}) {
    const auto f = [&](const Values& in) -> Value {
      return checkpoint(body, {in[0].to_tensor()}, {.use_reentrant = reentrant})[0];
    };
    EXPECT_EQ(make_fx_values(f, {randn({3})}, {}).module->code(), make_fx_values(plain, {randn({3})}, {}).module->code());
  }
}

TEST(TracedCheckpoint, the_region_that_dynamo_makes_runs_checkpointed) {
  Graph g = parse_graph(R"(
    %x = placeholder
    %wrap_body_0 = get_attr[wrap_body_0]
    %region = torch.ops.higher_order.tag_activation_checkpoint(%wrap_body_0, %x, use_reentrant=False)
    return %region)");
  auto region = std::make_shared<GraphModule>(
      parse_graph("%x = placeholder\n%y = aten.tanh.default(%x)\n%z = aten.exp.default(%y)\nreturn %z"));
  GraphModule gm({{"wrap_body_0", std::move(region)}}, std::move(g));
  const Tensor x = randn({64}).set_requires_grad();
  test::LiveBytes live;
  Tensor y;
  {
    const ModeScope counting(live);
    y = gm({x}).to_tensor();
  }
  EXPECT_LE(live.count(), 64 * sizeof(float));  // the result; without the region tanh's too
  backward(y.sum());
  EXPECT_TRUE(allclose(grad_of(x), tanh(x).exp() * (1 - tanh(x) * tanh(x))));
}

}  // namespace
}  // namespace calque::checkpoint_trace_test
