// Exports: inputs, outputs, names, use. The rows of area `export` (docs/conformance.md) that are about these.
#include "calque/export/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/export/verifier.h"
#include "calque/graph/higher_order.h"
#include "calque/graph/passes.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "calque/trace/make_fx.h"
#include "export/export_support.h"
#include "support/conformance.h"

namespace calque::export_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

DS dims(std::vector<std::pair<Value, DS>> entries) { return DS::dict(std::move(entries)); }

TEST(Export, T242_nested_inputs_as_in_eager) {
  const auto f = traceable([](const std::vector<Tensor>& x, const Tensor& y) { return x[0] + y; }, {"x", "y"});
  const Values args{list({rand({2, 3})}), rand({3})};
  const ExportedProgram p = export_program(f, args);
  EXPECT_TRUE(same(p.module()->call(args), f.body(args)));
  EXPECT_TRUE(same(p.call(args), f.body(args)));
  EXPECT_EQ(inputs(p), "x_0, y");
}

TEST(Export, T243_sizes_are_static_by_default) {
  const auto f = traceable(
      [](const Tensor& x) -> Tensor {
        if (guard(x.sym_size(0) == 4)) return x.sin();
        return x.cos();
      },
      {"x"});
  const ExportedProgram p = export_program(f, {rand({4, 2})});
  EXPECT_EQ(calls(p.graph()), "aten.sin.default");
  EXPECT_TRUE(p.range_constraints().empty());
  EXPECT_TRUE(p.parts().guards_code.empty());
  EXPECT_FALSE(p.graph().placeholders()[0]->meta.val.to_tensor().is_symbolic());
}

TEST(Export, T244_outputs_that_nothing_computes) {
  const ExportedProgram constant = export_program(
      traceable([](const std::vector<int64_t>& x, int64_t) -> Value { return x[0]; }, {"x", "y"}), {list({1}), 2});
  EXPECT_EQ(inputs(constant), "x_0, y");
  EXPECT_EQ(constant.graph().output_value().str(), "(1,)");
  const ExportedProgram input =
      export_program(traceable([](const std::vector<Tensor>& x, const Tensor&) { return x[0]; }, {"x", "y"}),
                     {list({rand({2})}), rand({3})});
  EXPECT_EQ(inputs(input), "x_0, y");
  EXPECT_EQ(input.graph().output_value().to_items()[0].to_node()->name(), "x_0");
}

TEST(Export, T245_outputs_may_be_any_tree) {
  const auto f = traceable(
      [](const Tensor& x) -> Value {
        return list({list({tuple({1, 3}), x + 1}), tuple({x, list({2, None{}})})});
      },
      {"x"});
  const Tensor x = rand({2});
  const Value out = export_program(f, {x}).module()->call({x});
  EXPECT_EQ(out.to_items()[0].to_items()[0].str(), "(1, 3)");
  EXPECT_TRUE(same(out, f.body({x})));
}

TEST(Export, T249_without_inputs) {
  const ExportedProgram random = export_program(traceable(
                                                    []() -> Value {
                                                      return tuple({rand({2, 3}), randn({4})});
                                                    },
                                                    {}),
                                                {});
  EXPECT_EQ(random.call({}).to_items()[1].to_tensor().sizes()[0], 4);
  const ExportedProgram sized = export_program(
      traceable([]() -> Tensor { return zeros({Value(full({1}, 11, DType::int64).item()).to_sym_int()}); }, {}), {});
  EXPECT_EQ(sized.module()->call({}).to_tensor().numel(), 11);
}

TEST(Export, T250_arguments_are_a_tuple) {
  CALQUE_NOT_APPLICABLE("C++'s type of the arguments is Values; anything else does not compile");
}

struct WithKeywords : Typed<WithKeywords> {
  static constexpr const char* forward_arguments[] = {"a", "b", "scale", "extra"};
  static Values forward_defaults() { return {2.0, None{}}; }
  Tensor forward(const Tensor& a, const Tensor& b, double scale = 2.0, const Value& extra = {}) {
    const Tensor sum = a + b * scale;
    return extra.is_none() ? sum : sum + extra.to_dict().find("t")->to_items()[0].to_tensor();
  }
};

