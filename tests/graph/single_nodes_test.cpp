// Single nodes: run one, ask for its real or fake value, count calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/graph/graph_module.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/text.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/call_counter.h"
#include "support/error_support.h"

namespace calque::single_nodes_test {
namespace {

using ::testing::HasSubstr;

Graph program() {
  return parse_graph(
      "%x : f32[2, 3] = placeholder\n"
      "%y : f32[3, 2] = placeholder\n"
      "%mm : f32[2, 2] = aten.mm.default(%x, %y)\n"
      "%neg : f32[2, 2] = aten.neg.default(%mm)\n"
      "%add : f32[2, 2] = aten.add.Tensor(%neg, %mm, alpha=2)\n"
      "%sin : f32[2, 3] = aten.sin.default(%x)\n"
      "return (%add, %sin)\n");
}

using test::error_of;

TEST(SingleNodes, run_on_real_values) {
  const Graph g = program();
  const Tensor a = rand({2, 2}), b = rand({2, 2});
  EXPECT_TRUE(equal(run_node(*g.find_node("add"), {a, b}, {{"alpha", 2}}).to_tensor(), add(a, b, 2)));
}

TEST(SingleNodes, run_on_fake_values) {
  const Graph g = program();
  const Value v = fake_value(*g.find_node("mm"));
  EXPECT_TRUE(v.to_tensor().is_fake());
  EXPECT_EQ(str(v.to_tensor().sym_sizes()), "[2, 2]");
  EXPECT_EQ(str(fake_value(*g.find_node("x")).to_tensor().sym_sizes()), "[2, 3]");
  g.find_node("neg")->meta.val = {};
  EXPECT_THAT(error_of([&] { fake_value(*g.find_node("add")); }), HasSubstr("the input neg of add has no fake value"));
}

TEST(SingleNodes, an_error_shows_the_node_and_what_it_was_given) {
  const Graph g = program();
  const std::string text = error_of([&] { run_node(*g.find_node("mm"), {rand({2, 3}), rand({2, 2})}); });
  EXPECT_THAT(text, HasSubstr("while executing %mm : f32[2, 2] = aten.mm.default(%x, %y)"));
  EXPECT_THAT(text, HasSubstr("on (float32[2, 3], float32[2, 2])"));
  EXPECT_THAT(error_of([&] { run_node(*g.find_node("x"), {}); }), HasSubstr("a placeholder has no value of its own"));
}

TEST(SingleNodes, real_values_are_computed_on_demand_and_kept) {
  const Graph g = program();
  const Tensor x = rand({2, 3}), y = rand({3, 2});
  RealValues values(g, {x, y});
  CallCounter counter;
  {
    const ModeScope scope(counter);
    EXPECT_TRUE(equal(values.of(*g.find_node("neg")).to_tensor(), -mm(x, y)));
    EXPECT_EQ(counter.count("aten::sin"), 0U);
    EXPECT_EQ(counter.count("aten::mm"), 2U);  // one of them above
    values.of(*g.find_node("add"));
    EXPECT_EQ(counter.count("aten::mm"), 2U);
    EXPECT_EQ(counter.count("aten::add.Tensor"), 1U);
  }
  EXPECT_EQ(counter.total(), 6U);
  EXPECT_EQ(values.of(*g.output_node()).to_items().size(), 2U);
  RealValues missing(g, {x});
  EXPECT_THAT(error_of([&] { missing.of(*g.find_node("mm")); }), HasSubstr("while executing %y"));
}

TEST(SingleNodes, attributes_come_from_the_owner) {
  GraphModule module(Attributes{{"w", Attribute(ones({2}))}},
                     parse_graph("%w = get_attr[w]\n%neg = aten.neg.default(%w)\nreturn %neg\n"));
  EXPECT_TRUE(equal(RealValues(module.graph(), {}).of(*module.graph().find_node("neg")).to_tensor(), -ones({2})));
}

TEST(SingleNodes, calls_are_counted) {
  const Graph g = program();
  EXPECT_EQ(count_calls(g), 4U);
  const auto counts = count_targets(g);
  EXPECT_EQ(counts.at("aten.mm.default"), 1U);
  EXPECT_EQ(counts.size(), 4U);
}

TEST(SingleNodes, the_counter_sees_calls_above_or_below_composites) {
  const Tensor x = rand({2, 3}), w = rand({4, 3});
  CallCounter above(ModeSlot::pre_dispatch), below;
  {
    const ModeScope a(above), b(below);
    linear(x, w);
  }
  EXPECT_EQ(above.count("aten::linear"), 1U);
  EXPECT_EQ(above.total(), 1U);
  EXPECT_EQ(below.count("aten::mm"), 1U);
  EXPECT_EQ(below.count("aten::linear"), 0U);
}

}  // namespace
}  // namespace calque::single_nodes_test
