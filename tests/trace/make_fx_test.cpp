// make_fx: the rows of area `make_fx` (docs/conformance.md), and what is around them.
#include "calque/trace/make_fx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/warning.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/convolution.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/op/literal.h"
#include "calque/sym/sym_math.h"
#include "support/conformance.h"
#include "support/error_support.h"

namespace calque::make_fx_test {
namespace {

using ::testing::HasSubstr;

constexpr TracingMode all_modes[] = {TracingMode::real, TracingMode::fake, TracingMode::symbolic};
const MakeFxOptions symbolic{.mode = TracingMode::symbolic};
const MakeFxOptions fake{.mode = TracingMode::fake};

using test::error_of;

bool same(const Value& a, const Value& b) {
  const Tensor& x = a.to_tensor();
  const Tensor& y = b.to_tensor();
  return x.dtype() == y.dtype() && str(x.sizes()) == str(y.sizes()) && equal(x, y);
}

// The targets of the calls, in order.
std::string calls(const TracedGraph& g) {
  std::string text;
  for (const Node* n : g.graph().nodes())
    if (n->kind() == NodeKind::call_function) text += (text.empty() ? "" : " ") + n->target().str();
  return text;
}

size_t count(const TracedGraph& g, const std::string& target) {
  size_t n = 0;
  for (const Node* node : g.graph().nodes()) n += node->kind() == NodeKind::call_function && node->target().str() == target;
  return n;
}

TEST(MakeFx, T073_replays_on_other_data_with_a_placeholder_for_each_argument) {
  for (const TracingMode mode : all_modes) {
    const auto f = [](const Tensor& x) { return x.sin(); };
    const TracedGraph g = make_fx(f, {.mode = mode})(rand({3}));
    EXPECT_EQ(g.graph().placeholders().size(), 1U);
    const Tensor x = rand({3});
    EXPECT_TRUE(same(g(x), f(x)));
    const auto sum = [](const Values& in) -> Value {
      Tensor total = in[0].to_tensor();
      for (size_t i = 1; i < in.size(); ++i) total = total + in[i].to_tensor();
      return total;
    };
    const TracedGraph s = make_fx(sum, {.mode = mode})(rand({3}), rand({3}), rand({3}));
    EXPECT_EQ(s.graph().placeholders().size(), 3U);
    const Tensor y = rand({3}), z = rand({3});
    EXPECT_TRUE(same(s(x, y, z), x + y + z));
  }
}

TEST(MakeFx, T074_promotes_as_eager_does) {
  for (const TracingMode mode : all_modes) {
    const auto f = [](const Tensor& a, const Tensor& b) { return a + b; };
    const TracedGraph g = make_fx(f, {.mode = mode})(rand({3}), tensor(2));
    const Tensor x = rand({3});
    EXPECT_TRUE(same(g(x, tensor(5)), f(x, tensor(5))));
    EXPECT_EQ(g(x, tensor(5)).to_tensor().dtype(), DType::float32);
  }
}

TEST(MakeFx, T075_every_call_is_of_one_overload) {
  const TracedGraph g = make_fx([](const Tensor& x) { return (x.cos() + x).sum({0}); })(rand({3, 4}));
  EXPECT_EQ(calls(g), "aten.cos.default aten.add.Tensor aten.sum.dim_IntList");
  for (const Node* n : g.graph().nodes()) EXPECT_TRUE(n->kind() != NodeKind::call_function || n->op()) << n->str();
}

TEST(MakeFx, T076_factories_are_calls_and_not_constants) {
  for (const TracingMode mode : all_modes) {
    const TracedGraph g = make_fx([](const Tensor& x) { return x + randn(x.sym_sizes()); }, {.mode = mode})(rand({3}));
    EXPECT_EQ(count(g, "aten.randn.default"), 1U) << g.graph().str();
    EXPECT_TRUE(g.module->state_dict().empty());
  }
}

TEST(MakeFx, T077_arguments_that_were_not_given_are_not_written) {
  const TracedGraph g = make_fx([](const Tensor& x) { return empty_like(x); })(rand({3}));
  const Node* n = g.graph().find_node("empty_like");
  ASSERT_NE(n, nullptr) << g.graph().str();
  EXPECT_EQ(n->args().size(), 1U);
  EXPECT_TRUE(n->kwargs().empty()) << n->str();
}

TEST(MakeFx, T079_a_later_change_of_layout_does_not_reach_earlier_nodes) {
  for (const TracingMode mode : {TracingMode::fake, TracingMode::real}) {
    const TracedGraph g = make_fx(
        [](const Tensor& x) {
          const Tensor y = x.clone();
          y.unsqueeze_(0);
          return y;
        },
        {.mode = mode})(rand({3}));
    std::string shapes;
    for (const Node* n : g.graph().nodes())
      if (n->kind() != NodeKind::output) shapes += str(n->meta.val.to_tensor().sizes());
    EXPECT_EQ(shapes, "[3][3][1, 3]");
  }
}

TEST(MakeFx, T080_a_scalar_literal_is_a_stored_constant) {
  for (const TracingMode mode : all_modes) {
    const auto f = [](const Values&) -> Value {
      return full({100, 100}, tensor(std::numeric_limits<double>::infinity()).item());
    };
    const TracedGraph g = make_fx(f, {.mode = mode})();
    EXPECT_TRUE(same(g(), f({})));
  }
}

TEST(MakeFx, T081_a_stored_constant_is_never_written) {
  for (const TracingMode mode : all_modes) {
    const auto f = [](const Values&) -> Value {
      const Tensor x = tensor(1.0);
      x.add_(2);
      return full({3}, x.item()) + x;
    };
    const TracedGraph g = make_fx(f, {.mode = mode})();
    EXPECT_TRUE(same(g(), f({})));
    EXPECT_TRUE(same(g(), f({})));
    EXPECT_EQ(g.module->state_dict().size(), 1U);
    EXPECT_EQ(g.module->named_buffers()[0].first, "_tensor_constant0");
  }
}

TEST(MakeFx, T082_constants_are_known_through_operators_with_several_results) {
  for (const TracingMode mode : all_modes) {
    const TracedGraph g = make_fx(
        [](const Values&) -> Value {
          const Tensor x = tensor({2});
          return x.unbind(0)[0].item();
        },
        {.mode = mode})();
    EXPECT_EQ(g().to_int(), 2);
  }
}

TEST(MakeFx, T083_a_constant_that_grows_or_is_randomised_is_not_known_any_more) {
  for (const TracingMode mode : {TracingMode::real, TracingMode::fake}) {
    EXPECT_THAT(
        error_of([&] {
          make_fx([](const Values&) -> Value { return tensor({1}).repeat({1000}).sum().item().to<int64_t>() > 2 ? 1 : 0; },
                  {.mode = mode})();
        }),
        HasSubstr("data-dependent"));
    EXPECT_THAT(error_of([&] {
                  make_fx(
                      [](const Values&) -> Value {
                        const Tensor x = tensor({1.0});
                        x.normal_();
                        return x.item().to<double>() > 2 ? 1 : 0;
                      },
                      {.mode = mode})();
                }),
                HasSubstr("data-dependent"));
  }
}

TEST(MakeFx, T084_a_truth_that_depends_on_data_is_an_error) {
  for (const TracingMode mode : all_modes)
    EXPECT_THAT(error_of([&] {
                  make_fx([](const Tensor& a, const Tensor& b) { return allclose(a, b); }, {.mode = mode})(rand({3}),
                                                                                                           rand({3}));
                }),
                HasSubstr("data-dependent"));
}

TEST(MakeFx, T085_unless_the_option_is_switched_off) {
  for (const bool pre_dispatch : {false, true}) {
    const auto f = [](const Tensor& a, const Tensor& b) { return allclose(a, b) ? a + b : a - b; };
    const TracedGraph g = make_fx(f, {.pre_dispatch = pre_dispatch, .error_on_data_dependent = false})(ones({3}), ones({3}));
    EXPECT_TRUE(same(g(ones({3}), full({3}, 2.0)), full({3}, 3.0)));
    const auto h = [](const Tensor& a) { return a * a.item().to<double>(); };
    EXPECT_TRUE(
        same(make_fx(h, {.pre_dispatch = pre_dispatch, .error_on_data_dependent = false})(full({}, 2.0))(full({}, 3.0)),
             full({}, 6.0)));
  }
}

TEST(MakeFx, T086_before_dispatch_composites_stay_whole) {
  const auto f = [](const Tensor& a) { return matmul(a, ones({4, 4})); };
  for (const TracingMode mode : all_modes) {
    EXPECT_EQ(calls(make_fx(f, {.mode = mode, .pre_dispatch = true})(rand({4, 4}))),
              "aten.ones.default aten.matmul.default");
    EXPECT_EQ(calls(make_fx(f, {.mode = mode})(rand({4, 4}))), "aten.ones.default aten.mm.default");
  }
}

TEST(MakeFx, T093_a_decomposition_may_use_composites) {
  const DecompositionTable table{{&get_operator("aten::norm.Scalar"), [](const Values& args) -> std::optional<Value> {
                                    return Value(args[0].to_tensor().square().sum().sqrt());
                                  }}};
  for (const TracingMode mode : all_modes) {
    const TracedGraph g = make_fx(
        [](const Tensor& x) {
          return call("aten::norm.Scalar", {x, 2});
        },
        {.mode = mode, .decompositions = &table})(rand({3}));
    EXPECT_EQ(count(g, "aten.norm.Scalar"), 0U);
    EXPECT_EQ(calls(g), "aten.pow.Tensor_Scalar aten.sum.default aten.sqrt.default");
  }
}

TEST(MakeFx, T094_a_decomposition_may_decline) {
  const Operator& addmm = get_operator("aten::addmm");
  const DecompositionTable table{{&addmm, [](const Values& args) -> std::optional<Value> {
                                    if (args[3].to_scalar().to<double>() == 1) return std::nullopt;
                                    return Value(args[0].to_tensor() * args[3].to_scalar() +
                                                 args[1].to_tensor().mm(args[2].to_tensor()));
                                  }}};
  const TracedGraph g =
      make_fx([](const Tensor& x, const Tensor& y, const Tensor& z) { return x.addmm(y, z) + x.addmm(y, z, 2); },
              {.decompositions = &table})(rand({4, 4}), rand({4, 4}), rand({4, 4}));
  EXPECT_EQ(count(g, "aten.addmm.default"), 1U) << g.graph().str();
}

TEST(MakeFx, T095_decompositions_apply_to_captured_constants_too) {
  const Tensor closed_over = rand({4, 5});
  const DecompositionTable table{{&get_operator("aten::t"), [](const Values& args) -> std::optional<Value> {
                                    return Value(args[0].to_tensor().transpose(0, 1));
                                  }}};
  const TracedGraph g =
      make_fx([&](const Tensor& x) { return x.t() + closed_over.t(); }, {.decompositions = &table})(rand({4, 5}));
  EXPECT_EQ(count(g, "aten.t.default"), 0U);
  EXPECT_EQ(count(g, "aten.transpose.int"), 2U);
}

TEST(MakeFx, T102_a_literal_in_the_function_is_a_graph_constant) {
  const auto f = [](const Tensor& x) { return x + tensor({1.5, 2.5}); };
  const TracedGraph g = make_fx(f, fake)(rand({2}));
  ASSERT_EQ(g.module->state_dict().size(), 1U);
  EXPECT_EQ(count(g, "aten.lift_fresh_copy.default"), 1U);
  const Tensor x = rand({2});
  EXPECT_TRUE(same(g(x), f(x)));
}

TEST(MakeFx, T104_alias_is_one_node) {
  EXPECT_EQ(calls(make_fx([](const Tensor& x) { return x.alias(); }, fake)(rand({2}))), "aten.alias.default");
}

TEST(MakeFx, T103_T105_every_node_has_a_value_of_its_shape) {
  const TracedGraph g =
      make_fx([](const Tensor& x) { return std::get<0>(x.max(1)) + x.split(2, 1)[0].sum({1}); }, fake)(rand({3, 4}));
  for (const Node* n : g.graph().nodes()) EXPECT_TRUE(n->kind() == NodeKind::output || !n->meta.val.is_none()) << n->str();
}

TEST(MakeFx, T106_an_int_argument_is_a_symbol) {
  const auto f = [](const Tensor& x, SymInt y) { return x.view({y}); };
  const TracedGraph g = make_fx(f, symbolic)(rand({2, 3}), 6);
  EXPECT_EQ(g.graph().placeholders().size(), 2U);
  EXPECT_THAT(g.graph().str(), HasSubstr("aten.view.default(%arg0_1, [%arg1_1])"));
  EXPECT_EQ(str(g(rand({2, 4}), 8).to_tensor().sizes()), "[8]");
}

TEST(MakeFx, T107_resize_takes_a_symbolic_size_and_nothing_is_returned) {
  const TracedGraph g =
      make_fx([](const Tensor& x, const Tensor& y) { x.resize_({y.sym_size(0)}); }, symbolic)(empty({0}), rand({5}));
  EXPECT_EQ(calls(g), "aten.sym_size.int aten.resize_.default") << g.graph().str();
  EXPECT_TRUE(g.graph().output_value().is_none());
}

TEST(MakeFx, T109_a_size_is_one_node_however_often_it_is_used) {
  const TracedGraph g = make_fx(
      [](const Tensor& x, const Tensor& y) -> Value {
        return tuple({x.sym_size(0), y.sym_size(1), empty({x.sym_size(0), y.sym_size(1)})});
      },
      symbolic)(rand({3, 4}), rand({5, 6}));
  EXPECT_EQ(count(g, "aten.sym_size.int"), 2U) << g.graph().str();
}

TEST(MakeFx, T110_a_branch_leaves_a_guard_that_can_be_checked) {
  const auto f = [](const Tensor& x) { return guard(x.sym_size(0) < 20) ? x + 1 : x - 1; };
  const TracedGraph g = make_fx(f, symbolic)(rand({5, 6}));
  const ProducedGuards guards = g.guards();
  EXPECT_THAT(guards.exprs(), ::testing::Contains(HasSubstr("L['arg0'].size()[0] <= 19")));
  using RealTensor = ProducedGuards::RealTensor;
  EXPECT_TRUE(guards.accepts({RealTensor{{4, 5}, {5, 1}, 0}}));
  EXPECT_FALSE(guards.accepts({RealTensor{{25, 5}, {5, 1}, 0}}));
  const ShapeEnv::Assignment expected{{"s0", 4}, {"s1", 5}};
  EXPECT_EQ(bind_symbols(*g.env, g.inputs, {RealTensor{{4, 5}, {5, 1}, 0}}), expected);
}

// Sizes that PyTorch's guards refuse and the graph does not need to: with pytorch_guards they are refused here too.
TEST(MakeFx, pytorch_guards_refuse_what_pytorch_refuses) {
  using Real = ProducedGuards::RealTensor;
  MakeFxOptions asking = symbolic;
  asking.pytorch_guards = true;
  const auto accepted = [&](const auto& f, const std::vector<Tensor>& args, const std::vector<std::vector<int64_t>>& sizes) {
    std::vector<ProducedGuards::RealInput> inputs;
    for (const auto& s : sizes) {
      const Tensor t = empty(SymInts(s.begin(), s.end()));
      inputs.emplace_back(Real{{t.sizes().begin(), t.sizes().end()}, {t.strides().begin(), t.strides().end()}, 0});
    }
    const auto by = [&](const MakeFxOptions& options) {
      return make_fx_values(f, Values(args.begin(), args.end()), options).guards().accepts(inputs);
    };
    return std::pair(by(symbolic), by(asking));
  };
  const std::pair always(true, true), unasked(true, false);
  // s0 - 1 != 1: is what is left of the slice contiguous?
  const auto slice = [](const Values& v) -> Value { return v[0].to_tensor().slice(0, 1); };
  EXPECT_EQ(accepted(slice, {rand({5, 4})}, {{7, 4}}), always);
  EXPECT_EQ(accepted(slice, {rand({5, 4})}, {{2, 4}}), unasked);
  // s1 != 2, s1 // 2 != 1: the view splits a dimension, and not into 2 and 1.
  const auto split = [](const Values& v) -> Value {
    const Tensor& x = v[0].to_tensor();
    return x.view({x.sym_size(0), 2, -1});
  };
  EXPECT_EQ(accepted(split, {rand({3, 6})}, {{3, 8}}), always);
  EXPECT_EQ(accepted(split, {rand({3, 6})}, {{3, 2}}), unasked);
  // What the shape rules refuse is refused in their words.
  const auto error = [&](const MakeFxOptions& options) {
    return test::error_of([&] {
      make_fx([](const Tensor& x) { return x.view({x.sym_size(0), 0, -1}); }, options)(rand({3, 6}));
    });
  };
  EXPECT_NE(error(symbolic), "");
  EXPECT_EQ(error(asking), error(symbolic));
  // Batches of 16 and kernels of 4 go to another library.
  const auto convolve = [](const Values& v) -> Value { return conv2d(v[0].to_tensor(), v[1].to_tensor()); };
  const std::vector<Tensor> image = {rand({2, 3, 9, 9}), rand({4, 3, 3, 3})};
  EXPECT_EQ(accepted(convolve, image, {{5, 3, 11, 11}, {7, 3, 3, 3}}), always);
  EXPECT_EQ(accepted(convolve, image, {{16, 3, 9, 9}, {5, 3, 3, 3}}), unasked);
  EXPECT_EQ(accepted(convolve, image, {{2, 4, 9, 9}, {5, 4, 4, 4}}), unasked);
}

TEST(MakeFx, T114_arithmetic_on_sizes_is_plain_operators) {
  const TracedGraph g = make_fx([](const Tensor& x) { return empty({2 * x.sym_size(0)}); }, symbolic)(rand({3}));
  EXPECT_EQ(calls(g), "aten.sym_size.int operator.mul aten.empty.memory_format");
  const TracedGraph h = make_fx([](const Tensor& x) { return empty({10 - x.sym_size(0)}); }, symbolic)(rand({3}));
  EXPECT_EQ(calls(h), "aten.sym_size.int operator.sub aten.empty.memory_format");
}

TEST(MakeFx, T115_a_float_value_is_an_unbacked_float) {
  const TracedGraph g =
      make_fx([](const Tensor& x, const Tensor& y) { return y * x.item(); }, symbolic)(tensor(0.5), rand({3}));
  EXPECT_EQ(calls(g), "aten._local_scalar_dense.default aten.mul.Tensor") << g.graph().str();
  EXPECT_TRUE(same(g(tensor(2.0), ones({3})), full({3}, 2.0)));
}

TEST(MakeFx, T116_an_int_value_may_be_a_size) {
  const TracedGraph g = make_fx([](const Tensor& x) { return empty({x.item().sym_int()}); }, symbolic)(tensor(4));
  EXPECT_EQ(calls(g), "aten._local_scalar_dense.default aten.empty.memory_format") << g.graph().str();
  EXPECT_EQ(str(g(tensor(7)).to_tensor().sizes()), "[7]");
}

TEST(MakeFx, T119_T125_counts_of_one_mask_are_one_symbol_until_it_is_written) {
  const TracedGraph g = make_fx(
      [](const Tensor& x, const Tensor& mask) {
        const Tensor a = x[mask];
        const Tensor b = (x * 2)[mask];
        return a[b > 1];
      },
      symbolic)(rand({10}), rand({10}) > 0.5);
  EXPECT_GE(count(g, "aten.index.Tensor"), 3U);
  EXPECT_EQ(error_of([] {
              make_fx([](const Tensor& x) { return guard(x.nonzero().sym_size(0) == x.nonzero().sym_size(0)) ? x : x + 1; },
                      symbolic)(rand({3}));
            }),
            "");
  EXPECT_THAT(error_of([] {
                make_fx(
                    [](const Tensor& x) {
                      const Tensor a = x.nonzero();
                      x.add_(1);
                      return guard(a.sym_size(0) == x.nonzero().sym_size(0)) ? x : x + 1;
                    },
                    symbolic)(rand({3}));
              }),
              HasSubstr("u0"));
}

TEST(MakeFx, T126_sizes_may_become_floats) {
  const TracedGraph g =
      make_fx([](const Tensor& x) { return x / sym_float_pow(sym_float(x.sym_size(0)), 0.5); }, symbolic)(rand({4}));
  EXPECT_EQ(calls(g), "aten.sym_size.int torch.sym_float operator.pow aten.div.Tensor") << g.graph().str();
  EXPECT_TRUE(same(g(full({9}, 3.0)), ones({9})));
}

TEST(MakeFx, T133_sizes_and_floats_may_be_returned_beside_tensors) {
  const auto f = [](const Tensor& x) -> Value {
    return tuple({x.sym_size(0), sym_true_div(x.sym_size(0), 5), list({x.sym_size(0), x.sym_size(1)}), x + 1});
  };
  const TracedGraph g = make_fx(f, symbolic)(rand({3, 4}));
  const Value out = g(rand({10, 7}));
  EXPECT_EQ(out.to_items()[0].to_int(), 10);
  EXPECT_EQ(out.to_items()[1].to_float(), 2.0);
  EXPECT_EQ(out.to_items()[2].to_items()[1].to_int(), 7);
}

TEST(MakeFx, trees_go_in_and_come_out) {
  const auto f = [](const Values& in) -> Value {
    const Tensor& a = in[0].to_items()[0].to_tensor();
    const Tensor& b = in[1].to_dict().find("b")->to_tensor();
    return dict({{"sum", a + b}, {"parts", tuple({a, b})}});
  };
  const TracedGraph g = make_fx(f, symbolic)(list({rand({3}), rand({2})}), dict({{"b", rand({3})}}));
  const Tensor x = rand({5}), y = rand({5});
  const Value out = g(list({x, rand({2})}), dict({{"b", y}}));
  EXPECT_TRUE(same(*out.to_dict().find("sum"), x + y));
  EXPECT_THAT(error_of([&] { g(x, y); }), HasSubstr("structure"));
}

TEST(MakeFx, nodes_know_the_line_that_made_them) {
  const TracedGraph g = make_fx([](const Tensor& x) { return x.relu(); })(rand({3}));
  const Node* n = g.graph().find_node("relu");
  EXPECT_EQ(n->meta.location.line(), static_cast<unsigned>(__LINE__ - 2));
  EXPECT_THAT(n->meta.location.file_name(), HasSubstr("make_fx_test.cpp"));
}

TEST(MakeFx, calls_within_a_scope_without_tracing_are_constants) {
  const TracedGraph g = make_fx([](const Tensor& x) {
    Tensor c;
    {
      const NoTraceScope off;
      c = ones({3}) * 2;
    }
    return x + c;
  })(rand({3}));
  EXPECT_EQ(calls(g), "aten.add.Tensor");
  EXPECT_EQ(g.module->state_dict().size(), 1U);
}

TEST(MakeFx, guards_refuse_sizes_that_the_graph_has_fixed) {
  using RealTensor = ProducedGuards::RealTensor;
  // 1 was never a symbol; the second size became a number on the way.
  const TracedGraph g =
      make_fx([](const Tensor& x) { return x.sym_size(1).guard_int() == 4 ? x + 1 : x; }, symbolic)(rand({1, 4, 5}));
  const ProducedGuards guards = g.guards();
  EXPECT_TRUE(guards.accepts({RealTensor{{1, 4, 6}, {24, 6, 1}, 0}}));
  EXPECT_EQ(guards.first_failure({RealTensor{{2, 4, 6}, {24, 6, 1}, 0}}), "L['arg0'].size()[0] == 1");
  EXPECT_EQ(guards.first_failure({RealTensor{{1, 3, 6}, {24, 6, 1}, 0}}), "L['arg0'].size()[1] == 4");
}

TEST(MakeFx, a_guard_keeps_its_text_once_it_holds) {
  const TracedGraph g =
      make_fx([](const Tensor& x) { return guard(x.sym_size(0) == 4) ? x + 1 : x; }, symbolic)(rand({4, 5}));
  ASSERT_EQ(g.env->guards().size(), 1U);
  EXPECT_EQ(g.env->guards()[0].condition.str(), "Eq(s0, 4)");
}

struct Hidden : Typed<Hidden> {
  Child<ReLU> inner = child<ReLU>("inner");
  Tensor forward(const Tensor& x) { return inner(x).sin(); }
};
struct Unregistered : Typed<Unregistered> {
  std::shared_ptr<Hidden> hidden = std::make_shared<Hidden>();  // no child
  Child<ReLU> known = child<ReLU>("known");
  Tensor forward(const Tensor& x) { return known((*hidden)(x)); }
};

TEST(MakeFx, a_module_that_is_not_registered_is_traced_through_with_a_warning) {
  const auto model = std::make_shared<Unregistered>();
  std::vector<std::string> warnings;
  reset_warnings();
  const WarningSink before = set_warning_sink([&](std::string_view text) { warnings.emplace_back(text); });
  const TracedGraph g = make_fx([&](const Tensor& x) { return (*model)(x); }, {.record_module_stack = true})(rand({3}));
  set_warning_sink(before);
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings[0], HasSubstr("Unable to find the path of the module"));
  EXPECT_THAT(warnings[0], HasSubstr("Hidden"));
  const auto path = [&](const char* node) {
    std::string text;
    for (const ModuleStackEntry& e : *g.graph().find_node(node)->meta.nn_module_stack) text += "/" + e.path;
    return text;
  };
  EXPECT_EQ(path("relu"), "/");
  EXPECT_EQ(path("sin"), "/");
  EXPECT_EQ(path("relu_1"), "//known");
}

}  // namespace
}  // namespace calque::make_fx_test
