// Runs cases of layers, initialisations and functions that tools/golden/nn_cases.py wrote: builds them from PyTorch's
// argument names, calls them in training and evaluation, and gives back what PyTorch's answers are compared with.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "calque/file/safetensors.h"
#include "calque/nn/module.h"

namespace calque {

// UserError for a layer or argument that is not known here.
std::shared_ptr<Module> make_layer(const std::string& name, const nlohmann::json& args, const SafetensorsFile& inputs);

struct LayerResult {
  std::string repr;
  std::string type_name;
  std::vector<std::string> state_names;
  NamedTensors tensors;  // "<id>/state/<name>", "<id>/train/0", "<id>/after/<name>" (if changed), "<id>/eval/0"
  std::string error;     // set instead of the rest when the case threw
};

LayerResult run_layer_case(const nlohmann::json& layer_case, const SafetensorsFile& inputs);

}  // namespace calque
