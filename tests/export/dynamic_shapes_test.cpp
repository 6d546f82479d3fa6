// Dynamic shapes of exports: specs, errors, ranges and guards, compared with what PyTorch made of the same inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "calque/base/error.h"
#include "calque/op/aten/zeros.h"
#include "export/dynamic_shapes_support.h"
#include "support/conformance.h"
#include "support/error_support.h"

namespace calque::dynamic_shapes_test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

struct Outcome {
  std::string error;
  std::vector<std::vector<std::string>> sizes;  // of the inputs, a number or text alone
  std::vector<std::string> ranges;
  std::vector<std::string> guards;
};

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::string range_text(const std::string& expression, int64_t lower, std::optional<int64_t> upper) {
  return expression + " in [" + std::to_string(lower) + ", " + (upper ? std::to_string(*upper) : "inf") + "]";
}

Outcome attempt(const ShapeFunction& function, const Values& args, const Kwargs& kwargs, const DynamicShapes& shapes,
                bool defer) {
  Outcome out;
  try {
    // As PyTorch does it: 0 and 1 are special.
    const FakeInputs inputs = make_fake_inputs(function.names, args, kwargs, shapes,
                                               {.prefer_deferred_runtime_asserts = defer, .keep_dynamic_zero_one = false});
    function.run(inputs.args, inputs.kwargs);
    solve_constraints(inputs);
    for (const auto& [expression, range] : range_constraints(inputs))
      out.ranges.push_back(range_text(
          expression, range.lower, range.upper == ValueRange::unbounded_above ? std::nullopt : std::optional(range.upper)));
    const ShapeEnv& env = *inputs.mode->env();
    out.guards = guards_code(env);
    for (const FakeInputs::Leaf& leaf : inputs.leaves) {
      out.sizes.emplace_back();
      if (leaf.fake.is_tensor())
        for (const SymInt size : leaf.fake.to_tensor().sym_sizes()) out.sizes.back().push_back(env.simplify(size).str());
      else if (leaf.fake.kind() == Value::Kind::integer)
        out.sizes.back().push_back(env.simplify(leaf.fake.to_sym_int()).str());
      else
        out.sizes.back().push_back(leaf.fake.kind() == Value::Kind::string ? leaf.fake.to_string() : leaf.fake.str());
    }
  } catch (const UserError& e) {
    // Calque says more: who asked for it, and of which input a size is out of range.
    for (const std::string& line : lines(std::string(e.reason()))) {
      const size_t specialised = line.find(" It was specialized by ");
      size_t asked = line.ends_with(")") ? line.rfind(" (") : std::string::npos;
      if (asked != std::string::npos && line.find(".cpp:", asked) == std::string::npos &&
          line.find(", dimension ", asked) == std::string::npos)
        asked = std::string::npos;
      out.error += (out.error.empty() ? "" : "\n") + line.substr(0, std::min(specialised, asked));
    }
  }
  return out;
}

// The conditions, each with its sides in one order. PyTorch also asks whether sizes are 0 or 1 where Calque need not.
std::set<std::string> conditions(const std::vector<std::string>& guards) {
  std::set<std::string> out;
  for (std::string rest : guards)
    while (!rest.empty()) {
      const size_t end = rest.find(" and ");
      std::string one = rest.substr(0, end);
      rest = end == std::string::npos ? "" : rest.substr(end + 5);
      const size_t equals = one.find(" == ");
      if (equals != std::string::npos && one.substr(0, equals) > one.substr(equals + 4))
        one = one.substr(equals + 4) + " == " + one.substr(0, equals);
      if (!one.ends_with(">= 2") && !one.ends_with("!= 1")) out.insert(one);
    }
  return out;
}

// The same error, of which PyTorch may list further guards that Calque does not need.
void expect_same_error(const std::string& found, const std::string& expected) {
  if (found == expected) return;
  const std::vector<std::string> own = lines(found), theirs = lines(expected);
  for (const std::string& line : own) EXPECT_THAT(theirs, ::testing::Contains(line));
  for (const std::string& line : theirs)
    if (line.find("satisfy the generated guard") == std::string::npos) {
      EXPECT_THAT(own, ::testing::Contains(line));
    }
}

