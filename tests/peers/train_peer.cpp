// train_peer MODEL INPUTS SETTINGS OUT: trains a model folder on given batches, for tests/peers/train.py. INPUTS holds NAME.N, the
// forward's arguments of batch N; SETTINGS is JSON: dtype, steps, batches, lr, weight_decay, warmup, max_grad_norm, optimizer. OUT
// gets "losses", "norms", the model's parameters as p.NAME and the optimizer's states as state.NAME.KEY.
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "calque/grad/autograd.h"
#include "calque/hub/from_pretrained.h"
#include "calque/op/make.h"
#include "calque/train/clip_grad.h"
#include "calque/train/trainer.h"
#include "support/wide_mode.h"

using namespace calque;
using Nlohmann = nlohmann::json;

namespace {

std::unique_ptr<Optimizer> optimizer_of(const Nlohmann& c, const PretrainedModel& model) {
  const std::string name = c.at("optimizer");
  const double lr = c.at("lr"), decay = c.at("weight_decay");
  ParamGroups groups(model.named_parameters());
  if (name == "SGD") return std::make_unique<SGD>(groups, SGDOptions{.lr = lr, .momentum = 0.9, .weight_decay = decay});
  if (name == "Adafactor")
    return std::make_unique<TransformersAdafactor>(
        groups, TransformersAdafactorOptions{.lr = lr, .scale_parameter = false, .relative_step = false});
  return std::make_unique<AdamW>(groups, AdamWOptions{.lr = lr, .weight_decay = decay});
}

ModelInputs batch_of(const PretrainedModel& model, const SafetensorsFile& file, const std::string& n) {
  ModelInputs out;
  for (const ModelArgument& argument : model.arguments())
    if (const std::string key = std::string(argument.name) + "." + n; file.find(key))
      out.set(ModelInputs::Item(argument, Value(file.tensor(key).clone())));
  return out;
}

void train(char** argv) {
  const Nlohmann c = Nlohmann::parse(argv[3]);
  LoadOptions load;
  load.dtype = dtype_option(c.at("dtype").get<std::string>());
  const std::shared_ptr<PretrainedModel> model = from_pretrained(argv[1], load);
  make_trainable(*model);
  const SafetensorsFile file = SafetensorsFile::open(argv[2]);
  const int64_t steps = c.at("steps"), batches = c.at("batches");
  const std::unique_ptr<Optimizer> optimizer = optimizer_of(c, *model);
  const std::unique_ptr<LRScheduler> schedule = get_scheduler("linear", *optimizer, c.at("warmup"), steps);
  std::vector<double> losses, norms;
  for (int64_t i = 0; i < steps; ++i) {
    Tensor loss;
    {
      test::WideMode wide;
      std::optional<ModeScope> scope;
      if (c.at("dtype") == "float64") scope.emplace(wide);
      loss = (*model)(batch_of(*model, file, std::to_string(i % batches))).loss();
    }
    backward(loss);
    norms.push_back(clip_grad_norm_(model->parameters(), c.at("max_grad_norm")).item<double>());
    optimizer->step();
    schedule->step();
    optimizer->zero_grad();
    losses.push_back(loss.item<double>());
  }
  NamedTensors out{{"losses", tensor(losses)}, {"norms", tensor(norms)}};
  for (const auto& [name, parameter] : model->named_parameters()) {
    out.emplace_back("p." + name, parameter.detach().clone(MemoryFormat::contiguous));
    for (const auto& [key, value] : optimizer->state(parameter).items())
      if (value.is_tensor())
        out.emplace_back("state." + name + "." + key, value.to_tensor().clone(MemoryFormat::contiguous));
  }
  save_safetensors(argv[4], out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "train_peer MODEL INPUTS SETTINGS OUT\n";
    return 2;
  }
  try {
    train(argv);
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