TEST(Export, T252_positional_and_keyword_inputs_and_defaults) {
  WithKeywords m;
  const Tensor a = rand({2}), b = rand({2});
  expect_equal_to_eager(m, export_program(m, {a}, {{"b", b}}), {a}, {{"b", b}});
  const Kwargs nested{{"b", b}, {"extra", dict({{"t", list({rand({2})})}})}};
  const ExportedProgram p = export_program(m, {a}, nested);
  EXPECT_EQ(inputs(p), "a, b, extra_t_0");
  expect_equal_to_eager(m, p, {a}, nested);
}

TEST(Export, T253_keywords_in_any_order) {
  WithKeywords m;
  const Tensor a = rand({2}), b = rand({2});
  const ExportedProgram p = export_program(m, {}, {{"a", a}, {"b", b}});
  EXPECT_TRUE(same(p.call({}, {{"b", b}, {"a", a}}), m.call({a, b})));
  EXPECT_TRUE(same(p.module()->call({}, {{"b", b}, {"a", a}}), m.call({a, b})));
}

TEST(Export, T254_example_inputs_can_be_replaced) {
  WithKeywords m;
  const Tensor a = rand({2}), b = rand({2});
  ExportedProgram p = export_program(m, {a}, {{"b", b}});
  EXPECT_TRUE(p.example_inputs()->args[0].to_tensor().is_same(a));
  p.set_example_inputs(ExampleInputs{{b}, {{"b", a}}});
  EXPECT_TRUE(p.example_inputs()->args[0].to_tensor().is_same(b));
  p.set_example_inputs(std::nullopt);
  EXPECT_FALSE(p.example_inputs());
  EXPECT_THAT(error_of([&] { p.set_example_inputs(ExampleInputs{{b}, {}}); }), HasSubstr("keyword mismatch"));
  EXPECT_THAT(error_of([&] { p.set_example_inputs(ExampleInputs{{b, b}, {{"b", a}}}); }), HasSubstr("tree spec"));
}

TEST(Export, T255_numbers_and_strings_are_what_they_were) {
  const auto f =
      traceable([](const Tensor& x, int64_t n, double k, const std::string& mode) { return div(x * n + k, 2.0, mode); },
                {"x", "n", "k", "mode"});
  const Tensor x = rand({2});
  const ExportedProgram p = export_program(f, {x, 5, 5.0, "trunc"});
  EXPECT_TRUE(same(p.call({x, 5, 5.0, "trunc"}), f.body({x, 5, 5.0, "trunc"})));
  EXPECT_THAT(error_of([&] {
                p.module()->call({x, 6, 5.0, "trunc"});
              }),
              testing::AllOf(HasSubstr("args[1]"), HasSubstr("5"), HasSubstr("6")));
  EXPECT_THAT(error_of([&] { p.call({x, 5, 6.0, "trunc"}); }), HasSubstr("args[2]"));
  EXPECT_THAT(error_of([&] {
                p.call({x, 5, 5.0, "floor"});
              }),
              testing::AllOf(HasSubstr("args[3]"), HasSubstr("trunc"), HasSubstr("floor")));
}

TEST(Export, T256_a_string_is_a_constant_of_the_signature) {
  const ExportedProgram p = export_program(
      traceable([](const Tensor& x, const Tensor& y, const std::string& div) { return calque::div(x, y, div); },
                {"a", "b", "div"}),
      {rand({2}), rand({2}), "floor"});
  const ArgumentSpec& arg = p.graph_signature().input_specs[2].arg;
  EXPECT_EQ(arg.kind, ArgumentKind::constant);
  EXPECT_EQ(arg.name, "div");
  EXPECT_EQ(arg.value.to_string(), "floor");
}

TEST(Export, T257_values_of_inputs) {
  const ExportedProgram p =
      export_program(traceable([](const Tensor& x, int64_t n) { return x + n; }, {"x", "n"}), {rand({2}), 3});
  EXPECT_TRUE(p.graph().placeholders()[0]->meta.val.to_tensor().is_fake());
  EXPECT_EQ(p.graph().placeholders()[1]->meta.val.to_int(), 3);
}