// One export, as PyTorch.
void compare(const Json& c) {
  SCOPED_TRACE(c["row"].get<std::string>() + " " + c["function"].get<std::string>() + " " + c["spec"].get<std::string>());
  std::map<std::string, Tensor> by_id;
  Values args;
  Kwargs kwargs;
  for (const Json& a : c["args"]) args.push_back(input_from(a, by_id));
  for (const Json& a : c["kwargs"]) kwargs.emplace_back(a[0].get<std::string>(), input_from(a[1], by_id));
  const DynamicShapes shapes = shapes_from(c["shapes"]);
  EXPECT_EQ(shapes.str(), c["spec"].get<std::string>());
  const ShapeFunction& function = shape_functions().at(c["function"]);
  const Outcome found = attempt(function, args, kwargs, shapes, c["defer"]);
  expect_same_error(found.error, c["error"].is_null() ? "" : c["error"].get<std::string>());
  if (c.contains("ranges") && c["differs"].is_null()) {
    std::vector<std::string> ranges;
    for (const Json& r : c["ranges"])
      ranges.push_back(range_text(r[0], r[1], r[2].is_null() ? std::nullopt : std::optional(r[2].get<int64_t>())));
    EXPECT_EQ(found.ranges, ranges);
    EXPECT_EQ(conditions(found.guards), conditions(c["guards"].get<std::vector<std::string>>()));
    std::vector<std::vector<std::string>> sizes;
    for (const Json& s : c["sizes"])
      sizes.push_back(s.is_string() ? std::vector<std::string>{s.get<std::string>()} : s.get<std::vector<std::string>>());
    EXPECT_EQ(found.sizes, sizes);
  }
  if (c.contains("refined")) {
    const DynamicShapes refined = refine_dynamic_shapes_from_suggested_fixes(found.error, shapes);
    EXPECT_EQ(refined.str(), c["refined"].get<std::string>());
    EXPECT_EQ(attempt(function, args, kwargs, refined, c["defer"]).error,
              c["refined_error"].is_null() ? "" : c["refined_error"].get<std::string>());
  }
}

// Every export of the goldens that belongs to the row.
void compare_all(const std::string& row) {
  size_t found = 0;
  for (const Json& c : shape_cases())
    if (c["row"] == row) {
      compare(c);
      ++found;
    }
  EXPECT_GT(found, 0u);
}

using test::reason_of;

FakeInputs inputs_of(const char* function, const Values& args, const DynamicShapes& shapes) {
  const ShapeFunction& f = shape_functions().at(function);
  FakeInputs out = make_fake_inputs(f.names, args, {}, shapes);
  f.run(out.args, out.kwargs);
  solve_constraints(out);
  return out;
}

using Shapes = DynamicShapes;

TEST(DynamicShapes, T261_a_shared_dim_is_one_symbol) { compare_all("T261"); }
TEST(DynamicShapes, T262_dims_by_name) { compare_all("T262"); }
TEST(DynamicShapes, T263_a_dim_that_must_be_constant) { compare_all("T263"); }
TEST(DynamicShapes, T265_branches_on_sizes_suggest_bounds_and_multiples) { compare_all("T265"); }
TEST(DynamicShapes, T268_an_example_out_of_range) { compare_all("T268"); }
TEST(DynamicShapes, T269_static_entries) { compare_all("T269"); }

TEST(DynamicShapes, T270_one_or_two) {
  compare_all("T270");
  const Dim d("d", 1, 2);
  for (const int64_t example : {1, 2}) {
    const FakeInputs inputs =
        inputs_of("Add", {zeros({example}), zeros({example})}, Shapes::tuple({Shapes::tuple({d}), Shapes::tuple({d})}));
    const RangeConstraints ranges = range_constraints(inputs);
    ASSERT_EQ(ranges.size(), 1u) << example;
    EXPECT_EQ(ranges[0].second, (ValueRange{1, 2}));
  }
}

