#include "decoder_heads.h"

#include "calque/base/error.h"

namespace calque {

LayerOutputs::LayerOutputs(const PretrainedModel& model, const ModelInputs& inputs)
    : want_hidden_states_(model.wants_hidden_states(inputs)),
      want_attentions_(model.wants_attentions(inputs)),
      want_cache_(model.wants_cache(inputs)) {}

void LayerOutputs::before_layer(const Tensor& hidden_state) {
  if (want_hidden_states_) hidden_states.push_back(hidden_state);
}

void LayerOutputs::after_layer(const Tensor& weights, const LayerCache& now) {
  if (want_attentions_) attentions.push_back(weights);
  if (want_cache_) cache.layers.push_back(now);
}

void LayerOutputs::cross_attention(const Tensor& weights) {
  if (want_attentions_) cross_attentions.push_back(weights);
}

ModelOutput LayerOutputs::with(std::string name, const Tensor& result) const {
  ModelOutput out;
  out.set(std::move(name), result);
  out.set("past_key_values", cache);
  out.set("hidden_states", hidden_states);
  out.set("attentions", attentions);
  out.set("cross_attentions", cross_attentions);
  return out;
}

ModelOutput LayerOutputs::with_last(const Tensor& hidden_state) {
  before_layer(hidden_state);
  return with("last_hidden_state", hidden_state);
}

Tensor LayerOutputs::kept(const std::tuple<Tensor, Tensor, LayerCache>& result) {
  after_layer(std::get<1>(result), std::get<2>(result));
  return std::get<0>(result);
}

Tensor LayerOutputs::kept(const std::tuple<Tensor, Tensor, Tensor, LayerCache>& result) {
  after_layer(std::get<1>(result), std::get<3>(result));
  if (const Tensor& across = std::get<2>(result); across.defined()) cross_attention(across);
  return std::get<0>(result);
}

Tensor embedded(const ModelInputs& inputs, const Child<Embedding>& embedding) {
  if (inputs.input_ids.defined() == inputs.inputs_embeds.defined())
    throw UserError("You must specify exactly one of input_ids or inputs_embeds");
  return inputs.inputs_embeds.defined() ? inputs.inputs_embeds : embedding(inputs.input_ids);
}

Tensor positions_after(const SymInt& past, const Tensor& embeds) {
  const Tensor positions = arange(embeds.sym_size(1), DType::int64, std::nullopt, embeds.device());
  return (positions + Scalar(past)).unsqueeze(0);
}

bool LayerOutputs::drops_layer(double probability) { return probability > 0 && rand({}).item_as<float>() < probability; }

Tensor last_token(const Config& config, const ModelInputs& inputs, const Tensor& logits) {
  const std::optional<int64_t> pad = config.optional_integer("pad_token_id");
  const SymInt batch = logits.sym_size(0);
  if (!pad) {
    if (batch.is_symbolic() || batch.as_int() != 1)
      throw UserError("Cannot handle batch sizes > 1 if no padding token is defined: set pad_token_id in the config");
    return full({batch}, -1, DType::int64, std::nullopt, logits.device());
  }
  if (!inputs.input_ids.defined()) return full({batch}, -1, DType::int64, std::nullopt, logits.device());
  const Tensor kept = ne(inputs.input_ids, *pad).to(DType::int32);
  const Tensor positions = arange(inputs.input_ids.sym_size(-1), DType::int32, std::nullopt, logits.device());
  return (positions * kept).argmax(-1);
}

Tensor last_positions(const Tensor& hidden, int64_t keep) { return keep == 0 ? hidden : hidden.slice(1, -keep); }

}  // namespace calque
