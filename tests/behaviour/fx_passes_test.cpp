// Passes over graphs, interpreters and transformers: behaviours that PyTorch's tests check. The comment of each test names where
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
#include "calque/op/aten/random.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/op/literal.h"
#include "calque/trace/tracer.h"
#include "support/error_support.h"

namespace calque::fx_passes_test {
namespace {

using namespace fx_support;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// test/test_fx.py::test_interpreter_onthefly_swap
TEST(FxBehaviour, B133_an_interpreter_may_run_other_functions_than_the_graph_names) {
  struct Swapped : Interpreter {
    using Interpreter::Interpreter;
    Value call_function(const Target& target, const Values& args, const Kwargs& kwargs) override {
      if (target.str() == "torch.sigmoid") return neg(args.at(0).to_tensor());
      return Interpreter::call_function(target, args, kwargs);
    }
    Value call_method(const Target& target, const Values& args, const Kwargs& kwargs) override {
      if (target.text() == "neg") return sigmoid(args.at(0).to_tensor());
      return Interpreter::call_method(target, args, kwargs);
    }
  };
  const Graph g =
      parse_graph("%x = placeholder\n%s = torch.sigmoid(%x)\n%n = call_method[neg](%s)\n%r = torch.relu(%n)\nreturn %r");
  EXPECT_TRUE(same(Swapped(g).run({floats({0, -1})}), sigmoid(floats({0, 1}))));
}

struct TwoResults : Typed<TwoResults> {
  static constexpr const char* forward_arguments[] = {"x"};
  Parameter param = register_parameter("param", numbers({3, 4}));
  Child<Linear> lin = child<Linear>("linear", 4, 5);
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    const Tensor y = x + param;
    return {y, lin(y)};
  }
};

// test/test_fx.py::test_transformer_multi_outputs
TEST(FxBehaviour, B134_a_transformer_keeps_several_outputs) {
  TwoResults module;
  const auto m = symbolic_trace(module);
  Transformer transformer(m->graph());
  GraphModule transformed(*m, transformer.transform());
  const Values expected = (*m)({numbers({3, 4})}).to_items(), found = transformed({numbers({3, 4})}).to_items();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(same(found[0], expected[0].to_tensor()));
  EXPECT_TRUE(same(found[1], expected[1].to_tensor()));
}

// test/fx/test_subgraph_rewriter.py::test_subgraph_rewriter_replace_with_duplicated_outputs
TEST(FxBehaviour, B135_a_replacement_may_give_one_result_twice) {
  GraphModule m(parse_graph(
      "%x1 = placeholder\n%x2 = placeholder\n%sub = operator.sub(%x1, %x2)\n%sigmoid = torch.sigmoid(%sub)\n%relu = "
      "torch.relu(%sub)\n%add = operator.add(%sigmoid, %relu)\nreturn %add"));
  EXPECT_EQ(
      replace_pattern(m.graph(),
                      "%a1 = placeholder\n%a2 = placeholder\n%a = operator.sub(%a1, %a2)\n%b = torch.sigmoid(%a)\n%c = "
                      "torch.relu(%a)\nreturn (%b, %c, %a)",
                      "%x1 = placeholder\n%x2 = placeholder\n%exp = torch.exp(%x1)\n%abs_1 = torch.abs(%x2)\nreturn "
                      "(%abs_1, %abs_1, %exp)")
          .size(),
      1U);
  EXPECT_EQ(
      body(m),
      "def forward(self, x1, x2):\n    exp = torch.exp(x1);  x1 = exp = None\n    abs_1 = torch.abs(x2);  x2 = None\n    "
      "add = abs_1 + abs_1;  abs_1 = None\n    return add\n    ");
}

// test/fx/test_subgraph_rewriter.py::test_subgraph_rewriter_replace_consecutive_submodules
TEST(FxBehaviour, B136_matches_that_follow_each_other_are_all_replaced) {
  GraphModule m(
      parse_graph("%x = placeholder\n%a = torch.sigmoid(%x)\n%b = torch.sigmoid(%a)\n%c = torch.sigmoid(%b)\nreturn %c"));
  EXPECT_EQ(replace_pattern(m.graph(), "%x = placeholder\n%y = torch.sigmoid(%x)\nreturn %y",
                            "%x = placeholder\n%exp = torch.exp(%x)\nreturn %exp")
                .size(),
            3U);
  EXPECT_EQ(body(m),
            "def forward(self, x):\n    exp = torch.exp(x);  x = None\n    exp_1 = torch.exp(exp);  exp = None\n    exp_2 = "
            "torch.exp(exp_1);  exp_1 = None\n    return exp_2\n    ");
}

// test/fx/test_subgraph_rewriter.py::test_subgraph_rewriter_with_unused_args
TEST(FxBehaviour, B137_inputs_that_nobody_uses_stay_when_a_pattern_is_replaced) {
  GraphModule m(
      parse_graph("%x = placeholder\n%y = placeholder\n%z = placeholder\n%add = operator.add(%x, %y)\nreturn %add"));
  replace_pattern(m.graph(), "%x = placeholder\n%y = placeholder\n%add = operator.add(%x, %y)\nreturn %add",
                  "%x = placeholder\n%y = placeholder\n%sub = operator.sub(%x, %y)\nreturn %sub");
  EXPECT_EQ(body(m), "def forward(self, x, y, z):\n    sub = x - y;  x = y = None\n    return sub\n    ");
}

// test/fx/test_subgraph_rewriter.py::test_replacement_with_attrs
TEST(FxBehaviour, B138_tensors_that_a_replacement_refers_to_come_with_it) {
  GraphModule m({{"a", integers({1})}, {"b", integers({2})}},
                parse_graph("%x = placeholder\n%a = get_attr[a]\n%add = operator.add(%x, %a)\n%b = get_attr[b]\n%sub = "
                            "operator.sub(%add, %b)\nreturn %sub"));
  const GraphModule pattern({{"a", integers({1})}},
                            parse_graph("%x = placeholder\n%a = get_attr[a]\n%add = operator.add(%x, %a)\nreturn %add"));
  const GraphModule replacement({{"c", integers({3})}},
                                parse_graph("%x = placeholder\n%c = get_attr[c]\n%sub = operator.sub(%x, %c)\nreturn %sub"));
  EXPECT_EQ(replace_pattern(m, pattern, replacement).size(), 1U);
  m.graph().lint();
  EXPECT_TRUE(same(m({integers({10})}), integers({5})));
  EXPECT_EQ(m.graph().find_nodes(NodeKind::get_attr).size(), 2U);
}

// test/fx/test_subgraph_rewriter.py::test_subgraph_rewriter_pattern_is_entire_graph
TEST(FxBehaviour, B139_the_pattern_may_be_the_whole_graph) {
  const char* text = "%x = placeholder\n%neg = torch.neg(%x)\n%add = torch.add(%neg, %neg)\nreturn %add";
  GraphModule m(parse_graph(text));
  EXPECT_EQ(replace_pattern(m.graph(), text, "%x = placeholder\n%relu = torch.relu(%x)\nreturn %relu").size(), 1U);
  EXPECT_EQ(body(m), "def forward(self, x):\n    relu = torch.relu(x);  x = None\n    return relu\n    ");
}

// test/fx/test_subgraph_rewriter.py::test_matching_pattern_with_list_type_arg
TEST(FxBehaviour, B140_an_input_of_a_pattern_stands_for_a_list_too) {
  GraphModule m(parse_graph("%x = placeholder\n%y = aten.as_strided.default(%x, [1, 2], [3, 4])\nreturn %y"));
  EXPECT_EQ(replace_pattern(m.graph(),
                            "%x = placeholder\n%a = placeholder\n%b = placeholder\n%y = aten.as_strided.default(%x, %a, "
                            "%b)\nreturn %y",
                            "%x = placeholder\n%a = placeholder\n%b = placeholder\n%y = aten.as_strided.default(%x, %b, "
                            "%a)\nreturn %y")
                .size(),
            1U);
  EXPECT_THAT(body(m), HasSubstr("torch.ops.aten.as_strided.default(x, [3, 4], [1, 2]);  x = None\n    return "));
}

// test/fx/test_fx_const_fold.py::test_const_fold_basic_one_attr_no_name_collision
TEST(FxBehaviour, B141_folded_constants_give_what_the_module_gave) {
  GraphModule m({{"attr_1", tensor_of<float>({-0.9F}, {1, 1})}, {"attr_2", tensor_of<float>({17.1F}, {1, 1})}},
                parse_graph("%x = placeholder\n%y = placeholder\n%attr_1 = get_attr[attr_1]\n%a = operator.add(%attr_1, "
                            "%attr_1)\n%sub = operator.sub(%x, %a)\n%mul = operator.mul(%sub, %y)\n%attr_2 = "
                            "get_attr[attr_2]\n%add_1 = operator.add(%mul, %attr_2)\nreturn %add_1"));
  EXPECT_TRUE(fold_constants(m));
  EXPECT_EQ(m.graph().find_nodes(NodeKind::call_function).size(), 3U);
  EXPECT_NEAR(m({tensor_of<float>({-0.45F}, {1, 1}), floats({0.9F})}).to_tensor().item_as<double>(), 18.315, 1e-5);
}

// test/fx/test_fx_const_fold.py::test_const_fold_noop
TEST(FxBehaviour, B142_without_constants_folding_changes_nothing) {
  GraphModule m({{"attr1", floats({-0.9F})}},
                parse_graph("%x = placeholder\n%attr1 = get_attr[attr1]\n%sub = operator.sub(%x, %attr1)\nreturn %sub"));
  EXPECT_FALSE(fold_constants(m));
  EXPECT_EQ(body(m),
            "def forward(self, x):\n    attr1 = self.attr1\n    sub = x - attr1;  x = attr1 = None\n    return sub\n    ");
}

// test/fx/test_fx_const_fold.py::test_retain_node_meta
TEST(FxBehaviour, B143_a_folded_node_keeps_what_was_noted_of_it) {
  GraphModule m({{"attr", floats({1, 2})}},
                parse_graph("%x = placeholder\n%attr = get_attr[attr]\n%add = operator.add(%attr, %attr)\n%sub = "
                            "operator.sub(%x, %add)\nreturn %sub"));
  int64_t index = 0;
  for (Node* n : m.graph().nodes())
    if (n->kind() != NodeKind::output) n->meta.set("meta_idx", index++);
  EXPECT_TRUE(fold_constants(m));
  std::vector<int64_t> kept;
  for (const Node* n : m.graph().nodes())
    if (const Value* v = n->meta.find("meta_idx")) kept.push_back(v->to_int());
  EXPECT_THAT(kept, ElementsAre(0, 2, 3));
}

// test/fx/test_dce_pass.py::test_dead_chain, test_dead_getattr
TEST(FxBehaviour, B144_a_chain_that_nobody_uses_goes_with_its_attribute) {
  GraphModule m({{"attr_1", floats({-0.9F})}},
                parse_graph("%x = placeholder\n%a = operator.add(%x, 1)\n%attr_1 = get_attr[attr_1]\n%b = operator.mul(%a, "
                            "%attr_1)\n%c = operator.add(%x, 11)\nreturn %c"));
  EXPECT_TRUE(m.graph().eliminate_dead_code());
  EXPECT_THAT(names_of(m.graph().nodes()), ElementsAre("x", "c", "output"));
  EXPECT_FALSE(m.graph().eliminate_dead_code());
  EXPECT_TRUE(same(m({floats({1.5})}), floats({12.5})));
}

// test/fx/test_dce_pass.py::test_impure_kwargs
TEST(FxBehaviour, B145_a_call_that_writes_a_keyword_argument_is_not_dead) {
  GraphModule m(parse_graph(
      "%a = placeholder\n%b = operator.add(%a, 1)\n%add_out = aten.add.out(%b, %b, out=%a, alpha=2)\nreturn %a"));
  EXPECT_FALSE(m.graph().eliminate_dead_code());
  EXPECT_TRUE(same(m({floats({1.5})}), floats({7.5})));
}

struct HoldsNested : Typed<HoldsNested> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<Nested> submod = child<Nested>("submod");
  Tensor forward(const Tensor& x) { return submod(x); }
};

