// GraphModule: a graph with the tensors and modules that it refers to.
#include "calque/graph/graph_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/text.h"
#include "calque/nn/typed.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/ternary.h"
#include "support/error_support.h"

namespace calque::graph_module_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using test::error_of;
Tensor numbers(IntList sizes) {
  int64_t count = 1;
  for (const int64_t s : sizes) count *= s;
  return (arange(count, DType::float32) * 0.25 - 1).view(as_sym(sizes));
}

struct Affine : Typed<Affine> {
  Parameter weight = register_parameter("weight", numbers({3, 4}));
  Tensor forward(const Tensor& x) { return linear(x, weight); }
};
struct Net : Typed<Net> {
  Child<Affine> lin = child<Affine>("lin");
  Parameter bias = register_parameter("bias", numbers({3}));
  Buffer scale = register_buffer("scale", numbers({3}));
  Child<Affine> unused = child<Affine>("unused");
  Tensor forward(const Tensor& x) { return (lin(x) + bias).sin(); }
};

// sin(lin(x) + bias)
Graph net_graph() {
  return parse_graph(R"(
    %x = placeholder
    %lin = call_module[lin](%x)
    %bias = get_attr[bias]
    %add = call_method[add](%lin, %bias)
    %sin = torch.sin(%add)
    return %sin)");
}

TEST(GraphModule, T001_a_graph_built_by_hand_runs) {
  auto net = std::make_shared<Net>();
  Graph g;
  Node* x = g.placeholder("in");
  Node* lin = g.call_module("lin", {x});
  Node* bias = g.get_attr("bias");
  Node* add = g.call_method("add", {lin, bias});
  const auto mine = std::make_shared<const Function>(
      "mine.wave", [](const Values& args, const Kwargs&) -> Value { return args.at(0).to_tensor().sin(); });
  g.output(g.call_function(mine, {add}));
  g.lint();
  GraphModule gm(*net, std::move(g));
  gm.graph().lint();
  const Tensor input = numbers({2, 4});
  EXPECT_TRUE(equal(gm({input}).to_tensor(), (*net)(input)));
}

TEST(GraphModule, T003_an_empty_graph_gives_none) {
  GraphModule gm{Graph()};
  EXPECT_TRUE(gm({}).is_none());
}

TEST(GraphModule, T025_deep_copy_is_independent) {
  auto gm = std::make_shared<GraphModule>(Net(), net_graph());
  const std::shared_ptr<GraphModule> copy = deep_copy(*gm);
  copy->graph().find_nodes(NodeKind::call_function, "torch.sin").at(0)->set_target("torch.neg");
  const Tensor input = numbers({2, 4});
  EXPECT_FALSE(equal((*copy)({input}).to_tensor(), (*gm)({input}).to_tensor()));
  EXPECT_FALSE(copy->get_parameter("bias").is_same(gm->get_parameter("bias")));
  copy->graph().lint();
}

TEST(GraphModule, its_nodes_forget_it_when_they_leave) {
  Net root;
  Graph taken;
  {
    Graph g;
    g.output(g.get_attr("bias"));
    GraphModule m(root, std::move(g));
    EXPECT_EQ(m.graph().owner(), &m.as_owner());
    Graph moved = std::move(m.graph());
    EXPECT_EQ(moved.owner(), nullptr);
    taken = std::move(moved);
    EXPECT_EQ(m.graph().owner(), &m.as_owner());
    EXPECT_EQ(m.graph().nodes().size(), 0U);
  }
  EXPECT_EQ(taken.owner(), nullptr);
  EXPECT_EQ(taken.nodes().size(), 2U);
  taken.lint();  // asks an owner for "bias"
}

TEST(GraphModule, takes_only_what_the_graph_refers_to) {
  const auto net = std::make_shared<Net>();
  GraphModule gm(*net, net_graph());
  std::vector<std::string> names;
  for (const auto& [name, tensor] : gm.named_parameters()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("bias", "lin.weight"));
  EXPECT_TRUE(gm.get_parameter("bias").is_same(*net->bias));
  EXPECT_EQ(gm.find_submodule("unused"), nullptr);
  EXPECT_THAT(error_of([&] { GraphModule(*net, parse_graph("%w = get_attr[lin.absent]\nreturn %w")); }),
              HasSubstr("lin.absent"));
  EXPECT_THAT(error_of([&] { GraphModule(Attributes{}, net_graph()); }),
              HasSubstr("referenced target lin but that target was not provided"));
}

TEST(GraphModule, nested_tensors_come_under_the_same_path) {
  const Net net;
  GraphModule gm(net, parse_graph("%w = get_attr[lin.weight]\nreturn %w"));
  EXPECT_TRUE(gm({}).to_tensor().is_same(net.get_parameter("lin.weight")));
  EXPECT_EQ(gm.str().substr(0, 40), "GraphModule(\n  (lin): Module()\n)\n\n\n\ndef ");
}

TEST(GraphModule, keywords_take_their_placeholders) {
  GraphModule gm(
      parse_graph("%x = placeholder\n%y = placeholder(2)\n%z = placeholder(3)\n%a = operator.sub(%x, %y)\n%b = "
                  "operator.mul(%a, %z)\nreturn %b"));
  EXPECT_EQ(gm.call({10}).to_int(), 24);
  EXPECT_EQ(gm.call({10}, {{"z", 5}}).to_int(), 40);
  EXPECT_EQ(gm.call({}, {{"y", 1}, {"x", 2}}).to_int(), 3);
  EXPECT_THAT(error_of([&] { gm.call({1}, {{"w", 5}}); }), HasSubstr("unexpected keyword argument 'w'"));
  EXPECT_THAT(error_of([&] { gm.call({1}, {{"x", 5}}); }), HasSubstr("multiple values for argument 'x'"));
}

