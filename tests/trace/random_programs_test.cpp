// Random programs, eagerly and as graphs: the eager result is the traced graph's, the functionalised graph's and that of
// the graph read back from its text, on sizes other than those traced with. CALQUE_RANDOM_NODES=1000000 goes on until
// that many nodes were made.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "calque/graph/interpreter.h"
#include "calque/graph/text.h"
#include "calque/op/aten/ternary.h"
#include "calque/trace/functional.h"
#include "calque/trace/make_fx.h"
#include "random_programs_support.h"

namespace calque::random_programs_test {
namespace {

std::string difference(const Value& found, const Value& expected) {
  const FlatTree a = tree_flatten(found), b = tree_flatten(expected);
  if (a.leaves.size() != b.leaves.size()) return "another number of results";
  for (size_t i = 0; i < a.leaves.size(); ++i) {
    const Tensor& x = a.leaves[i].to_tensor();
    const Tensor& y = b.leaves[i].to_tensor();
    if (x.dtype() != y.dtype() || str(x.sizes()) != str(y.sizes()))
      return "result " + std::to_string(i) + " is " + std::string(name(x.dtype())) + str(x.sizes()) + ", expected " +
             std::string(name(y.dtype())) + str(y.sizes());
    if (!equal(x, y)) return "result " + std::to_string(i) + ":\n" + x.str() + "\nexpected\n" + y.str();
  }
  return "";
}

std::vector<ProducedGuards::RealInput> real_inputs(const Values& inputs) {
  std::vector<ProducedGuards::RealInput> out;
  for (const Value& v : inputs) {
    const Tensor& t = v.to_tensor();
    out.emplace_back(ProducedGuards::RealTensor{
        {t.sizes().begin(), t.sizes().end()}, {t.strides().begin(), t.strides().end()}, t.storage_offset()});
  }
  return out;
}

struct Counts {
  size_t nodes = 0;
  size_t runs = 0;
  size_t guarded_off = 0;
};

// Runs a graph where its guards let it run, inputs included in what is compared.
void check_graph(const TracedGraph& g, const RandomProgram& program, const char* what, Counts& counts) {
  const ProducedGuards guards = g.guards();
  for (size_t set = 0; set < RandomProgram::size_sets; ++set) {
    const Values eager = program.inputs(set), given = program.inputs(set);
    if (!guards.accepts(real_inputs(given))) {
      ASSERT_NE(set, 0U) << what
                         << ": the guards refuse the sizes that were traced: " << *guards.first_failure(real_inputs(given));
      ++counts.guarded_off;
      continue;
    }
    ++counts.runs;
    const Value expected = tuple({program(eager), tuple(eager)});
    const Value result = g.run(given);
    const Value found = tuple({result, tuple(given)});
    ASSERT_EQ(difference(found, expected), "") << what << ", sizes " << set << "\n" << g.graph().str();
  }
}

void check(uint64_t seed, size_t steps, Counts& counts) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const RandomProgram program(seed, steps);
  const auto function = [&](const Values& in) { return program(in); };
  TracedGraph traced = make_fx_values(function, program.inputs(0), {.mode = TracingMode::symbolic});
  counts.nodes += traced.graph().size();
  check_graph(traced, program, "traced", counts);
  if (testing::Test::HasFatalFailure()) return;

  const TracedGraph functional = make_fx_values(functionalize(function), program.inputs(0), {.mode = TracingMode::symbolic});
  counts.nodes += functional.graph().size();
  for (const Node* n : functional.graph().nodes())
    if (n->op() && (n->op()->has_tag(Tag::in_place) || n->op()->form() == Operator::Form::mutate)) {
      ASSERT_EQ(n->target().str(), "aten.copy_.default") << functional.graph().str();
    }
  check_graph(functional, program, "functionalised", counts);
  if (testing::Test::HasFatalFailure()) return;

  const std::string text = traced.graph().str();
  Graph parsed = parse_graph(text, traced.env);
  std::string why;
  ASSERT_TRUE(same_graph(traced.graph(), parsed, &why)) << why << "\n" << text;
  traced.module->set_graph(std::move(parsed));
  check_graph(traced, program, "read back from text", counts);
}

TEST(RandomPrograms, eager_traced_functionalised_and_parsed_graphs_give_the_same) {
  const char* asked = std::getenv("CALQUE_RANDOM_NODES");
  const size_t wanted = asked ? std::strtoull(asked, nullptr, 10) : 20000;
  Counts counts;
  for (uint64_t seed = 1; counts.nodes < wanted; ++seed) {
    check(seed, 10 + seed % 50, counts);
    if (HasFatalFailure()) return;
  }
  RecordProperty("nodes", static_cast<int>(counts.nodes));
  // Guards on what happened to coincide are few.
  EXPECT_LT(counts.guarded_off * 4, counts.runs) << counts.nodes << " nodes, " << counts.runs << " runs";
}

TEST(RandomPrograms, threads_that_trace_at_once_make_the_graphs_that_one_makes) {
  constexpr size_t threads = 8, each = 12;
  const auto graphs_of = [](size_t thread) {
    std::vector<std::string> out;
    for (size_t i = 0; i < each; ++i) {
      const RandomProgram program(1000 * thread + i, 40);
      const auto function = [&](const Values& in) { return program(in); };
      for (const TracingMode mode : {TracingMode::real, TracingMode::fake, TracingMode::symbolic}) {
        const TracedGraph g = make_fx_values(function, program.inputs(0), {.mode = mode});
        std::string text = g.graph().str();
        if (g.env)
          for (const Guard& guard : g.env->guards()) text += guard.condition.str() + "\n";
        out.push_back(std::move(text));
      }
    }
    return out;
  };
  std::vector<std::vector<std::string>> expected, found(threads);
  for (size_t t = 0; t < threads; ++t) expected.push_back(graphs_of(t));
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) running.emplace_back([&, t] { found[t] = graphs_of(t); });
  for (std::thread& t : running) t.join();
  for (size_t t = 0; t < threads; ++t) EXPECT_EQ(found[t], expected[t]);
}

}  // namespace
}  // namespace calque::random_programs_test
