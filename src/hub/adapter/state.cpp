// An adapter's tensors by name, and which adapters of a model count.
#include <algorithm>
#include <map>
#include <set>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/hub/resize.h"
#include "hub/adapter/inject.h"
#include "hub/adapter/lora_layer.h"
#include "hub/adapter/prompt.h"

namespace calque {
namespace adapter {

void check_adapter(const PretrainedModel& model, const std::string& name) {
  const std::vector<std::string> names = adapter_names(model);
  if (names.empty()) throw UserError("No adapter loaded. Please load an adapter first.");
  if (std::ranges::find(names, name) == names.end())
    throw UserError("Adapter with name " + name + " not found. Please pass the correct adapter name among " +
                    join(names, ", "));
}

void make_writable(PretrainedModel& model, const std::vector<Tensor>& parameters) {
  std::set<const TensorImpl*> wanted;
  for (const Tensor& t : parameters)
    if (t.storage()->is_borrowed()) wanted.insert(&t.impl());
  if (wanted.empty()) return;
  std::map<const TensorImpl*, Tensor> copies;
  model.convert_tensors([&](const Tensor& t) {
    if (!wanted.contains(&t.impl()) || !t.storage()->is_borrowed()) return t;
    Tensor& copy = copies[&t.impl()];
    if (!copy.defined()) copy = t.detach().clone();
    return copy;
  });
}

namespace {

// "lora_A.default.weight" is "lora_A.weight" in a file, and so "lora_embedding_A.default" is "lora_embedding_A". The lengths of
// DoRA were a parameter before they were a module.
void add_container(std::vector<std::pair<std::string, std::string>>& out, const std::string& path, const ModuleSlot& slot,
                   const std::string& adapter) {
  const std::string at = path + "." + slot.name;
  if (slot.module->find_tensor(adapter)) out.emplace_back(at, at + "." + adapter);
  if (Module* module = slot.module->find_submodule(adapter))
    for (const auto& [name, tensor] : module->state_dict())
      out.emplace_back(slot.name == "lora_magnitude_vector" ? at : at + "." + name, at + "." + adapter + "." + name);
}

// The table or head itself, where it is targeted: PEFT saves it then.
void add_embeddings(PretrainedModel& model, const AdapterConfig& config, const StateDict& state,
                    std::vector<std::pair<std::string, std::string>>& out) {
  if (config.is_prompt_learning()) return;
  const AdapterConfig::Names targets = config.names("target_modules");
  bool targeted = false;
  for (const char* name : {"embed_tokens", "lm_head"})
    targeted = targeted || std::ranges::find(targets.list, name) != targets.list.end();
  if (targets.pattern)
    for (const auto& [path, layer] : tuner_layers(model))
      for (const char* name : {"embed_tokens", "lm_head"})
        targeted = targeted || path == name || path.ends_with("." + std::string(name));
  if (!targeted || (config.type() == AdapterType::lora && config.has("trainable_token_indices"))) return;
  for (const auto& [path, layer] : tuner_layers(model)) {
    const Module& base = layer->base_layer();
    const bool table = &base == &get_input_embeddings(model), head = &base == get_output_embeddings(model);
    if (!table && !head) continue;
    for (const auto& [name, tensor] : state)
      if (name.starts_with(path + ".base_layer.")) out.emplace_back(name, name);
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> state_names(PretrainedModel& model, const std::string& adapter) {
  const AdapterConfig& config = adapter_config(model, adapter);
  std::vector<std::pair<std::string, std::string>> out;
  const StateDict state = model.state_dict();
  for (const auto& [path, layer] : tuner_layers(model))
    for (const auto& slot : layer->module_slots())
      if (slot->name != "base_layer" && slot->module) add_container(out, path, *slot, adapter);
  const std::string bias = config.type() == AdapterType::lora ? config.text("bias") : "none";
  if (bias == "all") {
    std::set<std::string> there;
    for (const auto& [saved, own] : out) there.insert(own);
    const std::string part = "." + adapter + ".";
    for (const auto& [name, tensor] : state)
      if ((name == "bias" || name.ends_with(".bias")) && !there.contains(name)) out.emplace_back(name, name);
  } else if (bias == "lora_only") {
    for (const auto& [path, layer] : tuner_layers(model))
      if (const std::string name = path + ".base_layer.bias"; state.contains(name)) out.emplace_back(name, name);
  }
  for (const auto& [path, saved] : modules_of<SavedModule>(model))
    for (const auto& [in_file, own] : saved->state_names(adapter)) out.emplace_back(path + "." + in_file, path + "." + own);
  add_embeddings(model, config, state, out);
  return out;
}

}  // namespace adapter

using adapter::check_adapter;
using adapter::modules_of;
using adapter::SavedModule;
using adapter::TunerLayer;

StateDict adapter_state_dict(PretrainedModel& model, const std::string& name) {
  check_adapter(model, name);
  const StateDict state = model.state_dict();
  StateDict out;
  if (adapter_config(model, name).is_prompt_learning()) out.set("prompt_embeddings", adapter::prompt_to_save(model, name));
  for (const auto& [saved, own] : adapter::state_names(model, name)) out.set(saved, state.at(own));
  return out;
}

std::vector<std::string> adapter_names(const PretrainedModel& model) {
  std::vector<std::string> out;
  for (const auto& [name, config] : adapter::book_of(model).configs) out.push_back(name);
  return out;
}

const AdapterConfig& adapter_config(const PretrainedModel& model, const std::string& name) {
  check_adapter(model, name);
  return std::ranges::find_if(model.adapters->configs, [&](const auto& one) { return one.first == name; })->second;
}

std::vector<std::string> active_adapters(PretrainedModel& model) {
  if (!model.adapters) throw UserError("No adapter loaded. Please load an adapter first.");
  std::vector<std::string> out;
  for (const auto& [path, layer] : modules_of<TunerLayer>(model))
    for (const std::string& name : layer->active())
      if (std::ranges::find(out, name) == out.end()) out.push_back(name);
  if (const std::string prompt = adapter::active_prompt(model); !prompt.empty()) out.push_back(prompt);
  return out;
}

void set_adapter(PretrainedModel& model, const std::vector<std::string>& names, bool trains) {
  for (const std::string& name : names) check_adapter(model, name);
  if (!model.adapters) throw UserError("No adapter loaded. Please load an adapter first.");
  for (const auto& [path, layer] : adapter::tuner_layers(model)) {
    if (!layer->merged().empty()) {
      warn("Adapter cannot be set when the model is merged. Unmerging the model first.");
      unmerge_adapters(model);
    }
    break;
  }
  for (const auto& [path, layer] : adapter::tuner_layers(model)) layer->set_active(names, trains);
  for (const auto& [path, saved] : modules_of<SavedModule>(model)) saved->set_active(names, trains);
  adapter::set_active_prompt(model, names, trains);
}

static void enable_all(PretrainedModel& model, bool enabled) {
  if (!model.adapters) throw UserError("No adapter loaded. Please load an adapter first.");
  for (const auto& [path, layer] : adapter::tuner_layers(model)) layer->enable(enabled);
  for (const auto& [path, saved] : modules_of<SavedModule>(model)) saved->enable(enabled);
  adapter::enable_prompt(model, enabled);
}
void enable_adapters(PretrainedModel& model) { enable_all(model, true); }
void disable_adapters(PretrainedModel& model) { enable_all(model, false); }

// Modules without adapters give way to what they stand before.
static void drop_empty_layers(PretrainedModel& model) {
  for (bool found = true; found;) {
    found = false;
    for (const auto& [path, layer] : adapter::tuner_layers(model))
      if (layer->adapters().empty()) {
        model.set_submodule(path, layer->base_layer_ptr());
        found = true;
        break;
      }
    for (const auto& [path, saved] : modules_of<SavedModule>(model))
      if (saved->adapters().empty()) {
        model.set_submodule(path, saved->unloaded(false, {}, false));
        found = true;
        break;
      }
  }
}

namespace adapter {

void forget(PretrainedModel& model, const std::string& name) {
  for (const auto& [path, layer] : tuner_layers(model))
    if (layer->has_adapter(name)) layer->delete_adapter(name);
  for (const auto& [path, saved] : modules_of<SavedModule>(model)) saved->delete_adapter(name);
  delete_prompt(model, name);
  AdapterBook book = book_of(model);
  std::erase_if(book.configs, [&](const auto& one) { return one.first == name; });
  set_book(model, std::move(book));
  drop_empty_layers(model);
}

}  // namespace adapter

void delete_adapter(PretrainedModel& model, const std::string& name) {
  check_adapter(model, name);
  for (const auto& [path, layer] : adapter::tuner_layers(model))
    if (std::ranges::find(layer->merged(), name) != layer->merged().end())
      throw UserError("the adapter " + name + " is merged into the weights; unmerge it before it is deleted");
  adapter::forget(model, name);
}

// ---- merging ------------------------------------------------------------------------------------------------------------

static void check_mergeable(PretrainedModel& model) {
  for (const auto& [name, config] : adapter::book_of(model).configs)
    if (config.is_prompt_learning())
      throw UserError("the adapter " + name + " is a prompt, which cannot be merged into weights");
}

void merge_adapters(PretrainedModel& model, const std::vector<std::string>& names, bool safe) {
  check_mergeable(model);
  const std::vector<std::string> wanted = names.empty() ? active_adapters(model) : names;
  for (const std::string& name : wanted) check_adapter(model, name);
  std::vector<Tensor> written;
  for (const auto& [path, layer] : modules_of<TunerLayer>(model))
    for (const auto& slot : layer->innermost().parameter_slots())
      if (slot->tensor.defined()) written.push_back(slot->tensor);
  adapter::make_writable(model, written);
  for (const auto& [path, layer] : adapter::tuner_layers(model)) layer->merge(wanted, safe);
  for (const auto& [path, saved] : modules_of<SavedModule>(model)) saved->merge(wanted, safe);
}

void unmerge_adapters(PretrainedModel& model) {
  for (const auto& [path, layer] : adapter::tuner_layers(model)) layer->unmerge();
  for (const auto& [path, saved] : modules_of<SavedModule>(model)) saved->unmerge();
}

static void unload(PretrainedModel& model, bool merge, bool safe) {
  if (!model.adapters) throw UserError("No adapter loaded. Please load an adapter first.");
  if (merge) check_mergeable(model);
  const std::vector<std::string> names = active_adapters(model);
  if (merge) merge_adapters(model, names, safe);
  for (const auto& [path, saved] : modules_of<SavedModule>(model))
    model.set_submodule(path, saved->unloaded(merge, names, safe));
  for (auto layers = adapter::tuner_layers(model); !layers.empty(); layers = adapter::tuner_layers(model))
    model.set_submodule(layers[0].first, layers[0].second->base_layer_ptr());
  for (const std::string& name : adapter_names(model)) adapter::delete_prompt(model, name);
  adapter::set_book(model, {});
}

void merge_and_unload(PretrainedModel& model, bool safe) { unload(model, true, safe); }
void unload_adapters(PretrainedModel& model) { unload(model, false, false); }

}  // namespace calque
