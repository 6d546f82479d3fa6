// compile() where gradients are wanted: a forward and a backward plan behind one node. What must come out is what eager code gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/compile/compile.h"
#include "calque/compile/metrics.h"
#include "calque/compile/structured_trace.h"
#include "calque/grad/autograd.h"
#include "calque/nn/nn.h"
#include "calque/op/ops.h"
#include "calque/tensor/generator.h"
#include "support/error_support.h"

namespace calque::training_test {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Net : Typed<Net> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> first = child<Linear>("first", 6, 8);
  Child<BatchNorm1d> norm = child<BatchNorm1d>("norm", 8);
  Child<Linear> second = child<Linear>("second", 8, 3);
  Tensor forward(const Tensor& x) { return second(gelu(norm(first(x)))); }
};

struct Tied : Typed<Tied> {
  static constexpr const char* forward_arguments[] = {"ids"};
  Child<Embedding> tokens = child<Embedding>("tokens", 11, 4);
  Child<Linear> head = child<Linear>("head", 4, 11);
  Tied() { head->weight = *tokens->weight; }
  Tensor forward(const Tensor& ids) { return head(tokens(ids).tanh()); }
};

template <class M>
std::pair<std::shared_ptr<M>, std::shared_ptr<M>> twins() {
  manual_seed(5);
  auto a = std::make_shared<M>();
  manual_seed(5);
  return {a, std::make_shared<M>()};
}

void expect_equal_gradients(const Module& a, const Module& b) {
  const auto x = a.named_parameters(), y = b.named_parameters();
  for (size_t i = 0; i < x.size(); ++i) {
    const Tensor p = grad_of(x[i].second), q = grad_of(y[i].second);
    ASSERT_EQ(p.defined(), q.defined()) << x[i].first;
    if (!p.defined()) continue;
    EXPECT_TRUE(allclose(p, q, 1e-5, 1e-6)) << x[i].first;
  }
  const auto s = a.named_buffers(), t = b.named_buffers();
  for (size_t i = 0; i < s.size(); ++i)
    EXPECT_TRUE(allclose(s[i].second.to(DType::float64), t[i].second.to(DType::float64))) << s[i].first;
}

// The only node between the result and the leaves.
std::string node_of(const Tensor& t) { return grad_fn(t) ? grad_fn(t)->name() : ""; }

TEST(CompiledTraining, gradients_and_buffers_are_those_of_eager_code) {
  const auto [eager, module] = twins<Net>();
  const Compiled compiled = compile(module);
  for (const int64_t rows : {4, 4, 7, 9}) {
    const Tensor x = rand({rows, 6}), target = rand({rows, 3});
    const Tensor y = compiled.call({x}).to_tensor();
    EXPECT_EQ(node_of(y), "CompiledFunctionBackward");
    backward((y - target).square().mean());
    backward((eager->call({x}).to_tensor() - target).square().mean());
    expect_equal_gradients(*module, *eager);
  }
  EXPECT_EQ(compiled.cache_size(), 2u);  // the second size made it a symbol
}

TEST(CompiledTraining, a_step_of_plain_descent_equals_an_eager_one) {
  const auto [eager, module] = twins<Net>();
  const Compiled compiled = compile(module);
  const auto step = [](const Module& m, const Tensor& loss) {
    backward(loss);
    const NoGradGuard off;
    for (const Tensor& p : m.parameters()) p.sub_(grad_of(p) * 0.1);
    zero_grad(m.parameters());
  };
  for (int i = 0; i < 5; ++i) {
    const Tensor x = rand({6, 6});
    step(*module, compiled.call({x}).to_tensor().exp().mean());
    step(*eager, eager->call({x}).to_tensor().exp().mean());
  }
  const auto a = module->parameters(), b = eager->parameters();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(allclose(a[i].detach(), b[i].detach(), 1e-5, 1e-6)) << i;
  EXPECT_EQ(compiled.cache_size(), 1u);
}

TEST(CompiledTraining, a_shared_parameter_has_the_sum_of_both_gradients) {
  const auto [eager, module] = twins<Tied>();
  const Tensor ids = tensor_of<int64_t>({1, 5, 5, 2}, {2, 2});
  const Compiled compiled = compile(module);
  backward(compiled.call({ids}).to_tensor().logsumexp({-1}).sum());
  backward(eager->call({ids}).to_tensor().logsumexp({-1}).sum());
  expect_equal_gradients(*module, *eager);
}

TEST(CompiledTraining, inputs_have_gradients_and_plain_results_have_none) {
  const auto f = [](const Tensor& x, const Tensor& w) {
    const Tensor y = x * w.exp();
    return std::tuple<Tensor, Tensor, Tensor>{y, y.argmax(-1), (x + 1).detach()};
  };
  const auto g = compile(f);
  const Tensor x = rand({3, 4}).set_requires_grad(), w = rand({4});
  const auto [y, best, plain] = g(x, w);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(best.requires_grad());
  EXPECT_FALSE(plain.requires_grad());
  const TensorVector got = grad({y.sum()}, {x});  // its tangent is expanded: of other strides than the result
  EXPECT_TRUE(allclose(got[0], w.exp().expand({3, 4})));
}

