// The Tracer: what a user wrote, as a graph.
#include "calque/trace/tracer.h"
#include "calque/sym/sym_math.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/graph/interpreter.h"
#include "calque/nn/container.h"
#include "calque/nn/linear.h"
#include "calque/nn/transformer.h"
#include "calque/nn/typed.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/splitting.h"
#include "calque/op/aten/unary.h"
#include "calque/op/getitem.h"
#include "calque/op/index.h"
#include "support/error_support.h"

namespace calque::tracer_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using test::error_of;

Tensor numbers(IntList sizes) {
  int64_t count = 1;
  for (const int64_t s : sizes) count *= s;
  return (arange(count, DType::float32) * 0.25 - 1).view(as_sym(sizes));
}

bool same(const Tensor& a, const Tensor& b) { return a.equal(b); }

// "x: placeholder x()", one node a line.
std::string listed(const Graph& g) {
  std::string out;
  for (const Node* n : g.nodes()) out += n->str() + "\n";
  return out;
}

// ---- what is recorded -----------------------------------------------------------------------------------------------

struct Mlp : Typed<Mlp> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> up = child<Linear>("up", 4, 8);
  Parameter bias = register_parameter("bias", numbers({8}));
  Tensor forward(const Tensor& x) { return relu(up(x) + bias).sum({-1}); }
};

struct Lines : Typed<Lines> {
  Child<Linear> up = child<Linear>("up", 4, 8);
  Child<Linear> down = child<Linear>("down", 8, 4);
  uint32_t first = 0;
  Tensor forward(const Tensor& x) {
    first = std::source_location::current().line();
    const Tensor y = up(x);
    const Tensor z = y * 2;
    return down(z);
  }
};

TEST(Tracer, a_call_of_a_module_knows_its_line) {
  Lines module;
  const auto traced = symbolic_trace(module);
  EXPECT_EQ(traced->graph().find_node("up")->meta.location.line(), module.first + 1);
  EXPECT_EQ(traced->graph().find_node("mul")->meta.location.line(), module.first + 2);
  EXPECT_EQ(traced->graph().find_node("down")->meta.location.line(), module.first + 3);
}

TEST(Tracer, records_what_the_user_wrote) {
  Mlp m;
  const auto gm = symbolic_trace(m);
  EXPECT_EQ(listed(gm->graph()),
            "%x = placeholder\n"
            "%up = call_module[up](%x)\n"
            "%bias = get_attr[bias]\n"
            "%add = operator.add(%up, %bias)\n"
            "%relu = torch.relu(%add)\n"
            "%sum_1 = call_method[sum](%relu, [-1])\n"
            "return %sum_1\n");
  const Tensor x = numbers({3, 4});
  EXPECT_TRUE(same((*gm)({x}).to_tensor(), m(x)));
  gm->graph().lint();
}

TEST(Tracer, reflected_operators_come_as_in_python) {
  const auto f = [](const Tensor& x) {
    const Tensor left = 1 - x;
    return left * (2 < x) / 3;
  };
  const auto gm = symbolic_trace(traceable(f, {"x"}));
  EXPECT_EQ(listed(gm->graph()),
            "%x = placeholder\n"
            "%sub = operator.sub(1, %x)\n"
            "%gt = operator.gt(%x, 2)\n"
            "%mul = operator.mul(%sub, %gt)\n"
            "%truediv = operator.truediv(%mul, 3)\n"
            "return %truediv\n");
  const Tensor x = numbers({2, 3}) * 4;
  EXPECT_TRUE(same((*gm)({x}).to_tensor(), f(x)));
}

TEST(Tracer, indexing_is_getitem_and_setitem) {
  const auto f = [](const Tensor& x) {
    const Tensor y = x.clone();
    y.set_by({0}, x.index_by({ellipsis, Slice(1, none, 2), none})[1].sum());
    return y;
  };
  const auto gm = symbolic_trace(traceable(f, {"x"}));
  EXPECT_THAT(listed(gm->graph()), HasSubstr("operator.getitem(%x, (Ellipsis, slice(1, None, 2), None))"));
  EXPECT_THAT(listed(gm->graph()), HasSubstr("operator.setitem(%clone, 0, %sum_1)"));
  const Tensor x = numbers({3, 4});
  EXPECT_TRUE(same((*gm)({x}).to_tensor(), f(x)));
}

