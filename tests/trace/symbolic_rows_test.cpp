// Symbolic sizes in traces: the rows of areas `make_fx`, `sym` and `fake` that speak of whole programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/graph/graph_module.h"
#include "calque/graph/higher_order.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/passes.h"
#include "calque/nn/nn.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/splitting.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/autocast.h"
#include "calque/op/index.h"
#include "calque/op/literal.h"
#include "calque/sym/sym_math.h"
#include "calque/sym/unbacked.h"
#include "calque/trace/functional.h"
#include "calque/trace/make_fx.h"
#include "support/conformance.h"
#include "support/error_support.h"

namespace calque::symbolic_rows_test {
namespace {

using ::testing::HasSubstr;

const MakeFxOptions symbolic{.mode = TracingMode::symbolic};

using test::error_of;

std::string calls(const Graph& g) {
  std::string text;
  for (const Node* n : g.nodes())
    if (n->kind() == NodeKind::call_function) text += (text.empty() ? "" : " ") + n->target().str();
  return text;
}

bool same(const Value& a, const Value& b) {
  return a.to_tensor().dtype() == b.to_tensor().dtype() && str(a.to_tensor().sizes()) == str(b.to_tensor().sizes()) &&
         equal(a.to_tensor(), b.to_tensor());
}

using RealTensor = ProducedGuards::RealTensor;
RealTensor real(std::vector<int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t running = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = running;
    running *= std::max<int64_t>(sizes[d], 1);
  }
  return {std::move(sizes), std::move(strides), 0};
}

size_t free_symbols(const ShapeEnv& env) {
  size_t n = 0;
  for (const Symbol& s : env.symbols()) n += !env.replacement(s.name).has_value();
  return n;
}

size_t nontrivial_guards(const ShapeEnv& env) {
  size_t n = 0;
  for (const Guard& g : env.guards()) {
    bool value = false;
    n += !env.simplify(g.condition).is_known(value);
  }
  return n;
}

struct Sub : Typed<Sub> {
  Tensor forward(const Tensor& x) { return x.relu(); }
};
struct Outer : Typed<Outer> {
  Child<Sub> sub = child<Sub>("sub");
  Tensor forward(const Tensor& x) { return sub(x.sin()).cos(); }
};

// ---- make_fx ----------------------------------------------------------------------------------------------------------

TEST(SymbolicRows, T087_grad_mode_switches) {
  const auto f = [](const Values& in) -> Value {
    const Tensor x = in[0].to_tensor();
    const GradModeScope no_grad(false);
    const Tensor y = x.sin();
    const GradModeScope grad(true);
    return tuple({x.cos() + y, y});
  };
  const TracedGraph g = make_fx_values(f, {rand({3})}, {.pre_dispatch = true});
  EXPECT_EQ(calls(g.graph()),
            "torch._C._set_grad_enabled aten.sin.default torch._C._set_grad_enabled aten.cos.default aten.add.Tensor "
            "torch._C._set_grad_enabled torch._C._set_grad_enabled");
  const TracedGraph below = make_fx_values(f, {rand({3})}, {.mode = TracingMode::fake});
  EXPECT_EQ(calls(below.graph()), "aten.sin.default aten.cos.default aten.add.Tensor");
  Tensor x = rand({3});
  x.requires_grad_();
  const Value found = g(x), expected = f({x});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(same(found.to_items()[i], expected.to_items()[i]));
    EXPECT_EQ(found.to_items()[i].to_tensor().requires_grad(), expected.to_items()[i].to_tensor().requires_grad());
  }
  EXPECT_TRUE(grad_enabled());
}

TEST(SymbolicRows, regions_inside_a_branch_are_the_branchs) {
  const auto f = [](const Values& in) -> Value {
    const auto quiet = [](const Values& x) -> Value {
      const AutocastScope autocast;
      return matmul(x[0].to_tensor(), x[0].to_tensor());
    };
    return cond(in[0].to_tensor().sum() > 0, quiet,
                [](const Values& x) -> Value { return x[0].to_tensor().to(DType::bfloat16); }, {in[0]});
  };
  const TracedGraph g = make_fx_values(f, {ones({3, 3})}, {.mode = TracingMode::fake, .pre_dispatch = true});
  EXPECT_EQ(calls(g.graph()).find("autocast"), std::string::npos);
  EXPECT_TRUE(wrap_autocast_regions(*g.module));
  EXPECT_THAT(g.module->print_readable(),
              HasSubstr("torch.ops.higher_order.wrap_with_autocast('cpu', torch.bfloat16, True, False, "));
  EXPECT_TRUE(same(g(ones({3, 3})), f({ones({3, 3})})));
}

