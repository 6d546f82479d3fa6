#include "calque/hub/peft_model.h"

#include "calque/base/error.h"
#include "calque/nn/signature.h"

namespace calque {
namespace {

// PEFT's LoraModel and IA3Model: what holds the layers, and hands calls on.
struct Tuner final : Module {
  Tuner(std::string type, std::shared_ptr<Module> model) : type(std::move(type)) {
    register_module("model", std::move(model));
  }
  std::string type_name() const override { return type; }
  std::vector<std::string> argument_names() const override { return module_slots()[0]->module->argument_names(); }
  ForwardSignature forward_signature() const override { return module_slots()[0]->module->forward_signature(); }
  Value forward_values(const Values& args, const Kwargs& kwargs) override {
    return nn_detail::reach(*module_slots()[0]).call(args, kwargs);
  }
  std::string type;

 private:
  Tuner(const Tuner&) = default;
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new Tuner(*this)); }
};

const AdapterConfig& first_config(const PretrainedModel& model) {
  if (!model.adapters)
    throw UserError("PeftModel: " + model.class_name() + " has no adapter; add_adapter or load_adapter gives it one");
  return model.adapters->configs.front().second;
}

std::shared_ptr<Module> in_tuner(std::shared_ptr<PretrainedModel> model) {
  const AdapterConfig& config = first_config(*model);
  if (config.is_prompt_learning()) return model;
  const char* type =
      config.type() == AdapterType::lora ? "peft.tuners.lora.model.LoraModel" : "peft.tuners.ia3.model.IA3Model";
  return std::make_shared<Tuner>(type, std::move(model));
}

}  // namespace

PeftModel::PeftModel(std::shared_ptr<PretrainedModel> model) : PretrainedModel(model->config()) {
  adapters = model->adapters;
  register_module("base_model", in_tuner(std::move(model)));
}

PretrainedModel& PeftModel::get_base_model() const {
  Module* base = module_slots()[0]->module.get();
  if (auto* model = dynamic_cast<PretrainedModel*>(base)) return *model;
  return dynamic_cast<PretrainedModel&>(*base->module_slots()[0]->module);
}

std::string PeftModel::type_name() const {
  const std::string task = first_config(get_base_model()).text("task_type");
  const char* name = task == "CAUSAL_LM"            ? "PeftModelForCausalLM"
                     : task == "SEQ_2_SEQ_LM"       ? "PeftModelForSeq2SeqLM"
                     : task == "SEQ_CLS"            ? "PeftModelForSequenceClassification"
                     : task == "TOKEN_CLS"          ? "PeftModelForTokenClassification"
                     : task == "QUESTION_ANS"       ? "PeftModelForQuestionAnswering"
                     : task == "FEATURE_EXTRACTION" ? "PeftModelForFeatureExtraction"
                                                    : "PeftModel";
  return std::string("peft.peft_model.") + name;
}

ModelOutput PeftModel::forward(const ModelInputs& inputs) {
  if (PretrainedModel& model = get_base_model(); !model.is_watched() && !is_watched()) return model.forward(inputs);
  return ModelOutput::from_value(nn_detail::reach(*module_slots()[0]).call({}, inputs.to_kwargs(arguments())));
}

const PretrainedModel& without_peft(const PretrainedModel& model) {
  const auto* wrapper = dynamic_cast<const PeftModel*>(&model);
  return wrapper ? wrapper->get_base_model() : model;
}

}  // namespace calque