// test/test_fx.py::test_delete_unused_submodules_leaf
TEST(FxBehaviour, B146_the_children_of_a_leaf_are_not_unused) {
  HoldsNested module;
  struct Leaves : Tracer {
    bool is_leaf_module(Module&, const std::string& path) override { return path == "submod"; }
  } tracer;
  GraphModule m(module, tracer.trace(module));
  m.delete_all_unused_submodules();
  EXPECT_NE(m.find_submodule("submod.st"), nullptr);
  EXPECT_TRUE(same(m({numbers({1, 4})}), module(numbers({1, 4}))));
}

// test/test_fx.py::test_shape_prop_layout, test_shape_prop_layout_3d
TEST(FxBehaviour, B150_the_memory_format_of_a_convolution_is_noted) {
  const auto formats = [](GraphModule& m, const Tensor& x) {
    propagate_shapes(m, {x});
    std::string out;
    for (const Node* n : m.graph().nodes()) {
      const StructValue& s = n->meta.find("tensor_meta")->to_struct();
      for (size_t i = 0; i < s.fields.size(); ++i)
        if (s.fields[i] == "memory_format" || s.fields[i] == "stride") out += s.items[i].str() + " ";
    }
    return out;
  };
  GraphModule two({{"conv", std::make_shared<Conv2d>(5, 5, 3)}},
                  parse_graph("%x = placeholder\n%conv = call_module[conv](%x)\nreturn %conv"));
  EXPECT_EQ(formats(two, zeros({5, 5, 8, 8}).contiguous(MemoryFormat::channels_last)),
            "(320, 1, 40, 5) torch.channels_last (180, 1, 30, 5) torch.channels_last (180, 1, 30, 5) torch.channels_last ");
  GraphModule three({{"conv", std::make_shared<Conv3d>(5, 5, 3)}},
                    parse_graph("%x = placeholder\n%conv = call_module[conv](%x)\nreturn %conv"));
  EXPECT_EQ(formats(three, zeros({5, 5, 4, 4, 4}).contiguous(MemoryFormat::channels_last_3d)),
            "(320, 1, 80, 20, 5) torch.channels_last_3d (40, 1, 20, 10, 5) torch.channels_last_3d (40, 1, 20, 10, 5) "
            "torch.channels_last_3d ");
}

