// Finding and replacing patterns.
#include "calque/graph/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/graph/graph_module.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/text.h"
#include "calque/nn/typed.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "support/error_support.h"

namespace calque::rewrite_test {
namespace {

using ::testing::HasSubstr;

using test::error_of;
Tensor numbers() { return (arange(6, DType::float32) * 0.5 - 1).view({2, 3}); }
void expect_same(const Graph& found, std::string_view expected) {
  std::string why;
  EXPECT_TRUE(same_graph(found, parse_graph(expected), &why)) << why << "\n" << found.str();
}

TEST(Rewrite, T061_a_single_match) {
  Graph g = parse_graph(R"(
    %x = placeholder
    %neg = torch.neg(%x)
    %relu = torch.relu(%x)
    %val = operator.add(%neg, %relu)
    %out = operator.add(%x, %val)
    return %out)");
  const auto replaced = replace_pattern(g, R"(
    %x = placeholder
    %neg = torch.neg(%x)
    %relu = torch.relu(%x)
    %val = operator.add(%neg, %relu)
    return %val)",
                                        R"(
    %x = placeholder
    %y = torch.relu(%x)
    return %y)");
  EXPECT_EQ(replaced.size(), 1U);
  expect_same(g, "%x = placeholder\n%r = torch.relu(%x)\n%o = operator.add(%x, %r)\nreturn %o");
  EXPECT_TRUE(equal(Interpreter(g).run({numbers()}).to_tensor(), numbers() + numbers().relu()));
}

TEST(Rewrite, T062_every_match_is_replaced) {
  Graph g = parse_graph(R"(
    %x = placeholder
    %a = placeholder
    %b = placeholder
    %cat = torch.cat([%a, %b])
    %sum = torch.sum(%cat)
    %cat_1 = torch.cat([%a, %b])
    %sum_1 = torch.sum(%cat_1)
    %y = operator.add(%x, %sum)
    %z = operator.add(%y, %sum_1)
    return %z)");
  const auto replaced =
      replace_pattern(g, "%a = placeholder\n%b = placeholder\n%c = torch.cat([%a, %b])\n%s = torch.sum(%c)\nreturn %s",
                      "%a = placeholder\n%b = placeholder\n%s = torch.stack([%a, %b])\nreturn %s");
  EXPECT_EQ(replaced.size(), 2U);
  EXPECT_EQ(g.find_nodes(NodeKind::call_function, "torch.stack").size(), 2U);
  EXPECT_TRUE(g.find_nodes(NodeKind::call_function, "torch.cat").empty());
}

TEST(Rewrite, T063_internal_nodes_may_not_be_used_outside) {
  const char* text = R"(
    %x = placeholder
    %relu = torch.relu(%x)
    %sig = torch.sigmoid(%relu)
    %other = operator.add(%relu, 1)
    %out = operator.add(%sig, %other)
    return %out)";
  Graph g = parse_graph(text);
  EXPECT_TRUE(replace_pattern(g, "%x = placeholder\n%r = torch.relu(%x)\n%s = torch.sigmoid(%r)\nreturn %s",
                              "%x = placeholder\n%s = torch.neg(%x)\nreturn %s")
                  .empty());
  expect_same(g, text);
  // What the pattern returns may be.
  EXPECT_EQ(replace_pattern(g, "%x = placeholder\n%r = torch.relu(%x)\nreturn %r",
                            "%x = placeholder\n%s = torch.neg(%x)\nreturn %s")
                .size(),
            1U);
}

TEST(Rewrite, T064_overlapping_matches_are_replaced_once) {
  Graph g = parse_graph(
      "%x = placeholder\n%a = torch.sigmoid(%x)\n%b = torch.sigmoid(%a)\n%c = torch.sigmoid(%b)\n%d = "
      "torch.sigmoid(%c)\nreturn %d");
  EXPECT_EQ(replace_pattern(g, "%x = placeholder\n%a = torch.sigmoid(%x)\n%b = torch.sigmoid(%a)\nreturn %b",
                            "%x = placeholder\n%n = torch.neg(%x)\nreturn %n")
                .size(),
            2U);
  expect_same(g, "%x = placeholder\n%a = torch.neg(%x)\n%b = torch.neg(%a)\nreturn %b");
}

TEST(Rewrite, T065_placeholders_match_any_node) {
  Graph g = parse_graph(R"(
    %x = placeholder
    %a = operator.add(%x, 3)
    %d = call_method[dequantize](%a)
    %s = call_method[sigmoid](%d)
    %t = call_method[to](%s, torch.float16)
    return %t)");
  EXPECT_EQ(replace_pattern(g,
                            "%x = placeholder\n%d = call_method[dequantize](%x)\n%s = call_method[sigmoid](%d)\n%t = "
                            "call_method[to](%s, torch.float16)\nreturn %t",
                            "%x = placeholder\nreturn %x")
                .size(),
            1U);
  expect_same(g, "%x = placeholder\n%a = operator.add(%x, 3)\nreturn %a");
}