TEST(DynamicShapes, T271_derived_dims) { compare_all("T271"); }
TEST(DynamicShapes, T273_a_size_that_no_root_gives) { compare_all("T273"); }
TEST(DynamicShapes, T274_the_root_may_come_later_or_not_at_all) { compare_all("T274"); }
TEST(DynamicShapes, T275_only_roots_are_suggested) { compare_all("T275"); }
TEST(DynamicShapes, T276_a_derived_dim_that_is_forced_names_its_root) { compare_all("T276"); }
TEST(DynamicShapes, T278_suggested_fixes_are_applied) { compare_all("T278"); }
TEST(DynamicShapes, T279_one_name_with_two_definitions) { compare_all("T279"); }
TEST(DynamicShapes, T280_mismatches_name_the_path) { compare_all("T280"); }
TEST(DynamicShapes, T281_top_level_keys_are_argument_names) { compare_all("T281"); }
TEST(DynamicShapes, T282_by_position) { compare_all("T282"); }
TEST(DynamicShapes, T283_nested_like_the_inputs) { compare_all("T283"); }
TEST(DynamicShapes, T284_auto_infers_equalities) { compare_all("T284"); }
TEST(DynamicShapes, T285_auto_infers_offsets) { compare_all("T285"); }

TEST(DynamicShapes, T286_auto_keeps_a_linear_relation_as_a_guard) {
  compare_all("T286");
  const FakeInputs inputs = inputs_of("Strided", {zeros({32}), zeros({8})},
                                      Shapes::tuple({Shapes::tuple({Dim::AUTO}), Shapes::tuple({Dim::STATIC})}));
  const RangeConstraints ranges = range_constraints(inputs);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].second, (ValueRange{30, 33}));
}

TEST(DynamicShapes, T287_hints_merge_with_dims) { compare_all("T287"); }
TEST(DynamicShapes, T288_dynamic_must_not_be_specialised) { compare_all("T288"); }
TEST(DynamicShapes, T289_auto_is_not_duck_sized) { compare_all("T289"); }
TEST(DynamicShapes, guards_may_become_asserts) { compare_all("defer"); }
TEST(DynamicShapes, integers_may_be_dynamic) { compare_all("ints"); }
TEST(DynamicShapes, one_tensor_in_two_places) { compare_all("same"); }
TEST(DynamicShapes, sizes_from_data_come_first) { compare_all("unbacked"); }
TEST(DynamicShapes, nothing_said_is_static) { compare_all("none"); }

TEST(DynamicShapes, deferred_guards_are_runtime_asserts) {
  const ShapeFunction& f = shape_functions().at("DivisibleBoth");
  const auto shapes = Shapes::tuple({Shapes::tuple({Dim("dx")}), Shapes::tuple({Dim("dy")})});
  const FakeInputs inputs =
      make_fake_inputs(f.names, {zeros({4}), zeros({8})}, {}, shapes, {.prefer_deferred_runtime_asserts = true});
  f.run(inputs.args, inputs.kwargs);
  solve_constraints(inputs);
  ASSERT_EQ(inputs.mode->env()->runtime_asserts().size(), 1u);
  EXPECT_EQ(inputs.mode->env()->runtime_asserts()[0].condition.str(), "Eq(Mod(s17 + s77, 4), 0)");
}

TEST(DynamicShapes, violations_name_the_line_of_user_code) {
  const auto batch = Shapes::tuple({Shapes::dict({{0, Dim("batch")}})});
  EXPECT_THAT(reason_of([&] {
                inputs_of("AddConstant", {zeros({10, 3})}, batch);
              }),
              HasSubstr("It was specialized by aten::add.Tensor, at dynamic_shapes_support.cpp:"));
  EXPECT_THAT(reason_of([&] { inputs_of("Pairs", {zeros({8})}, Shapes::tuple({Shapes::tuple({Dim("dx")})})); }),
              HasSubstr("(L['x'].size()[0] % 2) == 0. (aten::"));
  EXPECT_THAT(reason_of([&] { inputs_of("AtLeast", {zeros({8})}, Shapes::tuple({Shapes::tuple({Dim("dx")})})); }),
              HasSubstr("4 <= L['x'].size()[0] and L['x'].size()[0] <= 12 (at dynamic_shapes_support.cpp:"));
}

TEST(DynamicShapes, an_example_of_0_or_1_stays_dynamic) {
  for (const int64_t example : {0, 1}) {
    const Dim batch("batch");
    const FakeInputs inputs =
        inputs_of("Bmm", {zeros({example, 2, 3}), zeros({example, 3, 4})},
                  Shapes::dict({{"x", Shapes::dict({{0, batch}})}, {"y", Shapes::dict({{0, batch}})}}));
    const RangeConstraints ranges = range_constraints(inputs);
    ASSERT_EQ(ranges.size(), 1u) << example;
    EXPECT_EQ(ranges[0].second, (ValueRange{0, ValueRange::unbounded_above}));
    const FakeInputs hinted = inputs_of("Sin", {zeros({example})}, Shapes::tuple({Shapes::tuple({Dim::DYNAMIC})}));
    EXPECT_EQ(range_constraints(hinted).size(), 1u);
  }
}

