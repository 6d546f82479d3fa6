// Checks of a program's inputs, compared with what PyTorch says of the same calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/export/input_checks.h"
#include "calque/op/aten/zeros.h"
#include "export/dynamic_shapes_support.h"
#include "export/shapes/guard_text.h"
#include "support/conformance.h"
#include "support/error_support.h"

namespace calque::input_checks_test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// A program with the inputs of an export, which gives back the first: enough for its checks.
ExportedProgram program_of(const std::string& function, const Values& args, const Kwargs& kwargs,
                           const DynamicShapes& shapes) {
  const ShapeFunction& f = shape_functions().at(function);
  const FakeInputs inputs = make_fake_inputs(f.names, args, kwargs, shapes, {.keep_dynamic_zero_one = false});
  f.run(inputs.args, inputs.kwargs);
  solve_constraints(inputs);
  ExportedProgram::Parts parts;
  parts.range_constraints = range_constraints(inputs);
  const std::shared_ptr<ShapeEnv>& env = inputs.mode->env();
  parts.guards_code = guards_code(*env);
  Graph graph;
  graph.set_shape_env(env);
  for (const FakeInputs::Leaf& leaf : inputs.leaves) {
    Node* node = graph.placeholder("input" + std::to_string(graph.size()));
    node->meta.val = leaf.fake;
    if (leaf.fake.is_tensor())
      for (SymInt& size : leaf.fake.to_tensor().impl().sizes) size = env->simplify(size);
    else if (leaf.fake.kind() == Value::Kind::integer)
      node->meta.val = env->simplify(leaf.fake.to_sym_int());
    parts.signature.input_specs.push_back({InputKind::user_input, {ArgumentKind::tensor, node->name()}});
  }
  graph.output(tuple({graph.placeholders()[0]}));
  parts.signature.output_specs.push_back({OutputKind::user_output, {ArgumentKind::tensor, graph.placeholders()[0]->name()}});
  std::vector<std::pair<Value, Value>> named;
  for (const auto& [name, value] : kwargs) named.emplace_back(name, value);
  ModuleCallSignature signature;
  signature.in_spec = tree_structure(tuple({tuple(args), dict(std::move(named))}));
  signature.out_spec = tree_structure(args[0]);
  signature.forward_arg_names = f.names;
  parts.module_call_graph.push_back({"", signature});
  parts.graph_module = std::make_shared<GraphModule>(std::move(graph));
  return ExportedProgram(std::move(parts));
}

using test::reason_of;

struct Call {
  Values args;
  Kwargs kwargs;
};
Call call_from(const Json& j) {
  std::map<std::string, Tensor> by_id;
  Call out;
  for (const Json& a : j["args"]) out.args.push_back(input_from(a, by_id));
  for (const Json& a : j["kwargs"]) out.kwargs.emplace_back(a[0].get<std::string>(), input_from(a[1], by_id));
  return out;
}

void compare_all(const std::string& row) {
  size_t found = 0;
  for (const Json& c : shape_cases()) {
    if (c["row"] != row) continue;
    const Call example = call_from(c);
    const ExportedProgram program = program_of(c["function"], example.args, example.kwargs, shapes_from(c["shapes"]));
    const InputChecks checks(program, {.guards = false}), with_guards(program);
    for (const Json& j : c["calls"]) {
      SCOPED_TRACE(c["function"].get<std::string>() + " " + c["spec"].get<std::string>() + " " + j["args"].dump() +
                   j["kwargs"].dump());
      const Call call = call_from(j);
      const std::string expected = j["error"].is_null() ? "" : j["error"].get<std::string>();
      EXPECT_EQ(reason_of([&] { checks(call.args, call.kwargs); }), expected);
      // With guards, whatever PyTorch's refuse is refused.
      const std::string guarded = reason_of([&] { with_guards(call.args, call.kwargs); });
      if (!expected.empty())
        EXPECT_EQ(guarded, expected);
      else
        EXPECT_EQ(guarded, j["guard_error"].is_null() ? "" : j["guard_error"].get<std::string>());
      ++found;
    }
  }
  EXPECT_GT(found, 0u);
}

TEST(InputChecks, T354_bounds) { compare_all("T354"); }
TEST(InputChecks, T251_structures) {
  compare_all("T280c");
  const ExportedProgram program = program_of("Add", {zeros({3}), zeros({3})}, {}, {});
  EXPECT_THAT(reason_of([&] {
                InputChecks{program}({zeros({3}), zeros({3}), zeros({3})});
              }),
              HasSubstr("Trying to flatten user inputs with exported input tree spec: \nTreeSpec(tuple, None, ["));
}
TEST(InputChecks, T255_constants) { compare_all("T255c"); }
TEST(InputChecks, T270_one_or_two) {
  const Dim d("d", 1, 2);
  const auto entry = DynamicShapes::tuple({d});
  const InputChecks checks(program_of("Add", {zeros({2}), zeros({2})}, {}, DynamicShapes::tuple({entry, entry})));
  EXPECT_EQ(reason_of([&] { checks({zeros({1}), zeros({1})}); }), "");
  EXPECT_EQ(reason_of([&] { checks({zeros({2}), zeros({2})}); }), "");
  EXPECT_EQ(reason_of([&] {
              checks({zeros({3}), zeros({3})});
            }),
            "Expected input at *args[0].shape[0] to be <= 2, but got 3");
}
TEST(InputChecks, T271_derived_dims) { compare_all("T271c"); }
TEST(InputChecks, T273_a_size_that_no_root_gives) { compare_all("T273c"); }
TEST(InputChecks, T274_roots_that_are_no_size) { compare_all("T274c"); }
TEST(InputChecks, T282_keyword_arguments) { compare_all("T282c"); }
TEST(InputChecks, T286_a_linear_relation) { compare_all("T286c"); }
TEST(InputChecks, T288_a_divisibility_guard) { compare_all("T288c"); }

