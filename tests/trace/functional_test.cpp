// Functionalised functions: no in-place operators are left, results and writes to inputs are the original's.
#include "calque/trace/functional.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/index.h"
#include "calque/trace/make_fx.h"

namespace calque::functional_test {
namespace {

using Function = std::function<Value(const Values&)>;

std::string calls(const TracedGraph& g) {
  std::string text;
  for (const Node* n : g.graph().nodes())
    if (n->kind() == NodeKind::call_function) text += (text.empty() ? "" : " ") + n->target().str();
  return text;
}

void expect_same(const Value& a, const Value& b) {
  ASSERT_TRUE(equal(a.to_tensor(), b.to_tensor())) << a.to_tensor().str() << b.to_tensor().str();
  EXPECT_EQ(str(a.to_tensor().sizes()), str(b.to_tensor().sizes()));
}

// Eager, functionalised, and the functionalised one traced with symbols give the same, inputs included.
TracedGraph check(const Function& f, const std::vector<Tensor>& inputs) {
  const auto copies = [&] {
    Values out;
    for (const Tensor& t : inputs) out.emplace_back(t.clone());
    return out;
  };
  const Values eager_in = copies(), plain_in = copies(), traced_in = copies();
  const Value expected = f(eager_in);
  expect_same(functionalize(f)(plain_in), expected);
  TracedGraph g = make_fx_values(functionalize(f), copies(), {.mode = TracingMode::symbolic});
  expect_same(g.run(traced_in), expected);
  for (size_t i = 0; i < inputs.size(); ++i) {
    expect_same(plain_in[i], eager_in[i]);
    expect_same(traced_in[i], eager_in[i]);
  }
  for (const Node* n : g.graph().nodes())
    if (n->op() && (n->op()->has_tag(Tag::in_place) || n->op()->form() == Operator::Form::mutate)) {
      EXPECT_EQ(n->target().str(), "aten.copy_.default") << g.graph().str();
      EXPECT_EQ(n->args()[0].to_node()->kind(), NodeKind::placeholder) << g.graph().str();
    }
  return g;
}

TEST(Functional, an_in_place_operator_becomes_its_functional_form) {
  const TracedGraph g =
      check([](const Values& in) -> Value { return in[0].to_tensor().clone().add_(1).mul_(2); }, {rand({3, 4})});
  EXPECT_EQ(calls(g), "aten.clone.default aten.add.Tensor aten.mul.Tensor");
}

TEST(Functional, a_write_to_an_input_is_copied_back_at_the_end) {
  const TracedGraph g = check([](const Values& in) -> Value { return in[0].to_tensor().add_(1) * 2; }, {rand({3})});
  EXPECT_EQ(calls(g), "aten.add.Tensor aten.mul.Tensor aten.copy_.default");
}

TEST(Functional, a_write_through_a_view_reaches_the_base_and_its_other_views) {
  const Function views[] = {
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        x.view({12}).add_(1);
        return x;
      },
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        x.transpose(0, 1).mul_(3);
        return x;
      },
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        x.permute({1, 0}).select(0, 2).fill_(7);
        return x;
      },
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        x.slice(1, 1, 3).copy_(x.slice(1, 0, 2));
        return x;
      },
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        x[0].unsqueeze(0).squeeze(0).neg_();
        return x;
      },
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        x.diagonal().zero_();
        return x;
      },
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        x.split(2, 1)[1].add_(5);
        return x;
      },
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        x.unbind(0)[1].relu_();
        return x;
      },
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        const Tensor a = x.view({12}), b = x.select(0, 1);
        a.add_(1);
        b.mul_(2);
        return a + x.view({12});
      },
      [](const Values& in) -> Value {
        in[0].to_tensor().t().select(0, 0).add_(in[0].to_tensor().sum());
        return in[0].to_tensor() + 1;
      },
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        x.unsqueeze_(0);
        x.add_(1);
        x.squeeze_(0);
        x.transpose_(0, 1);
        return x;
      },
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        x.as_strided({2, 2}, {5, 1}, 1).add_(1);
        return x;
      },
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().clone();
        x.set_by({Slice(1, none), 0}, in[0].to_tensor().select(0, 0).slice(0, 0, 2));
        return x;
      },
  };
  for (const Function& f : views) check(f, {rand({3, 4}) - 0.5});
}

TEST(Functional, a_dtype_is_kept_and_out_arguments_are_results) {
  check(
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor().to(DType::float16);
        x.add_(in[0].to_tensor());
        return x;
      },
      {rand({3, 4})});
  check(
      [](const Values& in) -> Value {
        const Tensor x = in[0].to_tensor();
        const Tensor out = x.clone();
        add(x, x, 1, Out(out));
        return out;
      },
      {rand({3, 4})});
}

}  // namespace
}  // namespace calque::functional_test