TEST(Rewrite, T066_several_outputs) {
  const char* text = R"(
    %x = placeholder
    %relu = torch.relu(%x)
    %sig = torch.sigmoid(%relu)
    %neg = torch.neg(%relu)
    %out = operator.add(%sig, %neg)
    return (%out, %sig))";
  const char* pattern = "%x = placeholder\n%r = torch.relu(%x)\n%s = torch.sigmoid(%r)\n%n = torch.neg(%r)\nreturn (%s, %n)";
  Graph g = parse_graph(text);
  EXPECT_EQ(replace_pattern(g, pattern, "%x = placeholder\n%a = torch.sin(%x)\n%b = torch.cos(%x)\nreturn (%a, %b)").size(),
            1U);
  expect_same(g, "%x = placeholder\n%a = torch.sin(%x)\n%b = torch.cos(%x)\n%o = operator.add(%a, %b)\nreturn (%o, %a)");
  Graph h = parse_graph(text);
  EXPECT_EQ(replace_pattern(h, pattern, "%x = placeholder\n%a = torch.sin(%x)\nreturn (%a, %a)").size(), 1U);
  expect_same(h, "%x = placeholder\n%a = torch.sin(%x)\n%o = operator.add(%a, %a)\nreturn (%o, %a)");
}

struct Part : Typed<Part> {
  Tensor forward(const Tensor& x) { return x.relu(); }
};