TEST(GraphModule, nested_inputs_and_outputs_by_their_specs) {
  Graph g = parse_graph(
      "%a_1 = placeholder\n%a_2 = placeholder\n%b_1 = placeholder\n%s = operator.add(%a_1, %a_2)\n%p = operator.mul(%s, "
      "%b_1)\nreturn (%s, %p)");
  const Value example = tuple({dict({{"u", 1}, {"v", list({2})}}), tuple({3}), list({})});
  auto info = std::make_shared<PyTreeInfo>();
  info->orig_args = {"a", "b", "c"};
  info->in_spec = tree_structure(example);
  info->out_spec = tree_structure(dict({{"sum", 0}, {"rest", list({0})}}));
  g.set_pytree_info(info);
  GraphModule gm(std::move(g));
  EXPECT_EQ(gm.call(example.to_items()).str(), "{'sum': 3, 'rest': [9]}");
  EXPECT_THAT(
      gm.code(),
      HasSubstr("def forward(self, a, b, c):\n    a_1, a_2, b_1, = fx_pytree.tree_flatten_spec([a, b, c], self._in_spec)"));
  EXPECT_THAT(gm.code(), HasSubstr("return pytree.tree_unflatten((s, p), self._out_spec)"));
}

TEST(GraphModule, T051_submodules_by_path) {
  GraphModule gm(Net(), net_graph());
  EXPECT_TRUE(gm.add_submodule("deep.er.affine", std::make_shared<Affine>()));
  EXPECT_NE(gm.find_submodule("deep.er.affine"), nullptr);
  EXPECT_FALSE(gm.add_submodule("bias.inner", std::make_shared<Affine>()));
  EXPECT_TRUE(gm.remove_submodule("deep.er"));
  EXPECT_THROW(gm.get_submodule("deep.er"), UserError);
  EXPECT_FALSE(gm.remove_submodule("deep.er"));
  const uint64_t before = warning_count();
  {
    const auto scope = gm.graph().inserting_before(gm.graph().find_node("lin"));
    gm.graph().get_attr("no.such.path");
  }
  EXPECT_EQ(warning_count(), before + 1);
  EXPECT_THAT(error_of([&] { gm.graph().lint(); }), HasSubstr("no.such.path references a nonexistent attribute"));
}

TEST(GraphModule, T052_unused_submodules_go_parameters_stay) {
  GraphModule gm(Net(), net_graph());
  gm.add_submodule("unused.inner", std::make_shared<Affine>());
  gm.register_buffer("kept", numbers({2}));
  gm.delete_all_unused_submodules();
  EXPECT_EQ(gm.find_submodule("unused"), nullptr);
  EXPECT_NE(gm.find_submodule("lin"), nullptr);
  EXPECT_TRUE(gm.get_buffer("kept").defined());
  EXPECT_THROW(gm.get_parameter("kept"), UserError);
  EXPECT_THROW(gm.get_buffer("bias"), UserError);
}

TEST(GraphModule, functions_may_call_submodules_that_they_are_given) {
  const auto choose = std::make_shared<const Function>("mine.choose", [](const Values& args, const Kwargs&) -> Value {
    return call_module_value(args.at(args.at(0).to_bool() ? 1 : 2), args.at(3).to_items());
  });
  Graph g;
  Node* flag = g.placeholder("flag");
  Node* x = g.placeholder("x");
  Node* yes = g.get_attr("yes");
  Node* no = g.get_attr("no");
  g.output(g.call_function(choose, {flag, yes, no, list({x})}));
  GraphModule gm(
      {{"yes", std::make_shared<GraphModule>(parse_graph("%x = placeholder\n%y = operator.add(%x, 1)\nreturn %y"))},
       {"no", std::make_shared<GraphModule>(
                  parse_graph("%x = placeholder\n%dead = operator.mul(%x, 2)\n%y = operator.sub(%x, 1)\nreturn %y"))}},
      std::move(g));
  EXPECT_EQ(gm({true, 5}).to_int(), 6);
  EXPECT_EQ(gm({false, 5}).to_int(), 4);
  EXPECT_TRUE(gm.graph().eliminate_dead_code());  // in the subgraph
  EXPECT_FALSE(gm.graph().eliminate_dead_code());
  EXPECT_EQ(gm({false, 5}).to_int(), 4);
  EXPECT_THAT(gm.print_readable(), HasSubstr("    class no(torch.nn.Module):\n        def forward(self, x):\n"));
}

TEST(GraphModule, T028_code_releases_values_after_their_last_use) {
  Graph g = parse_graph(R"(
    %a = placeholder
    %b = placeholder
    %copy_ = call_method[copy_](%a, %b)
    %op = aten.copy_.default(%a, %b)
    %sum = operator.add(%a, %b)
    return %sum)");
  EXPECT_EQ(python_code(g),
            "\n\n\ndef forward(self, a, b):\n    copy_ = a.copy_(b);  copy_ = None\n    op = "
            "torch.ops.aten.copy_.default(a, b);  op = None\n"
            "    sum_1 = a + b;  a = b = None\n    return sum_1\n    ");
  g.eliminate_dead_code();
  EXPECT_NE(g.find_node("op"), nullptr);
}

}  // namespace
}  // namespace calque::graph_module_test
