// PeftModel: PEFT's wrapper of a model with adapters, PeftModelForCausalLM, PeftModelForSeq2SeqLM and their like: the model is
// "base_model.model" (of a model with a prompt "base_model"), so that names of modules, of states and of the nodes of traces are those
// that PEFT's users know. It calls the model that it wraps, whose adapters are changed as ever.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "calque/hub/adapters.h"

namespace calque {

class PeftModel final : public PretrainedModel {
 public:
  // UserError for a model without adapters.
  explicit PeftModel(std::shared_ptr<PretrainedModel> model);

  PretrainedModel& get_base_model() const;
  std::string type_name() const override;  // by the adapters' task
  std::span<const ModelArgument> arguments() const override { return get_base_model().arguments(); }
  ModelOutput forward(const ModelInputs& inputs) override;

  std::string main_input_name() const override { return get_base_model().main_input_name(); }
  std::vector<std::string> dummy_input_names() const override { return get_base_model().dummy_input_names(); }
  ModelInputs example_inputs(const ExampleSizes& sizes = {}) const override {
    return get_base_model().example_inputs(sizes);
  }
  bool is_encoder_decoder() const override { return get_base_model().is_encoder_decoder(); }
  bool can_generate() const override { return get_base_model().can_generate(); }
  Child<Embedding>* input_embeddings() override { return get_base_model().input_embeddings(); }
  Child<Linear>* output_embeddings() override { return get_base_model().output_embeddings(); }

 private:
  PeftModel(const PeftModel&) = default;
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new PeftModel(*this)); }
};

// The model inside a PeftModel; any other is itself.
const PretrainedModel& without_peft(const PretrainedModel& model);

}  // namespace calque
