// The classes of models that there are, by name and by (architecture, task). The files of zoo/ fill the registry, each with
// its own architectures; there is no other list of them.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/hub/config.h"
#include "calque/hub/config_schema.h"

namespace calque {

class PretrainedModel;
struct Architecture;

struct ModelClass {
  std::string name;                // "BertForMaskedLM"
  std::vector<std::string> tasks;  // "masked-lm", ...; "special" for a class that is found by name alone
  std::function<std::shared_ptr<PretrainedModel>(const Config&)> make;
  const Architecture* architecture = nullptr;  // the one that has the class; the registry sets it
};

struct Architecture {
  std::string model_type;                                          // "bert"
  std::string config_class;                                        // "BertConfig"
  std::vector<std::pair<std::string, std::string>> attribute_map;  // other name, name in the file
  std::string defaults;                        // JSON: what the configuration class has without arguments
  ConfigSchema schema = {};                    // what its numbers may be, beside what holds for all
  std::function<void(Config&)> complete = {};  // values that follow from others, which the schema has checked
  std::string note = {};                       // what who looks for a model should know: "is usually shipped quantised"
  std::vector<ModelClass> classes;
};

class ModelRegistry {
 public:
  // UserError when a model type or class name is taken. Users may add their own.
  void add(Architecture architecture);
  const Architecture* find(std::string_view model_type) const;      // null when absent
  const ModelClass* find_class(std::string_view class_name) const;  // null when absent
  const ModelClass* find_task(std::string_view model_type, std::string_view task) const;
  const std::vector<std::unique_ptr<Architecture>>& architectures() const { return architectures_; }

 private:
  std::vector<std::unique_ptr<Architecture>> architectures_;
};

// All of zoo/, and what users added. Adding while another thread looks up is the caller's to prevent.
ModelRegistry& model_registry();

// What a constructor cannot do, being in the middle of it: heads that the config says are pruned go.
std::shared_ptr<PretrainedModel> finished_model(std::shared_ptr<PretrainedModel> model);

// A class entry for a model class that is made from a Config alone.
ModelClass model_class(std::string_view name, std::initializer_list<std::string_view> tasks,
                       std::unique_ptr<PretrainedModel> (*make)(const Config&));
template <class M>
ModelClass model_class(std::string_view name, std::initializer_list<std::string_view> tasks) {
  return model_class(name, tasks, [](const Config& config) -> std::unique_ptr<PretrainedModel> {
    return std::unique_ptr<PretrainedModel>(new M(config));
  });
}

}  // namespace calque