TEST(SymbolicRows, T088_before_dispatch_and_functional) {
  const auto f = [](const Values& in) -> Value {
    const Tensor x = matmul(in[0].to_tensor(), in[1].to_tensor()) + 1;
    x.mul_(5);
    return x;
  };
  const TracedGraph g = make_fx_values(functionalize(f, true), {rand({4, 4}), rand({4, 4})},
                                       {.mode = TracingMode::fake, .pre_dispatch = true});
  EXPECT_EQ(calls(g.graph()), "aten.matmul.default aten.add.Tensor aten.mul.Tensor");
  const Tensor a = rand({4, 4}), b = rand({4, 4});
  EXPECT_TRUE(same(g(a, b), f({a, b})));
}

TEST(SymbolicRows, T089_before_dispatch_and_functional_views_stay_views) {
  const auto f = [](const Values& in) -> Value { return in[0].to_tensor().transpose(0, 1).contiguous().view({2, 8}) + 1; };
  const TracedGraph g =
      make_fx_values(functionalize(f, true), {rand({4, 4})}, {.mode = TracingMode::fake, .pre_dispatch = true});
  EXPECT_THAT(calls(g.graph()), HasSubstr("aten.transpose.int"));
  EXPECT_THAT(g.graph().str(), HasSubstr("aten.view.default"));
  EXPECT_THAT(g.graph().str(), HasSubstr("[2, 8]"));
  EXPECT_EQ(calls(g.graph()).find("copy"), std::string::npos) << calls(g.graph());
}

TEST(SymbolicRows, T112_a_common_factor_proves_divisibility) {
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& stride, const Tensor& x) {
    const SymInt i = a.item().sym_int(), j = b.item().sym_int(), s = stride.item().sym_int();
    for (const SymInt v : {i, j, s})
      if (!check_is_size(v)) throw UserError("negative");
    const Tensor joined = cat(std::vector<Tensor>{x.new_empty({i * s}), x.new_empty({j * s})});
    return joined.view({i + j, s});
  };
  EXPECT_EQ(error_of([&] { make_fx(f, symbolic)(tensor(30), tensor(20), tensor(16), rand({3})); }), "");
}

TEST(SymbolicRows, T117_a_literal_of_a_size_specialises_it) {
  const TracedGraph g = make_fx(
      [](const Tensor& x) { return x + tensor(Scalar(sym_float_pow(sym_float(x.sym_size(0)), 2.0))); }, symbolic)(rand({2}));
  const std::vector<Tensor> buffers = g.module->buffers();
  ASSERT_EQ(buffers.size(), 1U);
  EXPECT_EQ(buffers[0].dtype(), DType::float32);
  EXPECT_EQ(buffers[0].item().to<double>(), 4.0);
  EXPECT_EQ(calls(g.graph()), "aten.lift_fresh_copy.default aten.add.Tensor");
}

TEST(SymbolicRows, T118_assigning_a_size_to_an_element) {
  const TracedGraph g = make_fx(
      [](const Tensor& x, const Tensor& y) {
        const Index first(0);
        set_by(x, ListRef<Index>(&first, 1), Scalar(y.sym_size(0)));
        return x;
      },
      symbolic)(rand({3}), rand({5}));
  EXPECT_EQ(calls(g.graph()), "aten.sym_size.int aten.scalar_tensor.default aten.select.int aten.copy_.default")
      << g.graph().str();
  EXPECT_EQ(g.graph().output_value().to_node()->kind(), NodeKind::placeholder);
  const Tensor x = zeros({3});
  EXPECT_EQ(g(x, rand({7})).to_tensor().select(0, 0).item().to<double>(), 7.0);
}

TEST(SymbolicRows, T120_an_unbacked_size_is_unified_with_a_backed_one) {
  const auto f = [](const Tensor& n, const Tensor& y) { return zeros({n.item().sym_int()}) + y; };
  const TracedGraph g = make_fx(f, symbolic)(tensor(10), rand({10}));
  const Tensor y = rand({4});
  EXPECT_TRUE(same(g(tensor(4), y), y));
}

