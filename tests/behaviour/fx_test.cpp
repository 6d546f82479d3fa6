// Graphs, tracers and passes: behaviours that PyTorch's test/test_fx.py and test/fx/ check. The comment of each test names where
// the behaviour comes from; what is expected is what PyTorch gave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "behaviour/fx_support.h"
#include "calque/base/warning.h"
#include "calque/graph/graph_module.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/passes.h"
#include "calque/graph/rewrite.h"
#include "calque/graph/text.h"
#include "calque/nn/container.h"
#include "calque/nn/convolution.h"
#include "calque/nn/linear.h"
#include "calque/nn/typed.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/op/literal.h"
#include "calque/trace/tracer.h"
#include "support/error_support.h"

namespace calque::fx_test {
namespace {

using namespace fx_support;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct ReluOfSum : Typed<ReluOfSum> {
  static constexpr const char* torch_type = "SimpleTest";
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor forward(const Tensor& x) { return relu(x + 3.0); }
};

// test/test_fx.py::test_fx_shifts, test_fx_and_or
TEST(FxBehaviour, B101_shifts_and_bits_of_integer_tensors_run) {
  GraphModule m(parse_graph(
      "%x = placeholder\n%l = operator.lshift(%x, 3)\n%r = operator.rshift(%x, 3)\n%a = operator.and_(%x, %x)\n%o = "
      "operator.or_(%x, %x)\nreturn (%l, %r, %a, %o)"));
  const Tensor x = integers({1, 9, 1023});
  const Values out = m({x}).to_items();
  EXPECT_TRUE(same(out[0], integers({8, 72, 8184})));
  EXPECT_TRUE(same(out[1], integers({0, 1, 127})));
  EXPECT_TRUE(same(out[2], x));
  EXPECT_TRUE(same(out[3], x));
}

// test/test_fx.py::test_matmul_tracing
TEST(FxBehaviour, B102_a_tensor_closed_over_may_stand_on_either_side_of_a_product) {
  const Tensor constant = floats({1, 2, 3});
  for (const bool left : {true, false}) {
    const auto f = [&](const Tensor& x) { return left ? matmul(constant, x) : matmul(x, constant); };
    const auto m = symbolic_trace(traceable(f, {"x"}));
    EXPECT_THAT(listed(m->graph()), HasSubstr(left ? "(%_tensor_constant0, %x)" : "(%x, %_tensor_constant0)"));
    EXPECT_EQ((*m)({floats({4, 5, 6})}).to_tensor().item_as<float>(), 32.0F);
  }
}

const auto plus_one = [](const Tensor& x) {
  static const auto wrapped = wrap("behaviour.plus_one", [](const Tensor& y) { return y + 1; });
  return wrapped(x);
};

// test/test_fx.py::test_wrapped_retrace
TEST(FxBehaviour, B103_a_wrapped_function_stays_one_node_when_the_trace_is_traced_again) {
  const auto m = symbolic_trace(traceable(plus_one, {"y"}));
  const auto again = symbolic_trace(*m);
  EXPECT_EQ(listed(again->graph()), "%y = placeholder\n%plus_one = behaviour.plus_one(%y)\nreturn %plus_one\n");
  EXPECT_TRUE(same((*again)({floats({0, 4})}), floats({1, 5})));
}

// test/test_fx.py::test_wrapped_via_decorator_and_transformed
TEST(FxBehaviour, B104_a_wrapped_function_stays_one_node_through_a_transformer) {
  const auto m = symbolic_trace(traceable(plus_one, {"y"}));
  Transformer transformer(m->graph());
  GraphModule transformed(transformer.transform());
  EXPECT_THAT(transformed.code(), HasSubstr("plus_one"));
  EXPECT_TRUE(same(transformed({floats({0, 4})}), floats({1, 5})));
}

// test/test_fx.py::test_graph_edit_with_proxy
TEST(FxBehaviour, B105_a_copied_graph_is_continued_with_proxies) {
  const auto sum = symbolic_trace(traceable([](const Tensor& a, const Tensor& b) { return a + b; }, {"a", "b"}));
  Graph g;
  NodeMapping mapping;
  const Value result = *g.graph_copy(sum->graph(), mapping);
  Node* twice;
  {
    GraphAppender appender(g);
    const Tensor t = appender.proxy(result.to_node());
    twice = appender.node(t + t);
  }
  g.output(twice);
  GraphModule m(std::move(g));
  m.graph().lint();
  EXPECT_EQ(m({3, 4}).to_int(), 14);
}

// test/test_fx.py::test_graph_unique_names
TEST(FxBehaviour, B106_names_stay_unique_in_a_graph_that_was_copied_and_continued) {
  const auto sum = symbolic_trace(traceable([](const Tensor& a, const Tensor& b) { return a + b; }, {"a", "b"}));
  Graph g;
  NodeMapping mapping;
  Node* result = g.graph_copy(sum->graph(), mapping)->to_node();
  g.output(g.call_function("operator.add", {result, result}));
  EXPECT_THAT(names_of(g.nodes()), ElementsAre("a", "b", "add", "add_1", "output"));
}

struct HoldsTensor : Typed<HoldsTensor> {
  static constexpr const char* forward_arguments[] = {"x"};
  Constant tensor = register_constant("tensor", numbers({3, 4}));
  Tensor forward(const Tensor& x) { return linear(x, *tensor); }
};
struct ReadsTensor : Typed<ReadsTensor> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<HoldsTensor> ta = child<HoldsTensor>("ta");
  Tensor forward(const Tensor& x) { return linear(x, *ta->tensor); }
};

// test/test_fx.py::test_tensor_attribute (mended)
TEST(FxBehaviour, B107_a_plain_tensor_of_a_child_is_read_under_its_path) {
  ReadsTensor module;
  const auto m = symbolic_trace(module);
  ASSERT_EQ(m->graph().find_nodes(NodeKind::get_attr).size(), 1U);
  EXPECT_EQ(m->graph().find_nodes(NodeKind::get_attr)[0]->target().text(), "ta.tensor");
  m->graph().lint();
  EXPECT_TRUE(same((*m)({numbers({4, 4})}), module(numbers({4, 4}))));
}

struct Negates : Typed<Negates> {
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor forward(const Tensor& x) { return neg(x); }
};

// test/test_fx.py::test_symbolic_trace_sequential
TEST(FxBehaviour, B108_a_sequence_of_ones_own_modules_is_traced_through) {
  Sequential sequence(std::vector<std::shared_ptr<Module>>{std::make_shared<Negates>(), std::make_shared<Negates>(),
                                                           std::make_shared<Negates>()});
  const auto m = symbolic_trace(sequence);
  EXPECT_TRUE(m->graph().find_nodes(NodeKind::call_module).empty());
  EXPECT_THAT(names_of(m->graph().find_nodes(NodeKind::call_function)), ElementsAre("neg", "neg_1", "neg_2"));
  EXPECT_TRUE(same((*m)({numbers({3, 4})}), -numbers({3, 4})));
}

// test/test_fx.py::test_pickle_graphmodule
TEST(FxBehaviour, B109_a_graph_module_comes_back_from_its_text_and_its_state) {
  Nested module;
  const auto m = symbolic_trace(module);
  GraphModule loaded(*m, parse_graph(m->graph().str()));
  loaded.graph().lint();
  EXPECT_TRUE(same(loaded({numbers({3, 4})}), (*m)({numbers({3, 4})}).to_tensor()));
}

// test/test_fx.py::test_pickle_custom_import
TEST(FxBehaviour, B110_a_function_of_ones_own_is_found_again_by_its_name) {
  register_function("behaviour.joined", [](const Values& args, const Kwargs&) -> Value {
    return args.at(0).to_tensor() + args.at(1).to_tensor();
  });
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y");
  g.output(g.call_function("torch.sin", {g.call_function("behaviour.joined", {x, y})}));
  GraphModule loaded(parse_graph(g.str()));
  loaded.graph().lint();
  EXPECT_TRUE(same(loaded({floats({1}), floats({2})}), sin(floats({3}))));
}

// test/test_fx.py::test_all_input_nodes
TEST(FxBehaviour, B111_the_inputs_of_a_node_are_nodes_alone) {
  Graph g;
  Node* a = g.placeholder("x");
  Node* b = g.call_module("linear_mod", {a});
  Node* c = g.get_attr("y_attr");
  Node* d = g.call_function("operator.add", {b, c});
  Node* e = g.call_function("torch.unsqueeze", {d, 0});
  g.output(e);
  EXPECT_THAT(b->all_input_nodes(), ElementsAre(a));
  EXPECT_TRUE(c->all_input_nodes().empty());
  EXPECT_THAT(d->all_input_nodes(), ElementsAre(b, c));
  EXPECT_THAT(e->all_input_nodes(), ElementsAre(d));
}

// test/test_fx.py::test_deepcopy_graphmodule_with_transform
TEST(FxBehaviour, B112_a_transformed_module_is_copied_with_its_change) {
  ReluOfSum module;
  const auto m = symbolic_trace(module);
  Graph g;
  NodeMapping mapping;
  const Value result = *g.graph_copy(m->graph(), mapping);
  g.output(g.call_method("neg", {result}));
  GraphModule transformed(*m, std::move(g));
  const auto copied = deep_copy(transformed);
  EXPECT_TRUE(same((*copied)({floats({-4, 2})}), floats({-0.0F, -5})));
  EXPECT_TRUE(same(transformed({floats({-4, 2})}), floats({-0.0F, -5})));
}

struct Inner : Typed<Inner> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter param = register_parameter("param", numbers({3, 4}));
  Tensor forward(const Tensor& x) { return relu(x) + param; }
};
struct Outer : Typed<Outer> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter param = register_parameter("param", numbers({3, 4}));
  Child<Inner> bar = child<Inner>("bar");
  Tensor forward(const Tensor& x) { return bar(x) - param; }
};

