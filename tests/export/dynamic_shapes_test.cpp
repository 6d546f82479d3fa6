// Dynamic shapes of exports: specs, errors, ranges and guards, compared with what PyTorch made of the same inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calque/base/error.h"
#include "calque/op/operators.h"
#include "export/dynamic_shapes_support.h"
#include "support/conformance.h"

namespace calque {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

struct Outcome {
  std::string error;
  std::vector<std::vector<std::string>> sizes;  // of the inputs, a number or text alone
  std::vector<std::string> ranges;
  std::vector<std::string> guards;
};

std::string range_text(const std::string& expression, int64_t lower, std::optional<int64_t> upper) {
  return expression + " in [" + std::to_string(lower) + ", " + (upper ? std::to_string(*upper) : "inf") + "]";
}

Outcome attempt(const ShapeFunction& function, const Values& args, const Kwargs& kwargs, const DynamicShapes& shapes, bool defer) {
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
        for (const SymInt size : leaf.fake.to_tensor().sym_sizes())
          out.sizes.back().push_back(env.simplify(size).str());
      else if (leaf.fake.kind() == Value::Kind::integer)
        out.sizes.back().push_back(env.simplify(leaf.fake.to_sym_int()).str());
      else
        out.sizes.back().push_back(leaf.fake.kind() == Value::Kind::string ? leaf.fake.to_string() : leaf.fake.str());
    }
  } catch (const UserError& e) {
    out.error = std::string(e.reason());
  }
  return out;
}

class DynamicShapesGolden : public ::testing::TestWithParam<Json> {};

TEST_P(DynamicShapesGolden, as_pytorch) {
  const Json& c = GetParam();
  SCOPED_TRACE(c["row"].get<std::string>() + " " + c["function"].get<std::string>() + " " + c["spec"].get<std::string>());
  std::map<std::string, Tensor> by_id;
  Values args;
  Kwargs kwargs;
  for (const Json& a : c["args"])
    args.push_back(input_from(a, by_id));
  for (const Json& a : c["kwargs"])
    kwargs.emplace_back(a[0].get<std::string>(), input_from(a[1], by_id));
  const DynamicShapes shapes = shapes_from(c["shapes"]);
  EXPECT_EQ(shapes.str(), c["spec"].get<std::string>());
  const ShapeFunction& function = shape_functions().at(c["function"]);
  const Outcome found = attempt(function, args, kwargs, shapes, c["defer"]);
  EXPECT_EQ(found.error, c["error"].is_null() ? "" : c["error"].get<std::string>());
  if (c.contains("ranges")) {
    std::vector<std::string> ranges;
    for (const Json& r : c["ranges"])
      ranges.push_back(range_text(r[0], r[1], r[2].is_null() ? std::nullopt : std::optional(r[2].get<int64_t>())));
    EXPECT_EQ(found.ranges, ranges);
    EXPECT_EQ(found.guards, c["guards"].get<std::vector<std::string>>());
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

std::string case_name(const ::testing::TestParamInfo<Json>& info) {
  return info.param["row"].get<std::string>() + "_" + info.param["function"].get<std::string>() + "_" + std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(Exports, DynamicShapesGolden, ::testing::ValuesIn(shape_cases()), case_name);

}  // namespace
}  // namespace calque
