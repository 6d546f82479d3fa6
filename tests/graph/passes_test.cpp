// Dead code, common subexpressions, constants, shapes, splitting, pass management.
#include "calque/graph/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/graph/interpreter.h"
#include "calque/graph/text.h"
#include "calque/nn/typed.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/sym/shape_env.h"
#include "support/conformance.h"
#include "support/error_support.h"

namespace calque::passes_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using test::error_of;
Tensor numbers(int64_t rows, int64_t columns) {
  return (arange(rows * columns, DType::float32) * 0.25 - 1).view({rows, columns});
}
std::vector<std::string> names(const Graph& g) {
  std::vector<std::string> out;
  for (const Node* n : g.nodes()) out.push_back(n->name());
  return out;
}

// ---- dead code --------------------------------------------------------------------------------------------------------

TEST(DeadCode, T054_placeholders_stay_their_dead_users_go) {
  Graph g = parse_graph("%x = placeholder\n%y = placeholder\n%a = operator.add(%y, 7)\n%b = operator.mul(%a, 2)\nreturn %x");
  EXPECT_TRUE(eliminate_dead_code(g));
  EXPECT_THAT(names(g), ElementsAre("x", "y", "output"));
  EXPECT_FALSE(eliminate_dead_code(g));
}

TEST(DeadCode, calls_that_nobody_knows_stay) {
  Graph g = parse_graph(R"(
    %x = placeholder
    %enter = torch.ops.profiler._record_function_enter_new.default("part", None)
    %left = torch.ops.profiler._record_function_exit._RecordFunction(%enter)
    %reduced = torch.ops._c10d_functional.all_reduce.default(%x, "sum", "0")
    %waited = torch.ops._c10d_functional.wait_tensor.default(%x)
    %sent = torch.ops.mylib.send.default(%x)
    %pure = aten.add.Tensor(%x, 2)
    return %x)");
  EXPECT_TRUE(eliminate_dead_code(g));
  EXPECT_THAT(names(g), ElementsAre("x", "enter", "left", "reduced", "waited", "sent", "output"));
}

// The row also names collectives and profiler ranges: calls that nobody knows, above.
TEST(DeadCode, T055_writes_random_numbers_and_what_a_predicate_names_stay) {
  Graph g = parse_graph(R"(
    %x = placeholder
    %y = placeholder
    %in_place = aten.add_.Tensor(%x, 1)
    %out = aten.add.out(%x, 1, out=%y)
    %draw = aten.rand.default([2])
    %item = operator.setitem(%x, 0, 1)
    %pure = aten.add.Tensor(%x, 2)
    return %x)");
  EXPECT_TRUE(eliminate_dead_code(g));
  EXPECT_THAT(names(g), ElementsAre("x", "y", "in_place", "out", "draw", "item", "output"));
  EXPECT_TRUE(
      eliminate_dead_code(g, [](const Node& n) { return n.kind() != NodeKind::call_function || n.name() == "draw"; }));
  EXPECT_THAT(names(g), ElementsAre("x", "y", "draw", "output"));
}

struct Noisy : Typed<Noisy>, HasSideEffects {
  Tensor forward(const Tensor& x) { return x; }
};
struct Quiet : Typed<Quiet> {
  Tensor forward(const Tensor& x) { return x; }
};

