// calque forward MODEL: one forward pass of a model folder, tensors in and out as safetensors files. Outputs are named as
// transformers' output fields.
#include <algorithm>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "calque/hub/pretrained_model.h"
#include "calque/text/tokenizer.h"
#include "cli/command.h"
#include "cli/models.h"
#include "cli/table.h"

namespace calque::cli {
namespace {

void flatten(const std::string& name, const Value& value, NamedTensors& out) {
  if (value.is_tensor())
    out.emplace_back(name, value.to_tensor().contiguous());
  else if (value.kind() == Value::Kind::tuple || value.kind() == Value::Kind::list)
    for (size_t i = 0; i < value.to_items().size(); ++i) flatten(name + "." + std::to_string(i), value.to_items()[i], out);
}

// Rows of ids as long as the longest, padding on the left.
ModelInputs tokenized(const ForwardOptions& options, const PretrainedModel& model) {
  const Tokenizer tokenizer = Tokenizer::from_file(model_folder(options.model));
  std::vector<std::vector<int64_t>> rows;
  size_t length = 0;
  for (const std::string& prompt : options.prompts) {
    rows.push_back(tokenizer.encode_ids(prompt));
    length = std::max(length, rows.back().size());
  }
  if (length == 0) throw UserError("forward: the prompt has no tokens");
  const int64_t pad = tokenizer.special_token_id("pad").value_or(0);
  std::vector<int64_t> ids, mask;
  for (const std::vector<int64_t>& row : rows) {
    ids.insert(ids.end(), length - row.size(), pad);
    ids.insert(ids.end(), row.begin(), row.end());
    mask.insert(mask.end(), length - row.size(), 0);
    mask.resize(ids.size(), 1);
  }
  const std::vector<int64_t> sizes = {std::ssize(rows), static_cast<int64_t>(length)};
  ModelInputs in;
  in.set(arg::input_ids, tensor_of<int64_t>(ids, sizes));
  if (model.takes(arg::attention_mask)) in.set(arg::attention_mask, tensor_of<int64_t>(mask, sizes));
  return in;
}

}  // namespace

void run_forward(const ForwardOptions& options) {
  if (options.inputs.empty() == options.prompts.empty()) throw UserError("forward: give --inputs or --prompt, and not both");
  const std::shared_ptr<PretrainedModel> model = load_model({options.model, options.model_class, "", options.attention});
  if (options.train) model->train();
  if (!options.prompts.empty()) without_cache(*model);
  const GradModeScope no_grad(false);
  const ModelInputs inputs =
      options.prompts.empty() ? read_model_inputs("forward", options.inputs, *model) : tokenized(options, *model);
  NamedTensors in, out;
  for (const auto& [name, value] : inputs.to_kwargs(model->arguments())) flatten(name, value, in);
  if (!options.save_inputs.empty())
    save_safetensors(options.save_inputs, in, std::nullopt, true, SharedTensors::written_each);
  const ModelOutput result = (*model)(inputs);
  for (const auto& [name, value] : result.items()) flatten(name, value, out);
  Table table({{"output"}, {"dtype"}, {"shape"}});
  for (const auto& [name, tensor] : out)
    table.add({printable(name), std::string(calque::name(tensor.dtype())), str(tensor.sizes())});
  if (!options.outputs.empty()) save_safetensors(options.outputs, out, std::nullopt, true, SharedTensors::written_each);
  fmt::print("{}", table.str());
}

}  // namespace calque::cli
