// Puts a model where a device map says, with hooks that bring offloaded weights.
#include <algorithm>
#include <set>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/hub/offload.h"
#include "calque/op/aten/empty.h"

namespace calque {

namespace fs = std::filesystem;

namespace {

Tensor on_meta(const Tensor& tensor) {
  const GradModeScope no_grad(false);
  return empty_like(tensor, std::nullopt, std::nullopt, Device(DeviceType::meta));
}

struct Slot {
  Module* module;
  std::string tensor;  // in the module
  std::string name;    // in the model
};

void put(const Slot& slot, const Tensor& tensor) { slot.module->set_tensor(slot.tensor, tensor); }

// Before a module runs its weights are brought, after it (also when it failed) they are let go.
void attach_hooks(Module& module, std::vector<Slot> slots, const std::shared_ptr<const OffloadedWeights>& weights) {
  std::vector<Tensor> away;
  for (const Slot& slot : slots) away.push_back(*slot.module->find_tensor(slot.tensor));
  module.register_forward_pre_hook([slots, weights](Module&, const Values&, const Kwargs&) -> std::optional<Module::Call> {
    for (const Slot& slot : slots) put(slot, weights->load(slot.name));
    return std::nullopt;
  });
  module.register_forward_hook(
      [slots, away](Module&, const Values&, const Kwargs&, const Value&) -> std::optional<Value> {
        for (size_t i = 0; i < slots.size(); ++i) put(slots[i], away[i]);
        return std::nullopt;
      },
      false, true);
}

}  // namespace

void dispatch_model(PretrainedModel& model, const DeviceMap& map, const DispatchOptions& options) {
  check_device_map(model, map);
  std::vector<std::string> accelerated, disk;
  for (const auto& [name, device] : map) {
    if (device.is_accelerator()) accelerated.push_back((name.empty() ? "the model" : name) + " on " + device.str());
    if (device == MapDevice("disk")) disk.push_back(name.empty() ? "the model" : name);
  }
  if (!accelerated.empty())
    throw UserError("dispatch_model: the device map puts " + join(accelerated, ", ") +
                    ", and Calque has no accelerator here; limit max_memory to 'cpu' and 'disk', or give a map over these");
  if (!disk.empty() && disk.size() == map.size())
    throw UserError(
        "dispatch_model: the whole model is on disk; leave at least a part of it on the cpu, or load it without a device "
        "map (weights stay mapped)");
  check_tied_parameters_on_same_device(find_tied_parameters(model), map);
  if (disk.empty()) {
    model.dispatched = std::make_shared<Dispatched>(Dispatched{map, nullptr});
    return;
  }

  // Which tensors of which modules are for the disk.
  std::vector<std::pair<Module*, std::vector<Slot>>> modules;
  std::set<std::string> on_disk_already;
  for (const auto& [name, entry] : options.offload_index) on_disk_already.insert(name);
  std::vector<Slot> all;
  for (const auto& [path, module] : model.named_modules()) {
    const std::string prefix = path.empty() ? "" : path + ".";
    std::vector<Slot> slots;
    const auto collect = [&, module = module](const auto& tensor_slots) {
      for (const auto& slot : tensor_slots)
        if (slot->tensor.defined() && device_of(prefix + slot->name, map) == MapDevice("disk"))
          slots.push_back({module, slot->name, prefix + slot->name});
    };
    collect(module->parameter_slots());
    if (options.offload_buffers) collect(module->buffer_slots());
    all.insert(all.end(), slots.begin(), slots.end());
    if (!slots.empty()) modules.emplace_back(module, std::move(slots));
  }

  // Where they will be found: in the files that the index names, in mapped memory, or written now.
  StateDict mapped;
  OffloadIndex index = options.offload_index;
  std::vector<Slot> to_write;
  for (const Slot& slot : all) {
    if (on_disk_already.count(slot.name)) continue;
    const Tensor tensor = *slot.module->find_tensor(slot.tensor);
    const bool backed = tensor.storage()->is_borrowed() && tensor.storage()->is_read_only();
    if (backed && options.offload_folder.empty())
      mapped.set(slot.name, tensor.detach());
    else
      to_write.push_back(slot);
  }
  if (!to_write.empty()) {
    if (options.offload_folder.empty())
      throw UserError("dispatch_model: an offload_folder is needed for this device map; these modules are for the disk: " +
                      join(disk, ", "));
    fs::create_directories(options.offload_folder);
    OffloadIndex written;
    for (const Slot& slot : to_write)
      written.emplace_back(slot.name,
                           offload_weight(*slot.module->find_tensor(slot.tensor), slot.name, options.offload_folder));
    save_offload_index(written, options.offload_folder);
    index.insert(index.end(), written.begin(), written.end());
  }
  const auto weights = std::make_shared<const OffloadedWeights>(std::move(mapped), options.offload_folder, std::move(index));
  for (const Slot& slot : all) put(slot, on_meta(*slot.module->find_tensor(slot.tensor)));

  // A module that reaches into its children brings all that is below it.
  std::set<const Module*> covered;
  for (const auto& [path, module] : model.named_modules()) {
    const std::vector<std::string>& preload = options.preload_module_classes;
    if (covered.count(module) || std::find(preload.begin(), preload.end(), module->class_name()) == preload.end()) continue;
    std::vector<Slot> below;
    const std::vector<Module*> inside = module->modules();
    for (const auto& [owner, slots] : modules)
      if (std::find(inside.begin(), inside.end(), owner) != inside.end()) {
        below.insert(below.end(), slots.begin(), slots.end());
        covered.insert(owner);
      }
    if (!below.empty()) attach_hooks(*module, std::move(below), weights);
  }
  for (auto& [module, slots] : modules)
    if (!covered.count(module)) attach_hooks(*module, std::move(slots), weights);
  model.dispatched = std::make_shared<Dispatched>(Dispatched{map, weights});
}

StateDict full_state_dict(PretrainedModel& model) {
  StateDict state = model.state_dict();
  if (!model.dispatched || !model.dispatched->weights) return state;
  StateDict out;
  out.versions = state.versions;
  for (const auto& [name, tensor] : state) {
    const bool away = tensor.device().type == DeviceType::meta && model.dispatched->weights->contains(name);
    out.set(name, away ? model.dispatched->weights->load(name) : tensor);
  }
  return out;
}

LoadedModel load_dispatched(const fs::path& name_or_path, const LoadOptions& load, const DispatchOptions& options) {
  if (options.low_cpu_mem_usage && !*options.low_cpu_mem_usage)
    throw UserError(
        "load_dispatched: a device map requires low_cpu_mem_usage=true; weights are mapped, not loaded and then moved");
  LoadedModel out = load_pretrained(name_or_path, load);
  PretrainedModel& model = *out.model;
  const DeviceMap map = options.map ? *options.map : resolve_device_map(model, options.device_map, options.max_memory);
  const bool disk = std::any_of(map.begin(), map.end(), [](const auto& item) { return item.second == MapDevice("disk"); });
  if (disk && options.offload_folder.empty()) {
    const bool is_file = fs::is_regular_file(name_or_path);
    const CheckpointFiles files =
        is_file ? checkpoint_at(name_or_path)
                : find_checkpoint(
                      ModelFiles(name_or_path.string(),
                                 {.revision = load.revision, .subfolder = load.subfolder, .cache_dir = load.cache_dir}),
                      {.use_safetensors = load.use_safetensors, .variant = load.variant});
    for (const fs::path& file : files.files)
      if (file.extension() != ".safetensors")
        throw UserError("load_dispatched: the device map has modules on disk, and " + file.string() +
                        " is no safetensors file, whose weights could stay in it; give an offload_folder");
  }
  dispatch_model(model, map, options);
  return out;
}

}  // namespace calque
