// Models of twenty architectures, as PyTorch exported them: their plans against the interpreter, at two sizes, twice, and from
// eight threads at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "calque/base/thread.h"
#include "calque/export/executor.h"
#include "calque/export/pt2.h"
#include "calque/file/safetensors.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/operators.h"
#include "calque/run/plan.h"
#include "export/pt2_support.h"

namespace calque::zoo_plans_test {
namespace {

namespace fs = std::filesystem;
using namespace pt2_test;

std::vector<std::string> programs() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(golden("zoo")))
    if (entry.path().extension() == ".pt2") out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

Values inputs_of(const ExportedProgram& program, const std::string& name) {
  const SafetensorsFile in = SafetensorsFile::open(golden("zoo/" + name + ".in"));
  Values inputs;
  for (const InputSpec& spec : program.graph_signature().input_specs)
    if (spec.kind == InputKind::user_input)
      inputs.push_back(spec.arg.kind == ArgumentKind::constant ? spec.arg.value : Value(in.tensor(spec.arg.name).clone()));
  return inputs;
}

class InterpreterScope {
 public:
  InterpreterScope() : before_(executor_factory()) { set_executor_factory(nullptr); }
  ~InterpreterScope() { set_executor_factory(before_); }
  InterpreterScope(const InterpreterScope&) = delete;
  InterpreterScope& operator=(const InterpreterScope&) = delete;

 private:
  ExecutorFactory before_;
};

// Kinds, sizes, strides, dtypes; values to the last bit, or up to rounding.
std::string difference(const Values& a, const Values& b, bool exact) {
  if (a.size() != b.size()) return "other numbers of results";
  for (size_t i = 0; i < a.size(); ++i) {
    const std::string which = "result " + std::to_string(i) + ": ";
    if (a[i].kind() != b[i].kind()) return which + "another kind";
    if (!a[i].is_tensor()) {
      if (!a[i].equals(b[i])) return which + a[i].str() + " and " + b[i].str();
      continue;
    }
    const Tensor &x = a[i].to_tensor(), &y = b[i].to_tensor();
    if (x.dtype() != y.dtype() || x.sizes() != y.sizes() || x.strides() != y.strides()) return which + "other geometry";
    if (x.requires_grad() != y.requires_grad()) return which + "another need of gradients";
    if (exact ? !equal(x, y) : !allclose(x, y, 1e-4, 1e-5, true)) return which + "other values";
  }
  return {};
}

TEST(ZooPlans, give_what_the_interpreter_gives_twice_and_at_two_sizes) {
  for (const std::string& name : programs()) {
    const auto program = load_program(golden("zoo/" + name + ".pt2"));
    PlanOptions exact;
    exact.exact = true;
    const auto plan = Plan::make(*program), exact_plan = Plan::make(*program, exact);
    for (const char* size : {".0", ".1", ".0"}) {
      const Values inputs = inputs_of(*program, name + size);
      const InterpreterScope interpreter;
      const Values expected = program->run_flat(inputs);
      EXPECT_EQ(difference(plan->call(inputs), expected, false), "") << name << size;
      EXPECT_EQ(difference(exact_plan->call(inputs), expected, true), "") << name << size << ", exact";
    }
  }
}

TEST(ZooPlans, give_the_same_bits_to_eight_threads) {
  // With one thread a call, whose sums are always added in the same order.
  const int threads_before = num_threads();
  set_num_threads(1);
  const NoGradGuard no_grad;  // attention with a mask that wants a gradient takes another way
  for (const std::string name : {"GPT2LMHeadModel", "T5ForConditionalGeneration", "HubertForCTC"}) {
    const auto program = load_program(golden("zoo/" + name + ".pt2"));
    const auto plan = Plan::make(*program);
    std::vector<Values> inputs, expected;
    for (const char* size : {".0", ".1"}) {
      inputs.push_back(inputs_of(*program, name + std::string(size)));
      expected.push_back(plan->call(inputs.back()));
    }
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        const NoGradGuard no_grad;
        for (size_t i = t; i < t + 4; ++i) {
          const Values given = plan->call(inputs[i % 2]);
          bool same = given.size() == expected[i % 2].size();
          for (size_t k = 0; same && k < given.size(); ++k)
            same = !given[k].is_tensor() || equal(given[k].to_tensor(), expected[i % 2][k].to_tensor());
          right += same;
        }
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(right, 32) << name;
  }
  set_num_threads(threads_before);
}

}  // namespace
}  // namespace calque::zoo_plans_test
