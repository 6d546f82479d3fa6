// Gradients of small models while they are trained, beside transformers' (tests/zoo/golden/*/gradients.safetensors, made by
// tools/golden/zoo_gradients.py): in float64, with dropout from the same seed, and with checkpointed layers.
#include <gtest/gtest.h>

#include <filesystem>

#include "calque/file/safetensors.h"
#include "calque/grad/autograd.h"
#include "calque/hub/from_pretrained.h"
#include "calque/tensor/default_dtype.h"
#include "calque/tensor/generator.h"
#include "calque/train/trainer.h"
#include "support/paths.h"
#include "support/wide_mode.h"

namespace calque::zoo_gradients_test {
namespace {

std::vector<std::string> architectures() {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(test::source_folder()) / "tests/zoo/golden"))
    if (std::filesystem::exists(entry.path() / "gradients.safetensors")) out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

class GoldenGradients : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Zoo, GoldenGradients, testing::ValuesIn(architectures()), [](const auto& arch) {
  std::string name = arch.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

double norm_of(const Tensor& t) { return t.norm().item<double>(); }

void expect_gradients(const std::string& arch, std::optional<CheckpointingOptions> checkpointing) {
  const std::filesystem::path folder = std::filesystem::path(test::source_folder()) / "tests/zoo/golden" / arch;
  const SafetensorsFile file = SafetensorsFile::open((folder / "gradients.safetensors").string());
  const GradModeScope recording(true);
  test::WideMode wide;
  const ModeScope scope(wide);
  const DefaultDTypeScope default_dtype(DType::float64);
  const std::shared_ptr<PretrainedModel> model = from_pretrained(folder.string());
  make_trainable(*model);
  model->to(DType::float64);
  if (checkpointing && model->supports_gradient_checkpointing()) model->gradient_checkpointing_enable(*checkpointing);
  ModelInputs inputs;
  for (const ModelArgument& argument : model->arguments()) {
    const std::string name = "in/" + std::string(argument.name);
    if (!file.find(name)) continue;
    const Tensor t = file.tensor(name).clone();
    inputs.set({argument, t.dtype() == DType::bool_ && t.dim() == 0 ? Value(t.item<bool>()) : Value(t)});
  }
  manual_seed(7);
  const Tensor loss = (*model)(inputs).loss();
  EXPECT_NEAR(loss.item<double>(), file.tensor("out/loss").item<double>(), 1e-10);
  backward(loss);
  double all = 0;
  size_t expected = 0;
  for (const std::string& name : file.names())
    if (name.starts_with("out/") && name != "out/loss") {
      all += std::pow(norm_of(file.tensor(name)), 2);
      ++expected;
    }
  size_t found = 0;
  for (const auto& [name, parameter] : model->named_parameters()) {
    const Tensor gradient = grad_of(parameter);
    if (!gradient.defined()) continue;
    ++found;
    const Tensor there = file.tensor("out/" + name).clone();
    EXPECT_LE(norm_of(gradient - there), 1e-10 * std::max(norm_of(there), std::sqrt(all) / 1000)) << name;
  }
  EXPECT_EQ(found, expected);
}

TEST_P(GoldenGradients, are_those_of_transformers) { expect_gradients(GetParam(), std::nullopt); }
TEST_P(GoldenGradients, are_the_same_with_checkpointed_layers) { expect_gradients(GetParam(), CheckpointingOptions{}); }
TEST_P(GoldenGradients, are_the_same_with_a_pass_inside_of_the_pass) {
  expect_gradients(GetParam(), CheckpointingOptions{.use_reentrant = true});
}

}  // namespace
}  // namespace calque::zoo_gradients_test