TEST(Tracer, functions_of_sizes_are_recorded_too) {
  const auto f = [](const Tensor& x) { return x * Scalar(sym_sqrt(sym_float(x.sym_size(0)))); };
  const auto gm = symbolic_trace(traceable(f, {"x"}));
  EXPECT_THAT(listed(gm->graph()), HasSubstr("torch._sym_sqrt("));
  EXPECT_TRUE(same((*gm)({numbers({4, 2})}).to_tensor(), numbers({4, 2}) * 2.0));
}

TEST(Tracer, sizes_are_recorded_as_calls_and_computed_with) {
  const auto f = [](const Tensor& x) {
    const SymInt rows = x.sym_size(0);
    const Tensor y = x.view({rows * x.sym_size(1), -1});
    return y + x.sym_size(2);
  };
  const auto gm = symbolic_trace(traceable(f, {"x"}));
  EXPECT_EQ(listed(gm->graph()),
            "%x = placeholder\n"
            "%size = call_method[size](%x, 0)\n"
            "%size_1 = call_method[size](%x, 1)\n"
            "%mul = operator.mul(%size, %size_1)\n"
            "%view = call_method[view](%x, [%mul, -1])\n"
            "%size_2 = call_method[size](%x, 2)\n"
            "%add = operator.add(%view, %size_2)\n"
            "return %add\n");
  const Tensor x = numbers({2, 3, 4});
  EXPECT_TRUE(same((*gm)({x}).to_tensor(), f(x)));
}

TEST(Tracer, tuples_are_taken_apart) {
  const auto f = [](const Tensor& x) {
    const auto [values, indices] = max(x, 1);
    const std::vector<Tensor> parts = chunk(x, 2, 1);
    return std::tuple<Tensor, Tensor>(values + parts[1].sum(), indices);
  };
  const auto gm = symbolic_trace(traceable(f, {"x"}));
  EXPECT_EQ(listed(gm->graph()),
            "%x = placeholder\n"
            "%max_1 = torch.max(%x, 1)\n"
            "%getitem = operator.getitem(%max_1, 0)\n"
            "%getitem_1 = operator.getitem(%max_1, 1)\n"
            "%chunk = torch.chunk(%x, 2, 1)\n"
            "%getitem_2 = operator.getitem(%chunk, 0)\n"
            "%getitem_3 = operator.getitem(%chunk, 1)\n"
            "%sum_1 = call_method[sum](%getitem_3)\n"
            "%add = operator.add(%getitem, %sum_1)\n"
            "return (%add, %getitem_1)\n");
  const Tensor x = numbers({3, 4});
  EXPECT_TRUE(same((*gm)({x}).to_items()[0].to_tensor(), std::get<0>(f(x))));
}

TEST(Tracer, functions_have_pythons_names) {
  const auto f = [](const Tensor& x, const Tensor& w) {
    return linear(gelu(x), w).silu().expand({2, -1, -1}).numpy_T().special_expit().add_(1).leaky_relu_(0.5);
  };
  const auto gm = symbolic_trace(traceable(f, {"x", "w"}));
  EXPECT_EQ(listed(gm->graph()),
            "%x = placeholder\n"
            "%w = placeholder\n"
            "%gelu = torch._C._nn.gelu(%x)\n"
            "%linear = torch._C._nn.linear(%gelu, %w)\n"
            "%silu = torch.nn.functional.silu(%linear, inplace=False)\n"
            "%expand = call_method[expand](%silu, [2, -1, -1])\n"
            "%getattr_1 = builtins.getattr(%expand, 'T')\n"
            "%special_expit = torch._C._special.special_expit(%getattr_1)\n"
            "%add_ = call_method[add_](%special_expit, 1)\n"
            "%leaky_relu = torch.nn.functional.leaky_relu(%add_, negative_slope=0.5, inplace=True)\n"
            "return %leaky_relu\n");
  const Tensor x = numbers({3, 4}), w = numbers({2, 4});
  EXPECT_TRUE(same((*gm)({x, w}).to_tensor(), f(x, w)));
}

// ---- containers -----------------------------------------------------------------------------------------------------

struct OfDict : Typed<OfDict> {
  static constexpr const char* forward_arguments[] = {"d"};
  Value forward(const Value& d) {
    const Tensor a = getitem(d, "a").to_tensor();
    return tuple({a, dict({{"x", a + getitem(d, "b").to_tensor()}})});
  }
};

