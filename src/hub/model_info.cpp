#include "calque/hub/model_info.h"

#include <unistd.h>

#include <fstream>
#include <set>

#include "calque/base/warning.h"
#include "calque/op/operators.h"

namespace calque {

int64_t num_parameters(Module& model, bool only_trainable, bool exclude_embeddings) {
  std::set<std::string> embeddings;
  if (exclude_embeddings)
    for (const auto& [name, module] : model.named_modules())
      if (dynamic_cast<const Embedding*>(module)) embeddings.insert(name.empty() ? "weight" : name + ".weight");
  int64_t sum = 0;
  for (const auto& [name, parameter] : model.named_parameters())
    if (!embeddings.count(name) && (parameter.requires_grad() || !only_trainable)) sum += parameter.numel();
  return sum;
}

int64_t memory_footprint(Module& model, bool return_buffers) {
  int64_t bytes = 0;
  const auto count = [&](const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) bytes += tensor.numel() * static_cast<int64_t>(item_size(tensor.dtype()));
  };
  count(model.parameters());
  if (return_buffers) count(model.buffers());
  return bytes;
}

int64_t estimate_tokens(const PretrainedModel& model, const ModelInputs& inputs) {
  const Value main = inputs.get(model.main_input_name());
  if (main.kind() == Value::Kind::tensor) return main.to_tensor().numel();
  warn("Could not estimate the number of tokens of the input, floating-point operations will not be computed");
  return 0;
}

int64_t floating_point_ops(PretrainedModel& model, const ModelInputs& inputs, bool exclude_embeddings) {
  return 6 * estimate_tokens(model, inputs) * num_parameters(model, false, exclude_embeddings);
}

static int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

MemoryHooks::MemoryHooks(Module& model) : usage_(std::make_shared<std::map<std::string, Usage>>()) {
  for (const auto& [name, module] : model.named_modules()) {
    (*usage_)[name] = {};
    handles_.push_back(module->register_forward_pre_hook(
        [usage = usage_, name = name](Module&, const Values&, const Kwargs&) -> std::optional<Module::Call> {
          (*usage)[name].pre_forward = resident_bytes();
          return std::nullopt;
        }));
    handles_.push_back(module->register_forward_hook(
        [usage = usage_, name = name](Module&, const Values&, const Kwargs&, const Value&) -> std::optional<Value> {
          Usage& one = (*usage)[name];
          one.post_forward = resident_bytes();
          one.difference += one.post_forward - one.pre_forward;
          return std::nullopt;
        }));
  }
}

MemoryHooks::~MemoryHooks() {
  for (HookHandle& handle : handles_) handle.remove();
}

void MemoryHooks::reset() {
  for (auto& [name, usage] : *usage_) usage = {};
}

namespace {

// Read in place: this is called in every forward, and an operator would be in the graph of whoever is tracing.
bool begins_or_ends_with(const Tensor& input_ids, int64_t id) {
  const auto* ids = static_cast<const int64_t*>(input_ids.data());
  for (int64_t row = 0; row < input_ids.size(0); ++row)
    for (const int64_t column : {int64_t{0}, input_ids.size(1) - 1})
      if (ids[row * input_ids.stride(0) + column * input_ids.stride(1)] == id) return true;
  return false;
}

}  // namespace

void warn_if_padding_and_no_attention_mask(const PretrainedModel& model, const Tensor& input_ids,
                                           const Tensor& attention_mask) {
  if (attention_mask.defined() || !input_ids.defined() || input_ids.is_fake()) return;
  if (input_ids.dim() != 2 || input_ids.numel() == 0 || input_ids.dtype() != DType::int64) return;
  if (!input_ids.storage() || !input_ids.storage()->has_data()) return;
  const Config& config = model.config();
  const std::optional<int64_t> pad = config.optional_integer("pad_token_id");
  if (!pad || !begins_or_ends_with(input_ids, *pad)) return;
  std::string text =
      "We strongly recommend passing in an `attention_mask` since your input_ids may be padded. See "
      "https://huggingface.co/docs/transformers/troubleshooting#incorrect-output-when-padding-tokens-arent-masked.";
  const auto id = [&](const char* key) -> std::optional<int64_t> {
    const Value* value = config.find(key);
    return value && value->kind() == Value::Kind::integer ? std::optional(value->to_int()) : std::nullopt;
  };
  const std::optional<int64_t> bos = id("bos_token_id"), eos = id("eos_token_id"), sep = id("sep_token_id");
  if (bos == pad || eos == pad || sep == pad) {
    const auto shown = [&](const char* key) {
      const Value* value = config.find(key);
      return value ? value->str() : std::string("None");
    };
    text += "\nYou may ignore this warning if your `pad_token_id` (" + shown("pad_token_id") +
            ") is identical to the `bos_token_id` (" + shown("bos_token_id") + "), `eos_token_id` (" +
            shown("eos_token_id") + "), or the `sep_token_id` (" + shown("sep_token_id") +
            "), and your input is not padded.";
  }
  warn(std::move(text));
}

}  // namespace calque
