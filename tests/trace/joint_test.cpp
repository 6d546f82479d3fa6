// Functions with their backward pass as one graph. Printed forms are PyTorch 2.13's.
#include "calque/trace/joint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/grad/autograd.h"
#include "calque/op/ops.h"

namespace calque::joint_test {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

Value scaled(const Values& args) {
  const Tensor& x = args[0].to_tensor();
  return tuple({x * x * Scalar(args[1].to_int()), 3, Value()});
}

TEST(AotExportJointSimple, prints_as_pytorch_does) {
  const Tensor w = rand({5, 4}).set_requires_grad();
  EXPECT_EQ(aot_export_joint_simple(scaled, {w, 3})->code(),
            R"(


def forward(self, primals, tangents):
    primals_1, primals_2, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
    mul = torch.ops.aten.mul.Tensor(primals_1, primals_1)
    mul_1 = torch.ops.aten.mul.Tensor(mul, 3);  mul = None
    mul_2 = torch.ops.aten.mul.Tensor(tangents_1, 3);  tangents_1 = None
    mul_3 = torch.ops.aten.mul.Tensor(mul_2, primals_1)
    mul_4 = torch.ops.aten.mul.Tensor(mul_2, primals_1);  mul_2 = primals_1 = None
    add = torch.ops.aten.add.Tensor(mul_4, mul_3);  mul_4 = mul_3 = None
    return pytree.tree_unflatten([mul_1, 3, None, add, None], self._out_spec)
    )");
  EXPECT_EQ(aot_export_joint_simple(scaled, {w.detach(), 3}, {.trace_joint = false})->code(), R"(


def forward(self, arg0_1, arg1_1):
    mul = torch.ops.aten.mul.Tensor(arg0_1, arg0_1);  arg0_1 = None
    mul_1 = torch.ops.aten.mul.Tensor(mul, 3);  mul = None
    return (mul_1, 3, None)
    )");
}

TEST(AotExportJointSimple, computes_what_an_eager_pass_does) {
  const auto f = [](const Values& args) -> Value {
    const Tensor& x = args[0].to_tensor();
    const Tensor& w = args[1].to_tensor();
    const Tensor y = x.matmul(w.t()).softmax(-1);
    return tuple({y, y.sum().detach(), w.exp()});
  };
  const Tensor x = rand({3, 4}).set_requires_grad(), w = rand({5, 4}).set_requires_grad();
  const auto joint = aot_export_joint_simple(f, {x, w});
  const Tensor a = rand({3, 5}), b = rand({5, 4});
  const Values both = joint->call({list({x.detach(), w.detach()}), list({a, b})}).to_items();
  const Values got = both[0].to_items(), back = both[1].to_items();
  const Values outputs = f({x, w}).to_items();
  const TensorVector gradients = grad({outputs[0].to_tensor(), outputs[2].to_tensor()}, {x, w}, {.grad_outputs = {a, b}});
  ASSERT_EQ(got.size(), 3u);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_TRUE(allclose(got[0].to_tensor(), outputs[0].to_tensor().detach()));
  EXPECT_TRUE(allclose(back[0].to_tensor(), gradients[0]));
  EXPECT_TRUE(allclose(back[1].to_tensor(), gradients[1]));
}

TEST(AotExportJointSimple, refuses_what_needs_another_calling_convention) {
  const Tensor x = rand({3}).set_requires_grad();
  const auto error = [&](const std::function<Value(const Values&)>& f, const Values& args) {
    return error_of([&] { aot_export_joint_simple(f, args, {.trace_joint = false}); });
  };
  EXPECT_THAT(error(
                  [](const Values& v) -> Value {
                    v[0].to_tensor().add_(1);
                    return tuple({v[0].to_tensor() * 2});
                  },
                  {x.detach()}),
              HasSubstr("does not support input mutations: the function writes argument 0"));
  EXPECT_THAT(error(
                  [](const Values& v) -> Value {
                    return tuple({v[0].to_tensor().view({1, 3})});
                  },
                  {x}),
              HasSubstr("does not support outputs that alias inputs, as output 0 does"));
  EXPECT_THAT(error([](const Values& v) -> Value { return v[0].to_tensor() + 1; }, {x}),
              HasSubstr("requires outputs to be a single list or tuple"));
  EXPECT_THAT(error([](const Values& v) -> Value { return tuple({tuple({v[0].to_tensor() + 1})}); }, {x}),
              HasSubstr("requires individual outputs not to be pytrees"));
  EXPECT_THAT(error([](const Values& v) -> Value { return tuple({v[0].to_items()[0]}); }, {list({x})}),
              HasSubstr("requires individual inputs not to be pytrees"));
}

}  // namespace
}  // namespace calque::joint_test
