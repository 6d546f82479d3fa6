// calque forward MODEL: one forward pass of a model folder, tensors in and out as safetensors files. Outputs are named as
// transformers' output fields.
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "calque/hub/adapters.h"
#include "calque/hub/pretrained_model.h"
#include "calque/op/tensor.h"
#include "calque/task/text_inputs.h"
#include "cli/command.h"
#include "cli/models.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/tensor_file.h"

namespace calque::cli {
namespace {

void flatten(const std::string& name, const Value& value, NamedTensors& out) {
  if (value.is_tensor())
    out.emplace_back(name, value.to_tensor().contiguous());
  else if (value.kind() == Value::Kind::tuple || value.kind() == Value::Kind::list)
    for (size_t i = 0; i < value.to_items().size(); ++i) flatten(name + "." + std::to_string(i), value.to_items()[i], out);
  else if (value.kind() == Value::Kind::dict)  // an output inside an output: text_model_output.last_hidden_state
    for (const auto& [key, item] : value.to_dict().items) flatten(name + "." + key.to_string(), item, out);
}

ModelInputs tokenized(const ForwardOptions& options, const PretrainedModel& model) {
  const Tokenizer tokenizer = Tokenizer::from_file(tokenizer_folder(model_folder(options.model)));
  const std::vector<TextInput> texts(options.prompts.begin(), options.prompts.end());
  TextInputOptions cut_nothing;
  cut_nothing.truncate = false;
  return text_inputs(model, tokenizer, texts, cut_nothing).inputs;
}

// Numbers in nested arrays; numbers that JSON lacks as the texts "nan", "inf" and "-inf".
nlohmann::ordered_json json_values(const Tensor& tensor) {
  using Json = nlohmann::ordered_json;
  if (tensor.dim() > 0) {
    Json out = Json::array();
    for (int64_t i = 0; i < tensor.size(0); ++i) out.push_back(json_values(tensor.select(0, i)));
    return out;
  }
  if (tensor.dtype() == DType::bool_) return tensor.item_as<bool>();
  if (is_integral(tensor.dtype())) return tensor.item_as<int64_t>();
  if (is_complex(tensor.dtype())) return tensor.str();
  const double value = tensor.item_as<double>();
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return value;
}

void print_outputs(const ForwardOptions& options, const NamedTensors& out) {
  // What one looks at; more is a file's to hold.
  constexpr int64_t most_values = 100'000;
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::object();
    for (const auto& [name, tensor] : out) {
      all[name] = {{"dtype", calque::name(tensor.dtype())},
                   {"shape", std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end())}};
      if (tensor.numel() <= most_values) all[name]["values"] = json_values(tensor);
    }
    return fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }
  Table table({{"output"}, {"dtype"}, {"shape"}});
  for (const auto& [name, tensor] : out)
    table.add({printable(name), std::string(calque::name(tensor.dtype())), str(tensor.sizes())});
  fmt::print("{}", table.str());
  for (const auto& [name, tensor] : out) fmt::print("\n{} =\n{}\n", printable(name), tensor.str());
}

}  // namespace

void run_forward(const ForwardOptions& options) {
  if (options.inputs.empty() == options.prompts.empty()) throw UserError("forward: give --inputs or --prompt, and not both");
  const std::shared_ptr<PretrainedModel> model =
      load_model({options.model, options.model_class, options.dtype, options.attention});
  if (options.train) model->train();
  if (!options.prompts.empty()) without_cache(*model);
  const GradModeScope no_grad(false);
  const ModelInputs inputs =
      options.prompts.empty() ? read_model_inputs("forward", options.inputs, *model) : tokenized(options, *model);
  NamedTensors in, out;
  for (const auto& [name, value] : inputs.to_kwargs(model->arguments())) flatten(name, value, in);
  if (!options.save_inputs.empty()) save_tensors(options.save_inputs, in);
  const ModelOutput result = (*model)(inputs);
  for (const auto& [name, value] : result.items()) flatten(name, value, out);
  if (!options.outputs.empty()) save_tensors(options.outputs, out);
  if (!is_quiet() || options.outputs.empty() || options.json) print_outputs(options, out);
}

}  // namespace calque::cli