TEST(DynamicShapes, T352_specs_as_plain_data) {
  const Dim dx("dx", 4, 16);
  const Values inputs = {list({zeros({4, 4}), zeros({5, 4})}), zeros({4}), zeros({4, 4}), "hello"};
  const auto shapes = Shapes::dict({{"a", Shapes::list({Shapes::tuple({dx, 4}), Shapes::tuple({dx + 1, 4})})},
                                    {"b", Shapes::tuple({Dim::STATIC})},
                                    {"c", None()},
                                    {"d", None()}});
  const Value dumped = dump_dynamic_shapes(shapes, inputs);
  EXPECT_EQ(
      dumped.str(),
      "{'dynamic_shapes': ([['dx', 4], ['dx + 1', 4]], ['_DimHint.STATIC'], ['_DimHint.STATIC', '_DimHint.STATIC'], None), "
      "'dims': {'dx': {'min': 4, 'max': 16, 'derived': ['dx + 1']}}}");
  EXPECT_EQ(load_dynamic_shapes(dumped).str(),
            "([[Dim('dx', min=4, max=16), 4], [dx + 1, 4]], [DimHint(STATIC)], [DimHint(STATIC), DimHint(STATIC)], None)");
  // Without an upper bound, and with sizes in place of entries that say nothing.
  const Value open = dump_dynamic_shapes(Shapes::tuple({Shapes::dict({{1, Dim("n")}}), Dim::AUTO}), {zeros({2, 3}), 7});
  EXPECT_EQ(open.str(), "{'dynamic_shapes': ([2, 'n'], None), 'dims': {'n': {'min': 0, 'max': None, 'derived': []}}}");
  EXPECT_EQ(load_dynamic_shapes(open).str(), "([2, Dim('n', min=0)], None)");
  EXPECT_EQ(dump_dynamic_shapes({}, {}).str(), "{'dynamic_shapes': None, 'dims': {}}");
}

TEST(DynamicShapes, T353_malformed_data) {
  const auto load = [](Value dims, Value shapes) {
    return reason_of([&] { load_dynamic_shapes(dict({{"dims", dims}, {"dynamic_shapes", shapes}})); });
  };
  const auto info = [](Value min, Value max, Values derived) {
    return dict({{"min", min}, {"max", max}, {"derived", list(std::move(derived))}});
  };
  const Value uses_dx = list({list({"dx"})});
  EXPECT_EQ(load(dict({{"dx", info("x", 4, {})}}), {}), "Expected dims in `spec['dims']` to map `min` to an int, got dx: x");
  EXPECT_EQ(load(dict({{"dx", info(1, "y", {})}}), {}),
            "Expected dims in `spec['dims']` to map `max` to an int or None, got dx: y");
  EXPECT_EQ(
      load(dict({{"dx", info(1, 4, {})}}), list({list({"dy"})})),
      "Expected dims in `spec['dynamic_shapes']` to be tracked in `spec['dims']`, got dy which is not in dict_keys(['dx'])");
  EXPECT_EQ(load(dict({{"dx", info(1, 4, {"dx**2"})}}), uses_dx),
            "Expected derived expressions to be linear expressions, got dx**2");
  EXPECT_EQ(load(dict({{"dx", info(1, 4, {"dy + 1"})}}), uses_dx),
            "Expected derived expressions in to have dx as the only free symbol, got dy + 1");
  EXPECT_EQ(load(dict({{"dx", info(1, 4, {"7"})}}), uses_dx),
            "Expected derived expressions in to have dx as the only free symbol, got 7");
  EXPECT_EQ(load(dict({{"dx+1", info(1, 4, {})}}), uses_dx), "Expected `spec['dims']` keys to be symbols, got dx+1");
  EXPECT_EQ(
      load(dict({{"dx", dict({{"min", 1}, {"max", 4}})}}), uses_dx),
      "Expected `spec['dims']` values to have keys `derived`, `max`, and `min`, instead found dict_keys(['min', 'max'])");
  EXPECT_EQ(load(dict({{3, info(1, 4, {})}}), uses_dx),
            "Expected `spec['dims']` keys to be strings for symbols, got key <class 'int'>");
  EXPECT_EQ(load(dict({}), list({list({1.5})})),
            "Expected leaves in `spec['dynamic_shapes']` to be ints, None, Dim.AUTO/STATIC, symbols,  or derived "
            "expressions, got 1.5");
  EXPECT_EQ(
      reason_of([] {
        load_dynamic_shapes(dict({{"dims", dict({})}}));
      }),
      "With from_dict=True, expected `spec` to have keys `dims` and `dynamic_shapes`, instead found dict_keys(['dims'])");
  EXPECT_EQ(reason_of([] { load_dynamic_shapes(3); }),
            "With from_dict=True, expected `spec` to be a dict, got <class 'int'>");
}