TEST(Tracer, T005_a_dict_is_indexed_by_its_keys) {
  OfDict m;
  const auto gm = symbolic_trace(m);
  EXPECT_EQ(listed(gm->graph()),
            "%d = placeholder\n"
            "%getitem = operator.getitem(%d, 'a')\n"
            "%getitem_1 = operator.getitem(%d, 'b')\n"
            "%add = operator.add(%getitem, %getitem_1)\n"
            "return (%getitem, {'x': %add})\n");
  const Value d = dict({{"a", numbers({2})}, {"b", numbers({2}) * 3}});
  const Value expected = m(d), found = (*gm)({d});
  EXPECT_TRUE(same(getitem(getitem(found, 1), "x").to_tensor(), getitem(getitem(expected, 1), "x").to_tensor()));
}

TEST(Tracer, T006_a_named_tuple_stays_one) {
  const auto f = [](const Tensor& x) { return namedtuple("pair.Pair", {"first", "second"}, {x + 1, x * 2}); };
  const auto gm = symbolic_trace(traceable(f, {"x"}));
  const Value found = (*gm)({numbers({2})}), expected = f(numbers({2}));
  ASSERT_EQ(found.kind(), Value::Kind::structure);
  EXPECT_EQ(found.to_struct().type, expected.to_struct().type);
  EXPECT_EQ(found.to_struct().fields, expected.to_struct().fields);
  EXPECT_TRUE(same(getitem(found, "second").to_tensor(), getitem(expected, "second").to_tensor()));
}

TEST(Tracer, T007_proxies_of_nodes_add_to_a_graph) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* a = g.call_function("torch.neg", {x}, {}, "foo_1_1");
  Node* b = g.call_function("torch.neg", {a}, {}, "foo_1");
  Node* c = nullptr;
  {
    GraphAppender append(g);
    c = append.node(append.proxy(a) + append.proxy(b).relu());
    EXPECT_THAT(error_of([&] { append.node(numbers({2})); }), HasSubstr("not computed from proxies of this graph"));
  }
  g.output(c);
  EXPECT_EQ(listed(g),
            "%x = placeholder\n"
            "%foo_1_1 = torch.neg(%x)\n"
            "%foo_1 = torch.neg(%foo_1_1)\n"
            "%relu = call_method[relu](%foo_1)\n"
            "%add = operator.add(%foo_1_1, %relu)\n"
            "return %add\n");
  g.lint();
}

TEST(Tracer, T024_a_proxy_is_no_key) {
  const auto f = [](const Tensor& x) { return dict({{x, 1}}); };
  EXPECT_THAT(error_of([&] { symbolic_trace(traceable(f, {"x"})); }), HasSubstr("keys cannot contain a Node"));
  const auto gm = symbolic_trace(traceable([](const Tensor& x) { return dict({{7, x}}); }, {"x"}));
  EXPECT_EQ((*gm)({numbers({1})}).to_dict().items[0].first.to_int(), 7);
}

// ---- attributes -----------------------------------------------------------------------------------------------------

TEST(Tracer, T029_a_tensor_made_on_the_way_is_a_constant) {
  const auto f = [](const Tensor& x) { return x + tensor_of<float>(std::vector<float>{1, 2, 3}, {3}); };
  const auto gm = symbolic_trace(traceable(f, {"x"}));
  EXPECT_EQ(listed(gm->graph()),
            "%x = placeholder\n"
            "%_tensor_constant0 = get_attr[_tensor_constant0]\n"
            "%add = operator.add(%x, %_tensor_constant0)\n"
            "return %add\n");
  EXPECT_TRUE(same((*gm)({numbers({3})}).to_tensor(), f(numbers({3}))));
}

struct Captures : Typed<Captures> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor one = numbers({2});
  Tensor other = numbers({2});
  Tensor forward(const Tensor& x) { return x + one - other + one; }
};

TEST(Tracer, T030_one_attribute_for_one_tensor) {
  Captures m;
  const auto gm = symbolic_trace(m);
  std::vector<std::string> targets;
  for (const Node* n : gm->graph().find_nodes(NodeKind::get_attr)) targets.push_back(n->target().text());
  EXPECT_THAT(targets, ElementsAre("_tensor_constant0", "_tensor_constant1", "_tensor_constant0"));
  EXPECT_EQ(gm->buffers().size(), 2U);
  EXPECT_TRUE(m.state_dict().empty());
  EXPECT_TRUE(same((*gm)({numbers({2})}).to_tensor(), m(numbers({2}))));
}

struct Inner : Typed<Inner> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter w = register_parameter("w", numbers({3}));
  Buffer b = register_buffer("b", numbers({3}));
  Tensor forward(const Tensor& x) { return x * w + b; }
};
struct Outer : Typed<Outer> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Inner> inner = child<Inner>("inner");
  Tensor forward(const Tensor& x) { return inner(x) + inner->w + inner->b + inner->b; }
};