// Guards keep them apart: what wants a gradient, and whether gradients are recorded.
TEST(CompiledTraining, other_wishes_are_other_captures) {
  const auto f = compile([](const Tensor& x, const Tensor& w) { return (x * w).sin(); });
  const Tensor x = rand({3}), w = rand({3}).set_requires_grad();
  EXPECT_EQ(node_of(f(x, w)), "CompiledFunctionBackward");
  EXPECT_FALSE(f(x, w.detach()).requires_grad());
  {
    const NoGradGuard off;
    EXPECT_FALSE(f(x, w).requires_grad());
  }
  EXPECT_EQ(node_of(f(x, w)), "CompiledFunctionBackward");
  EXPECT_EQ(f.cache_size(), 3u);
}

TEST(CompiledTraining, random_numbers_are_those_of_eager_code_in_both_passes) {
  const auto f = [](const Tensor& x) { return dropout(x.sin(), 0.5, true) * x; };
  const auto g = compile(f);
  const Tensor x = rand({40}).set_requires_grad();
  for (const uint64_t seed : {1u, 2u}) {
    manual_seed(seed);
    const Tensor a = grad({f(x).sum()}, {x})[0];
    manual_seed(seed);
    EXPECT_TRUE(allclose(grad({g(x).sum()}, {x})[0], a));
  }
}

TEST(CompiledTraining, what_is_kept_may_not_be_written_before_the_backward_pass) {
  const auto f = compile([](const Tensor& x, const Tensor& w) { return x.matmul(w); });
  const Tensor x = rand({2, 3}), w = rand({3, 2}).set_requires_grad();
  const Tensor y = f(x, w);
  x.add_(1);
  EXPECT_THAT(error_of([&] { backward(y.sum()); }), HasSubstr("modified by an in"));
}

TEST(CompiledTraining, the_second_pass_and_gradients_of_gradients_are_refused) {
  const auto f = compile([](const Tensor& x) { return x.sin().exp(); });
  const Tensor x = rand({2}).set_requires_grad();
  const Tensor y = f(x);
  EXPECT_THAT(error_of([&] { grad({y.sum()}, {x}, {.create_graph = true}); }),
              HasSubstr("compile it with backend \"eager\""));
  const Tensor z = f(x);
  backward(z.sum());
  EXPECT_THAT(error_of([&] { backward(z.sum()); }), HasSubstr("a second time"));
}

// What has no forward and backward graph runs recorded, as it is.
TEST(CompiledTraining, views_of_inputs_stay_views_with_gradients) {
  const auto f = compile([](const Tensor& x) { return x.view({2, 3}); });
  const Tensor x = rand({6}).set_requires_grad();
  const Tensor y = f(x);
  EXPECT_EQ(y.storage().get(), x.storage().get());
  EXPECT_TRUE(allclose(grad({(y * 2).sum()}, {x})[0], full({6}, Scalar(2.0))));
}

struct Doubled : GradFunction {
  TensorVector forward(const TensorVector& x) override { return {x[0] * 1.0}; }
  TensorVector backward(const TensorVector& g) override { return {g[0] * 2.0}; }
};

// A graph would have the function's calls and lose the gradient that it was given.
TEST(CompiledTraining, functions_with_a_gradient_of_their_own_run_eagerly) {
  const auto f = [](const Tensor& x) { return apply_function(std::make_shared<Doubled>(), {x.sin()})[0] * 3.0; };
  const auto g = compile(f);
  const Tensor x = rand({4}).set_requires_grad();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(allclose(grad({g(x).sum()}, {x})[0], x.detach().cos() * 6.0));
  EXPECT_THAT(g.graph_breaks().at(0).reason, HasSubstr("has a gradient of its own (GradFunction)"));
  const NoGradGuard off;
  EXPECT_TRUE(allclose(g(x), x.detach().sin() * 3.0));
}

// A size that only a result has: the forward pass computes it, it is not read off the tangent.
TEST(CompiledTraining, results_may_have_sizes_that_are_computed) {
  const auto f = [](const Tensor& x) { return x.unfold(0, 3, 2).exp().reshape({-1}) * 2.0; };
  const auto g = compile(f, {.dynamic = true});
  for (const int64_t rows : {11, 17, 8}) {
    const Tensor x = rand({rows}).set_requires_grad();
    const Tensor y = g(x);
    EXPECT_EQ(node_of(y), "CompiledFunctionBackward");
    EXPECT_TRUE(allclose(grad({y.sum()}, {x})[0], grad({f(x).sum()}, {x})[0]));
  }
  EXPECT_EQ(g.cache_size(), 1u);
}

TEST(CompiledTraining, the_backward_pass_has_a_record_of_its_own) {
  clear_compilation_metrics();
  const auto f = compile([](const Tensor& x) { return x.sin().exp(); }, {.name = "waves"});
  const Tensor x = rand({2}).set_requires_grad();
  const Tensor y = f(x);
  ASSERT_EQ(get_compilation_metrics().size(), 1u);
  backward(y.sum());
  backward(f(x).sum());
  const auto records = get_compilation_metrics();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_TRUE(records[0].is_forward);
  EXPECT_FALSE(records[1].is_forward);
  EXPECT_EQ(records[0].compile_id, records[1].compile_id);
  EXPECT_EQ(records[1].co_name, "waves");
  EXPECT_EQ(records[1].backward_cumulative_compile_time_us, records[1].duration_us);
  EXPECT_GT(records[1].graph_op_count.value_or(0), 0);
}

}  // namespace
}  // namespace calque::training_test
