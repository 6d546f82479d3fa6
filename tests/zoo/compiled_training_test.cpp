// A training step of every architecture, compiled: losses and gradients are those of eager code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "calque/compile/compile.h"
#include "calque/grad/autograd.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/registry.h"
#include "calque/op/operators.h"
#include "calque/op/tree.h"
#include "calque/tensor/generator.h"
#include "support/paths.h"

namespace calque::compiled_training_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> architectures() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(fs::path(test::source_folder()) / "tests/zoo/golden"))
    out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

// The mean of every result that wants a gradient.
Tensor loss_of(const Value& results) {
  Tensor loss;
  for (const Value& v : tree_leaves(results)) {
    if (!v.is_tensor() || !v.to_tensor().defined() || !v.to_tensor().requires_grad()) continue;
    const Tensor one = v.to_tensor().square().mean();
    loss = loss.defined() ? loss + one : one;
  }
  return loss;
}

struct Step {
  double loss;
  TensorVector gradients;
  bool is_compiled = false;
};

bool leads_to_compiled(const Ref<GradNode>& node, int depth) {
  if (!node || depth == 0) return false;
  if (node->name() == "CompiledFunctionBackward") return true;
  return std::any_of(node->next.begin(), node->next.end(),
                     [&](const GradEdge& e) { return leads_to_compiled(e.node, depth - 1); });
}

Step step(const PretrainedModel& model, const std::function<Value()>& run) {
  manual_seed(5);
  const Tensor loss = loss_of(run());
  Step out{loss.detach().item<double>(), {}, false};
  const Tensor last = loss;
  out.is_compiled = leads_to_compiled(grad_fn(last), 40);
  TensorVector wanted;
  for (const auto& [name, parameter] : model.named_parameters())
    if (parameter.requires_grad()) wanted.push_back(parameter);
  out.gradients = grad({loss}, wanted, {.allow_unused = true});
  return out;
}

double norm_of(const TensorVector& gradients) {
  double out = 0;
  for (const Tensor& g : gradients)
    if (g.defined()) out += g.detach().square().sum().item<double>();
  return std::sqrt(out);
}

// BLOOM's activation has a gradient of its own, which a graph does not keep. MobileBERT's backward pass asks whether two symbolic
// sizes are equal.
bool runs_eagerly(const std::string& name) { return name == "bloom" || name == "mobilebert"; }

class CompiledTraining : public testing::TestWithParam<std::string> {};

TEST_P(CompiledTraining, gradients_are_those_of_eager_code) {
  const auto model = from_pretrained(fs::path(test::source_folder()) / "tests/zoo/golden" / GetParam());
  model->eval();
  const Compiled compiled = compile(model);
  for (const ExampleSizes& sizes : {ExampleSizes{}, ExampleSizes{3, 9, 6, 3}, ExampleSizes{4, 8, 7, 3}}) {
    const Kwargs inputs = model->example_inputs(sizes).to_kwargs(model->arguments());
    const Step eager = step(*model, [&] { return model->call({}, inputs); });
    const Step fast = step(*model, [&] { return compiled.call({}, inputs); });
    EXPECT_TRUE(fast.is_compiled || runs_eagerly(GetParam()));
    EXPECT_NEAR(fast.loss, eager.loss, 1e-5 * std::max(1.0, std::abs(eager.loss)));
    const double whole = norm_of(eager.gradients);
    auto parameters = model->named_parameters();
    std::erase_if(parameters, [](const auto& p) { return !p.second.requires_grad(); });
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Tensor &a = fast.gradients[i], &b = eager.gradients[i];
      ASSERT_EQ(a.defined(), b.defined()) << parameters[i].first;
      if (!a.defined()) continue;
      const double own = norm_of({b});
      EXPECT_LE(norm_of({a - b}), 1e-5 * std::max(own, 1e-3 * whole))
          << parameters[i].first << ": " << own << " of " << whole;
    }
  }
  EXPECT_LE(compiled.cache_size(), 3u);
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string out = info.param;
  for (char& c : out)
    if (c == '-' || c == '.') c = '_';
  return out;
}
INSTANTIATE_TEST_SUITE_P(Zoo, CompiledTraining, testing::ValuesIn(architectures()), name_of);

}  // namespace
}  // namespace calque::compiled_training_test