TEST(Tracer, T031_parameters_and_buffers_by_their_names) {
  Outer m;
  const auto gm = symbolic_trace(m);
  EXPECT_EQ(listed(gm->graph()),
            "%x = placeholder\n"
            "%inner_w = get_attr[inner.w]\n"
            "%mul = operator.mul(%x, %inner_w)\n"
            "%inner_b = get_attr[inner.b]\n"
            "%add = operator.add(%mul, %inner_b)\n"
            "%add_1 = operator.add(%add, %inner_w)\n"
            "%inner_b_1 = get_attr[inner.b]\n"
            "%add_2 = operator.add(%add_1, %inner_b_1)\n"
            "%inner_b_2 = get_attr[inner.b]\n"
            "%add_3 = operator.add(%add_2, %inner_b_2)\n"
            "return %add_3\n");
  EXPECT_EQ(gm->named_buffers().size(), 1U);
  EXPECT_TRUE(same((*gm)({numbers({3})}).to_tensor(), m(numbers({3}))));
}

struct Alone : Typed<Alone> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter w = register_parameter("w", numbers({3}));
  Buffer b = register_buffer("b", numbers({3}));
  Tensor forward(const Tensor& x) { return x + sin(w) + cos(b); }
};

TEST(Tracer, calls_on_parameters_alone_are_recorded_and_on_buffers_when_asked) {
  Alone m;
  EXPECT_THAT(listed(Tracer().trace(m)), testing::AllOf(HasSubstr("torch.sin(%w)"), Not(HasSubstr("torch.cos")),
                                                        HasSubstr("get_attr[_tensor_constant0]")));
  Tracer tracer;
  tracer.proxy_buffer_attributes = true;
  EXPECT_THAT(listed(tracer.trace(m)), HasSubstr("torch.cos(%b)"));
}

// ---- derived tracers ------------------------------------------------------------------------------------------------

TEST(Tracer, T032_no_leaves_and_tagged_nodes) {
  struct All : Tracer {
    bool is_leaf_module(Module&, const std::string&) override { return false; }
    Node* create_node(NodeKind kind, const Target& target, Values args, Kwargs kwargs, std::string_view name,
                      std::string type) override {
      if (kind == NodeKind::call_method && target.text().ends_with("_"))
        throw UserError("no in-place call may be traced: " + target.text());
      Node* n = Tracer::create_node(kind, target, std::move(args), std::move(kwargs), name, std::move(type));
      n->meta.set("tag", "traced");
      return n;
    }
  } tracer;
  Mlp m;
  const Graph g = tracer.trace(m);
  EXPECT_TRUE(g.find_nodes(NodeKind::call_module).empty());
  EXPECT_THAT(listed(g), HasSubstr("torch._C._nn.linear(%x, %up_weight, %up_bias)"));
  for (const Node* n : g.nodes()) EXPECT_TRUE(n->meta.find("tag")) << n->name();
  All other;
  EXPECT_THAT(error_of([&] { other.trace(traceable([](const Tensor& x) { return x.add_(1); }, {"x"})); }),
              HasSubstr("no in-place call may be traced: add_"));
}

TEST(Tracer, T033_an_out_argument_is_refused_when_asked) {
  const auto f = [](const Tensor& x, const Tensor& y) { return sigmoid(x, Out(y)); };
  Tracer tracer;
  tracer.check_mutable_operations = true;
  EXPECT_THAT(error_of([&] {
                tracer.trace(traceable(f, {"x", "y"}));
              }),
              HasSubstr("Tried to trace mutable operation aten::sigmoid.out"));
  EXPECT_THAT(listed(Tracer().trace(traceable(f, {"x", "y"}))), HasSubstr("torch.sigmoid(%x, out=%y)"));
}

TEST(Tracer, call_module_may_be_overridden) {
  // Each module that is not a leaf becomes a graph of its own.
  struct Nesting : Tracer {
    std::vector<std::shared_ptr<GraphModule>> made;
    Value call_module(Module& module, const Forward& forward, const Values& args, const Kwargs& kwargs) override {
      if (is_leaf_module(module, path_of_module(module))) return Tracer::call_module(module, forward, args, kwargs);
      made.push_back(symbolic_trace(module));
      return create_proxy(NodeKind::call_module, path_of_module(module), args, kwargs);
    }
  } tracer;
  Outer m;
  const Graph g = tracer.trace(m);
  ASSERT_EQ(tracer.made.size(), 1U);
  EXPECT_THAT(listed(tracer.made[0]->graph()), HasSubstr("%w = get_attr[w]"));
  EXPECT_THAT(listed(g), testing::AllOf(HasSubstr("call_module[inner](%x)"), HasSubstr("get_attr[inner.w]")));
}

