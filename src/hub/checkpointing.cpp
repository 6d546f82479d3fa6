#include "calque/hub/checkpointing.h"

#include <algorithm>
#include <array>
#include <set>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/grad/checkpoint.h"
#include "calque/hub/pretrained_model.h"

namespace calque {

Value hub_detail::checkpointed(Module& module, const GradientCheckpointingLayer& layer,
                               Value (*forward)(Module&, const Values&, const Kwargs&), const Values& args,
                               const Kwargs& kwargs) {
  if (!layer.gradient_checkpointing || !module.training()) return forward(module, args, kwargs);
  // Computed again when the model may be gone.
  const std::shared_ptr<Module> owner = module.weak_from_this().lock();
  std::vector<std::string> names;
  Values all = args;
  for (const auto& [name, value] : kwargs) {
    names.push_back(name);
    all.push_back(value);
  }
  const auto function = [owner, &module, forward, names, count = args.size()](const Value& inputs) {
    const Values& values = inputs.to_items();
    Kwargs named;
    for (size_t i = 0; i < names.size(); ++i) named.emplace_back(names[i], values[count + i]);
    return forward(module, Values(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count)), named);
  };
  return checkpoint_values(function, tuple(std::move(all)), *layer.gradient_checkpointing);
}

namespace {

// A layer that is computed twice would add to its cache twice: it gets none.
std::optional<Module::Call> without_cache(Module& module, const Values& args, const Kwargs& kwargs) {
  const auto* layer = dynamic_cast<const GradientCheckpointingLayer*>(&module);
  if (!layer || !layer->gradient_checkpointing || !module.training()) return std::nullopt;
  static constexpr std::array cache_names = {"past_key_values", "layer_past", "past"};
  const auto is_cache = [](const std::string& name) {
    return std::find(cache_names.begin(), cache_names.end(), name) != cache_names.end();
  };
  Module::Call call{args, kwargs};
  bool found = false;
  const auto take = [&](const std::string& name, Value& value) {
    if (!is_cache(name) || value.is_none()) return;
    value = Value();
    found = true;
    warn("Caching is incompatible with gradient checkpointing in " + module.class_name() + ". Setting `" + name + "=None`.");
  };
  const std::vector<std::string> names = module.argument_names();
  for (size_t i = 0; i < call.args.size() && i < names.size(); ++i) take(names[i], call.args[i]);
  for (auto& [name, value] : call.kwargs) take(name, value);
  return found ? std::optional(std::move(call)) : std::nullopt;
}

}  // namespace

void PretrainedModel::gradient_checkpointing_enable(const CheckpointingOptions& options, int64_t every_n_layers) {
  if (!supports_gradient_checkpointing()) throw UserError(class_name() + " does not support gradient checkpointing.");
  if (every_n_layers < 1)
    throw UserError("gradient_checkpointing_enable: every_n_layers is " + std::to_string(every_n_layers) +
                    ", expected at least 1");
  std::vector<std::pair<Module*, GradientCheckpointingLayer*>> layers;
  for (Module* module : modules())
    if (auto* layer = dynamic_cast<GradientCheckpointingLayer*>(module); layer && layer->can_checkpoint())
      layers.emplace_back(module, layer);
  if (layers.empty())
    throw UserError(class_name() +
                    " is not compatible with gradient checkpointing: none of its modules is a layer that can be "
                    "checkpointed. Derive the class of its layers from Checkpointed (calque/hub/checkpointing.h)");
  int64_t number = 0;
  for (const auto& [module, layer] : layers) {
    layer->gradient_checkpointing = number++ % every_n_layers == 0 ? std::optional(options) : std::nullopt;
    if (!std::exchange(layer->is_prepared, true)) module->register_forward_pre_hook(without_cache);
  }
  for (Module* module : modules())
    if (auto* model = dynamic_cast<PretrainedModel*>(module)) model->checkpoints_layers_ = true;
  if (main_input_name() == "input_ids" || adapters) enable_input_require_grads();
}

void PretrainedModel::gradient_checkpointing_disable() {
  for (Module* module : modules()) {
    if (auto* layer = dynamic_cast<GradientCheckpointingLayer*>(module)) layer->gradient_checkpointing.reset();
    if (auto* model = dynamic_cast<PretrainedModel*>(module)) model->checkpoints_layers_ = false;
  }
  disable_input_require_grads();
}

bool PretrainedModel::is_gradient_checkpointing() {
  const std::vector<Module*> all = modules();
  return std::any_of(all.begin(), all.end(), [](Module* module) {
    const auto* layer = dynamic_cast<const GradientCheckpointingLayer*>(module);
    return layer && layer->gradient_checkpointing;
  });
}

void PretrainedModel::enable_input_require_grads() {
  disable_input_require_grads();
  std::set<Module*> seen;
  for (Module* module : modules()) {
    auto* model = dynamic_cast<PretrainedModel*>(module);
    Child<Embedding>* embedding = model ? model->input_embeddings() : nullptr;
    if (!embedding || !*embedding || !seen.insert(embedding->module()).second) continue;
    input_hooks_.handles.push_back(embedding->module()->register_forward_hook(
        [](Module&, const Values&, const Kwargs&, const Value& result) -> std::optional<Value> {
          if (records_gradients()) result.to_tensor().set_requires_grad();
          return std::nullopt;
        }));
  }
  if (seen.empty())
    warn(class_name() +
         " does not expose input embeddings: where nothing in front of a checkpointed layer is trained, no gradient goes "
         "back "
         "through it");
}

void PretrainedModel::disable_input_require_grads() {
  for (HookHandle& handle : input_hooks_.handles) handle.remove();
  input_hooks_.handles.clear();
}

bool PretrainedModel::wants_cache(const ModelInputs& inputs) const {
  const std::optional<bool> asked = inputs[arg::use_cache];
  const bool wanted = asked.value_or(config_.flag("use_cache"));
  if (!wanted || !checkpoints_layers_ || !training()) return wanted;
  if (asked) warn("`use_cache=True` is incompatible with gradient checkpointing. Setting `use_cache=False`.");
  return false;
}

}  // namespace calque
