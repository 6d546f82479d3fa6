// What the files of this folder share: the adapter's modules of a model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calque/hub/adapters.h"
#include "hub/adapter/saved_module.h"
#include "hub/adapter/tuner_layer.h"

namespace calque::adapter {

constexpr const char* saved_prefix = "base_model.model.";

template <class M>
std::vector<std::pair<std::string, M*>> modules_of(PretrainedModel& model) {
  std::vector<std::pair<std::string, M*>> out;
  for (const auto& [name, module] : model.named_modules())
    if (auto* found = dynamic_cast<M*>(module)) out.emplace_back(name, found);
  return out;
}
// Without those inside a SavedModule, which answers for them.
std::vector<std::pair<std::string, TunerLayer*>> tuner_layers(PretrainedModel& model);

// Tensors of a file that is being loaded, by the names that they have there; null where there is none.
using FindTensor = std::function<const Tensor*(const std::string& saved_name)>;
void inject(PretrainedModel& model, AdapterConfig config, const std::string& name, const AdapterOptions& options,
            const FindTensor& loaded);

// Names in the adapter's file and in the model's state.
std::vector<std::pair<std::string, std::string>> state_names(PretrainedModel& model, const std::string& adapter);

void set_book(PretrainedModel& model, AdapterBook book);
AdapterBook book_of(const PretrainedModel& model);
void check_adapter(const PretrainedModel& model, const std::string& name);  // UserError for one that there is not
// Parameters that lie in a mapped file become copies in memory; tied ones stay one.
void make_writable(PretrainedModel& model, const std::vector<Tensor>& parameters);
std::shared_ptr<Module> module_at(PretrainedModel& model, const std::string& path);

}  // namespace calque::adapter