// ---- wrapped functions ----------------------------------------------------------------------------------------------

TEST(Tracer, T034_a_wrapped_function_is_one_node) {
  static const auto fused = wrap("tracer_test.fused", [](const Tensor& x, double by) { return (x * by).sin(); });
  static const auto split_up =
      wrap("tracer_test.split_up", [](const Tensor& x) { return std::tuple<Tensor, Tensor>(x + 1, x + 2); });
  const auto f = [](const Tensor& x) {
    const auto [a, b] = split_up(fused(x, 2.0));
    return a * b + fused(tensor_of<float>(std::vector<float>{3}, {1}), 1.0);
  };
  const auto gm = symbolic_trace(traceable(f, {"x"}));
  EXPECT_EQ(listed(gm->graph()),
            "%x = placeholder\n"
            "%fused = tracer_test.fused(%x, 2.0)\n"
            "%split_up = tracer_test.split_up(%fused)\n"
            "%getitem = operator.getitem(%split_up, 0)\n"
            "%getitem_1 = operator.getitem(%split_up, 1)\n"
            "%mul = operator.mul(%getitem, %getitem_1)\n"
            "%_tensor_constant0 = get_attr[_tensor_constant0]\n"
            "%add = operator.add(%mul, %_tensor_constant0)\n"
            "return %add\n");
  EXPECT_TRUE(same((*gm)({numbers({2})}).to_tensor(), f(numbers({2}))));
}

// ---- inputs ---------------------------------------------------------------------------------------------------------

struct Branches : Typed<Branches> {
  static constexpr const char* forward_arguments[] = {"x", "y", "flag"};
  Tensor forward(const Tensor& x, const std::optional<Tensor>& y, bool flag) {
    const Tensor z = y ? x + *y : x;
    return flag ? z * 2 : z - 1;
  }
};

TEST(Tracer, T035_concrete_arguments_pick_a_branch_and_are_checked) {
  Branches m;
  const auto gm = symbolic_trace(m, {.concrete_args = {{"y", {}}, {"flag", true}}});
  EXPECT_EQ(listed(gm->graph()),
            "%x = placeholder\n"
            "%y_1 = placeholder\n"
            "%_assert_is_none = torch.fx._symbolic_trace._assert_is_none(%y_1, 'y has been specialized to have value None "
            "but got another value')\n"
            "%flag_1 = placeholder\n"
            "%eq = operator.eq(%flag_1, True)\n"
            "%_assert = torch._assert(%eq, 'flag has been specialized to have value True but got another value')\n"
            "%mul = operator.mul(%x, 2)\n"
            "return %mul\n");
  const Tensor x = numbers({2});
  EXPECT_TRUE(same((*gm)({x, {}, true}).to_tensor(), x * 2));
  EXPECT_THAT(error_of([&] { (*gm)({x, {}, false}); }), HasSubstr("flag has been specialized to have value True"));
  EXPECT_THAT(error_of([&] { (*gm)({x, x, true}); }), HasSubstr("y has been specialized to have value None"));
  EXPECT_THAT(
      error_of([&] { symbolic_trace(m); }),
      HasSubstr("argument 'flag' of Branches is a bool, which a trace cannot leave open; say its value in concrete_args"));
  EXPECT_THAT(error_of([&] {
                symbolic_trace(m, {.concrete_args = {{"flags", true}}});
              }),
              HasSubstr("Branches has no argument named flags"));
}

struct WithDefaults : Typed<WithDefaults> {
  static constexpr const char* forward_arguments[] = {"x", "scale", "twice"};
  static Values forward_defaults() { return {2.0, true}; }
  Tensor forward(const Tensor& x, SymFloat scale, bool twice) {
    const Tensor y = x * Scalar(scale);
    return twice ? y + y : y;
  }
};

TEST(Tracer, defaults_are_the_placeholders) {
  WithDefaults m;
  const auto gm = symbolic_trace(m);
  EXPECT_EQ(listed(gm->graph()),
            "%x = placeholder\n"
            "%scale = placeholder(2.0)\n"
            "%twice_1 = placeholder(True)\n"
            "%eq = operator.eq(%twice_1, True)\n"
            "%_assert = torch._assert(%eq, 'twice has been specialized to have value True but got another value')\n"
            "%mul = operator.mul(%x, %scale)\n"
            "%add = operator.add(%mul, %mul)\n"
            "return %add\n");
  const Tensor x = numbers({2});
  EXPECT_TRUE(same((*gm)({x}).to_tensor(), x * 4));
  EXPECT_TRUE(same(gm->call({x}, {{"scale", 0.5}}).to_tensor(), x));
}