// test/test_fx.py::test_deepcopy_with_submods_params
TEST(FxBehaviour, B113_a_copy_has_every_parameter_of_its_own_under_its_name) {
  Outer module;
  const auto m = symbolic_trace(module);
  const auto copied = deep_copy(*m);
  copied->graph().lint();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : copied->named_parameters()) {
    names.push_back(name);
    EXPECT_FALSE(tensor.is_same(m->get_parameter(name)));
  }
  EXPECT_THAT(names, ElementsAre("param", "bar.param"));
}

// test/test_fx.py::test_pretty_print_targets
TEST(FxBehaviour, B114_targets_are_printed_by_the_module_that_holds_them) {
  const Graph g = parse_graph(
      "%x = placeholder\n%a = builtins.getattr(%x, 'foo')\n%b = builtins.getattr(%x, 'bar')\n%c = operator.add(%a, %b)\n%d "
      "= "
      "torch.add(%c, 3.0)\nreturn %d");
  const std::string text = g.format_graph();
  EXPECT_THAT(text, HasSubstr("call_function[target=builtins.getattr](args = (%x, foo), kwargs = {})"));
  EXPECT_THAT(text, HasSubstr("call_function[target=operator.add]"));
  EXPECT_THAT(text, HasSubstr("call_function[target=torch.add](args = (%c, 3.0), kwargs = {})"));
}