TEST(Export, T258_sizes_among_the_outputs) {
  const auto f = traceable([](const Tensor& x) -> Value { return tuple({x + 1, x.sym_size(0), x.sym_size(0) * 2}); }, {"x"});
  const ExportedProgram p =
      export_program(f, {rand({4, 2})}, {}, {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim("b")}})}})});
  const Value out = p.call({rand({7, 2})});
  EXPECT_EQ(out.to_items()[1].to_int(), 7);
  EXPECT_EQ(out.to_items()[2].to_int(), 14);
  EXPECT_EQ(p.graph_signature().output_specs[1].arg.kind, ArgumentKind::sym_int);
}

TEST(Export, T259_item_of_integers_bools_and_floats) {
  const auto f = traceable([](const Tensor& x) -> Value { return Value(x.item()); }, {"x"});
  EXPECT_EQ(export_program(f, {tensor(3)}).call({tensor(8)}).to_int(), 8);
  EXPECT_EQ(export_program(f, {tensor(true)}).call({tensor(false)}).to_bool(), false);
  EXPECT_EQ(export_program(f, {tensor(1.5)}).call({tensor(2.5)}).to_float(), 2.5);
}

TEST(Export, T260_tolist) {
  const auto f = traceable(
      [](const Tensor& x) -> Value {
        Values out;
        for (int64_t i = 0; i < 3; ++i) out.push_back(Value(x.select(0, i).item()));
        return list(std::move(out));
      },
      {"x"});
  EXPECT_EQ(export_program(f, {tensor({7, 8, 9})}).call({tensor({1, 2, 3})}).str(), "[1, 2, 3]");
}

struct T310Nested : Typed<T310Nested> {
  static constexpr const char* forward_arguments[] = {"x"};
  Constant constant = register_constant("constant", ones({2}));
  Tensor forward(const Tensor& x) { return x + *constant; }
};

struct T310Model : Typed<T310Model> {
  static constexpr const char* forward_arguments[] = {"x"};
  Child<T310Nested> nested_1 = child<T310Nested>("nested_1");
  Child<T310Nested> nested_2 = child<T310Nested>("nested_2");
  Tensor forward(const Tensor& x) { return nested_2(nested_1(x)); }
};

TEST(Export, T310_constants_are_named_after_their_module) {
  T310Model m;
  const ExportedProgram p = export_program(m, {rand({2})});
  EXPECT_EQ(inputs(p), "c_nested_1_constant, c_nested_2_constant, x");
  EXPECT_EQ(p.graph_signature().lifted_tensor_constants(),
            (std::vector<std::string>{"nested_1.constant", "nested_2.constant"}));
  EXPECT_EQ(p.constants()[1].first, "nested_2.constant");
}

TEST(Export, T316_names_by_path_and_collisions) {
  const auto f = traceable(
      [](const Value& x, const Tensor& y, const Tensor& z) {
        const Tensor a = x.to_dict().find("foo")->to_items()[0].to_tensor();
        return a + y + z;
      },
      {"x", "x_foo", "x_foo_0"});
  const ExportedProgram p = export_program(f, {dict({{"foo", list({rand({2})})}}), rand({2}), rand({2})});
  EXPECT_EQ(inputs(p), "x_foo_0, x_foo, x_foo_0_1");
  const auto g = traceable([](const Tensor& mul, const Tensor& y) { return mul * y; }, {"mul", "y"});
  const ExportedProgram q = export_program(g, {rand({2}), rand({2})});
  EXPECT_EQ(inputs(q), "mul, y");
  EXPECT_EQ(q.graph_signature().output_specs[0].arg.name, "mul_1");
}

TEST(Export, T317_training_ir_of_a_linear_layer) {
  LinearModel m;
  const ExportedProgram p = export_program(m, {rand({4, 3})});
  EXPECT_EQ(inputs(p), "p_linear_weight, p_linear_bias, x");
  EXPECT_EQ(calls(p.graph()), "aten.linear.default");
  EXPECT_EQ(p.dialect(), Dialect::training);
  EXPECT_THAT(p.module()->code(), HasSubstr("self.linear.weight"));
  expect_equal_to_eager(m, p, {rand({4, 3})});
}

