#include "calque/hub/registry.h"

#include "calque/base/error.h"
#include "calque/hub/pretrained_model.h"

namespace calque {

// Made by CMake from the names of the files in src/zoo.
void register_zoo(ModelRegistry& registry);

// The one door to every model class: nothing is made of a configuration that its schema refuses, and errors say which one.
static std::function<std::shared_ptr<PretrainedModel>(const Config&)> checked(
    std::function<std::shared_ptr<PretrainedModel>(const Config&)> make) {
  return [make = std::move(make)](const Config& config) {
    config.check_values();
    return config.naming_errors([&] { return make(config); });
  };
}

void ModelRegistry::add(Architecture architecture) {
  if (find(architecture.model_type)) throw UserError("model type \"" + architecture.model_type + "\" is registered already");
  for (ModelClass& one : architecture.classes) {
    if (find_class(one.name)) throw UserError("model class " + one.name + " is registered already");
    one.make = checked(std::move(one.make));
  }
  const auto& added = architectures_.emplace_back(std::make_unique<Architecture>(std::move(architecture)));
  for (ModelClass& one : added->classes) one.architecture = added.get();
}

const Architecture* ModelRegistry::find(std::string_view model_type) const {
  for (const auto& architecture : architectures_)
    if (architecture->model_type == model_type) return architecture.get();
  return nullptr;
}

const ModelClass* ModelRegistry::find_class(std::string_view class_name) const {
  for (const auto& architecture : architectures_)
    for (const ModelClass& one : architecture->classes)
      if (one.name == class_name) return &one;
  return nullptr;
}

const ModelClass* ModelRegistry::find_task(std::string_view model_type, std::string_view task) const {
  if (const Architecture* architecture = find(model_type))
    for (const ModelClass& one : architecture->classes)
      for (const std::string& name : one.tasks)
        if (name == task) return &one;
  return nullptr;
}

ModelClass model_class(std::string_view name, std::initializer_list<std::string_view> tasks,
                       std::unique_ptr<PretrainedModel> (*make)(const Config&)) {
  return {std::string(name), {tasks.begin(), tasks.end()}, [make](const Config& config) {
            return finished_model(make(config));
          }};
}

ModelRegistry& model_registry() {
  static ModelRegistry* registry = [] {
    auto* made = new ModelRegistry;
    register_zoo(*made);
    return made;
  }();
  return *registry;
}

}  // namespace calque