TEST(Rewrite, T067_submodules_come_and_go) {
  GraphModule gm(
      {{"linear", std::make_shared<Part>()}, {"sigmoid", std::make_shared<Part>()}, {"shared", std::make_shared<Part>()}},
      parse_graph(R"(
    %x = placeholder
    %a = call_module[linear](%x)
    %b = call_module[shared](%a)
    %c = call_module[sigmoid](%b)
    %d = call_module[shared](%x)
    %e = operator.add(%c, %d)
    return %e)"));
  const GraphModule pattern(
      {{"linear", std::make_shared<Part>()}, {"sigmoid", std::make_shared<Part>()}, {"shared", std::make_shared<Part>()}},
      parse_graph("%x = placeholder\n%a = call_module[linear](%x)\n%b = call_module[shared](%a)\n%c = "
                  "call_module[sigmoid](%b)\nreturn %c"));
  const GraphModule replacement(
      {{"tanh.inner", std::make_shared<Part>()}, {"gain", full({1}, 2.0)}},
      parse_graph(
          "%x = placeholder\n%a = call_module[tanh.inner](%x)\n%g = get_attr[gain]\n%b = operator.mul(%a, %g)\nreturn %b"));
  EXPECT_EQ(replace_pattern(gm, pattern, replacement).size(), 1U);
  EXPECT_EQ(gm.find_submodule("linear"), nullptr);
  EXPECT_EQ(gm.find_submodule("sigmoid"), nullptr);
  EXPECT_NE(gm.find_submodule("shared"), nullptr);
  ASSERT_NE(gm.find_submodule("tanh.inner"), nullptr);
  EXPECT_NE(gm.find_submodule("tanh.inner"), replacement.find_submodule("tanh.inner"));
  EXPECT_TRUE(equal(gm({numbers()}).to_tensor(), numbers().relu() * 2 + numbers().relu()));
}

TEST(Rewrite, T068_filters_see_match_graph_and_pattern) {
  const char* text =
      "%x = placeholder\n%s = placeholder\n%a = aten.add.Tensor(%x, %s)\n%b = aten.add.Tensor(%a, 3)\nreturn %b";
  const char* pattern = "%x = placeholder\n%y = placeholder\n%a = aten.add.Tensor(%x, %y)\nreturn %a";
  const char* replacement = "%x = placeholder\n%y = placeholder\n%a = aten.sub.Tensor(%x, %y)\nreturn %a";
  Graph all = parse_graph(text);
  EXPECT_EQ(replace_pattern(all, pattern, replacement).size(), 2U);
  Graph g = parse_graph(text);
  ReplaceOptions options;
  options.filters.push_back([](const Match& m, const Graph& graph, const Graph& p) {
    return graph.size() == 5 && p.size() == 4 && !m.placeholder_nodes.at(1).is_node();
  });
  const auto replaced = replace_pattern(g, pattern, replacement, options);
  ASSERT_EQ(replaced.size(), 1U);
  ASSERT_EQ(replaced[0].replacements.size(), 1U);
  EXPECT_EQ(replaced[0].replacements[0]->str(), "%a_1 = aten.sub.Tensor(%a, 3)");
  EXPECT_EQ(&replaced[0].replacements[0]->graph(), &g);
}

TEST(Rewrite, T069_position_keyword_and_defaults_are_one) {
  Graph g = parse_graph("%x = placeholder\n%p = aten.max_pool2d.default(%x, [2, 2], stride=[2, 2])\nreturn %p");
  EXPECT_TRUE(replace_pattern(g, "%x = placeholder\n%p = aten.max_pool2d.default(%x, [2, 2], [2, 2], [1, 1])\nreturn %p",
                              "%x = placeholder\n%r = aten.relu.default(%x)\nreturn %r")
                  .empty());
  EXPECT_EQ(replace_pattern(g, "%x = placeholder\n%p = aten.max_pool2d.default(%x, [2, 2], [2, 2], [0, 0])\nreturn %p",
                            "%x = placeholder\n%r = aten.relu.default(%x)\nreturn %r")
                .size(),
            1U);
}

TEST(Rewrite, T070_a_failed_candidate_is_rolled_back_whole) {
  Graph g = parse_graph(R"(
    %x = placeholder
    %a = placeholder
    %b = placeholder
    %c = placeholder
    %e = operator.add(%x, %a)
    %f = operator.add(%e, 3)
    %h = operator.add(%b, %c)
    %k = operator.add(%h, 3)
    %m = operator.add(%a, 3)
    return (%f, %k, %m))");
  EXPECT_EQ(replace_pattern(
                g, "%a = placeholder\n%b = placeholder\n%s = operator.add(%a, %b)\n%t = operator.add(%s, 3)\nreturn %t",
                "%a = placeholder\n%b = placeholder\n%s = operator.mul(%a, %b)\nreturn %s")
                .size(),
            2U);
  EXPECT_EQ(g.find_nodes(NodeKind::call_function, "operator.mul").size(), 2U);
  EXPECT_EQ(g.find_nodes(NodeKind::call_function, "operator.add").size(), 1U);
}

TEST(Rewrite, a_match_that_would_depend_on_itself_is_none) {
  Graph g = parse_graph("%x = placeholder\n%a = torch.relu(%x)\n%b = torch.sin(%a)\n%c = torch.neg(%b)\nreturn (%a, %c)");
  EXPECT_TRUE(replace_pattern(g,
                              "%x = placeholder\n%y = placeholder\n%a = torch.relu(%x)\n%c = torch.neg(%y)\nreturn (%a, %c)",
                              "%x = placeholder\n%y = placeholder\n%a = torch.cos(%x)\nreturn (%a, %a)")
                  .empty());
}

TEST(Rewrite, a_replacement_may_be_made_for_each_match) {
  Graph g = parse_graph("%x = placeholder\n%a = torch.relu(%x)\n%b = torch.relu(%a)\nreturn %b");
  ReplaceOptions options;
  int made = 0;
  options.replacement_callback = [&](const Match&, const Graph&, const Graph&) {
    return parse_graph(made++ == 0 ? "%x = placeholder\n%a = torch.sin(%x)\nreturn %a"
                                   : "%x = placeholder\n%a = torch.cos(%x)\nreturn %a");
  };
  EXPECT_EQ(
      replace_pattern(g, "%x = placeholder\n%a = torch.relu(%x)\nreturn %a", "%x = placeholder\nreturn %x", options).size(),
      2U);
  expect_same(g, "%x = placeholder\n%a = torch.sin(%x)\n%b = torch.cos(%a)\nreturn %b");
}

TEST(Rewrite, literals_may_be_ignored) {
  Graph g = parse_graph("%x = placeholder\n%a = operator.add(%x, 3)\nreturn %a");
  const char* pattern = "%x = placeholder\n%a = operator.add(%x, 1)\nreturn %a";
  const char* replacement = "%x = placeholder\n%a = torch.neg(%x)\nreturn %a";
  EXPECT_TRUE(replace_pattern(g, pattern, replacement).empty());
  ReplaceOptions options;
  options.ignore_literals = true;
  EXPECT_EQ(replace_pattern(g, pattern, replacement, options).size(), 1U);
}

TEST(Rewrite, patterns_that_cannot_be_found_are_refused) {
  EXPECT_THAT(error_of([] { SubgraphMatcher{Graph()}; }), HasSubstr("empty"));
  const Graph dead = parse_graph("%x = placeholder\n%a = torch.relu(%x)\nreturn %x");
  EXPECT_THAT(error_of([&] { SubgraphMatcher{dead}; }), HasSubstr("dead code"));
}

}  // namespace
}  // namespace calque::rewrite_test