TEST(InputChecks, keys_of_a_dict_may_come_in_any_order) {
  const auto inputs = [](int64_t n, bool turned) {
    const Tensor t = zeros({n});
    std::vector<std::pair<Value, Value>> items = {{"a", t}, {"b", list({t, t})}, {"c", tuple({t, t})}};
    if (turned) std::ranges::reverse(items);
    return Values{dict(std::move(items))};
  };
  const InputChecks checks(program_of("Nested", inputs(5, false), {}, {}));
  EXPECT_EQ(reason_of([&] { checks(inputs(5, true)); }), "");
  EXPECT_THAT(reason_of([&] { checks(inputs(4, true)); }),
              HasSubstr("Expected input at *args[0]['a'].shape[0] to be equal to 5"));
}

TEST(InputChecks, dtypes_unless_not_asked_for) {
  const ExportedProgram program = program_of("Sin", {zeros({3})}, {}, {});
  EXPECT_EQ(reason_of([&] { InputChecks{program}({zeros({3}, DType::float64)}); }),
            "Expected input at *args[0] to be of type torch.float32, but got torch.float64");
  EXPECT_EQ(reason_of([&] { InputChecks(program, {.dtypes = false})({zeros({3}, DType::float64)}); }), "");
}

TEST(InputChecks, the_number_of_leaves) {
  const InputChecks checks(program_of("Sin", {zeros({3})}, {}, {}));
  EXPECT_EQ(reason_of([&] { checks.check({}); }), "Unexpected number of inputs (expected 1, got 0)");
}

TEST(GuardText, reads_what_guards_say) {
  const auto text = [](std::string_view code) {
    const auto guard = GuardText::parse(code);
    return guard ? guard->str([](const std::string& s) { return s; }) : "not read";
  };
  EXPECT_EQ(text("((L['y'].size()[0] + L['x'].size()[0]) % 4) == 0"), "(L['y'].size()[0] + L['x'].size()[0]) % 4 == 0");
  EXPECT_EQ(text("L['x'].size()[0] == ((-1) + L['y'][0]['a b'].size()[0])"),
            "L['x'].size()[0] == -1 + L['y'][0]['a b'].size()[0]");
  EXPECT_EQ(text("2 <= L['x'].size()[0] and L['x'].size()[0] <= 15"), "2 <= L['x'].size()[0] and L['x'].size()[0] <= 15");
  EXPECT_EQ(text("max(1, (L['n']*2)) // 3 != -(L['n'] - (1 - 2))**2"),
            "max(1, L['n'] * 2) // 3 != -(L['n'] - (1 - 2)) ** 2");
  EXPECT_EQ(text("L['x'].field.stride()[1] == 1 or not L['x'].storage_offset() > 0"),
            "L['x'].field.stride()[1] == 1 or not L['x'].storage_offset() > 0");
  EXPECT_EQ(text("L['x'].size()[0] > 1.5"), "not read");
  EXPECT_EQ(text("import os"), "not read");
  EXPECT_EQ(text("(1 == 1"), "not read");
  EXPECT_EQ(text(std::string(100000, '(')), "not read");
  EXPECT_EQ(text(std::string(100000, '-') + "1"), "not read");
}

TEST(GuardText, evaluates_as_python) {
  const auto holds = [](std::string_view code, std::vector<int64_t> values) {
    return GuardText::parse(code)->holds(values);
  };
  EXPECT_EQ(holds("L['a'] // 4 == L['b']", {-7, -2}), true);
  EXPECT_EQ(holds("L['a'] % 4 == L['b']", {-7, 1}), true);
  EXPECT_EQ(holds("L['a'] ** 3 == 27 and not L['a'] < 0", {3}), true);
  EXPECT_EQ(holds("min(L['a'], 2) == 2 or L['a'] == 0", {1}), false);
  EXPECT_EQ(holds("1 <= L['a'] <= 3", {4}), false);
  EXPECT_EQ(holds("L['a'] // L['b'] == 0", {1, 0}), std::nullopt);
  EXPECT_EQ(holds("L['a'] * L['a'] > 0", {INT64_MAX}), std::nullopt);
}

}  // namespace
}  // namespace calque::input_checks_test
