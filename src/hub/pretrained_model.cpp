#include "calque/hub/pretrained_model.h"

#include <algorithm>
#include <span>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/hub/adapters.h"
#include "calque/hub/tie_weights.h"
#include "calque/nn/convolution.h"
#include "calque/nn/init.h"
#include "calque/nn/normalization.h"
#include "calque/op/operators.h"
#include "hub/weight_init.h"

namespace calque {

PretrainedModel::PretrainedModel(Config config) : config_(std::move(config)) {
  if (config_.flag("is_encoder_decoder") && config_.flag("tie_encoder_decoder"))
    warn(
        "The configuration sets `tie_encoder_decoder`, which transformers 5 no longer follows, and neither does Calque: "
        "encoder "
        "and decoder have weights of their own. tie_encoder_decoder_weights(encoder, decoder, \"encoder\") makes them one.");
  // Configurations of old said it; it is a setting of a training run, and is not written again.
  if (!config_.has("gradient_checkpointing")) return;
  checkpoints_layers_ = config_.flag("gradient_checkpointing");  // switched on when there are layers (finished_model)
  config_.erase("gradient_checkpointing");
}

ModelOutput PretrainedModel::operator()(const ModelInputs& inputs) {
  return call_typed(inputs.fit(arguments()) ? inputs : inputs.fitted(arguments(), class_name()));
}

ModelOutput PretrainedModel::call_typed(const ModelInputs& inputs) {
  if (!is_watched()) return forward(inputs);
  return ModelOutput::from_value(call({}, inputs.to_kwargs(arguments())));
}

std::vector<std::string> PretrainedModel::argument_names() const {
  std::vector<std::string> out;
  for (const ModelArgument& argument : arguments()) out.emplace_back(argument.name);
  return out;
}

Value PretrainedModel::forward_values(const Values& args, const Kwargs& kwargs) {
  const std::span<const ModelArgument> all = arguments();
  std::vector<const Value*> places(all.size());
  bind_arguments(args, kwargs, places);
  ModelInputs inputs;
  for (size_t i = 0; i < all.size(); ++i)
    if (places[i]) inputs.set({all[i], *places[i]});
  return forward(inputs).to_value();
}

PretrainedModel& PretrainedModel::base_model() {
  const std::string prefix = base_model_prefix();
  Module* found = prefix.empty() ? nullptr : find_submodule(prefix);
  auto* model = dynamic_cast<PretrainedModel*>(found);
  return model ? *model : *this;
}

void PretrainedModel::init_weights(Module& module) {
  const double range =
      config_.optional_number("initializer_range").value_or(config_.optional_number("init_std").value_or(0.02));
  if (auto* linear = dynamic_cast<Linear*>(&module)) {
    init::normal_(linear->weight, 0, range);
    if (linear->bias.defined()) init::zeros_(linear->bias);
  } else if (auto* convolution = dynamic_cast<ConvBase*>(&module)) {
    init::normal_(convolution->weight, 0, range);
    if (convolution->bias.defined()) init::zeros_(convolution->bias);
  } else if (auto* embedding = dynamic_cast<Embedding*>(&module)) {
    init::normal_(embedding->weight, 0, range);
    if (embedding->options.padding_idx) {
      const Tensor row = (*embedding->weight).select(0, *embedding->options.padding_idx);
      init::zeros_(row);
    }
  } else if (auto* norm = dynamic_cast<LayerNorm*>(&module)) {
    if (norm->weight.defined()) init::ones_(norm->weight);
    if (norm->bias.defined()) init::zeros_(norm->bias);
  } else if (auto* batch_norm = dynamic_cast<RunningNorm*>(&module)) {
    batch_norm->reset_parameters();
  }
}

void init_modules(PretrainedModel& owner, Module& module, const std::function<bool(const Module&)>& wanted) {
  const GradModeScope no_grad(false);
  for (Module* child : module.children()) {
    if (!wanted(*child)) continue;
    auto* inner = dynamic_cast<PretrainedModel*>(child);
    init_modules(inner ? *inner : owner, *child, wanted);
  }
  owner.init_weights(module);
}

void PretrainedModel::init_all_weights() {
  init_modules(*this, *this, [](const Module&) { return true; });
  tie_weights();
}

void PretrainedModel::add_model_tags(const std::vector<std::string>& tags) {
  for (const std::string& tag : tags)
    if (std::find(model_tags.begin(), model_tags.end(), tag) == model_tags.end()) model_tags.push_back(tag);
}

void PretrainedModel::tie_weights() {
  const GradModeScope no_grad(false);
  for (const auto& [name, source] : tied_weights()) {
    Tensor shared = get_parameter(source);
    if (config_.flag("torchscript")) {  // which cannot share parameters
      const bool trains = shared.requires_grad();
      shared = shared.detach().clone();
      shared.set_requires_grad(trains);
    }
    set_tensor(name, shared);
    if (!name.ends_with(".weight")) continue;
    auto* head = dynamic_cast<Linear*>(find_submodule(name.substr(0, name.size() - 7)));
    if (head) adjust_to_weight(*head);
  }
}

}  // namespace calque