TEST(Export, T320_training_ir_with_dynamic_shapes) {
  LinearModel m;
  const ExportedProgram p =
      export_program(m, {rand({4, 3})}, {}, {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim("b", 2, 64)}})}})});
  ASSERT_EQ(p.range_constraints().size(), 1U);
  EXPECT_EQ(p.range_constraints()[0].second, (ValueRange{2, 64}));
  EXPECT_EQ(p.run_decompositions().range_constraints(), p.range_constraints());
  EXPECT_TRUE(same(p.call({ones({9, 3})}), m.call({ones({9, 3})})));
}

TEST(Export, T333_exported_again) {
  LinearModel m;
  const Tensor x = rand({4, 3});
  const ExportedProgram p = export_program(m, {x});
  const ExportedProgram q = export_program(*p.module(), {x});
  EXPECT_TRUE(same(q.call({x}), p.call({x})));
  EXPECT_EQ(q.graph_signature().str(), p.graph_signature().str());
  EXPECT_EQ(calls(q.graph()), calls(p.graph()));
  const auto f = traceable(
      [](const Value& d) { return d.to_dict().find("a")->to_tensor() + d.to_dict().find("b")->to_tensor(); }, {"d"});
  const Value given = dict({{"a", x}, {"b", x}});
  const ExportedProgram r = export_program(*export_program(f, {given}).module(), {given});
  EXPECT_TRUE(same(r.call({given}), f.body({given})));
}

TEST(Export, T334_exported_again_with_and_without_dynamic_shapes) {
  LinearModel m;
  const DS dynamic = DS::dict({{"x", dims({{0, Dim("b", 2, 16)}})}});
  const ExportedProgram p = export_program(m, {rand({4, 3})}, {}, {.dynamic_shapes = dynamic});
  const ExportedProgram fixed = export_program(*p.module(), {rand({4, 3})});
  EXPECT_THAT(error_of([&] { fixed.call({rand({7, 3})}); }), HasSubstr("7"));
  const ExportedProgram again = export_program(*p.module(), {rand({4, 3})}, {}, {.dynamic_shapes = dynamic});
  EXPECT_EQ(again.call({rand({7, 3})}).to_tensor().sizes()[0], 7);
  EXPECT_NE(error_of([&] { export_program(*p.module(), {rand({20, 3})}); }), "");
  EXPECT_NE(
      error_of([&] {
        export_program(*p.module(), {rand({4, 3})}, {}, {.dynamic_shapes = DS::dict({{"x", dims({{0, Dim("b", 2, 64)}})}})});
      }),
      "");
}

TEST(Export, T335_exported_again_nodes_keep_their_origin) {
  LinearModel m;
  const ExportedProgram p = export_program(m, {rand({4, 3})});
  const ExportedProgram q = export_program(*p.module(), {rand({4, 3})});
  const Node *before = find(p.graph(), "aten.linear.default"), *after = find(q.graph(), "aten.linear.default");
  ASSERT_TRUE(before->meta.nn_module_stack && after->meta.nn_module_stack);
  EXPECT_EQ(*before->meta.nn_module_stack, *after->meta.nn_module_stack);
  EXPECT_EQ(before->meta.nn_module_stack->back().key, "L__self__linear");
  EXPECT_EQ(before->meta.location.line(), after->meta.location.line());
}

TEST(Export, T336_custom_metadata_survives_a_second_export) {
  const auto f = traceable([](const Tensor& x) { return (x.sin() + 1).cos(); }, {"x"});
  const ExportedProgram p = export_program(f, {rand({2})});
  const auto module = p.module();
  for (Node* n : module->graph().nodes())
    if (n->name() == "sin") n->meta.set("custom", dict({{"mine", 1}}));
  const ExportedProgram q = export_program(*module, {rand({2})});
  for (const Node* n : q.graph().nodes()) {
    if (n->name() == "sin") {
      EXPECT_EQ(n->meta.find("custom")->str(), "{'mine': 1}");
    } else {
      EXPECT_EQ(n->meta.find("custom"), nullptr) << n->name();
    }
  }
}