// test/test_fx.py::test_pretty_print_node
TEST(FxBehaviour, B115_every_kind_of_node_is_printed_as_pytorch_prints_it) {
  const Graph g = parse_graph(
      "%x = placeholder\n%y = placeholder(2)\n%getitem = operator.getitem(%x, %y)\n%param = get_attr[param]\n%add = "
      "operator.add(%getitem, %param)\n%linear = call_module[linear](%add)\n%clamp = call_method[clamp](%linear, min=0.0, "
      "max=1.0)\nreturn %clamp");
  std::vector<std::string> lines;
  for (const Node* n : g.nodes()) lines.push_back(n->format_node());
  EXPECT_THAT(
      lines,
      ElementsAre("%x : [num_users=1] = placeholder[target=x]", "%y : [num_users=1] = placeholder[target=y](default=2)",
                  "%getitem : [num_users=1] = call_function[target=operator.getitem](args = (%x, %y), kwargs = {})",
                  "%param : [num_users=1] = get_attr[target=param]",
                  "%add : [num_users=1] = call_function[target=operator.add](args = (%getitem, %param), kwargs = {})",
                  "%linear : [num_users=1] = call_module[target=linear](args = (%add,), kwargs = {})",
                  "%clamp : [num_users=1] = call_method[target=clamp](args = (%linear,), kwargs = {min: 0.0, max: 1.0})",
                  "return clamp"));
}

