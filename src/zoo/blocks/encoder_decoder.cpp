#include "encoder_decoder.h"

#include "calque/base/error.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/scatter.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/mode.h"

namespace calque {

ModelInputs encoder_inputs(const ModelInputs& inputs) {
  ModelInputs out;
  out.set(arg::input_ids, inputs[arg::input_ids]);
  out.set(arg::attention_mask, inputs[arg::attention_mask]);
  out.set(arg::inputs_embeds, inputs[arg::inputs_embeds]);
  out.set(arg::head_mask, inputs[arg::head_mask]);
  out.set(arg::output_attentions, inputs[arg::output_attentions]);
  out.set(arg::output_hidden_states, inputs[arg::output_hidden_states]);
  return out;
}

ModelInputs decoder_inputs(const ModelInputs& inputs, const ModelOutput& encoded) {
  ModelInputs out;
  out.set(arg::input_ids, inputs[arg::decoder_input_ids]);
  out.set(arg::attention_mask, inputs[arg::decoder_attention_mask]);
  out.set(arg::inputs_embeds, inputs[arg::decoder_inputs_embeds]);
  out.set(arg::encoder_hidden_states, encoded["last_hidden_state"]);
  out.set(arg::encoder_attention_mask, inputs[arg::attention_mask]);
  out.set(arg::head_mask, inputs[arg::decoder_head_mask]);
  out.set(arg::cross_attn_head_mask, inputs[arg::cross_attn_head_mask]);
  out.set(arg::past_key_values, inputs[arg::past_key_values]);
  out.set(arg::use_cache, inputs[arg::use_cache]);
  out.set(arg::output_attentions, inputs[arg::output_attentions]);
  out.set(arg::output_hidden_states, inputs[arg::output_hidden_states]);
  return out;
}

ModelOutput given_encoder_outputs(const Value& encoder_outputs) {
  if (encoder_outputs.kind() == Value::Kind::dict) return ModelOutput::from_value(encoder_outputs);
  ModelOutput out;
  if (encoder_outputs.is_tensor()) {
    out.set("last_hidden_state", encoder_outputs);
    return out;
  }
  const Values& items = encoder_outputs.to_items();
  if (items.empty() || items.size() > 3)
    throw UserError(
        "encoder_outputs: expected last_hidden_state, hidden_states and attentions, or the first of them; found " +
        std::to_string(items.size()) + " items");
  const char* names[] = {"last_hidden_state", "hidden_states", "attentions"};
  for (size_t i = 0; i < items.size(); ++i) out.set(names[i], items[i]);
  return out;
}

ModelOutput encoder_decoder_output(const ModelOutput& encoded, const ModelOutput& decoded) {
  ModelOutput out;
  out.take(decoded, {"last_hidden_state", "past_key_values"});
  const auto rename = [&](const ModelOutput& from, const char* name, const char* as) {
    if (const Value* value = from.find(name)) out.set(as, *value);
  };
  rename(decoded, "hidden_states", "decoder_hidden_states");
  rename(decoded, "attentions", "decoder_attentions");
  out.take(decoded, {"cross_attentions"});
  rename(encoded, "last_hidden_state", "encoder_last_hidden_state");
  rename(encoded, "hidden_states", "encoder_hidden_states");
  rename(encoded, "attentions", "encoder_attentions");
  return out;
}

void take_encoder_decoder_fields(ModelOutput& out, const ModelOutput& base) {
  out.take(base, {"past_key_values", "decoder_hidden_states", "decoder_attentions", "cross_attentions",
                  "encoder_last_hidden_state", "encoder_hidden_states", "encoder_attentions"});
}

static int64_t needed(const Config& config, const char* key) {
  const std::optional<int64_t> id = config.optional_integer(key);
  if (!id)
    throw UserError(config.where() + ": " + key + " has to be defined for the decoder's ids to be made from other ids");
  return *id;
}

Tensor shift_tokens_right(const Config& config, const Tensor& ids) {
  const int64_t start = needed(config, "decoder_start_token_id");
  const int64_t pad = needed(config, "pad_token_id");
  const Tensor first = full({ids.sym_size(0), 1}, start, ids.dtype(), std::nullopt, ids.device());
  const Tensor shifted = cat({first, ids.slice(1, 0, -1)}, 1);
  return masked_fill(shifted, eq(shifted, -100), pad);
}

Tensor wrap_last_token(const Config& config, const Tensor& ids) {
  const int64_t pad = needed(config, "pad_token_id");
  const Tensor clean = masked_fill(ids, eq(ids, -100), pad);
  const Tensor last = (ne(clean, pad).sum({1}) - 1).unsqueeze(-1);
  return cat({gather(clean, 1, last), clean.slice(1, 0, -1)}, 1);
}

Tensor layer_head_mask(const Tensor& head_mask, size_t layer, size_t layers, std::string_view name) {
  if (!head_mask.defined()) return {};
  if (head_mask.dim() == 1) return head_mask;
  if (head_mask.size(0) != static_cast<int64_t>(layers))
    throw UserError(std::string(name) + ": expected a row for each of " + std::to_string(layers) + " layers, found " +
                    std::to_string(head_mask.size(0)));
  return head_mask.select(0, static_cast<int64_t>(layer));
}

bool drops_layer(bool training, double probability) {
  if (!training) return false;
  const Tensor drawn = rand({});
  return probability > 0 && drawn.item_as<float>() < static_cast<float>(probability);
}

Tensor state_at_end(const Config& config, const Tensor& input_ids, const Tensor& hidden_states) {
  const Tensor is_end = eq(input_ids, config.integer("eos_token_id")).to(DType::int64);
  if (!modes_active() && !input_ids.is_fake()) {
    const Tensor counts = is_end.sum({1});
    const int64_t fewest = counts.min().item_as<int64_t>();
    if (fewest != counts.max().item_as<int64_t>())
      throw UserError("All examples must have the same number of <eos> tokens.");
    if (fewest == 0) throw UserError("Each example must contain at least one <eos> token.");
  }
  const Tensor positions = arange(input_ids.sym_size(1), DType::int64, std::nullopt, input_ids.device());
  const Tensor last = (is_end * positions).argmax(-1);
  const Tensor rows = arange(hidden_states.sym_size(0), DType::int64, std::nullopt, hidden_states.device());
  return index(hidden_states, {rows, last});
}

}  // namespace calque
