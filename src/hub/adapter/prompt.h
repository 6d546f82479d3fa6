// Prompt and prefix tuning: learned positions before a text, as embeddings or as keys and values. The encoders are the model's child
// "prompt_encoder"; a hook in front of the model's forward puts what they give into its inputs.
#pragma once

#include <string>

#include "calque/hub/adapters.h"

namespace calque::adapter {

// The configuration with what follows from the model.
// `saved`: what the file of one that is loaded holds, whose sizes count before memory is asked for; null for a new one.
AdapterConfig add_prompt(PretrainedModel& model, AdapterConfig config, const std::string& name, const Tensor* saved);
void delete_prompt(PretrainedModel& model, const std::string& name);
void set_active_prompt(PretrainedModel& model, const std::vector<std::string>& names, bool trains);
void enable_prompt(PretrainedModel& model, bool enabled);
std::string active_prompt(const PretrainedModel& model);  // "" for none
Tensor prompt_to_save(PretrainedModel& model, const std::string& name);
void load_prompt(PretrainedModel& model, const std::string& name, const Tensor* saved, const std::string& where);

// Everything of an adapter, its book entry too.
void forget(PretrainedModel& model, const std::string& name);

}  // namespace calque::adapter