// test/test_fx.py::test_typename_print
TEST(FxBehaviour, B116_a_type_annotation_is_printed_before_the_users) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* relu = g.create_node(NodeKind::call_function, "torch.relu", {x}, {}, {}, "typing.List[float]");
  g.output(relu);
  EXPECT_EQ(relu->format_node(),
            "%relu : typing.List[float] [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})");
}

// test/test_fx.py::test_inf_nan_kwds
TEST(FxBehaviour, B117_no_node_is_named_as_the_code_names_infinity_or_nan) {
  Graph g;
  Node* x = g.placeholder("x");
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Node* a = g.create_node(NodeKind::call_function, "operator.add", {x, infinity}, {}, "inf");
  Node* b = g.create_node(NodeKind::call_function, "operator.add", {x, nan}, {}, "nan");
  g.output(tuple({a, b}));
  GraphModule m(std::move(g));
  EXPECT_EQ(body(m),
            "def forward(self, x):\n    inf_1 = x + inf\n    nan_1 = x + nan;  x = None\n    return (inf_1, nan_1)\n    ");
  EXPECT_EQ(m({floats({1})}).to_items()[0].to_tensor().item_as<double>(), infinity);
}

// test/test_fx.py::test_inf_nan
TEST(FxBehaviour, B118_infinities_and_nan_are_literals_of_code_and_text) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto f = [=](const Tensor& x) -> Value {
    const Tensor a = x + infinity;
    const Tensor b = x + -infinity;
    return tuple({a, b, x + std::numeric_limits<double>::quiet_NaN()});
  };
  const auto m = symbolic_trace(traceable(f, {"x"}));
  EXPECT_EQ(
      body(*m),
      "def forward(self, x):\n    add = x + inf\n    add_1 = x + -inf\n    add_2 = x + nan;  x = None\n    return (add, "
      "add_1, add_2)\n    ");
  GraphModule again(parse_graph(m->graph().str()));
  const Values out = again({floats({1})}).to_items();
  EXPECT_EQ(out[1].to_tensor().item_as<double>(), -infinity);
  EXPECT_TRUE(std::isnan(out[2].to_tensor().item_as<double>()));
}

// test/test_fx.py::test_prepend_self
TEST(FxBehaviour, B119_moving_a_node_to_where_it_is_changes_nothing) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* relu = g.call_function("torch.relu", {x});
  g.output(relu);
  relu->prepend(relu);
  x->append(relu);
  EXPECT_THAT(names_of(g.nodes()), ElementsAre("x", "relu", "output"));
  g.lint();
}

// test/test_fx.py::test_reassign_args_kwargs_uses
TEST(FxBehaviour, B120_users_follow_when_arguments_are_set_anew) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y");
  Node* z = g.call_function("operator.add", {x, y});
  Node* twice = g.call_function("operator.add", {z, z});
  Node* all = g.call_function("operator.add", {twice, z});
  g.output(all);
  all->set_args({all->args()[0], x});
  EXPECT_THAT(names_of(x->users()), ElementsAre("add", "add_2"));
  EXPECT_THAT(names_of(z->users()), ElementsAre("add_1"));
  z->set_args({y, y});
  EXPECT_THAT(names_of(x->users()), ElementsAre("add_2"));
  EXPECT_THAT(names_of(y->users()), ElementsAre("add"));
}

// test/test_fx.py::test_multi_insert_point
TEST(FxBehaviour, B121_nodes_made_at_one_place_stand_there_in_the_order_of_making) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* relu = g.call_function("torch.relu", {x});
  Node* tanh;
  {
    const auto before = g.inserting_before(relu);
    tanh = g.call_function("torch.tanh", {g.call_function("torch.neg", {x})});
  }
  g.output(tuple({relu, tanh}));
  g.lint();
  EXPECT_THAT(names_of(g.nodes()), ElementsAre("x", "neg", "tanh", "relu", "output"));
}