TEST(Export, T337_decomposed_nodes_know_the_users_line) {
  LinearModel m;
  const ExportedProgram p = export_program(m, {rand({4, 3})}).run_decompositions();
  for (const Node* n : p.graph().nodes()) {
    if (n->kind() != NodeKind::call_function) continue;
    EXPECT_THAT(n->meta.location.file_name(), HasSubstr("linear.cpp")) << n->name();
    ASSERT_TRUE(n->meta.nn_module_stack);
    EXPECT_EQ(n->meta.nn_module_stack->back().path, "linear");
  }
}

TEST(Export, T338_inputs_that_are_fake_already) {
  LinearModel m;
  const auto mode = FakeMode::make({.env = ShapeEnv::make(), .static_shapes = true});
  const ExportedProgram p = export_program(m, {mode->from_tensor(rand({4, 3}))});
  const Tensor x = rand({4, 3});
  EXPECT_TRUE(same(p.call({x}), m.call({x})));
  const FakeMode* first = nullptr;
  for (const Node* n : p.graph().nodes()) {
    if (!n->meta.val.is_tensor()) continue;
    if (!first) first = fake_mode_of(n->meta.val.to_tensor());
    EXPECT_EQ(fake_mode_of(n->meta.val.to_tensor()), first);
    EXPECT_EQ(n->meta.val.to_tensor().device().str(), "cpu");
  }
}

TEST(Export, T340_inputs_that_nobody_uses_keep_their_shapes) {
  const auto f = traceable([](const Value& in) { return in.to_struct().items[0].to_tensor() + 1; }, {"inputs"});
  const Value given = namedtuple("my.Inputs", {"a", "b"}, {rand({4, 3}), rand({5, 6})});
  const ExportedProgram p = export_program(
      f, {given}, {},
      {.dynamic_shapes = DS::dict({{"inputs", DS::list({dims({{0, Dim::AUTO}}), dims({{1, Dim::DYNAMIC}})})}})});
  EXPECT_TRUE(p.graph().placeholders()[0]->meta.val.to_tensor().sym_sizes()[0].is_symbolic());
  const auto unused = p.graph().placeholders()[1]->meta.val.to_tensor().sym_sizes();
  EXPECT_EQ(unused[0].as_int(), 5);
  EXPECT_TRUE(unused[1].is_symbolic());
}

TEST(Export, T351_whether_code_is_being_exported_is_known) {
  const auto f = traceable([](const Tensor& x) -> Tensor { return is_exporting() ? x.sin() : x.cos(); }, {"x"});
  const Tensor x = rand({2});
  EXPECT_TRUE(same(f.body({x}), x.cos()));
  EXPECT_EQ(calls(export_program(f, {x}).graph()), "aten.sin.default");
  EXPECT_EQ(calls(export_program(f, {x}, {}, {.strict = true}).graph()), "aten.sin.default");
  EXPECT_FALSE(is_exporting());
}

TEST(Export, T357_a_pass_replaces_views_by_copies) {
  const ExportedProgram p =
      export_program(traceable([](const Tensor& x) { return x.view({6}) + 1; }, {"x"}), {rand({2, 3})});
  EXPECT_EQ(count(p, "aten.view.default"), 1U);
  const ExportedProgram q = p.transform({[](GraphModule& m) {
    bool changed = false;
    for (Node* n : m.graph().node_list()) {
      if (!n->op() || n->op()->form() != Operator::Form::view) continue;
      const Operator* copy = find_operator(n->op()->schema().name_space + "::" + n->op()->schema().name + "_copy" +
                                           (n->op()->schema().overload.empty() ? "" : "." + n->op()->schema().overload));
      if (!copy) continue;
      n->set_target(copy);
      changed = true;
    }
    return changed;
  }});
  EXPECT_EQ(count(q, "aten.view.default"), 0U);
  EXPECT_EQ(count(q, "aten.view_copy.default"), 1U);
  const Tensor x = rand({2, 3});
  EXPECT_TRUE(same(q.call({x}), p.call({x})));
  EXPECT_EQ(count(p, "aten.view.default"), 1U) << "the program itself is as before";
  // Every view of the core set has a variant that copies, but for the one that gives a list.
  size_t views = 0;
  for (const Operator* op : all_operators()) {
    const Schema& schema = op->schema();
    if (!op->has_tag(Tag::core) || op->form() != Operator::Form::view) continue;
    ++views;
    if (schema.returns[0].type.list) continue;
    EXPECT_NE(find_operator(schema.name_space + "::" + schema.name + "_copy" +
                            (schema.overload.empty() ? "" : "." + schema.overload)),
              nullptr)
        << op->name();
  }
  EXPECT_GE(views, 10U);
}