TEST(Tracer, T036_a_tree_of_inputs_becomes_one_placeholder_a_leaf) {
  const auto f = [](const Value& tree, const Tensor& y) {
    const Tensor a = getitem(getitem(tree, "a"), 0).to_tensor();
    const Tensor b = getitem(getitem(getitem(tree, "b"), "second"), 0).to_tensor();
    return dict({{"sum", a + b}, {"rest", list({a * y})}});
  };
  const auto tree_of = [](const Value& a, const Value& b) {
    return dict({{"a", list({a})},
                 {"b", namedtuple("pair.Pair", {"first", "second"}, {list({}), tuple({b})})},
                 {"none", tuple({})}});
  };
  const auto gm = symbolic_trace(traceable(f, {"tree", "y"}), {.concrete_args = {{"tree", tree_of(PH(), PH())}}});
  EXPECT_EQ(listed(gm->graph()),
            "%tree_1 = placeholder\n"
            "%tree_2 = placeholder\n"
            "%y = placeholder\n"
            "%add = operator.add(%tree_1, %tree_2)\n"
            "%mul = operator.mul(%tree_1, %y)\n"
            "return [%add, %mul]\n");
  const Value tree = tree_of(numbers({2}), numbers({2}) * 3);
  const Value found = (*gm)({tree, numbers({2})}), expected = f(tree, numbers({2}));
  EXPECT_TRUE(same(getitem(found, "sum").to_tensor(), getitem(expected, "sum").to_tensor()));
  EXPECT_TRUE(same(getitem(getitem(found, "rest"), 0).to_tensor(), getitem(getitem(expected, "rest"), 0).to_tensor()));
  EXPECT_THAT(error_of([&] { (*gm)({list({}), numbers({2})}); }), Not(""));
}

TEST(Tracer, T036_empty_containers_are_allowed) {
  const auto f = [](const Value& nothing, const Tensor& x) { return x + static_cast<int64_t>(nothing.to_items().size()); };
  const auto gm = symbolic_trace(traceable(f, {"nothing", "x"}), {.concrete_args = {{"nothing", list({})}}});
  EXPECT_TRUE(same((*gm)({list({}), numbers({2})}).to_tensor(), numbers({2})));
}

// ---- metadata -------------------------------------------------------------------------------------------------------

TEST(Tracer, T038_every_node_knows_its_line) {
  Mlp m;
  Tracer tracer;
  tracer.record_stack_traces = true;
  const Graph g = tracer.trace(m);
  for (const Node* n : g.nodes()) {
    if (n->kind() == NodeKind::output) continue;
    ASSERT_TRUE(n->meta.stack_trace) << n->name();
    EXPECT_THAT(*n->meta.stack_trace, HasSubstr("tracer_test.cpp")) << n->name();
  }
  Graph other;
  NodeMapping mapping;
  other.graph_copy(g, mapping);
  for (const Node* n : other.nodes()) EXPECT_TRUE(n->meta.stack_trace) << n->name();
  const GraphModule gm(m, g.copy());
  const Graph same_again = Transformer(g, &gm.as_owner()).transform();
  for (const Node* n : same_again.nodes()) EXPECT_TRUE(n->kind() == NodeKind::output || n->meta.stack_trace) << n->name();
}

struct Twice : Typed<Twice> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Inner> inner = child<Inner>("inner");
  Tensor forward(const Tensor& x) { return inner(inner(x)).relu(); }
};

TEST(Tracer, nodes_know_their_modules) {
  Twice m;
  Tracer tracer;
  const Graph g = tracer.trace(m);
  const auto stack_of = [&](const char* name) {
    std::string out;
    if (const auto& stack = g.find_node(name)->meta.nn_module_stack)
      for (const ModuleStackEntry& e : *stack) out += e.key + "=" + e.path + " ";
    return out;
  };
  EXPECT_EQ(stack_of("mul"), "inner=inner ");
  EXPECT_EQ(stack_of("mul_1"), "inner@1=inner ");
  EXPECT_EQ(stack_of("relu"), "");
  EXPECT_EQ(tracer.node_name_to_scope().at("add").module_path, "inner");
  EXPECT_THAT(tracer.node_name_to_scope().at("add").module_type, HasSubstr("Inner"));
  EXPECT_EQ(tracer.node_name_to_scope().at("relu").module_path, "");
}

// ---- control flow ---------------------------------------------------------------------------------------------------

