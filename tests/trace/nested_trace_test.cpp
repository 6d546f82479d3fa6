// Traces inside traces: each records for itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/graph/higher_order.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/literal.h"
#include "calque/trace/make_fx.h"
#include "calque/trace/tracer.h"

namespace calque::nested_trace_test {
namespace {

std::string calls(const Graph& graph) {
  std::string text;
  for (const Node* n : graph.nodes())
    if (n->kind() == NodeKind::call_function || n->kind() == NodeKind::call_method)
      text += (text.empty() ? "" : " ") + n->target().str();
  return text;
}
std::string calls(const TracedGraph& g) { return calls(g.graph()); }

constexpr TracingMode all_modes[] = {TracingMode::real, TracingMode::fake, TracingMode::symbolic};

TEST(NestedTrace, an_inner_trace_leaves_nothing_in_the_outer_one_in_any_mode) {
  for (const TracingMode outer : all_modes)
    for (const TracingMode inner : all_modes) {
      const auto context = ::testing::Message()
                           << "outer " << static_cast<int>(outer) << ", inner " << static_cast<int>(inner);
      std::string recorded_inside;
      const TracedGraph g = make_fx(
          [&](const Tensor& x) {
            const TracedGraph inside = make_fx([](const Tensor& y) { return y.sin().sum(); }, {.mode = inner})(x);
            recorded_inside = calls(inside);
            return x.cos();
          },
          {.mode = outer})(rand({3, 4}));
      EXPECT_EQ(recorded_inside, "aten.sin.default aten.sum.default") << context;
      EXPECT_EQ(calls(g), "aten.cos.default") << context;
    }
}

TEST(NestedTrace, an_inner_symbolic_trace_keeps_the_outer_ones_symbols) {
  const TracedGraph g = make_fx(
      [&](const Tensor& x) {
        const TracedGraph inside = make_fx([](const Tensor& y) { return y.view({y.sym_size(0) * y.sym_size(1)}); },
                                           {.mode = TracingMode::symbolic})(x);
        EXPECT_EQ(inside.env, x.impl().env);
        EXPECT_EQ(inside.graph().placeholders()[0]->meta.val.to_tensor().sym_size(0).expr(), x.sym_size(0).expr());
        return x.cos();
      },
      {.mode = TracingMode::symbolic})(rand({3, 4}));
  EXPECT_EQ(calls(g), "aten.cos.default");
  EXPECT_EQ(g(rand({5, 6})).to_tensor().sym_sizes().size(), 2U);
}

TEST(NestedTrace, the_graph_of_an_inner_trace_is_recorded_when_it_is_called) {
  const TracedGraph g = make_fx([](const Tensor& x) {
    const TracedGraph inside = make_fx([](const Tensor& y) { return y.sigmoid(); })(x);
    return inside(x).to_tensor().digamma();
  })(rand({3}));
  EXPECT_EQ(calls(g), "aten.sigmoid.default aten.digamma.default");
}

TEST(NestedTrace, a_trace_where_tracing_is_switched_off_records_its_own_calls) {
  std::string recorded_inside;
  const TracedGraph g = make_fx([&](const Tensor& x) {
    const NoTraceScope off;
    recorded_inside = calls(make_fx([](const Tensor& y) { return y.sin(); })(x));
    return x;
  })(rand({3}));
  EXPECT_EQ(recorded_inside, "aten.sin.default");
  EXPECT_EQ(calls(g), "");
}

TEST(NestedTrace, an_isolated_graph_module_and_its_factories_stay_apart) {
  const auto with_factory = [](const Tensor& y) {
    Tensor value = tensor(1.0);
    value.add_(2);
    return full({10, 10}, 3.0).sum() + value + y.sum();
  };
  std::string first, second;
  const auto middle = [&](const Tensor& x) {
    first = calls(get_isolated_graphmodule(with_factory, std::tuple(x))->graph());
    return x.sigmoid();
  };
  const TracedGraph g = make_fx([&](const Tensor& x) {
    second = calls(get_isolated_graphmodule(middle, std::tuple(x))->graph());
    return x.digamma();
  })(rand({3}));
  EXPECT_THAT(first, ::testing::HasSubstr("aten.full.default"));
  EXPECT_EQ(second, "aten.sigmoid.default");
  EXPECT_EQ(calls(g), "aten.digamma.default");
}

TEST(NestedTrace, the_innermost_trace_is_the_one_that_records) {
  EXPECT_EQ(get_innermost_proxy_mode(), nullptr);
  make_fx([](const Tensor& x) {
    const ProxyMode* outer = get_innermost_proxy_mode();
    EXPECT_NE(outer, nullptr);
    const Tensor y = x.relu();
    EXPECT_EQ(outer->node_of(y)->name(), "relu");
    EXPECT_EQ(calls(outer->recorded()), "aten.relu.default");
    make_fx([&](const Tensor& z) {
      EXPECT_NE(get_innermost_proxy_mode(), outer);
      EXPECT_EQ(get_innermost_proxy_mode()->node_of(y), nullptr);
      return z;
    })(x);
    EXPECT_EQ(get_innermost_proxy_mode(), outer);
    {
      const NoTraceScope off;
      EXPECT_EQ(get_innermost_proxy_mode(), nullptr);
    }
    EXPECT_EQ(get_innermost_proxy_mode(), outer);
    return y;
  })(rand({3}));
  EXPECT_EQ(get_innermost_proxy_mode(), nullptr);
}

TEST(NestedTrace, a_trace_that_throws_leaves_the_outer_one_recording) {
  const TracedGraph g = make_fx([](const Tensor& x) {
    EXPECT_THROW(make_fx([](const Tensor&) -> Tensor { throw UserError("no"); })(x), UserError);
    return x.cos();
  })(rand({3}));
  EXPECT_EQ(calls(g), "aten.cos.default");
}

TEST(NestedTrace, a_branch_inside_an_inner_trace_is_the_inner_ones) {
  const auto branches = [](const Tensor& y) {
    return cond(
        y.sum().gt(0), [](const Values& v) -> Value { return v[0].to_tensor().sin(); },
        [](const Values& v) -> Value { return v[0].to_tensor().cos(); }, {y});
  };
  std::string recorded_inside;
  const TracedGraph g = make_fx([&](const Tensor& x) {
    recorded_inside = calls(make_fx(branches)(x));
    return x.tanh();
  })(rand({3}));
  EXPECT_THAT(recorded_inside, ::testing::HasSubstr("torch.ops.higher_order.cond"));
  EXPECT_EQ(calls(g), "aten.tanh.default");
}

TEST(NestedTrace, a_branch_where_tracing_is_switched_off_runs) {
  const TracedGraph g = make_fx([](const Tensor& x) {
    Value chosen;
    {
      const NoTraceScope off;
      chosen = cond(
          ones({}).gt(0), [](const Values& v) -> Value { return v[0]; },
          [](const Values& v) -> Value { return v[0].to_tensor().cos(); }, {ones({3})});
    }
    return x + chosen.to_tensor();
  })(rand({3}));
  EXPECT_EQ(calls(g), "aten.add.Tensor");
}

TEST(NestedTrace, a_symbolic_trace_inside_a_trace_leaves_nothing_in_it) {
  for (const TracingMode outer : all_modes) {
    const TracedGraph g = make_fx(
        [](const Tensor& x) {
          const auto inside = symbolic_trace(traceable([](const Tensor& y) { return relu(y) + 1; }, {"y"}));
          EXPECT_EQ(calls(inside->graph()), "torch.relu operator.add");
          return x.cos();
        },
        {.mode = outer})(rand({3}));
    EXPECT_EQ(calls(g), "aten.cos.default");
  }
}

}  // namespace
}  // namespace calque::nested_trace_test