TEST(SymbolicRows, T121_views_of_unbacked_sizes) {
  EXPECT_EQ(
      error_of([] {
        make_fx([](const Tensor& n) { return zeros({n.item().sym_int(), 192}).view({12, -1, 192}); }, symbolic)(tensor(24));
      }),
      "");
  EXPECT_EQ(error_of([] {
              make_fx(
                  [](const Tensor& n) {
                    return zeros({n.item().sym_int(), 4, 20}).transpose(0, 1).reshape({-1, 80});
                  },
                  symbolic)(tensor(24));
            }),
            "");
}

TEST(SymbolicRows, T122_a_checked_equality_lends_its_hint) {
  const auto f = [](const Tensor& x, const Tensor& y) {
    const SymInt u = x.item().sym_int();
    if (!check(u == y.sym_size(0))) throw UserError("sizes differ");
    return guard(u == 4) ? y + 1 : y + 2;
  };
  const TracedGraph g = make_fx(f, symbolic)(tensor(10), rand({10}));
  EXPECT_THAT(g.graph().str(), HasSubstr(", 2)"));
}

TEST(SymbolicRows, T123_deferred_checks_become_asserts_of_the_graph) {
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    // The value of an input itself would be a symbol with an example; what is computed has none.
    const SymInt z1 = (a + 0).item().sym_int(), z2 = (b + 0).item().sym_int(), z3 = (c + 0).item().sym_int();
    if (!check(floor_div(z1, 9) == 1) || !check(z1 == z2 + z3)) throw UserError("checks");
    return a * 2;
  };
  MakeFxOptions options = symbolic;
  options.runtime_asserts = true;
  const TracedGraph g = make_fx(f, options)(tensor(12), tensor(6), tensor(6));
  EXPECT_EQ(g(tensor(12), tensor(6), tensor(6)).to_tensor().item().to<int64_t>(), 24);
  EXPECT_THAT(error_of([&] { g(tensor(20), tensor(10), tensor(10)); }), HasSubstr("Runtime assertion failed"));
  EXPECT_THAT(error_of([&] { g(tensor(12), tensor(6), tensor(5)); }), HasSubstr("Runtime assertion failed"));
}

TEST(SymbolicRows, T124_splitting_by_values) {
  const auto f = [](const Tensor& sizes, const Tensor& x) -> Value {
    std::vector<SymInt> parts;
    Values out;
    for (const Tensor& t : sizes.unbind(0)) parts.push_back(t.item().sym_int());
    for (const SymInt p : parts) call("aten::sym_constrain_range_for_size", {p});
    for (const Tensor& piece : split_with_sizes(x, parts)) out.emplace_back(piece);
    return tuple(out);
  };
  const TracedGraph g = make_fx(f, symbolic)(tensor({2, 3, 4}), rand({9}));
  size_t constrained = 0, pieces = 0;
  for (const Node* n : g.graph().nodes()) {
    constrained += n->op() && n->op()->schema().name == "sym_constrain_range_for_size";
    pieces += n->target().str() == "operator.getitem" && n->args()[0].to_node()->op() &&
              n->args()[0].to_node()->op()->schema().name == "split_with_sizes";
  }
  EXPECT_EQ(constrained, 3U) << g.graph().str();
  EXPECT_EQ(pieces, 3U);
  const Value out = g(tensor({1, 1, 5}), rand({7}));
  EXPECT_EQ(str(out.to_items()[2].to_tensor().sizes()), "[5]");
}

TEST(SymbolicRows, T128_a_guard_on_a_product_of_sizes) {
  const auto f = [](const Tensor& a, const Tensor& b) {
    const Tensor v = mul(a, b);
    const Tensor out = cat(std::vector<Tensor>{v, v});
    return guard(out.sym_size(0) * out.sym_size(1) > 20) ? out.cos() : out;
  };
  const TracedGraph g = make_fx(f, symbolic)(rand({1, 6}), rand({5, 1}));
  const ProducedGuards guards = g.guards();
  EXPECT_THAT(guards.exprs(), ::testing::Contains(HasSubstr("> 20")));
  EXPECT_TRUE(guards.accepts({real({1, 10}), real({6, 1})}));
  EXPECT_FALSE(guards.accepts({real({1, 2}), real({4, 1})}));
}

