// cond, while_loop, map and scan: run, traced to graphs within graphs, replayed, functionalised.
#include "calque/graph/higher_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/literal.h"
#include "calque/trace/functional.h"
#include "calque/trace/make_fx.h"

namespace calque::higher_order_test {
namespace {

using ::testing::HasSubstr;

const MakeFxOptions symbolic{.mode = TracingMode::symbolic};

std::string calls(const Graph& g) {
  std::string text;
  for (const Node* n : g.nodes())
    if (n->kind() == NodeKind::call_function) text += (text.empty() ? "" : " ") + n->target().str();
  return text;
}

const Graph& subgraph(const TracedGraph& g, size_t i) {
  return dynamic_cast<const GraphModule&>(*g.module->named_children()[i].second).graph();
}

Value by_sign(const Values& in) {
  return cond(
      in[0].to_tensor().sum() > 0, [](const Values& x) -> Value { return x[0].to_tensor().sin(); },
      [](const Values& x) -> Value { return x[0].to_tensor().cos(); }, {in[0]});
}

TEST(HigherOrder, the_graph_module_outlives_the_trace_and_copies_with_its_graphs) {
  const Tensor bias = rand({3});
  std::shared_ptr<Module> copy;
  {
    const TracedGraph g =
        make_fx_values([&](const Values& in) -> Value { return by_sign(in).to_tensor() + bias; }, {ones({3})}, {});
    EXPECT_THAT(g.module->print_readable(), HasSubstr("class true_graph_0(torch.nn.Module)"));
    copy = g.module->deep_copy();
    copy->set_tensor("_tensor_constant0", zeros({3}));
    EXPECT_TRUE(allclose(g(ones({3})).to_tensor(), ones({3}).sin() + bias));
  }
  EXPECT_TRUE(allclose(copy->call({ones({3})}).to_tensor(), ones({3}).sin()));
  EXPECT_TRUE(allclose(copy->call({-ones({3})}).to_tensor(), ones({3}).cos()));
}

TEST(HigherOrder, cond_runs_one_branch) {
  EXPECT_TRUE(allclose(by_sign({ones({3})}).to_tensor(), ones({3}).sin()));
  EXPECT_TRUE(allclose(by_sign({-ones({3})}).to_tensor(), ones({3}).cos()));
}

TEST(HigherOrder, cond_is_one_node_with_two_graphs) {
  for (const TracingMode mode : {TracingMode::real, TracingMode::fake, TracingMode::symbolic}) {
    const TracedGraph g = make_fx_values(by_sign, {ones({3})}, {.mode = mode});
    EXPECT_EQ(calls(g.graph()), "aten.sum.default aten.gt.Scalar torch.ops.higher_order.cond operator.getitem")
        << g.graph().str();
    ASSERT_EQ(g.module->named_children().size(), 2U);
    EXPECT_EQ(g.module->named_children()[0].first, "true_graph_0");
    EXPECT_EQ(calls(subgraph(g, 0)), "aten.sin.default");
    EXPECT_EQ(calls(subgraph(g, 1)), "aten.cos.default");
    EXPECT_TRUE(allclose(g(full({3}, 2.0)).to_tensor(), full({3}, 2.0).sin()));
    EXPECT_TRUE(allclose(g(full({3}, -2.0)).to_tensor(), full({3}, -2.0).cos()));
  }
}

TEST(HigherOrder, what_a_branch_closes_over_becomes_an_input_of_both) {
  const auto f = [](const Tensor& x, const Tensor& y) {
    return cond(
        x.sum() > 0, [&](const Values& in) -> Value { return in[0].to_tensor() + y; },
        [&](const Values& in) -> Value { return in[0].to_tensor() * in[0].to_tensor().sym_size(0); }, {x});
  };
  const TracedGraph g = make_fx(f, symbolic)(ones({3}), ones({3}));
  EXPECT_EQ(subgraph(g, 0).placeholders().size(), subgraph(g, 1).placeholders().size());
  const Tensor x = rand({5}), y = rand({5});
  EXPECT_TRUE(allclose(g(x, y).to_tensor(), x + y));
  EXPECT_TRUE(allclose(g(-x, y).to_tensor(), x * -5));
}

TEST(HigherOrder, branches_must_agree) {
  const auto f = [](const Tensor& x) {
    return cond(
        x.sum() > 0, [](const Values& in) -> Value { return in[0].to_tensor().sum(); },
        [](const Values& in) -> Value { return in[0]; }, {x});
  };
  try {
    make_fx(f, symbolic)(ones({3}));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("both branches must give tensors of the same sizes"));
  }
}

TEST(HigherOrder, while_loop_repeats_and_is_one_node) {
  const auto f = [](const Tensor& n, const Tensor& x) -> Value {
    return while_loop([](const Values& in) -> Value { return in[0].to_tensor() > 0; },
                      [](const Values& in) -> Value {
                        return tuple({in[0].to_tensor() - 1, in[1].to_tensor() * 2});
                      },
                      {n, x});
  };
  EXPECT_TRUE(allclose(f(tensor(3), ones({2})).to_items()[1].to_tensor(), full({2}, 8.0)));
  const TracedGraph g = make_fx(f, symbolic)(tensor(3), ones({2}));
  EXPECT_THAT(calls(g.graph()), HasSubstr("torch.ops.higher_order.while_loop"));
  EXPECT_EQ(g.module->named_children()[0].first, "while_loop_cond_graph_0");
  EXPECT_TRUE(allclose(g(tensor(5), ones({4})).to_items()[1].to_tensor(), full({4}, 32.0)));
}

TEST(HigherOrder, map_and_scan_go_along_the_first_dimension) {
  const auto f = [](const Tensor& xs, const Tensor& y) {
    return map([](const Values& in) -> Value { return in[0].to_tensor() * in[1].to_tensor() + 1; }, xs, {y});
  };
  const TracedGraph g = make_fx(f, symbolic)(rand({3, 4}), rand({4}));
  const Tensor xs = rand({5, 6}), y = rand({6});
  EXPECT_TRUE(allclose(g(xs, y).to_tensor(), xs * y + 1));

  const auto sums = [](const Tensor& init, const Tensor& x) -> Value {
    const auto [carry, ys] = scan(
        [](const Value& c, const Value& v) {
          const Tensor next = c.to_tensor() + v.to_tensor();
          return std::pair<Value, Value>(next, next * 1);
        },
        init, x);
    return tuple({carry, ys});
  };
  const TracedGraph s = make_fx(sums, symbolic)(zeros({4}), rand({3, 4}));
  const Value out = s(zeros({6}), xs);
  EXPECT_TRUE(allclose(out.to_items()[0].to_tensor(), xs.sum({0})));
  EXPECT_TRUE(allclose(out.to_items()[1].to_tensor(), xs.cumsum(0)));
}

TEST(HigherOrder, branches_are_functionalised) {
  const auto f = [](const Values& in) -> Value {
    return cond(
        in[0].to_tensor().sum() > 0,
        [](const Values& x) -> Value {
          const Tensor y = x[0].to_tensor().clone();
          y.add_(1);
          return y;
        },
        [](const Values& x) -> Value { return x[0].to_tensor().clone().mul_(2); }, {in[0]});
  };
  const TracedGraph g = make_fx_values(functionalize(f), {ones({3})}, symbolic);
  for (size_t i = 0; i < g.module->named_children().size(); ++i)
    for (const Node* n : subgraph(g, i).nodes())
      EXPECT_FALSE(n->op() && n->op()->has_tag(Tag::in_place)) << subgraph(g, i).str();
  EXPECT_TRUE(allclose(g(ones({4})).to_tensor(), full({4}, 2.0)));
  EXPECT_TRUE(allclose(g(-ones({4})).to_tensor(), full({4}, -2.0)));
}

}  // namespace
}  // namespace calque::higher_order_test