TEST(DeadCode, T056_assertions_and_modules_with_side_effects_stay) {
  GraphModule gm({{"noisy", std::make_shared<Noisy>()}, {"quiet", std::make_shared<Quiet>()}}, parse_graph(R"(
    %x = placeholder
    %noisy = call_module[noisy](%x)
    %quiet = call_module[quiet](%x)
    %holds = operator.gt(%x, 0)
    %check = torch._assert(%holds, 'x must be positive')
    %check_op = aten._assert_async.msg(%holds, 'no')
    return %x)"));
  EXPECT_TRUE(eliminate_dead_code(gm.graph()));
  EXPECT_THAT(names(gm.graph()), ElementsAre("x", "noisy", "holds", "check", "check_op", "output"));
}

// ---- common subexpressions --------------------------------------------------------------------------------------------

TEST(CommonSubexpressions, T057_equal_chains_become_one) {
  Graph g = parse_graph(R"(
    %x = placeholder
    %cos = aten.cos.default(%x)
    %sin = aten.sin.default(%cos)
    %cos_1 = aten.cos.default(%x)
    %sin_1 = aten.sin.default(%cos_1)
    %add = aten.add.Tensor(%sin, %sin)
    %add_1 = aten.add.Tensor(%sin_1, %sin_1)
    %total = aten.add.Tensor(%add, %add_1)
    return %total)");
  const Tensor x = numbers(2, 3);
  const Value before = Interpreter(g).run({x});
  const size_t size = g.size();
  EXPECT_TRUE(eliminate_common_subexpressions(g));
  EXPECT_EQ(g.size(), size - 3);
  EXPECT_FALSE(eliminate_common_subexpressions(g));
  EXPECT_TRUE(equal(Interpreter(g).run({x}).to_tensor(), before.to_tensor()));
}

TEST(CommonSubexpressions, T058_defaults_are_filled_in) {
  Graph g = parse_graph(R"(
    %x = placeholder
    %a = aten.sum.dim_IntList(%x, [1])
    %b = aten.sum.dim_IntList(%x, [1], False)
    %c = aten.sum.dim_IntList(%x, [1], keepdim=False)
    %d = aten.sum.dim_IntList(%x, [1], True)
    %e = aten.sum.dim_IntList(%x, [1], True)
    %s = aten.add.Tensor(%a, %b)
    %t = aten.add.Tensor(%s, %c)
    %u = aten.add.Tensor(%d, %e)
    return (%t, %u))");
  EXPECT_TRUE(eliminate_common_subexpressions(g));
  EXPECT_THAT(names(g), ElementsAre("x", "a", "d", "s", "t", "u", "output"));
  EXPECT_EQ(g.find_node("t")->str(), "%t = aten.add.Tensor(%s, %a)");
}

TEST(CommonSubexpressions, T059_random_and_banned_operators_stay) {
  const char* text = R"(
    %x = placeholder
    %a = aten.rand_like.default(%x)
    %b = aten.rand_like.default(%x)
    %c = aten.cos.default(%x)
    %d = aten.cos.default(%x)
    %e = aten.randn.default([3])
    %f = aten.randn.default([3])
    return [%a, %b, %e, %f, %c, %d])";
  Graph g = parse_graph(text);
  EXPECT_FALSE(eliminate_common_subexpressions(
      g, [](const Node& n) { return n.op() == find_operator("aten::cos"); }, false));
  EXPECT_TRUE(eliminate_common_subexpressions(g, {}, false));
  EXPECT_THAT(names(g), ElementsAre("x", "a", "b", "c", "e", "f", "output"));
}

TEST(CommonSubexpressions, results_stay_separate) {
  Graph g = parse_graph("%x = placeholder\n%a = aten.cos.default(%x)\n%b = aten.cos.default(%x)\nreturn (%a, %b)");
  EXPECT_FALSE(eliminate_common_subexpressions(g));
}

TEST(CommonSubexpressions, reads_on_either_side_of_a_write_stay) {
  Graph g = parse_graph(R"(
    %x = placeholder
    %a = aten.cos.default(%x)
    %v = aten.view.default(%x, [-1])
    %w = aten.add_.Tensor(%v, 1)
    %b = aten.cos.default(%x)
    %z = aten.zeros.default([2])
    %y = aten.zeros.default([2])
    %fill = aten.fill_.Scalar(%z, 3)
    %s = aten.add.Tensor(%a, %b)
    %t = aten.add.Tensor(%z, %y)
    %u = aten.mul.Tensor(%s, 1.0)
    %i = aten.mul.Tensor(%s, 1)
    %all = aten.add.Tensor(%u, %i)
    return (%all, %t))");
  const Values before = Interpreter(g).run({numbers(2, 3)}).to_items();
  EXPECT_FALSE(eliminate_common_subexpressions(g));
  const Values after = Interpreter(g).run({numbers(2, 3)}).to_items();
  EXPECT_TRUE(equal(before[0].to_tensor(), after[0].to_tensor()));
}