TEST(SymbolicRows, T129_the_module_stack_is_recorded_on_request) {
  Outer outer;
  for (const bool asked : {false, true}) {
    const TracedGraph g = make_fx_values([&](const Values& in) { return outer.call(in); }, {rand({3})},
                                         {.mode = TracingMode::fake, .record_module_stack = asked});
    for (const auto& [name, depth] : std::vector<std::pair<const char*, size_t>>{{"sin", 1}, {"relu", 2}, {"cos", 1}}) {
      const auto& stack = g.graph().find_node(name)->meta.nn_module_stack;
      EXPECT_EQ(stack ? stack->size() : 0, asked ? depth : 0) << name;
    }
    if (asked) {
      EXPECT_EQ(g.graph().find_node("relu")->meta.nn_module_stack->back().path, "sub");
    }
  }
}

TEST(SymbolicRows, T131_values_of_inputs_reflect_what_was_learnt_later) {
  const TracedGraph g = make_fx(
      [](const Tensor& x) {
        const Tensor y = x + 1;
        if (!check(x.sym_size(0) == 3)) throw UserError("three");
        return y;
      },
      symbolic)(rand({3}));
  EXPECT_EQ(str(g.graph().placeholders()[0]->meta.val.to_tensor().sym_sizes()), "[3]");
}

TEST(SymbolicRows, T134_an_equality_between_inputs) {
  const auto f = [](const Tensor& a, const Tensor& b) {
    if (!check(a.sym_size(0) == 2 * b.sym_size(0))) throw UserError("twice");
    return a.sin();
  };
  MakeFxOptions named = symbolic;
  named.names = {"a", "b"};
  const TracedGraph g = make_fx(f, named)(rand({6}), rand({3}));
  EXPECT_THAT(g.guards().exprs(),
              ::testing::UnorderedElementsAre("L['a'].size()[0] == 2*L['b'].size()[0]", "2 <= L['b'].size()[0]"));
  GuardsRequest all;
  all.ignore_static = false;
  const std::vector<std::string> with_static = g.guards(all).exprs();
  EXPECT_THAT(with_static, ::testing::IsSupersetOf({"L['a'].stride()[0] == 1", "L['b'].stride()[0] == 1",
                                                    "L['a'].storage_offset() == 0", "L['b'].storage_offset() == 0"}));
}

TEST(SymbolicRows, T136_bounds_that_follow_from_order) {
  MakeFxOptions named = symbolic;
  named.names = {"a"};
  GuardsRequest simplified;
  simplified.simplified = true;
  const auto above = [](const Tensor& a) {
    return guard(a.sym_size(0) > 12) && guard(a.sym_size(1) > a.sym_size(0)) ? a.sin() : a;
  };
  EXPECT_THAT(make_fx(above, named)(rand({13, 15})).guards(simplified).exprs(),
              ::testing::UnorderedElementsAre("L['a'].size()[1] > L['a'].size()[0]", "13 <= L['a'].size()[0]",
                                              "14 <= L['a'].size()[1]"));
  const auto below = [](const Tensor& a) {
    return guard(a.sym_size(0) < 20) && guard(a.sym_size(1) < a.sym_size(0)) ? a.sin() : a;
  };
  EXPECT_THAT(make_fx(below, named)(rand({13, 11})).guards(simplified).exprs(),
              ::testing::UnorderedElementsAre("L['a'].size()[1] < L['a'].size()[0]", HasSubstr("L['a'].size()[0] <= 19"),
                                              HasSubstr("L['a'].size()[1] <= 18")));
}

TEST(SymbolicRows, T137_equal_examples_need_no_guards) {
  const auto expect = [](const TracedGraph& g, size_t symbols) {
    EXPECT_EQ(free_symbols(*g.env), symbols) << g.env->explain();
    EXPECT_EQ(nontrivial_guards(*g.env), 0U) << g.env->explain();
  };
  const auto product = [](const Tensor& a, const Tensor& b) { return a * b; };
  expect(make_fx(product, symbolic)(rand({5, 6}), rand({5, 6})), 2);
  expect(make_fx(product, symbolic)(rand({5, 6, 7}), rand({5, 6, 7})), 3);
  expect(make_fx(product, symbolic)(rand({5, 1}), rand({1, 6})), 2);
  const auto joined = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
    return (a + b) + cat(std::vector<Tensor>{c, d});
  };
  expect(make_fx(joined, symbolic)(rand({7}), rand({7}), rand({4}), rand({3})), 2);
  const auto chain = [](const Values& in) -> Value {
    Tensor x = in[0].to_tensor();
    for (size_t i = 0; i + 1 < in.size(); ++i) x = cat(std::vector<Tensor>{x, in[i].to_tensor()}) + in[i + 1].to_tensor();
    return x;
  };
  expect(make_fx(chain, symbolic)(rand({2}), rand({4}), rand({8}), rand({16}), rand({32})), 1);
  const auto viewed = [](const Tensor& a, const Tensor& b) { return a.view({b.sym_size(0)}) + b.sum(); };
  expect(make_fx(viewed, symbolic)(rand({4, 2}), rand({8})), 2);
  expect(make_fx(viewed, symbolic)(rand({4, 2}), rand({8, 5})), 3);
  expect(make_fx(viewed, symbolic)(rand({2, 3, 4}), rand({24})), 3);
}

