// calque forward MODEL: one forward pass of a model folder, tensors in and out as safetensors files. Inputs are named as the
// forward's arguments, nested ones by path (past_key_values.0.1); an argument that is no tensor (use_cache) is one of no
// dimensions. Outputs are named as transformers' output fields.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "calque/hub/from_pretrained.h"
#include "cli/command.h"
#include "cli/table.h"

namespace calque::cli {
namespace {

// Paths below one name into tuples.
Value nested(const std::vector<std::pair<std::string, Tensor>>& leaves) {
  if (leaves.size() == 1 && leaves[0].first.empty()) return leaves[0].second;
  std::map<size_t, std::vector<std::pair<std::string, Tensor>>> parts;
  for (const auto& [path, tensor] : leaves) {
    const size_t dot = std::min(path.find('.'), path.size());
    parts[static_cast<size_t>(std::stoul(path.substr(0, dot)))].emplace_back(dot < path.size() ? path.substr(dot + 1) : "", tensor);
  }
  Values items;
  for (const auto& [index, part] : parts)
    items.push_back(nested(part));
  return tuple(std::move(items));
}

void flatten(const std::string& name, const Value& value, NamedTensors& out) {
  if (value.is_tensor())
    out.emplace_back(name, value.to_tensor().contiguous());
  else if (value.kind() == Value::Kind::tuple || value.kind() == Value::Kind::list)
    for (size_t i = 0; i < value.to_items().size(); ++i)
      flatten(name + "." + std::to_string(i), value.to_items()[i], out);
}

ModelInputs read_inputs(const std::string& path, const PretrainedModel& model) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const std::vector<std::string> arguments = model.argument_names();
  std::map<std::string, std::vector<std::pair<std::string, Tensor>>> by_name;
  for (const std::string& full : file.names()) {
    const size_t dot = std::min(full.find('.'), full.size());
    const std::string name = full.substr(0, dot);
    if (std::find(arguments.begin(), arguments.end(), name) == arguments.end()) {
      std::string known;
      for (const std::string& one : arguments)
        known += (known.empty() ? "" : ", ") + one;
      throw UserError(fmt::format("forward: {} holds '{}', which {} does not take; it takes {}", path, full, model.class_name(), known));
    }
    by_name[name].emplace_back(dot < full.size() ? full.substr(dot + 1) : "", file.tensor(full).clone());
  }
  ModelInputs inputs;
  for (const auto& [name, leaves] : by_name) {
    const Value value = nested(leaves);
    const bool scalar = value.is_tensor() && value.to_tensor().dim() == 0;
    if (scalar && value.to_tensor().dtype() == DType::bool_)
      inputs.set(name, value.to_tensor().item_as<bool>());
    else if (scalar && name == "logits_to_keep")
      inputs.set(name, value.to_tensor().item_as<int64_t>());
    else
      inputs.set(name, value);
  }
  return inputs;
}

}  // namespace

void run_forward(const ForwardOptions& options) {
  LoadOptions load;
  load.model_class = options.model_class;
  load.attention = options.attention;
  const std::shared_ptr<PretrainedModel> model = from_pretrained(options.model, load);
  if (options.train) model->train();
  const GradModeScope no_grad(false);
  const ModelOutput result = (*model)(read_inputs(options.inputs, *model));
  NamedTensors out;
  for (const auto& [name, value] : result.items())
    flatten(name, value, out);
  Table table({{"output"}, {"dtype"}, {"shape"}});
  for (const auto& [name, tensor] : out)
    table.add({printable(name), std::string(calque::name(tensor.dtype())), str(tensor.sizes())});
  if (!options.outputs.empty()) save_safetensors(options.outputs, out);
  fmt::print("{}", table.str());
}

}  // namespace calque::cli
