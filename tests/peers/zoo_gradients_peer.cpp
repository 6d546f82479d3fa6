// zoo_gradients_peer JOBS: gradients of model folders, for tests/peers/zoo_gradients.py. JOBS is a JSON array; each job has model, class,
// dtype, attention, train, seed, wide (what asks for float32 gets float64), checkpointing (none, reentrant, plain), inputs and outputs
// (safetensors). OUTPUTS gets "loss" and each parameter's gradient by name. A job that fails says so on its line of the output; others
// print "ok" and the classes of the modules that are checkpointed.
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "calque/grad/autograd.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/from_pretrained.h"
#include "calque/tensor/default_dtype.h"
#include "calque/tensor/generator.h"
#include "calque/train/trainer.h"
#include "support/wide_mode.h"

using namespace calque;
using Nlohmann = nlohmann::json;

namespace {

ModelInputs inputs_of(const PretrainedModel& model, const SafetensorsFile& file) {
  ModelInputs out;
  for (const ModelArgument& argument : model.arguments()) {
    if (!file.find(std::string(argument.name))) continue;
    const Tensor t = file.tensor(std::string(argument.name)).clone();
    const bool is_flag = t.dim() == 0 && t.dtype() == DType::bool_;
    out.set(ModelInputs::Item(argument, is_flag ? Value(t.item<bool>()) : Value(t)));
  }
  return out;
}

// The classes of the modules that are checkpointed, in order.
std::string switched_on(PretrainedModel& model, const std::string& form) {
  if (form == "none") return "";
  model.gradient_checkpointing_enable({.use_reentrant = form == "reentrant"});
  std::string out;
  for (Module* module : model.modules())
    if (const auto* layer = dynamic_cast<GradientCheckpointingLayer*>(module); layer && layer->gradient_checkpointing)
      out += " " + module->class_name();
  return out;
}

std::string one(const Nlohmann& job) {
  test::WideMode wide;
  std::optional<ModeScope> scope;  // tables of positions are made while loading: in float64 too
  std::optional<DefaultDTypeScope> default_dtype;
  if (job.at("wide").get<bool>()) {
    scope.emplace(wide);
    default_dtype.emplace(DType::float64);
  }
  LoadOptions load;
  load.model_class = job.at("class");
  load.attention = job.at("attention");
  const std::shared_ptr<PretrainedModel> model = from_pretrained(job.at("model").get<std::string>(), load);
  make_trainable(*model);
  model->train(job.at("train").get<bool>()).to(dtype_option(job.at("dtype").get<std::string>()));
  const SafetensorsFile file = SafetensorsFile::open(job.at("inputs").get<std::string>());
  const ModelInputs inputs = inputs_of(*model, file);
  const std::string checkpointed = switched_on(*model, job.at("checkpointing"));
  manual_seed(job.at("seed").get<uint64_t>());
  const ModelOutput result = (*model)(inputs);
  if (!result.has("loss")) throw UserError("no loss");
  if (checkpointed.empty()) scope.reset();
  backward(result.loss());
  scope.reset();
  NamedTensors out{{"loss", result.loss().detach()}};
  for (const auto& [name, parameter] : model->named_parameters())
    if (const Tensor grad = grad_of(parameter); grad.defined()) out.emplace_back(name, grad.contiguous());
  save_safetensors(job.at("outputs").get<std::string>(), out);
  return checkpointed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "zoo_gradients_peer JOBS\n";
    return 2;
  }
  const GradModeScope recording(true);
  for (const Nlohmann& job : Nlohmann::parse(argv[1])) {
    try {
      std::cout << "ok" + one(job) + "\n";
    } catch (const std::exception& e) {
      std::string text = e.what();
      for (char& c : text)
        if (c == '\n') c = ' ';
      std::cout << text << "\n";
    }
  }
}