Tensor by_dimension(const Tensor& x) {
  Tensor y = x;
  for (int64_t d = 0; d < x.dim(); ++d) y = y + x.size(d);
  return x.dtype() == DType::float32 ? y : y.to(DType::float32);
}

TEST(Tracer, with_examples_a_program_may_look_at_sizes) {
  const auto gm = symbolic_trace(traceable(by_dimension, {"x"}), {.examples = {{"x", numbers({2, 3})}}});
  EXPECT_EQ(listed(gm->graph()),
            "%x : f32[2, 3] = placeholder\n"
            "%add : f32[2, 3] = operator.add(%x, 2)\n"
            "%add_1 : f32[2, 3] = operator.add(%add, 3)\n"
            "return %add_1\n");
  EXPECT_TRUE(same((*gm)({numbers({2, 3})}).to_tensor(), by_dimension(numbers({2, 3}))));
}

TEST(Tracer, with_symbolic_examples_sizes_stay_open) {
  const auto f = [](const Tensor& x) { return x.dim() == 2 ? x.reshape({x.sym_size(0) * x.sym_size(1)}) : x; };
  const auto gm = symbolic_trace(traceable(f, {"x"}), {.examples = {{"x", numbers({2, 3})}}, .symbolic = true});
  EXPECT_THAT(listed(gm->graph()), HasSubstr("operator.mul(%size, %size_1)"));
  EXPECT_TRUE(same((*gm)({numbers({4, 5})}).to_tensor(), f(numbers({4, 5}))));
}

struct LooksAtLeaf : Typed<LooksAtLeaf> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Linear> up = child<Linear>("up", 3, 5);
  Tensor forward(const Tensor& x) {
    const Tensor y = up(x);
    return y.size(-1) == 5 ? y * 2 : y;
  }
};

TEST(Tracer, leaf_modules_run_on_examples) {
  LooksAtLeaf m;
  const auto gm = symbolic_trace(m, {.examples = {{"x", numbers({2, 3})}}});
  EXPECT_THAT(listed(gm->graph()),
              testing::AllOf(HasSubstr("%up : f32[2, 5] = call_module[up](%x)"), HasSubstr("operator.mul(%up, 2)")));
}

TEST(Tracer, what_is_not_known_is_an_error_that_says_what_to_do) {
  const std::string dimension = error_of([&] { symbolic_trace(traceable(by_dimension, {"x"})); });
  EXPECT_THAT(dimension, testing::AllOf(HasSubstr("the dim of %x = placeholder"), HasSubstr("tracer_test.cpp:"),
                                        HasSubstr("Give example inputs"), HasSubstr("concrete_args"), HasSubstr("wrap()")));
  const std::string truth = error_of(
      [&] { symbolic_trace(traceable([](const Tensor& x) { return (x.sum() > 0).item().to_bool() ? x : -x; }, {"x"})); });
  EXPECT_THAT(truth, testing::AllOf(HasSubstr("call_method[item](%gt)"), HasSubstr("tracer_test.cpp:"),
                                    HasSubstr("only known when the program runs")));
  const std::string size =
      error_of([&] { symbolic_trace(traceable([](const Tensor& x) { return x.size(0) > 2 ? x : -x; }, {"x"})); });
  EXPECT_THAT(size, testing::AllOf(HasSubstr("u0 is %size = call_method[size](%x, 0)"), HasSubstr("tracer_test.cpp:")));
  const std::string guarded =
      error_of([&] { symbolic_trace(traceable([](const Tensor& x) { return guard(x.sym_size(0) > 2) ? x : -x; }, {"x"})); });
  EXPECT_THAT(guarded, HasSubstr("u0 is %size = call_method[size](%x, 0)"));
  const std::string items =
      error_of([&] { symbolic_trace(traceable([](const Tensor& x) { return x.unbind()[0]; }, {"x"})); });
  EXPECT_THAT(items, HasSubstr("the number of items of %unbind"));
  const std::string same_tensors =
      error_of([&] { symbolic_trace(traceable([](const Tensor& x) { return x.equal(x) ? x : -x; }, {"x"})); });
  EXPECT_THAT(same_tensors, HasSubstr("control flow depends on the value %equal = call_method[equal](%x, %x)"));
  const std::string number = error_of([&] {
    symbolic_trace(traceable([](const Tensor& x, int64_t n) { return x + n; }, {"x", "n"}));
  });
  EXPECT_THAT(number, HasSubstr("is %n = placeholder"));
}

