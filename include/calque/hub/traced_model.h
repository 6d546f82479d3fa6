// TracedModel: a graph that knows which model it was made of, so that it can be saved, restored and traced again.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "calque/graph/graph_module.h"
#include "calque/hub/config.h"

namespace calque {

class TracedModel : public GraphModule {
 public:
  // What the graph refers to is taken from `root`; its device is the first parameter's.
  TracedModel(const Module& root, Graph graph, Config config, std::string model_class);

  Config config;
  std::string class_for_deserialization;  // "BertForMaskedLM"
  Device device;

 protected:
  TracedModel(const TracedModel& other) = default;
  std::shared_ptr<Module> copy_self() const override;
};

// The package that to_folder writes (graph/to_folder.h), which PyTorch runs, and beside it the graph as text and the
// configuration, of which Calque restores it.
void save_traced_model(const TracedModel& traced, const std::filesystem::path& folder,
                       const std::string& class_name = "FxModule");
// UserError names a file that is missing, or a tensor or module of the graph that the folder does not say how to make.
std::shared_ptr<TracedModel> load_traced_model(const std::filesystem::path& folder);

}  // namespace calque