TEST(Export, printing_equality_and_statistics) {
  LinearModel m;
  const ExportedProgram p = export_program(m, {rand({4, 3})});
  EXPECT_THAT(p.str(),
              HasSubstr("def forward(self, p_linear_weight: \"f32[2, 3]\", p_linear_bias: \"f32[2]\", x: \"f32[4, 3]\"):"));
  EXPECT_THAT(p.str(),
              HasSubstr("Graph signature: \n    # inputs\n    p_linear_weight: PARAMETER target='linear.weight'\n    "
                        "p_linear_bias: PARAMETER target='linear.bias'\n"
                        "    x: USER_INPUT\n    \n    # outputs\n    linear: USER_OUTPUT\n    \nRange constraints: {}\n"));
  EXPECT_TRUE(same_program(p, export_program(m, {rand({4, 3})})));
  std::string why;
  EXPECT_FALSE(same_program(p, p.run_decompositions(), &why));
  EXPECT_NE(why, "");
  EXPECT_EQ(p.statistics().op_count, 1U);
  EXPECT_EQ(p.statistics().op_set, std::set<std::string>{"torch.ops.aten.linear.default"});
}

TEST(Export, programs_whose_branches_differ_are_not_the_same) {
  const auto program = [](bool other, float literal) {
    return export_program(traceable(
                              [=](const Tensor& x) {
                                return cond(
                                           x.sum() > 0,
                                           [=](const Values& in) -> Value {
                                             const Tensor a = in[0].to_tensor();
                                             return (other ? a.cos() : a.sin()) + tensor({literal, 2.0F});
                                           },
                                           [](const Values& in) -> Value { return in[0].to_tensor() * 2; }, {x})
                                    .to_tensor();
                              },
                              {"x"}),
                          {rand({2})});
  };
  std::string why;
  EXPECT_TRUE(same_program(program(false, 1), program(false, 1), &why)) << why;
  EXPECT_FALSE(same_program(program(false, 1), program(true, 1), &why));
  EXPECT_THAT(why, HasSubstr("in true_graph_0: %sin"));
  EXPECT_FALSE(same_program(program(false, 1), program(false, 3), &why));
  EXPECT_EQ(why, "in true_graph_0: the tensors _tensor_constant0 differ");
}

TEST(Export, strict_gives_the_same_program) {
  LinearModel m;
  const Tensor x = rand({4, 3});
  const DS dynamic = DS::dict({{"x", dims({{0, Dim("b")}})}});
  const ExportedProgram loose = export_program(m, {x}, {}, {.dynamic_shapes = dynamic});
  const ExportedProgram strict = export_program(m, {x}, {}, {.dynamic_shapes = dynamic, .strict = true});
  EXPECT_EQ(calls(strict.graph()), calls(loose.graph()));
  EXPECT_EQ(strict.graph_signature().str(), loose.graph_signature().str());
  EXPECT_EQ(strict.call({rand({9, 3})}).to_tensor().sizes()[0], 9);
  CountingModel counting;
  const ExportedProgram counted = export_program(counting, {rand({2})}, {}, {.strict = true});
  EXPECT_EQ(inputs(counted), "b_count, x");
  expect_equal_to_eager(counting, counted, {rand({2})});
}

TEST(Export, strict_refuses_control_flow_on_data) {
  const auto f = traceable(
      [](const Tensor& x) -> Tensor {
        if (x.sum().item().to_double() > 0) return x + 1;
        return x;
      },
      {"x"});
  EXPECT_NE(error_of([&] { export_program(f, {rand({2})}, {}, {.strict = true}); }), "");
  EXPECT_NE(error_of([&] { export_program(f, {rand({2})}); }), "");
}

}  // namespace
}  // namespace calque::export_test
