// The Python code and the order of graphs: behaviours that PyTorch's test/test_fx.py checks. What is expected is what PyTorch
// printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/graph/code.h"
#include "calque/graph/graph.h"
#include "calque/graph/graph_module.h"
#include "calque/graph/text.h"
#include "calque/op/operators.h"

namespace calque::fx_code_test {
namespace {

using ::testing::ElementsAre;

std::string body(const Graph& g) {
  const std::string code = python_code(g);
  return code.substr(code.find("def forward"));
}
std::string body(const char* text) { return body(parse_graph(text)); }
template <class R>
std::vector<std::string> names_of(const R& nodes) {
  std::vector<std::string> out;
  for (const Node* n : nodes) out.push_back(n->name());
  return out;
}

// test/test_fx.py::test_ellipsis and its kin
TEST(FxCodeBehaviour, B156_subscripts_are_written_as_slices) {
  EXPECT_EQ(
      body("%x = placeholder\n%getitem = operator.getitem(%x, (slice(None, None, 2), None, Ellipsis, slice(1, None, "
           "None)))\nreturn %getitem"),
      "def forward(self, x):\n    getitem = x[(slice(None, None, 2), None, Ellipsis, slice(1, None, None))];  x = None\n"
      "    return getitem\n    ");
}

// test/test_fx.py: keyword arguments of torch's own kinds
TEST(FxCodeBehaviour, B157_dtypes_devices_and_formats_are_written_as_python_reads_them) {
  Graph g;
  Node* x = g.placeholder("x");
  g.output(g.call_method(
      "to", {x}, {{"dtype", DType::float16}, {"device", Device("cpu")}, {"memory_format", MemoryFormat::channels_last}}));
  EXPECT_EQ(body(g),
            "def forward(self, x):\n    to = x.to(dtype = torch.float16, device = device(type='cpu'), memory_format = "
            "torch.channels_last);  x = None\n    return to\n    ");
}

// test/test_fx.py: operators
TEST(FxCodeBehaviour, B158_functions_of_pythons_operators_are_written_as_operators) {
  EXPECT_EQ(
      body("%to = placeholder\n%add = operator.add(%to, 1e-07)\n%mul = operator.mul(%add, -3)\n%pow_1 = "
           "operator.pow(%mul, 2)\n%invert = operator.invert(%pow_1)\n%eq = operator.eq(%invert, True)\nreturn {'a': %eq, "
           "'b': [%to, (%add,)]}"),
      "def forward(self, to):\n    add = to + 1e-07\n    mul = add * -3\n    pow_1 = mul ** 2;  mul = None\n    invert = "
      "~pow_1;  pow_1 = None\n    eq = invert == True;  invert = None\n    return {'a': eq, 'b': [to, (add,)]}\n    ");
}

// test/test_fx.py::test_imul_code_print
TEST(FxCodeBehaviour, B159_in_place_operators_are_statements) {
  EXPECT_EQ(body("%x = placeholder\n%iadd = operator.iadd(%x, 1)\n%imul = operator.imul(%iadd, 2)\n%setitem = "
                 "operator.setitem(%imul, 0, 5)\nreturn %imul"),
            "def forward(self, x):\n    x += 1;  iadd = x;  x = None\n    iadd *= 2;  imul = iadd;  iadd = None\n    "
            "imul[0] = 5;  "
            "setitem = imul;  setitem = None\n    return imul\n    ");
}

// test/test_fx.py::test_args_kwargs
TEST(FxCodeBehaviour, B160_arguments_that_take_the_rest_are_renamed) {
  Graph g;
  Node* args = g.placeholder("*args");
  Node* kwargs = g.placeholder("**kwargs");
  g.output(tuple({args, kwargs}));
  EXPECT_EQ(
      body(g),
      "def forward(self, *args, **kwargs):\n    _args = args\n    _kwargs = kwargs\n    return (_args, _kwargs)\n    ");
}

// test/test_fx.py: paths with numbers
TEST(FxCodeBehaviour, B161_a_number_in_a_path_is_read_by_getattr) {
  EXPECT_EQ(body("%x = placeholder\n%layers_0_lin = call_module[layers.0.lin](%x)\n%layers_1_weight = "
                 "get_attr[layers.1.weight]\n%getattr_1 = builtins.getattr(%x, 'shape')\nreturn (%layers_0_lin, "
                 "%layers_1_weight, %getattr_1)"),
            "def forward(self, x):\n    layers_0_lin = getattr(self.layers, \"0\").lin(x)\n    layers_1_weight = "
            "getattr(self.layers, \"1\").weight\n    getattr_1 = x.shape;  x = None\n    return (layers_0_lin, "
            "layers_1_weight, getattr_1)\n    ");
}

// test/test_fx.py::test_regular_and_default_args
TEST(FxCodeBehaviour, B162_defaults_are_part_of_the_signature) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* y = g.placeholder("y", Value());
  Node* z = g.placeholder("z", Value(2.5));
  Node* s = g.placeholder("s", Value("t"));
  g.output(tuple({x, y, z, s}));
  EXPECT_EQ(body(g), "def forward(self, x, y = None, z = 2.5, s = 't'):\n    return (x, y, z, s)\n    ");
}

// test/test_fx.py: names that Python has already
TEST(FxCodeBehaviour, B163_an_input_named_as_a_builtin_gets_another_name_inside) {
  Graph g;
  Node* x = g.placeholder("input");
  Node* y = g.placeholder("max");
  g.output(tuple({x, y}));
  EXPECT_EQ(body(g),
            "def forward(self, input, max):\n    input_1 = input\n    max_1 = max\n    return (input_1, max_1)\n    ");
  EXPECT_EQ(y->target().text(), "max");
}

// test/test_fx.py::test_fn_type_annotations
TEST(FxCodeBehaviour, B164_annotated_inputs_are_written_with_their_types) {
  Graph g;
  Node* x = g.create_node(NodeKind::placeholder, "x", {}, {}, {}, "torch.Tensor");
  Node* y = g.create_node(NodeKind::placeholder, "y", {}, {}, {}, "int");
  g.output(tuple({x, y}));
  EXPECT_EQ(body(g), "def forward(self, x : torch.Tensor, y : int):\n    return (x, y)\n    ");
  EXPECT_EQ(x->format_node(), "%x : torch.Tensor [num_users=1] = placeholder[target=x]");
}

// test/test_fx.py: insertion points
TEST(FxCodeBehaviour, B165_nodes_made_after_a_node_come_in_reverse_and_before_the_graph_at_its_start) {
  Graph g;
  Node* x = g.placeholder("x");
  Node* a = g.call_function("torch.relu", {x});
  g.output(g.call_function("torch.neg", {a}));
  {
    const auto where = g.inserting_after(a);
    g.call_function("torch.sin", {a});
    g.call_function("torch.cos", {a});
  }
  EXPECT_THAT(names_of(g.nodes()), ElementsAre("x", "relu", "cos", "sin", "neg", "output"));
  const auto start = g.inserting_before();
  g.placeholder("w");
  EXPECT_THAT(names_of(g.nodes()), ElementsAre("w", "x", "relu", "cos", "sin", "neg", "output"));
  EXPECT_THAT(names_of(g.nodes().reversed()), ElementsAre("output", "neg", "sin", "cos", "relu", "x", "w"));
}

}  // namespace
}  // namespace calque::fx_code_test