TEST(SymbolicRows, T139_a_checked_number_specialises) {
  const TracedGraph g = make_fx(
      [](const Tensor& a) {
        if (!check(a.sym_size(0) == 10)) throw UserError("ten");
        return a.sin();
      },
      symbolic)(rand({10}));
  EXPECT_EQ(free_symbols(*g.env), 0U);
  EXPECT_EQ(nontrivial_guards(*g.env), 0U);
}

// ---- fake -------------------------------------------------------------------------------------------------------------

struct Tied : Typed<Tied> {
  Child<Linear> a = child<Linear>("a", 4, 4);
  Tied() { register_parameter("alias", *a->weight); }
  Tensor forward(const Tensor& x) { return a(x); }
};

TEST(SymbolicRows, T167_a_module_of_fake_parameters_keeps_its_aliases) {
  Tied module;
  const auto mode = FakeMode::make();
  const std::shared_ptr<Module> copy = module.deep_copy();
  for (const auto& [name, tensor] : copy->named_parameters("", true, false))
    copy->set_tensor(name, mode->from_tensor(module.get_parameter(name)));
  const Tensor weight = copy->get_parameter("a.weight");
  EXPECT_TRUE(weight.is_fake());
  EXPECT_EQ(str(weight.sizes()), "[4, 4]");
  EXPECT_TRUE(copy->get_parameter("alias").is_same(weight));
  EXPECT_EQ(copy->get_parameter("alias").storage().get(), weight.storage().get());
}

TEST(SymbolicRows, T178_T179_fake_values_through_a_graph) {
  Graph graph;
  Node* x = graph.placeholder("x");
  graph.placeholder("nothing");
  Node* w = graph.placeholder("w");
  graph.output(graph.call_function(get_operator("aten::mm"), {x, w}));
  const auto mode = FakeMode::make();
  const Tensor a = mode->from_tensor(rand({5, 3})), b = mode->from_tensor(rand({3, 2}));
  EXPECT_EQ(str(Interpreter(graph).run({a, Value(), b}).to_tensor().sizes()), "[5, 2]");
  const auto other = FakeMode::make();
  EXPECT_THAT(error_of([&] {
                Interpreter(graph).run({a, Value(), other->from_tensor(rand({3, 2}))});
              }),
              HasSubstr("mixing fake modes"));
}

TEST(SymbolicRows, T179_missing_inputs_are_none) {
  Graph graph;
  Node* x = graph.placeholder("x");
  graph.placeholder("nothing");
  graph.output(graph.call_function(get_operator("aten::relu"), {x}));
  const auto mode = FakeMode::make();
  EXPECT_EQ(str(Interpreter(graph).run({mode->from_tensor(rand({2})), Value()}).to_tensor().sizes()), "[2]");
}

// ---- sym --------------------------------------------------------------------------------------------------------------

struct Symbols {
  std::shared_ptr<ShapeEnv> env = ShapeEnv::make();
  std::shared_ptr<FakeMode> mode = FakeMode::make({.env = env});
  Tensor fake(IntList sizes, const char* name) { return mode->from_tensor(zeros(as_sym(sizes)), Source::local(name)); }
};

TEST(SymbolicRows, T187_broadcasting_of_symbolic_tensors) {
  Symbols s;
  const Tensor x = s.fake({5, 4, 3}, "x");
  for (const Tensor& y : {s.fake({5, 4, 3}, "y"), s.fake({1, 4, 1}, "z")}) {
    const Tensor sum = x + y;
    for (int64_t d = 0; d < 3; ++d) EXPECT_EQ(s.env->hint(sum.sym_size(d)), 5 - d);
  }
}

