// peft_peer SCRIPT.json OUT.safetensors: does with adapters what tests/peers/peft.py says: a list of steps on one model. A step with "as" adds
// tensors under that name; an error ends the list and is printed, with the number of its step.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/file/safetensors.h"
#include "calque/generate/model_generate.h"
#include "calque/grad/autograd.h"
#include "calque/hub/adapters.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/save_pretrained.h"
#include "calque/op/make.h"
#include "calque/op/operators.h"
#include "calque/train/trainer.h"

using namespace calque;
using Step = nlohmann::json;

namespace {

ModelInputs inputs_of(const PretrainedModel& model, const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  ModelInputs out;
  for (const ModelArgument& argument : model.arguments())
    if (file.find(std::string(argument.name)))
      out.set(ModelInputs::Item(argument, Value(file.tensor(std::string(argument.name)).clone())));
  return out;
}

class Script {
 public:
  explicit Script(const Step& script) {
    LoadOptions load;
    if (script.contains("dtype")) load.dtype = dtype_option(script.at("dtype").get<std::string>());
    load.model_class = script.value("class", "");
    load.attention = script.value("attention", "");
    model_ = from_pretrained(script.at("model").get<std::string>(), load);
    make_trainable(*model_);
    model_->eval();
  }

  void run(const Step& s) {
    const std::string op = s.at("op"), as = s.value("as", ""), name = s.value("name", "default");
    const auto names = [&] { return s.value("names", std::vector<std::string>{}); };
    PretrainedModel& m = *model_;
    if (op == "load") {
      load_adapter(
          m, s.at("path").get<std::string>(), name,
          {.subfolder = s.value("subfolder", ""), .trains = s.value("trains", false), .wide = s.value("wide", true)});
    } else if (op == "add") {
      manual_seed(s.value("seed", 0));
      add_adapter(m, AdapterConfig::from_json(s.at("config").dump()), name);
    } else if (op == "set") {
      set_adapter(m, names());
    } else if (op == "enable") {
      enable_adapters(m);
    } else if (op == "disable") {
      disable_adapters(m);
    } else if (op == "delete") {
      delete_adapter(m, name);
    } else if (op == "merge") {
      merge_adapters(m, names(), s.value("safe", false));
    } else if (op == "unmerge") {
      unmerge_adapters(m);
    } else if (op == "merge_and_unload") {
      merge_and_unload(m);
    } else if (op == "unload") {
      unload_adapters(m);
    } else if (op == "weighted") {
      add_weighted_adapter(m, names(), s.at("weights").get<std::vector<double>>(), name, s.value("combination", "cat"));
    } else if (op == "save") {
      save_adapter(m, s.at("path").get<std::string>(),
                   {.safe_serialization = s.value("safe", true), .names = names(), .sync = false});
    } else if (op == "save_pretrained") {
      save_pretrained(m, s.at("path").get<std::string>(), {.sync = false});
    } else if (op == "adapter_state") {
      for (const auto& [key, tensor] : adapter_state_dict(m, name)) add(as + "." + key, tensor);
    } else if (op == "state") {
      for (const auto& [key, tensor] : m.state_dict()) add(as + "." + key, tensor);
    } else if (op == "trainable") {
      for (const auto& [key, tensor] : m.named_parameters())
        add(as + "." + key, calque::tensor(std::vector<int64_t>{tensor.requires_grad()}));
    } else if (op == "forward") {
      m.train(s.value("train", false));
      if (s.contains("seed")) manual_seed(s.at("seed"));
      const ModelOutput out = m(inputs_of(m, s.at("inputs")));
      for (const auto& [key, value] : out.items())
        if (value.is_tensor()) add(as + "." + key, value.to_tensor());
    } else if (op == "backward") {
      m.train(s.value("train", true));
      if (s.contains("seed")) manual_seed(s.at("seed"));
      const GradModeScope recording(true);
      const Tensor loss = m(inputs_of(m, s.at("inputs"))).loss();
      backward(loss);
      add(as + ".loss", loss);
      for (const auto& [key, parameter] : m.named_parameters())
        if (const Tensor grad = grad_of(parameter); grad.defined()) add(as + "." + key, grad);
      m.eval();
    } else if (op == "generate") {
      GenerationConfig config;
      config.max_new_tokens = s.at("tokens").get<int64_t>();
      config.do_sample = false;
      config.num_beams = s.value("beams", 1);
      config.eos_token_id.reset();
      config.pad_token_id = 0;
      if (s.contains("start")) config.decoder_start_token_id = s.at("start").get<int64_t>();
      m.eval();
      add(as, generate(m, inputs_of(m, s.at("inputs")), config).sequences);
    } else {
      throw UserError("no step is called " + op);
    }
  }
  NamedTensors out;

 private:
  void add(const std::string& name, const Tensor& tensor) {
    out.emplace_back(name, tensor.detach().clone(MemoryFormat::contiguous));
  }
  std::shared_ptr<PretrainedModel> model_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "peft_peer SCRIPT.json OUT.safetensors\n";
    return 2;
  }
  int64_t at = -1;
  try {
    const GradModeScope recording(true);
    std::ifstream in(argv[1]);
    const Step script = Step::parse(in);
    Script run(script);
    for (const Step& step : script.at("steps")) {
      ++at;
      run.run(step);
      // What is known so far stays, for a script that is to fail at its end.
      if (&step == &script.at("steps").back() || step.value("keep", false)) save_safetensors(argv[2], run.out);
    }
    save_safetensors(argv[2], run.out);
  } catch (const std::exception& e) {
    std::cerr << "step " << at << ": " << e.what() << "\n";
    return 1;
  }
}