struct TakesDict : Typed<TakesDict> {
  static constexpr const char* forward_arguments[] = {"d"};
  Tensor forward(const Value& d) { return d.to_dict().items.at(0).second.to_tensor(); }
};
struct GivesDict : Typed<GivesDict> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<TakesDict> m = child<TakesDict>("m");
  Tensor forward(const Tensor& x) { return m(dict({{42, x}})); }
};

// test/test_fx.py::test_trace_dict_int_keys
TEST(FxBehaviour, B122_a_leaf_may_be_called_with_a_dict_of_integer_keys) {
  struct Leaves : Tracer {
    bool is_leaf_module(Module&, const std::string& path) override { return path == "m"; }
  } tracer;
  GivesDict module;
  Graph g = tracer.trace(module);
  EXPECT_EQ(g.find_node("m")->str(), "%m = call_module[m]({42: %x})");
  GraphModule traced(module, std::move(g));
  EXPECT_TRUE(same(traced({floats({7})}), floats({7})));
}

// test/test_fx.py::test_string_literal_return
TEST(FxBehaviour, B123_a_text_may_be_returned) {
  const auto m = symbolic_trace(traceable([]() -> Value { return "foo"; }, {}));
  EXPECT_EQ((*m)({}).to_string(), "foo");
}

struct Positions : Typed<Positions> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer pe = register_buffer("pe", arange(64, DType::float32).view({8, 8}));
  bool by_size = true;
  Tensor forward(const Tensor& x) { return by_size ? pe->index_by({x.sym_size(0)}) : pe->index_by({4}); }
};

// test/test_fx.py::test_getitem (an index that is a proxy)
TEST(FxBehaviour, B124_a_buffer_indexed_by_a_traced_size_is_read_by_its_name) {
  Positions module;
  const auto m = symbolic_trace(module);
  EXPECT_THAT(listed(m->graph()), HasSubstr("%pe = get_attr[pe]"));
  EXPECT_TRUE(same((*m)({zeros({4})}), arange(32, 40, DType::float32)));
  EXPECT_TRUE(same((*m)({zeros({1})}), arange(8, 16, DType::float32)));
}

// test/test_fx.py::test_getitem (an index that is a number)
TEST(FxBehaviour, B125_a_buffer_indexed_by_a_number_is_a_constant_of_the_trace) {
  Positions module;
  module.by_size = false;
  const auto m = symbolic_trace(module);
  EXPECT_EQ(listed(m->graph()),
            "%x = placeholder\n%_tensor_constant0 = get_attr[_tensor_constant0]\nreturn %_tensor_constant0\n");
  EXPECT_TRUE(same((*m)({zeros({4})}), arange(32, 40, DType::float32)));
}

// test/test_fx.py::test_layout
TEST(FxBehaviour, B126_layout_and_pinning_are_keyword_arguments_that_run) {
  GraphModule m(
      parse_graph("%x = placeholder\n%empty_like = torch.empty_like(%x, layout=torch.strided, pin_memory=False)\n%fill_ = "
                  "call_method[fill_](%empty_like, 0)\nreturn %fill_"));
  EXPECT_THAT(m.code(), HasSubstr("torch.empty_like(x, layout = torch.strided, pin_memory = False)"));
  EXPECT_TRUE(same(m({numbers({2, 3})}), zeros({2, 3})));
}

// test/test_fx.py::test_torch_fx_len
TEST(FxBehaviour, B127_the_length_of_a_tensor_is_its_first_size) {
  GraphModule m(parse_graph("%x = placeholder\n%len_1 = builtins.len(%x)\nreturn %len_1"));
  EXPECT_EQ(m({numbers({3, 4})}).to_int(), 3);
  EXPECT_EQ(m({list({3, 4, 5})}).to_int(), 3);
}

