// Checkpointing: both forms give the gradients that there are without, and keep less. What the rows of torch.utils.checkpoint ask.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/warning.h"
#include "calque/grad/checkpoint.h"
#include "calque/op/autocast.h"
#include "calque/op/ops.h"
#include "calque/tensor/generator.h"
#include "support/live_bytes.h"

namespace calque::checkpoint_test {
namespace {

using testing::HasSubstr;

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

Tensor drawn(std::initializer_list<int64_t> sizes, bool trained = true) {
  Tensor t = randn(SymInts(sizes.begin(), sizes.end()), DType::float64);
  return trained ? t.set_requires_grad() : t;
}

// A layer of two products with a weight that is closed over, as a module's is.
struct Layer {
  Tensor first = drawn({6, 6}), second = drawn({6, 6});
  mutable int calls = 0;
  double drop = 0;
  TensorVector operator()(const TensorVector& x) const {
    ++calls;
    return {dropout(tanh(x[0].matmul(first)), drop, drop > 0).matmul(second).sigmoid()};
  }
  std::vector<Tensor> gradients(const Tensor& x) const {
    std::vector<Tensor> out{grad_of(first).clone(), grad_of(second).clone(), grad_of(x).clone()};
    for (const Tensor& t : {first, second, x}) set_grad(t, Tensor());
    return out;
  }
};

constexpr CheckpointingOptions plain{}, reentrant{.use_reentrant = true};

class BothForms : public testing::TestWithParam<CheckpointingOptions> {};
INSTANTIATE_TEST_SUITE_P(Checkpoint, BothForms, testing::Values(plain, reentrant));

void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(equal(a[i], b[i])) << i;
}

TEST_P(BothForms, give_the_gradients_that_there_are_without) {
  manual_seed(1);
  const Layer layer;
  const Tensor x = drawn({4, 6});
  backward(layer({x})[0].sum());
  const std::vector<Tensor> expected = layer.gradients(x);
  const Tensor y = checkpoint(std::cref(layer), {x}, GetParam())[0];
  EXPECT_EQ(layer.calls, 2);
  backward(y.sum());
  EXPECT_EQ(layer.calls, 3);  // computed again
  expect_equal(layer.gradients(x), expected);
}

TEST_P(BothForms, draw_the_same_random_numbers_again) {
  manual_seed(2);
  Layer layer;
  layer.drop = 0.5;
  const Tensor x = drawn({4, 6});
  manual_seed(3);
  backward(layer({x})[0].sum());
  const std::vector<Tensor> expected = layer.gradients(x);
  const Tensor next = rand({3});
  manual_seed(3);
  const Tensor y = checkpoint(std::cref(layer), {x}, GetParam())[0];
  const Tensor between = rand({3});
  backward(y.sum());
  expect_equal(layer.gradients(x), expected);
  EXPECT_TRUE(equal(between, next));
  // And the stream goes on as if nothing had been drawn a second time.
  const Tensor after = rand({3});
  manual_seed(3);
  (void)layer({x});
  (void)rand({3});
  EXPECT_TRUE(equal(after, rand({3})));
}

TEST_P(BothForms, draw_others_where_that_is_asked_for) {
  manual_seed(4);
  Layer layer;
  layer.drop = 0.5;
  const Tensor x = drawn({4, 6});
  CheckpointingOptions options = GetParam();
  options.preserve_rng_state = false;
  manual_seed(5);
  backward(checkpoint(std::cref(layer), {x}, options)[0].sum());
  const std::vector<Tensor> other = layer.gradients(x);
  manual_seed(5);
  backward(layer({x})[0].sum());
  EXPECT_FALSE(equal(layer.gradients(x)[1], other[1]));
}

TEST_P(BothForms, work_inside_of_one_another) {
  manual_seed(6);
  const Layer inner, outer;
  const auto both = [&](const TensorVector& x) { return checkpoint(std::cref(inner), outer(x), GetParam()); };
  const Tensor x = drawn({4, 6});
  backward(inner(outer({x}))[0].sum());
  const std::vector<Tensor> of_outer = outer.gradients(x);
  set_grad(x, zeros_like(x));
  const std::vector<Tensor> of_inner = inner.gradients(x);
  backward(checkpoint(both, {x}, GetParam())[0].sum());
  expect_equal(outer.gradients(x), of_outer);
  set_grad(x, zeros_like(x));
  expect_equal(inner.gradients(x), of_inner);
}

TEST_P(BothForms, autocast_as_the_first_time) {
  manual_seed(7);
  const Layer layer{.first = randn({6, 6}).set_requires_grad(), .second = randn({6, 6}).set_requires_grad()};
  const Tensor x = randn({4, 6}).set_requires_grad();
  const auto loss = [&](bool checkpointed) {
    const AutocastScope bf16(DeviceType::cpu, DType::bfloat16);
    return checkpointed ? checkpoint(std::cref(layer), {x}, GetParam())[0].sum() : layer({x})[0].sum();
  };
  backward(loss(false));
  const std::vector<Tensor> expected = layer.gradients(x);
  backward(loss(true));
  expect_equal(layer.gradients(x), expected);
}

TEST_P(BothForms, keep_their_inputs_alone) {
  manual_seed(8);
  std::vector<Layer> layers(8);
  const auto kept = [&](bool checkpointed) {
    test::LiveBytes live;
    Tensor x = drawn({64, 6});
    {
      const ModeScope counting(live);
      for (const Layer& layer : layers) x = checkpointed ? checkpoint(std::cref(layer), {x}, GetParam())[0] : layer({x})[0];
    }
    return live.count();
  };
  const size_t whole = kept(false), part = kept(true), one = 64 * 6 * sizeof(double);
  EXPECT_GE(whole, 16 * one);  // of each layer what tanh and sigmoid gave
  EXPECT_LE(part, 8 * one);    // of each layer what came out
}

TEST_P(BothForms, take_and_give_values_of_any_structure) {
  manual_seed(9);
  const Tensor x = drawn({2, 3}), y = drawn({2, 3});
  const auto function = [](const Value& inputs) {
    const Values& items = inputs.to_items();
    const Tensor a = items[0].to_tensor(), b = items[1].to_items()[0].to_tensor();
    return tuple({a * b, tuple({Value(items[1].to_items()[1].to_int() + 1), a.exp()})});
  };
  const Value out = checkpoint_values(function, tuple({x, tuple({y, 4})}), GetParam());
  EXPECT_EQ(out.to_items()[1].to_items()[0].to_int(), 5);
  backward((out.to_items()[0].to_tensor() + out.to_items()[1].to_items()[1].to_tensor()).sum());
  EXPECT_TRUE(equal(grad_of(x), y + x.exp()));
  EXPECT_TRUE(equal(grad_of(y), x));
}

TEST(Checkpoint, without_gradients_is_the_function) {
  const Layer layer;
  const NoGradGuard no_grad;
  const Tensor y = checkpoint(std::cref(layer), {drawn({4, 6})})[0];
  EXPECT_EQ(layer.calls, 1);
  EXPECT_FALSE(y.requires_grad());
}

TEST(Checkpoint, stops_with_the_last_tensor_that_is_needed) {
  const Tensor x = drawn({3});
  int ends = 0;
  const auto function = [&](const TensorVector& in) {
    TensorVector out{in[0].exp() * 2};
    ++ends;
    return out;
  };
  backward(checkpoint(function, {x})[0].sum());
  EXPECT_EQ(ends, 1);
  backward(checkpoint(function, {x}, {.early_stop = false})[0].sum());
  EXPECT_EQ(ends, 3);
}

TEST(Checkpoint, says_when_the_second_time_keeps_other_tensors) {
  const Tensor x = drawn({3});
  int64_t calls = 0;
  const auto more = [&](const TensorVector& in) { return TensorVector{++calls == 1 ? in[0].exp() : in[0].neg()}; };
  const Tensor y = checkpoint(more, {x})[0];
  EXPECT_THAT(error_of([&] { backward(y.sum()); }),
              HasSubstr("a different number of tensors was saved during the original forward and recomputation"));
  calls = 0;
  const auto longer = [&](const TensorVector& in) {
    return TensorVector{cat({in[0], ones({calls++}, DType::float64)}).exp().sum()};
  };
  const Tensor z = checkpoint(longer, {x})[0];
  EXPECT_THAT(error_of([&] { backward(z); }), HasSubstr("recomputed values have different metadata"));
}

TEST(Checkpoint, gradients_of_gradients_go_through_the_form_without_a_second_pass) {
  const Tensor x = drawn({3});
  const auto cube = [](const TensorVector& in) { return TensorVector{in[0] * in[0] * in[0]}; };
  const Tensor first = grad({checkpoint(cube, {x})[0].sum()}, {x}, {.create_graph = true})[0];
  backward(first.sum());
  EXPECT_TRUE(allclose(grad_of(x), x * 6));
}

TEST(Checkpoint, the_form_with_a_second_pass_warns_where_no_input_wants_a_gradient) {
  reset_warnings();
  std::vector<std::string> warnings;
  const WarningSink before = set_warning_sink([&](std::string_view text) { warnings.emplace_back(text); });
  const Layer layer;
  const Tensor y = checkpoint(std::cref(layer), {drawn({4, 6}, false)}, reentrant)[0];
  set_warning_sink(before);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(warnings, std::vector<std::string>{"checkpoint: none of the inputs has requires_grad. Gradients will be none"});
  // The other form does without.
  backward(checkpoint(std::cref(layer), {drawn({4, 6}, false)})[0].sum());
  EXPECT_TRUE(grad_of(layer.first).defined());
}

TEST(Checkpoint, a_row_of_functions_is_checkpointed_in_parts) {
  manual_seed(10);
  std::vector<Layer> layers(5);
  const std::vector<CheckpointedFunction> functions(layers.begin(), layers.end());
  const Tensor x = drawn({4, 6});
  Tensor y = x;
  for (const Layer& layer : layers) y = layer({y})[0];
  backward(y.sum());
  const Tensor expected = grad_of(x).clone();
  for (const size_t segments : {1, 2, 5}) {
    set_grad(x, Tensor());
    backward(checkpoint_sequential(functions, segments, {x})[0].sum());
    EXPECT_TRUE(equal(grad_of(x), expected)) << segments;
  }
  EXPECT_EQ(error_of([&] { (void)checkpoint_sequential(functions, 6, {x}); }),
            "checkpoint_sequential: 5 functions cannot be 6 parts");
}

}  // namespace
}  // namespace calque::checkpoint_test