TEST(DynamicShapes, dims_check_their_bounds) {
  EXPECT_EQ(reason_of([] { Dim("d", 4, 4); }), "Cannot create Dim with inconsistent min=4, max=4");
  EXPECT_EQ(reason_of([] { Dim("2d"); }), "Dim name must be a valid identifier, got 2d");
  EXPECT_EQ(reason_of([] { (void)(Dim("d") * 0); }),
            "Attempted to multiply 0 with d, where a positive integer was expected. (Only increasing linear operations with "
            "integer "
            "coefficients are supported.)");
  EXPECT_EQ(reason_of([] { (void)(Dim("d") - 1).min(); }),
            "Expected derived min value of d - 1 to be >= 0. Please specify an appropriate min value for d (currently 0).");
  EXPECT_EQ(reason_of([] { (void)Dim::AUTO(5, 4); }), "min must be <= max, got min=5, max=4");
  EXPECT_EQ(reason_of([] { (void)Dim::AUTO(-1); }), "min must be non-negative, got -1");
  EXPECT_EQ(Dim::DYNAMIC({}, 8).str(), "DimHint(DYNAMIC, max=8)");
  EXPECT_EQ((2 * (2 * Dim("d") + 1)).name(), "4*d + 2");
  EXPECT_EQ((2 * Dim("d", 3, 9) + 1).range(), (ValueRange{7, 19}));
}

TEST(DynamicShapes, collected_by_tensor) {
  const Tensor x = zeros({4, 3}), y = zeros({8}), z = zeros({2});
  const Dim d("d");
  ShapesCollection collection;
  collection.set(x, Shapes::tuple({d, 3}));
  collection.set(y, 0, d * 2);
  const Kwargs combined = {{"x", x}, {"others", list({y, z})}};
  EXPECT_EQ(collection.dynamic_shapes(combined).str(), "{'x': (Dim('d', min=0), 3), 'others': [{0: 2*d}, None]}");
  EXPECT_THAT(reason_of([&] {
                collection.set(x, Shapes::tuple({d, 4}));
              }),
              HasSubstr("Shapes assigned to input do not match: expected (Dim('d', min=0), 3), got (Dim('d', min=0), 4)"));
  EXPECT_THAT(reason_of([&] { collection.dynamic_shapes({{"x", x}}); }), HasSubstr("were not found in args"));
}

TEST(DynamicShapes, found_from_additional_inputs) {
  AdditionalInputs more;
  more.add({zeros({4, 3}), 7, "a"});
  more.add({zeros({6, 3}), 7, "a"});
  EXPECT_EQ(more.dynamic_shapes({"x", "n", "s"}, {zeros({4, 3}), 5, "a"}).str(),
            "{'x': (DimHint(DYNAMIC), None), 'n': DimHint(DYNAMIC), 's': None}");
  EXPECT_THAT(reason_of([&] {
                more.dynamic_shapes({"x", "n", "s"}, {zeros({4, 3}), 5, "b"});
              }),
              HasSubstr("differing values"));
  EXPECT_THAT(reason_of([&] {
                more.dynamic_shapes({"x", "n", "s"}, {zeros({4, 3}), 5.0, "a"});
              }),
              HasSubstr("differing types"));
}