// test/test_fx.py::test_torch_fx_getattr (mended)
TEST(FxBehaviour, B128_an_attribute_that_is_not_there_is_the_default) {
  GraphModule m({{"given", floats({2, 3})}},
                parse_graph("%x = placeholder\n%given = get_attr[given]\n%getattr_1 = builtins.getattr(%x, "
                            "'nonexistent_attr', %given)\nreturn %getattr_1"));
  EXPECT_TRUE(same(m({numbers({3, 4})}), floats({2, 3})));
}

// test/test_fx.py::test_sqrt
TEST(FxBehaviour, B129_math_functions_of_a_size_run_when_the_graph_does) {
  GraphModule m(parse_graph("%x = placeholder\n%size = call_method[size](%x, 0)\n%sqrt = math.sqrt(%size)\nreturn %sqrt"));
  EXPECT_DOUBLE_EQ(m({zeros({8})}).to_float(), 2.8284271247461903);
  EXPECT_DOUBLE_EQ(m({zeros({9})}).to_float(), 3.0);
}

// test/test_fx.py::test_torch_custom_ops (mended)
TEST(FxBehaviour, B130_an_operator_without_its_overload_takes_lists_and_tuples) {
  GraphModule m(parse_graph(
      "%a = placeholder\n%sigmoid = torch.ops.aten.sigmoid(%a)\n%cat = torch.ops.aten.cat([%a, %sigmoid])\n%cat_1 = "
      "torch.ops.aten.cat((%cat, %cat))\nreturn %cat_1"));
  EXPECT_EQ(
      body(m),
      "def forward(self, a):\n    sigmoid = torch.ops.aten.sigmoid(a)\n    cat = torch.ops.aten.cat([a, sigmoid]);  a = "
      "sigmoid = None\n    cat_1 = torch.ops.aten.cat((cat, cat));  cat = None\n    return cat_1\n    ");
  EXPECT_TRUE(same(m({floats({0})}), floats({0, 0.5, 0, 0.5})));
}

// test/test_fx.py::test_pretty_print
TEST(FxBehaviour, B131_a_graph_module_prints_its_class_and_its_code) {
  ReluOfSum module;
  const auto m = symbolic_trace(module);
  EXPECT_EQ(
      m->str(),
      "SimpleTest()\n\n\n\ndef forward(self, x):\n    add = x + 3.0;  x = None\n    relu = torch.relu(add);  add = None\n"
      "    return relu\n    \n# To see more debug info, please use `graph_module.print_readable()`");
}

// test/test_fx.py::test_symbolic_trace_assert
TEST(FxBehaviour, B132_an_assertion_is_checked_when_the_graph_runs) {
  GraphModule m(parse_graph(
      "%x = placeholder\n%getattr_1 = builtins.getattr(%x, 'shape')\n%getitem = operator.getitem(%getattr_1, 1)\n%gt = "
      "operator.gt(%getitem, 4)\n%_assert = torch._assert(%gt, 'assert_foobar')\nreturn %x"));
  EXPECT_TRUE(same(m({numbers({4, 5})}), numbers({4, 5})));
  EXPECT_THAT(error_of([&] { m({numbers({4, 3})}); }), HasSubstr("assert_foobar"));
}

// test/test_fx.py::test_tracing_graphmodules_as_leaf_submodules
TEST(FxBehaviour, B147_a_graph_module_may_be_a_leaf_of_a_trace) {
  struct Holder : Module {
    std::vector<std::string> argument_names() const override { return {"t"}; }
    Value forward_values(const Values& args, const Kwargs&) override {
      return get_submodule("a").call({args.at(0)}).to_tensor() + get_submodule("b").call({args.at(0)}).to_tensor();
    }
  } module;
  module.register_module("a", symbolic_trace(traceable([](const Tensor& t) { return t + t; }, {"t"})));
  module.register_module("b", symbolic_trace(traceable([](const Tensor& t) { return t - t; }, {"t"})));
  struct Leaves : Tracer {
    bool is_leaf_module(Module&, const std::string& path) override { return path != "b"; }
  } tracer;
  GraphModule m(module, tracer.trace(module));
  EXPECT_THAT(names_of(m.graph().find_nodes(NodeKind::call_module)), ElementsAre("a"));
  EXPECT_NE(dynamic_cast<GraphModule*>(m.find_submodule("a")), nullptr);
  EXPECT_EQ(m.find_submodule("b"), nullptr);
  EXPECT_EQ(m.graph().find_nodes(NodeKind::call_function, Target(get_function("operator.sub"))).size(), 1U);
  EXPECT_TRUE(same(m({floats({2})}), floats({4})));
}