TEST(Tracer, a_derived_tracer_may_answer_for_a_proxy) {
  struct Knowing : Tracer {
    bool to_bool(Node&) override { return true; }
    int64_t iter(Node&) override { return 2; }
  } tracer;
  const Graph g = tracer.trace(traceable([](const Tensor& x) { return x.equal(x) ? x.unbind()[1] : x; }, {"x"}));
  EXPECT_THAT(listed(g), HasSubstr("return %getitem_1"));
}

TEST(Tracer, a_proxy_is_useless_after_its_trace) {
  Tensor kept;
  symbolic_trace(traceable([&](const Tensor& x) { return kept = x + 1; }, {"x"}));
  EXPECT_THAT(error_of([&] { kept.dim(); }), HasSubstr("a trace that has ended"));
  EXPECT_THAT(error_of([&] { symbolic_trace(traceable([&](const Tensor& x) { return x + kept; }, {"x"})); }),
              HasSubstr("a proxy of another trace"));
}

// ---- traces within traces, again, and beside each other ---------------------------------------------------------------

TEST(Tracer, a_graph_module_traces_to_its_own_graph) {
  Mlp m;
  const auto once = symbolic_trace(m);
  const auto twice = symbolic_trace(*once);
  EXPECT_EQ(listed(once->graph()), listed(twice->graph()));
  const auto f = [](const Tensor& x) { return (1 - x.transpose(0, 1)).index_by({0, ellipsis}) < 2; };
  const auto first = symbolic_trace(traceable(f, {"x"}));
  EXPECT_EQ(listed(first->graph()), listed(symbolic_trace(*first)->graph()));
}

TEST(Tracer, a_tracer_serves_one_trace_at_a_time) {
  Tracer tracer;
  Mlp m;
  const auto f = [&](const Tensor& x) {
    tracer.trace(m);
    return x;
  };
  EXPECT_THAT(error_of([&] { tracer.trace(traceable(f, {"x"})); }), HasSubstr("this tracer is tracing already"));
  EXPECT_FALSE(is_fx_tracing());
  EXPECT_EQ(tracer.trace(m).size(), 7U);  // and is good for the next
}

TEST(Tracer, sequential_is_no_leaf) {
  Sequential m(std::vector<std::shared_ptr<Module>>{std::make_shared<Linear>(3, 3), std::make_shared<Linear>(3, 3)});
  EXPECT_EQ(listed(symbolic_trace(m)->graph()),
            "%input_1 = placeholder[input]\n"
            "%_0 = call_module[0](%input_1)\n"
            "%_1 = call_module[1](%_0)\n"
            "return %_1\n");
}

struct Attends : Typed<Attends> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<MultiheadAttention> attention = child<MultiheadAttention>("attention", 4, 2);
  Tensor forward(const Tensor& x) {
    const auto [y, weights] = attention(x, x, x);
    return y + weights.sum();
  }
};

TEST(Tracer, a_leaf_may_give_several_results) {
  Attends m;
  const auto gm = symbolic_trace(m);
  EXPECT_EQ(listed(gm->graph()),
            "%x = placeholder\n"
            "%attention = call_module[attention](%x, %x, %x)\n"
            "%getitem = operator.getitem(%attention, 0)\n"
            "%getitem_1 = operator.getitem(%attention, 1)\n"
            "%sum_1 = call_method[sum](%getitem_1)\n"
            "%add = operator.add(%getitem, %sum_1)\n"
            "return %add\n");
  const Tensor x = numbers({3, 2, 4});
  EXPECT_TRUE(same((*gm)({x}).to_tensor(), m(x)));
}

TEST(Tracer, threads_trace_beside_each_other) {
  Mlp m;
  const std::string expected = listed(symbolic_trace(m)->graph());
  std::vector<std::thread> threads;
  std::vector<std::string> found(8);
  for (size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      Mlp own;
      for (int k = 0; k < 20; ++k) found[i] = listed(symbolic_trace(own)->graph());
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& text : found) EXPECT_EQ(text, expected);
}

struct MethodsInside : Typed<MethodsInside> {
  Tensor forward(const Tensor& x) { return x.transpose(0, 1); }
};
struct MethodsOutside : Typed<MethodsOutside> {
  Child<MethodsInside> inner = child<MethodsInside>("inner");
  Tensor forward(const Tensor& x) { return inner(x); }
};
TEST(Tracer, methods_in_the_body_of_a_called_module_stay_methods) {
  MethodsOutside module;
  const auto traced = symbolic_trace(module);
  EXPECT_NE(traced->code().find("input_1.transpose(0, 1)"), std::string::npos) << traced->code();
}

}  // namespace
}  // namespace calque::tracer_test
