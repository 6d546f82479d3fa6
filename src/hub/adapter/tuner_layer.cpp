#include "hub/adapter/tuner_layer.h"

#include <algorithm>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/nn/linear.h"

namespace calque::adapter {

Tensor transposed_if(const Tensor& weight, bool fan_in_fan_out) { return fan_in_fan_out ? weight.t() : weight; }

void set_values(const Tensor& parameter, const Tensor& values) {
  const GradModeScope no_grad(false);
  parameter.detach().copy_(values);
}

bool all_finite(const Tensor& values) { return values.isfinite().all().item_as<bool>(); }

bool is_conv1d(const Module& module) { return module.type_name() == "transformers.pytorch_utils.Conv1D"; }

bool is_matrix_layer(const Module& module, bool& fan_in_fan_out) {
  const bool linear = dynamic_cast<const Linear*>(&module);
  if (!linear && !is_conv1d(module)) return false;
  if (fan_in_fan_out == linear) {
    warn(linear
             ? "fan_in_fan_out is set to True but the target module is `torch.nn.Linear`. Setting fan_in_fan_out to False."
             : "fan_in_fan_out is set to False but the target module is `Conv1D`. Setting fan_in_fan_out to True.");
    fan_in_fan_out = !linear;
  }
  return true;
}

Module& reached(const ModuleDict& modules, const std::string& name) {
  for (const auto& slot : modules.module_slots())
    if (slot->name == name) return nn_detail::reach(*slot);
  throw InternalError("the adapter " + name + " has no module in its layer");
}

void set_requires_grad(Module& module, bool value) {
  for (const auto& slot : module.parameter_slots())
    if (slot->tensor.defined() && slot->tensor.is_floating_point()) slot->tensor.set_requires_grad(value);
  for (Module* child : module.children()) set_requires_grad(*child, value);
}

TunerLayer::TunerLayer(std::shared_ptr<Module> base) : base_(child_module<Module>("base_layer", std::move(base))) {}

Module& TunerLayer::innermost() const {
  Module* at = &base_layer();
  while (auto* tuner = dynamic_cast<TunerLayer*>(at)) at = &tuner->base_layer();
  return *at;
}

Value TunerLayer::forward_values(const Values& args, const Kwargs& kwargs) {
  if (!enabled_ && !merged_.empty()) unmerge();
  if (!enabled_ || !merged_.empty()) return nn_detail::reach(*module_slots()[0]).call(args, kwargs);
  return call_adapted(args, kwargs);
}

const Tensor& TunerLayer::input(const Values& args, const Kwargs& kwargs) const {
  if (!args.empty()) return args[0].to_tensor();
  const std::vector<std::string> names = argument_names();
  for (const auto& [name, value] : kwargs)
    if (!names.empty() && name == names[0]) return value.to_tensor();
  nn_detail::missing_argument(*this, 0);
}

bool TunerLayer::has_adapter(const std::string& name) const {
  const std::vector<std::string> all = adapters();
  return std::ranges::find(all, name) != all.end();
}

std::vector<Module*> TunerLayer::containers() const {
  std::vector<Module*> out;
  for (const auto& slot : module_slots())
    if (slot->name != "base_layer" && slot->module) out.push_back(slot->module.get());
  return out;
}

void TunerLayer::requires_grad_of(const std::string& name, bool value) {
  for (const Module* container : containers()) {
    for (const auto& slot : container->module_slots())
      if (slot->name == name && slot->module) adapter::set_requires_grad(*slot->module, value);
    for (const auto& slot : container->parameter_slots())
      if (slot->name == name && slot->tensor.defined()) slot->tensor.set_requires_grad(value);
  }
}

void TunerLayer::set_active(const std::vector<std::string>& names, bool trains) {
  for (const std::string& name : adapters()) requires_grad_of(name, trains && std::ranges::find(names, name) != names.end());
  active_ = names;
}

void TunerLayer::enable(bool enabled) {
  if (enabled)
    set_active(std::vector<std::string>(active_), true);
  else
    for (const std::string& name : adapters()) requires_grad_of(name, false);
  enabled_ = enabled;
}

void TunerLayer::delete_adapter(const std::string& name) {
  for (Module* container : containers()) {
    const bool here = container->find_tensor(name) || container->find_submodule(name);
    if (here) container->delete_attribute(name);
  }
  std::erase(active_, name);
}

void TunerLayer::merge(const std::vector<std::string>& names, bool safe) {
  const GradModeScope no_grad(false);
  for (const std::string& name : names) {
    if (!has_adapter(name) || std::ranges::find(merged_, name) != merged_.end()) continue;
    merge_one(name, safe);
    merged_.push_back(name);
  }
}

void TunerLayer::unmerge() {
  const GradModeScope no_grad(false);
  while (!merged_.empty()) {
    const std::string name = merged_.back();
    merged_.pop_back();
    if (has_adapter(name)) unmerge_one(name);
  }
}

void TunerLayer::check_merged(const Tensor& values, const std::string& adapter) const {
  if (!all_finite(values))
    throw UserError("NaNs detected in the merged weights. The adapter " + adapter +
                    " seems to be broken; the weights are as they were");
}

}  // namespace calque::adapter
