// Plans of everything: each operator on the cases that PyTorch made, and random programs, beside the interpreter; values to the last
// bit, sizes, strides, dtypes, writes to the inputs, and the errors. CALQUE_RANDOM_PLANS=20000 makes so many random programs.
#include <gtest/gtest.h>

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "calque/graph/interpreter.h"
#include "calque/op/operator.h"
#include "calque/op/tree.h"
#include "calque/run/plan.h"
#include "calque/tensor/generator.h"
#include "calque/trace/make_fx.h"
#include "op/opcheck_support.h"
#include "support/difference_support.h"
#include "support/error_support.h"
#include "support/paths.h"
#include "trace/random_programs_support.h"

namespace calque::plan_sweep_test {
namespace {

using test::difference;
using test::error_of;

// `make_inputs` gives the same fresh inputs each time: the graph may write them.
template <class F>
std::string plan_difference(const GraphModule& module, const F& make_inputs) {
  const std::shared_ptr<const Plan> plan = Plan::make(module);
  const Values first = make_inputs();
  Value expected;
  manual_seed(1);
  const std::string refused = error_of([&] { expected = Interpreter(module.graph(), &module.as_owner()).run(first); });
  for (int call = 0; call < 2; ++call) {
    const Values given = make_inputs();
    Value found;
    manual_seed(1);
    const std::string refused_too = error_of([&] { found = plan->run(given); });
    if (refused != refused_too) return "the interpreter says: " + refused + "\nthe plan says: " + refused_too;
    if (refused.empty())
      if (std::string what = difference(tuple({expected, tuple(first)}), tuple({found, tuple(given)})); !what.empty())
        return what;
  }
  return {};
}

TEST(PlanSweep, every_operator_gives_what_the_interpreter_gives) {
  const opcheck::CaseFile file(test::source_folder() + "/tests/op/golden/cases.jsonl");
  size_t tried = 0;
  std::string failures;
  for (size_t i = 0; i < file.size(); ++i) {
    const Operator* op = find_operator(file.operator_at(i));
    const nlohmann::json& entry = file.at(i);
    if (!op || entry.dump().find("complex32") != std::string::npos) continue;
    const std::string name = op->schema().name;
    if (name.find("empty") != std::string::npos || name.starts_with("resize") || name.find("new_empty") != std::string::npos)
      continue;  // memory that nobody wrote
    Graph graph;
    std::vector<size_t> tensors;
    const auto leaves = [&] {
      opcheck::Arguments args = opcheck::make_arguments(file, entry, *op, opcheck::Data::real);
      std::vector<std::pair<Value, Value>> keyword;
      for (auto& [key, value] : args.keyword) keyword.emplace_back(key, value);
      return tree_flatten(tuple({tuple(args.positional), dict(std::move(keyword))}));
    };
    try {
      FlatTree flat = leaves();
      for (size_t k = 0; k < flat.leaves.size(); ++k)
        if (flat.leaves[k].is_tensor()) {
          tensors.push_back(k);
          flat.leaves[k] = graph.placeholder("x" + std::to_string(k));
        }
      const Value tree = flat.spec.unflatten(flat.leaves);
      Kwargs kwargs;
      for (const auto& [key, value] : tree.to_items()[1].to_dict().items) kwargs.emplace_back(key.to_string(), value);
      graph.output(graph.call_function(*op, tree.to_items()[0].to_items(), std::move(kwargs)));
      const GraphModule module(Attributes{}, std::move(graph));
      const auto inputs = [&] {
        const FlatTree made = leaves();
        Values out;
        for (const size_t k : tensors) out.push_back(made.leaves[k]);
        return out;
      };
      ++tried;
      if (const std::string what = plan_difference(module, inputs); !what.empty())
        failures += "\n" + std::string(entry.at("id")) + ": " + what;
    } catch (const std::exception& e) {
      failures += "\n" + std::string(entry.at("id")) + ": exception " + e.what();
    }
  }
  EXPECT_EQ(failures.substr(0, 4000), "");
  EXPECT_GT(tried, 2000U);
}

TEST(PlanSweep, random_programs_of_ten_operators_give_what_the_interpreter_gives) {
  const char* asked = std::getenv("CALQUE_RANDOM_PLANS");
  const size_t wanted = asked ? std::strtoull(asked, nullptr, 10) : 300;
  for (uint64_t seed = 1; seed <= wanted; ++seed) {
    const RandomProgram program(seed, 10);
    const TracedGraph traced =
        make_fx_values([&](const Values& in) { return program(in); }, program.inputs(0), {.mode = TracingMode::symbolic});
    for (size_t set = 0; set < RandomProgram::size_sets; ++set)
      ASSERT_EQ(plan_difference(*traced.module, [&] { return program.inputs(set); }), "")
          << "seed " << seed << ", sizes " << set << "\n"
          << traced.graph().str();
  }
}

}  // namespace
}  // namespace calque::plan_sweep_test