TEST(DynamicShapes, suggested_fixes_as_data) {
  const auto fixes = suggested_fixes(
      "Constraints violated!\nSuggested fixes:\n  a = Dim('a', min=3, max=6)\n  _b = Dim('_b', max=9)\n"
      "  c = 4\n  d = 2*a - 1\n  b = 3*_b\n  in torch.export");
  ASSERT_EQ(fixes.size(), 5u);
  EXPECT_EQ(fixes[0].min, 3);
  EXPECT_EQ(fixes[0].max, 6);
  EXPECT_EQ(fixes[1].max, 9);
  EXPECT_EQ(fixes[2].value, 4);
  EXPECT_EQ(fixes[3].derived->root, "a");
  EXPECT_EQ(fixes[3].derived->multiplier, 2);
  EXPECT_EQ(fixes[3].derived->offset, -1);
  EXPECT_EQ(fixes[4].derived->root, "_b");
  EXPECT_TRUE(suggested_fixes("nothing").empty());
  EXPECT_THAT(reason_of([] { refine_dynamic_shapes_from_suggested_fixes("nothing", {}); }),
              HasSubstr("Suggested fixes not found"));
}

TEST(DynamicShapes, from_the_command_line) {
  const std::vector<std::string> names = {"input_ids", "mask", "labels"};
  EXPECT_EQ(parse_dynamic_shapes({"mask=batch,*,2*seq+1", "input_ids=batch,seq:1..128"}, names).str(),
            "{'input_ids': (Dim('batch', min=0), Dim('seq', min=1, max=128)), 'mask': (Dim('batch', min=0), "
            "DimHint(STATIC), 2*seq + 1), "
            "'labels': None}");
  EXPECT_EQ(parse_dynamic_shapes({"mask=4,n:..9", "labels="}, names).str(),
            "{'input_ids': None, 'mask': (4, Dim('n', min=0, max=9)), 'labels': ()}");
  EXPECT_TRUE(parse_dynamic_shapes({}, names).is_none());
  const auto error = [&](const std::string& text) { return reason_of([&] { parse_dynamic_shapes({text}, names); }); };
  EXPECT_EQ(error("mask"), "dynamic shapes: expected NAME=D,D,..., such as input_ids=batch,seq, found mask");
  EXPECT_EQ(error("x=a"), "dynamic shapes: x=a names the argument x; the arguments are ['input_ids', 'mask', 'labels']");
  EXPECT_THAT(error("mask=a,,b"), HasSubstr("in mask=a,,b, an empty entry is not *"));
  EXPECT_THAT(error("mask=a*b"), HasSubstr("a*b is not *"));
  EXPECT_THAT(error("mask=a:1-3"), HasSubstr("a:1-3 has bounds that are not NAME:MIN..MAX"));
  EXPECT_THAT(error("mask=a:x..3"), HasSubstr("a:x..3 has bounds that are no numbers"));
  EXPECT_THAT(error("mask=a:1..3,a:1..4"), HasSubstr("a:1..4 has other bounds than before"));
  EXPECT_THAT(error("mask=a:3..1"), HasSubstr("Cannot create Dim with inconsistent min=3, max=1"));
}

TEST(DynamicShapes, arguments_bind_as_python_binds_them) {
  const auto text = [](const Kwargs& combined) {
    std::string out;
    for (const auto& [name, value] : combined) out += name + "=" + value.str() + ";";
    return out;
  };
  EXPECT_EQ(text(combine_args({"x", "y"}, {1}, {{"y", 2}})), "x=1;y=2;");
  EXPECT_EQ(text(combine_args({"x", "*args", "**kwargs"}, {1, 2, 3}, {{"k", 4}})), "x=1;args=(2, 3);kwargs={'k': 4};");
  EXPECT_EQ(text(combine_args({}, {1}, {})), "args=(1,);");
  EXPECT_THAT(reason_of([] { combine_args({"x"}, {1, 2}, {}); }), HasSubstr("too many positional arguments"));
  EXPECT_THAT(reason_of([] { combine_args({"x"}, {1}, {{"x", 2}}); }), HasSubstr("multiple values for argument 'x'"));
  EXPECT_THAT(reason_of([] { combine_args({"x"}, {1}, {{"z", 2}}); }), HasSubstr("unexpected keyword argument 'z'"));
}

}  // namespace
}  // namespace calque::dynamic_shapes_test
