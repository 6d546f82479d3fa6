// calque forward MODEL: one forward pass of a model folder, tensors in and out as safetensors files. Outputs are named as
// transformers' output fields.
#include <fmt/format.h>

#include "calque/file/safetensors.h"
#include "calque/hub/pretrained_model.h"
#include "cli/command.h"
#include "cli/models.h"
#include "cli/table.h"

namespace calque::cli {
namespace {

void flatten(const std::string& name, const Value& value, NamedTensors& out) {
  if (value.is_tensor())
    out.emplace_back(name, value.to_tensor().contiguous());
  else if (value.kind() == Value::Kind::tuple || value.kind() == Value::Kind::list)
    for (size_t i = 0; i < value.to_items().size(); ++i)
      flatten(name + "." + std::to_string(i), value.to_items()[i], out);
}

}  // namespace

void run_forward(const ForwardOptions& options) {
  const std::shared_ptr<PretrainedModel> model = load_model({options.model, options.model_class, "", options.attention});
  if (options.train) model->train();
  const GradModeScope no_grad(false);
  const ModelOutput result = (*model)(read_model_inputs("forward", options.inputs, *model));
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