struct Both : Typed<Both> {
  static constexpr const char* forward_arguments[] = {"x"};
  Buffer buffer = register_buffer("my_buff", numbers({3}));
  Parameter parameter = register_parameter("my_param", numbers({3}));
  Tensor forward(const Tensor& x) { return x + buffer + parameter; }
};

// test/test_fx.py::test_graph_module_init_buffer_param_copied_dict_init
TEST(FxBehaviour, B148_a_module_made_from_named_tensors_knows_parameters_from_buffers) {
  Both module;
  const auto m = symbolic_trace(module);
  Attribute parameter(m->get_parameter("my_param"));
  parameter.is_parameter = true;
  GraphModule again({{"my_buff", m->get_buffer("my_buff")}, {"my_param", parameter}}, m->graph().copy());
  EXPECT_TRUE(again.get_buffer("my_buff").is_same(m->get_buffer("my_buff")));
  EXPECT_TRUE(again.get_parameter("my_param").is_same(m->get_parameter("my_param")));
  EXPECT_TRUE(same(again({numbers({3})}), module(numbers({3}))));
}

// test/test_fx.py::test_pytree_concrete
TEST(FxBehaviour, B149_open_leaves_and_fixed_values_may_be_mixed) {
  const auto f = [](bool b, const Value& a) -> Value { return *a.to_dict().find(b ? "a" : "z"); };
  const auto m =
      symbolic_trace(traceable(f, {"b", "a"}), {.concrete_args = {{"b", true}, {"a", dict({{"a", PH()}, {"z", PH()}})}}});
  const Value a = dict({{"a", floats({1})}, {"z", floats({2})}});
  EXPECT_TRUE(same(m->call({true, a}), floats({1})));
  EXPECT_THAT(error_of([&] { m->call({false, a}); }), HasSubstr("b has been specialized to have value True"));
}

// test/test_fx.py::test_find_nodes
TEST(FxBehaviour, B151_nodes_are_found_by_the_target_they_have_now) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* first = g.call_function("torch.relu", {x});
  g.output(g.call_function("torch.relu", {g.call_function("torch.neg", {first})}));
  first->set_target("torch.neg");
  EXPECT_THAT(names_of(g.find_nodes(NodeKind::call_function, Target(get_function("torch.relu")))), ElementsAre("relu_1"));
  EXPECT_THAT(names_of(g.find_nodes(NodeKind::call_function, Target(get_function("torch.neg")))),
              ElementsAre("relu", "neg"));
}

// test/test_fx.py: moving a node into another graph
TEST(FxBehaviour, B152_nodes_of_another_graph_are_neither_moved_nor_erased) {
  Graph g, other;
  Node* x = g.placeholder("x");
  Node* foreign = other.placeholder("q");
  EXPECT_THAT(error_of([&] { x->append(foreign); }), HasSubstr("graph"));
  EXPECT_THAT(error_of([&] { g.erase_node(foreign); }), HasSubstr("graph"));
  EXPECT_EQ(g.size(), 1U);
  EXPECT_EQ(other.size(), 1U);
}

// test/test_fx.py::test_update_kwargs_api (mended)
TEST(FxBehaviour, B153_a_node_called_by_keyword_alone_runs_and_is_changed) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y");
  Node* relu = g.call_function("torch.relu", {}, {{"input", x}});
  g.output(relu);
  EXPECT_TRUE(same(Interpreter(g).run({floats({1}), floats({2})}), floats({1})));
  relu->update_kwarg("input", y);
  EXPECT_TRUE(same(Interpreter(g).run({floats({1}), floats({2})}), floats({2})));
  EXPECT_TRUE(x->users().empty());
}

}  // namespace
}  // namespace calque::fx_test