// ---- constants --------------------------------------------------------------------------------------------------------

TEST(Constants, what_depends_on_the_modules_tensors_alone_is_computed) {
  GraphModule gm({{"w", numbers(3, 4)}, {"b", numbers(1, 3)}}, parse_graph(R"(
    %x = placeholder
    %w = get_attr[w]
    %t = aten.t.default(%w)
    %twice = aten.mul.Tensor(%t, 2)
    %b = get_attr[b]
    %r = aten.rand_like.default(%b)
    %n = operator.mul(3, 4)
    %mm = aten.mm.default(%x, %twice)
    %sum = aten.add.Tensor(%mm, %b)
    %all = aten.add.Tensor(%sum, %n)
    %noise = aten.mul.Tensor(%r, 0)
    %last = aten.add.Tensor(%all, %noise)
    return %last)"));
  const Tensor x = numbers(2, 4);
  const Tensor before = gm({x}).to_tensor();
  EXPECT_TRUE(fold_constants(gm));
  EXPECT_THAT(names(gm.graph()),
              ElementsAre("x", "_folded_constant0", "b", "r", "mm", "sum_1", "all_1", "noise", "last", "output"));
  EXPECT_EQ(gm.graph().find_node("all_1")->str(), "%all_1 = aten.add.Tensor(%sum_1, 12)");
  EXPECT_TRUE(equal(gm({x}).to_tensor(), before));
  EXPECT_FALSE(fold_constants(gm));
}

TEST(Constants, written_tensors_are_not) {
  GraphModule gm({{"steps", zeros({2})}}, parse_graph(R"(
    %x = placeholder
    %steps = get_attr[steps]
    %next = aten.add_.Tensor(%steps, 1)
    %twice = aten.mul.Tensor(%steps, 2)
    %y = aten.add.Tensor(%x, %twice)
    return %y)"));
  EXPECT_FALSE(fold_constants(gm));
  EXPECT_EQ(gm({zeros({2})}).to_tensor().index_by({0}).item().to_double(), 2);
  EXPECT_EQ(gm({zeros({2})}).to_tensor().index_by({0}).item().to_double(), 4);
}

// ---- shapes -----------------------------------------------------------------------------------------------------------

TEST(Shapes, T049_tensor_meta_has_the_real_runs_geometry) {
  struct Scale : Typed<Scale> {
    Tensor forward(const Tensor& x) { return x * 2; }
  };
  GraphModule gm({{"scale", std::make_shared<Scale>()}, {"bias", zeros({3, 1, 1})}}, parse_graph(R"(
    %x = placeholder
    %scale = call_module[scale](%x)
    %bias = get_attr[bias]
    %sum = operator.add(%scale, %bias)
    %relu = call_method[relu](%sum)
    %flip = aten.permute.default(%relu, [0, 2, 3, 1])
    return %flip)"));
  const Tensor x = numbers(2 * 3, 4 * 5).view({2, 3, 4, 5}).contiguous(MemoryFormat::channels_last);
  const Tensor out = propagate_shapes(gm, {x}).to_tensor();
  const auto field = [](const Node& n, std::string_view name) {
    const StructValue& s = n.meta.find("tensor_meta")->to_struct();
    return s.items.at(static_cast<size_t>(std::find(s.fields.begin(), s.fields.end(), name) - s.fields.begin()));
  };
  const Node& last = *gm.graph().output_node();
  EXPECT_EQ(field(last, "shape").str(), "(2, 4, 5, 3)");
  EXPECT_EQ(str(out.sizes()), "[2, 4, 5, 3]");
  EXPECT_EQ(field(last, "stride").str(), "(60, 15, 3, 1)");
  EXPECT_EQ(field(*gm.graph().find_node("x"), "memory_format").to_memory_format(), MemoryFormat::channels_last);
  EXPECT_EQ(field(*gm.graph().find_node("bias"), "memory_format").to_memory_format(), MemoryFormat::contiguous);
  EXPECT_EQ(gm.graph().find_node("relu")->str(), "%relu : f32[2, 3, 4, 5][60, 1, 15, 3] = call_method[relu](%sum_1)");
  for (const Node* n : gm.graph().nodes()) EXPECT_NE(n->meta.find("tensor_meta"), nullptr) << n->name();
}

TEST(Shapes, T050_aggregates_hold_metadata_in_the_tensors_places) {
  const auto both = std::make_shared<const Function>("mine.both", [](const Values&, const Kwargs&) -> Value {
    return tuple({3, zeros({})});
  });
  Graph g;
  Node* n = g.call_function(both, {});
  g.output(n);
  propagate_shapes(g, {});
  const Values& items = n->meta.find("tensor_meta")->to_items();
  EXPECT_EQ(items[0].to_int(), 3);
  EXPECT_EQ(items[1].to_struct().items[0].str(), "()");
}

TEST(Shapes, of_symbolic_inputs) {
  Graph g =
      parse_graph("%x = placeholder\n%y = aten.cat.default([%x, %x], 1)\n%z = aten.sum.dim_IntList(%y, [0])\nreturn %z");
  const auto env = ShapeEnv::make();
  Meta meta;
  meta.sizes = {env->create_size(7, "x, dimension 0"), env->create_size(9, "x, dimension 1")};
  meta.strides = contiguous_strides(meta.sizes);
  propagate_shapes(g, {make_tensor(meta, true)});
  EXPECT_EQ(g.find_node("z")->str(), "%z : f32[2*s1] = aten.sum.dim_IntList(%y, [0])");
}

// ---- splitting --------------------------------------------------------------------------------------------------------

TEST(Split, into_submodules_that_compute_the_same) {
  GraphModule gm({{"w", numbers(2, 3)}, {"quiet.inner", std::make_shared<Quiet>()}}, parse_graph(R"(
    %x = placeholder
    %y = placeholder
    %w = get_attr[w]
    %a = operator.add(%x, %w)
    %b = call_module[quiet.inner](%a)
    %c = operator.mul(%b, %y)
    %d = torch.relu(%a)
    %e = operator.sub(%c, %d)
    return {'e': %e, 'a': %a})"));
  int64_t next = 0;
  const auto split = split_module(gm, [&](const Node&) { return next++ / 2; });
  const Values in = {numbers(2, 3), numbers(2, 3) * 2};
  const Value expected = gm(in);
  const Value found = (*split)(in);
  EXPECT_TRUE(equal(found.to_dict().find("e")->to_tensor(), expected.to_dict().find("e")->to_tensor()));
  EXPECT_TRUE(equal(found.to_dict().find("a")->to_tensor(), expected.to_dict().find("a")->to_tensor()));
  EXPECT_EQ(split->graph().find_nodes(NodeKind::call_module).size(), 3U);
  EXPECT_NE(split->find_submodule("submod_0.quiet_inner"), nullptr);
}

TEST(Split, by_a_predicate) {
  GraphModule gm(parse_graph(
      "%x = placeholder\n%a = torch.relu(%x)\n%b = torch.sin(%a)\n%c = torch.cos(%b)\n%d = torch.relu(%c)\nreturn %d"));
  const auto split = split_by(gm, [](const Node& n) { return n.target().str() == "torch.relu"; });
  EXPECT_THAT(names(split->graph()), ElementsAre("x", "submod_0", "submod_1", "submod_2", "output"));
  EXPECT_TRUE(equal((*split)({numbers(2, 3)}).to_tensor(), gm({numbers(2, 3)}).to_tensor()));
}

TEST(Split, a_cycle_is_an_error) {
  GraphModule gm(parse_graph("%x = placeholder\n%a = torch.relu(%x)\n%b = torch.sin(%a)\n%c = torch.cos(%b)\nreturn %c"));
  EXPECT_THAT(error_of([&] { split_module(gm, [](const Node& n) { return n.name() == "b" ? 1 : 0; }); }),
              HasSubstr("cycle exists between partitions"));
}

// ---- the pass manager -------------------------------------------------------------------------------------------------

Pass replacing(std::string name, const char* from, const char* to) {
  return {std::move(name), [from, to](GraphModule& gm) {
            bool changed = false;
            for (Node* n : gm.graph().find_nodes(NodeKind::call_function, Target(from))) {
              n->set_target(to);
              changed = true;
            }
            return changed;
          }};
}

TEST(PassManager, T071_runs_passes_in_order_and_names_the_one_that_fails) {
  const auto module = [] {
    return GraphModule(parse_graph("%x = placeholder\n%y = operator.add(%x, %x)\n%z = operator.add(%x, %y)\nreturn %z"));
  };
  PassManager pm(
      {replacing("add_to_mul", "operator.add", "operator.mul"), replacing("mul_to_div", "operator.mul", "operator.truediv"),
       replacing("div_to_sub", "operator.truediv", "operator.sub"), replacing("sub_to_add", "operator.sub", "operator.add")},
      4);
  GraphModule gm = module();
  pm.validate_constraints();
  EXPECT_TRUE(pm.run(gm));
  EXPECT_EQ(gm.graph().find_nodes(NodeKind::call_function, Target("operator.add")).size(), 2U);
  PassManager none({{"nothing", [](GraphModule&) { return false; }}}, 5);
  EXPECT_FALSE(none.run(gm));
  PassManager failing({replacing("add_to_mul", "operator.add", "operator.mul"),
                       {"broken", [](GraphModule&) -> bool { throw UserError("oh no"); }}});
  const std::string text = error_of([&] { failing.run(gm); });
  EXPECT_THAT(text, HasSubstr("running the 'broken' pass after the following passes: ['add_to_mul']"));
  EXPECT_THAT(text, HasSubstr("oh no"));
}

TEST(PassManager, an_exception_of_another_library_keeps_the_name_of_its_pass) {
  GraphModule gm(parse_graph("%x = placeholder\nreturn %x"));
  PassManager failing({{"first", [](GraphModule&) { return false; }},
                       {"broken", [](GraphModule&) -> bool { throw std::out_of_range("index 7"); }}});
  const std::string text = error_of([&] { failing.run(gm); });
  EXPECT_THAT(text, HasSubstr("running the 'broken' pass after the following passes: ['first']"));
  EXPECT_THAT(text, HasSubstr("index 7"));
}

TEST(PassManager, T072_constraints_sort_passes) {
  const auto pass = [](const char* name) { return Pass{name, [](GraphModule&) { return false; }}; };
  PassManager stable({pass("a"), pass("b"), pass("c")});
  stable.solve_constraints();
  EXPECT_THAT(stable.order(), ElementsAre("a", "b", "c"));
  PassManager sorted({pass("a"), pass("b"), pass("c"), pass("d")});
  sorted.add_before_constraint("d", "a");
  sorted.add_before_constraint("a", "c");
  sorted.solve_constraints();
  EXPECT_THAT(sorted.order(), ElementsAre("b", "d", "a", "c"));
  PassManager cycle({pass("a"), pass("b"), pass("c")});
  cycle.add_before_constraint("a", "b");
  cycle.add_before_constraint("b", "a");
  EXPECT_THAT(error_of([&] { cycle.solve_constraints(); }),
              HasSubstr("Circular dependency detected within the following passes: ['a', 'b']"));
  PassManager unmet({pass("a"), pass("b")});
  unmet.add_before_constraint("b", "a");
  EXPECT_THAT(error_of([&] { unmet.validate_constraints(); }),
              HasSubstr("Expected b before a but found a at index 0 and b at index 1"));
}

}  // namespace
}  // namespace calque::passes_test