TEST(SymbolicRows, T188_size_lists_mix_symbols_and_numbers) {
  Symbols s;
  const Tensor x = s.fake({5}, "x");
  const SymInt n = x.sym_size(0);
  for (const std::vector<SymInt>& sizes : {std::vector<SymInt>{n, n}, {5, n}, {n, 5}, {5, 5}}) {
    const Tensor y = x.expand(sizes);
    EXPECT_EQ(s.env->hint(y.sym_size(0)).value_or(-1), 5);
    EXPECT_EQ(y.dim(), 2);
  }
}

TEST(SymbolicRows, T190_strides_and_numel_are_symbolic) {
  Symbols s;
  const Tensor x = s.fake({5, 4, 3}, "x");
  EXPECT_TRUE(x.sym_stride(0).is_symbolic());
  EXPECT_EQ(s.env->hint(x.sym_stride(0)), 12);
  EXPECT_TRUE(x.sym_numel().is_symbolic());
  EXPECT_EQ(s.env->hint(x.sym_numel()), 60);
  EXPECT_FALSE(zeros({5, 4}).sym_numel().is_symbolic());
}

TEST(SymbolicRows, T191_guards_are_on_the_original_symbol) {
  Symbols s;
  const Tensor x = s.fake({5, 1, 3}, "x");
  const Tensor y = x.expand({x.sym_size(0), 4, x.sym_size(2)});
  EXPECT_TRUE(guard(y.sym_size(0) > 3));
  ASSERT_EQ(s.env->guards().size(), 1U);
  EXPECT_EQ(s.env->guards()[0].condition.str(), x.sym_size(0).str() + " > 3");
  EXPECT_TRUE(identical(y.sym_size(0), x.sym_size(0)));
}

TEST(SymbolicRows, T194_empty_on_meta_has_the_symbol_for_a_size) {
  Symbols s;
  const SymInt n = s.fake({5}, "x").sym_size(0);
  const Tensor t = empty({n}, {}, {}, Device("meta"));
  EXPECT_TRUE(identical(t.sym_size(0), n));
}

TEST(SymbolicRows, T202_a_choice_of_sizes_is_two_nodes_and_no_guard) {
  const auto f = [](const Tensor& x) -> Value { return sym_where(x.sym_size(0) == 5, x.sym_size(0), x.sym_size(1)); };
  const TracedGraph g = make_fx(f, symbolic)(rand({5, 4}));
  EXPECT_THAT(calls(g.graph()), HasSubstr("operator.eq"));
  EXPECT_THAT(calls(g.graph()), HasSubstr("torch.sym_ite"));
  EXPECT_TRUE(g.env->guards().empty());
  EXPECT_EQ(g(rand({5, 4})).to_int(), 5);
  EXPECT_EQ(g(rand({4, 5})).to_int(), 5);
}

TEST(SymbolicRows, T219_a_symbolic_scalar_argument_stays_symbolic) {
  struct Watch : Mode {
    ModeSlot slot() const override { return ModeSlot::user; }
    Value call(const Operator& op, const Values& args) override {
      if (op.schema().name == "add") alpha = args[2];
      return call_next(op, args);
    }
    Value alpha;
  };
  Symbols s;
  const Tensor x = s.fake({5}, "x");
  Watch watch;
  {
    const ModeScope scope(watch);
    add(x, x, Scalar(x.sym_size(0)));
  }
  EXPECT_TRUE(identical(watch.alpha.to_sym_int(), x.sym_size(0)));
}

TEST(SymbolicRows, T222_a_tensor_of_sizes_has_their_values) {
  Symbols s;
  const Tensor x = s.fake({5, 3}, "x");
  for (const DType dtype : {DType::uint8, DType::int8, DType::int16, DType::int32, DType::int64, DType::float16,
                            DType::bfloat16, DType::float32, DType::float64}) {
    const Tensor t = tensor({Scalar(x.sym_size(0)), Scalar(x.sym_size(1))}, dtype);
    EXPECT_EQ(t.select(0, 0).item().to<int64_t>(), 5);
    EXPECT_EQ(t.select(0, 1).item().to<int64_t>(), 3);
  }
}

}  // namespace
}  // namespace calque::symbolic_rows_test