std::string shown(const std::optional<NormalizedArguments>& arguments) {
  if (!arguments) return "nothing";
  std::string out;
  for (const Value& v : arguments->args) out += value_text(v) + " ";
  for (const auto& [key, v] : arguments->kwargs) out += key + "=" + value_text(v) + " ";
  return out;
}

// test/test_fx_experimental.py::test_normalize_args (functions) (mended)
TEST(FxBehaviour, B154_the_arguments_of_a_function_are_put_in_one_form) {
  const auto normal = [](const char* call, bool only_keywords = false) {
    const Graph g = parse_graph("%x = placeholder\n%y = " + std::string(call) + "\nreturn %y");
    return shown(normalized_arguments(*g.find_node("y"), nullptr, only_keywords));
  };
  EXPECT_EQ(normal("torch.add(%x, 3, alpha=2)"), "%x 3 alpha=2 ");
  EXPECT_EQ(normal("torch.add(%x, 3, alpha=2)", true), "input=%x other=3 alpha=2 ");
  EXPECT_EQ(normal("torch.sum(%x, 1, True)"), "%x 1 True dtype=None ");
  EXPECT_EQ(normal("torch.sum(%x, dim=1)", true), "input=%x dim=1 keepdim=False dtype=None ");
  EXPECT_EQ(normal("torch.relu(input=%x)"), "input=%x ");
  EXPECT_EQ(normal("torch.max(%x, dim=0)"), "%x dim=0 keepdim=False ");
  EXPECT_EQ(normal("aten.add.Tensor(%x, other=%x)", true), "input=%x other=%x alpha=1 ");
  EXPECT_EQ(normal("torch.nn.functional.dropout(%x, p=0.1)"), "%x p=0.1 training=True inplace=False ");
  EXPECT_EQ(normal("torch.nn.functional.linear(%x, %x, bias=%x)", true), "input=%x weight=%x bias=%x ");
  EXPECT_EQ(normal("operator.add(%x, 1)"), "nothing");
}

// test/test_fx_experimental.py::test_normalize_args (modules) (mended)
TEST(FxBehaviour, B155_the_arguments_of_a_module_are_put_in_one_form) {
  Nested module;
  const auto m = symbolic_trace(module);
  const Node& call = *m->graph().find_node("st");
  EXPECT_EQ(shown(normalized_arguments(call, m.get())), "%x ");
  EXPECT_EQ(shown(normalized_arguments(call, m.get(), true)), "input=%x ");
}

}  // namespace
}  // namespace calque::fx_passes_test
