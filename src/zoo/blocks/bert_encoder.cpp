#include "bert_encoder.h"

#include <cmath>

#include "calque/base/error.h"
#include "calque/nn/convert.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/norms.h"
#include "chunking.h"

namespace calque {

ConfigSchema bert_schema(std::vector<KeyRule> own) {
  return {.keys = std::move(own),
          .relations = {multiple("hidden_size", "num_attention_heads", "embedding_size"),
                        at_least("hidden_size", "num_attention_heads")}};
}

BertSelfAttention::BertSelfAttention(const Config& c, std::string family, bool cross)
    : FamilyModule(std::move(family), c),
      cross(cross),
      position_embedding_type(cross ? "absolute" : c.optional_text("position_embedding_type").value_or("absolute")),
      distance_embedding(child_if<Embedding>(position_embedding_type != "absolute", *this, "distance_embedding",
                                             2 * c.integer("max_position_embeddings") - 1, size)) {}

// What the distance between two positions adds to their score.
Tensor BertSelfAttention::distance_scores(const Tensor& query_layer, const Tensor& key_layer, const SymInt& past) const {
  const SymInt total = key_layer.sym_size(2);
  const Tensor left = arange(past, total, DType::int64, std::nullopt, query_layer.device()).unsqueeze(1);
  const Tensor right = arange(total, DType::int64, std::nullopt, query_layer.device()).unsqueeze(0);
  const int64_t longest = ((*distance_embedding)->num_embeddings + 1) / 2;
  const Tensor distances = (*distance_embedding)((left - right) + (longest - 1)).to(query_layer.dtype());
  Tensor scores = einsum("bhld,lrd->bhlr", {query_layer, distances});
  if (position_embedding_type == "relative_key_query") scores = scores + einsum("bhrd,lrd->bhlr", {key_layer, distances});
  return scores * (1 / std::sqrt(static_cast<double>(size)));
}

BertSelfAttention::Result BertSelfAttention::forward(const Tensor& hidden_states, const AttentionMask& mask,
                                                     const Tensor& head_mask, const Tensor& encoder_hidden_states,
                                                     const LayerCache& past, bool eager) {
  const Tensor query_layer = split_heads(query(hidden_states), heads, size);
  AttentionOptions options{.dropout = training() ? dropout->p : 0, .dropout_layer = &*dropout, .eager = eager};
  options.head_mask = head_mask;
  LayerCache now = past;
  if (!cross) {
    const Tensor key_layer = split_heads(key(hidden_states), heads, size);
    now = past.updated(key_layer, split_heads(value(hidden_states), heads, size));
    if (distance_embedding) options.position_bias = distance_scores(query_layer, now.key, past.length());
    const AttentionResult attended = attend(query_layer, now.key, now.value, mask, options);
    return {attended.output, attended.weights, now};
  }
  if (!now.cross_key.defined()) {
    now.cross_key = split_heads(key(encoder_hidden_states), heads, size);
    now.cross_value = split_heads(value(encoder_hidden_states), heads, size);
  }
  const AttentionResult attended = attend(query_layer, now.cross_key, now.cross_value, mask, options);
  return {attended.output, attended.weights, now};
}

BertResidual::BertResidual(const Config& c, std::string name, int64_t in_features)
    : NamedModule(std::move(name)),
      dense(child<Linear>("dense", in_features, c.integer("hidden_size"))),
      norm(child<LayerNorm>("LayerNorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}

Tensor BertResidual::forward(const Tensor& hidden_states, const Tensor& input_tensor) {
  return norm(dropout(dense(hidden_states)) + input_tensor);
}

BertAttention::BertAttention(const Config& c, const std::string& family, bool cross)
    : FamilyModule(family),
      self(child<BertSelfAttention>("self", c, family, cross)),
      output(child<BertResidual>("output", c, family + "SelfOutput", c.integer("hidden_size"))) {}

BertSelfAttention::Result BertAttention::forward(const Tensor& hidden_states, const AttentionMask& mask,
                                                 const Tensor& head_mask, const Tensor& encoder_hidden_states,
                                                 const LayerCache& past, bool eager) {
  auto [attended, weights, now] = self(hidden_states, mask, head_mask, encoder_hidden_states, past, eager);
  return {output(attended, hidden_states), weights, now};
}

void BertAttention::prune_heads(const std::vector<int64_t>& heads) {
  prune_attention(heads, self->heads, self->size, pruned_heads, {&*self->query, &*self->key, &*self->value}, *output->dense);
}

BertIntermediate::BertIntermediate(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("intermediate_size"))),
      act_fn(activation_named(c.text("hidden_act"))) {}

Tensor BertIntermediate::forward(const Tensor& hidden_states) { return act_fn(dense(hidden_states)); }

BertLayer::BertLayer(const Config& c, const std::string& family)
    : Checkpointed(family),
      attention(child<BertAttention>("attention", c, family)),
      crossattention(child_if<BertAttention>(c.flag("add_cross_attention"), *this, "crossattention", c, family, true)),
      intermediate(child<BertIntermediate>("intermediate", c, family)),
      output(child<BertResidual>("output", c, family + "Output", c.integer("intermediate_size"))),
      chunk_size_feed_forward(c.optional_integer("chunk_size_feed_forward").value_or(0)) {
  if (crossattention && !c.flag("is_decoder"))
    throw UserError(ErrorKind::bad_file, c.where() + ": add_cross_attention is true, expected is_decoder to be true too");
}

BertLayer::Result BertLayer::forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                     const Tensor& encoder_hidden_states, const AttentionMask& encoder_mask,
                                     const LayerCache& past, bool eager) {
  auto [x, weights, now] = attention(hidden_states, mask, head_mask, Tensor(), past, eager);
  Tensor cross_weights;
  if (encoder_hidden_states.defined()) {
    if (!crossattention)
      throw UserError(
          class_name() +
          ": encoder_hidden_states are given, but the model has no cross attention: set add_cross_attention in the config");
    auto [y, its_weights, both] = (*crossattention)(x, encoder_mask, head_mask, encoder_hidden_states, now, eager);
    x = y;
    cross_weights = its_weights;
    now = both;
  }
  const auto feed_forward = [&](const Tensor& part) { return output(intermediate(part), part); };
  return {apply_chunking_to_forward(feed_forward, chunk_size_feed_forward, 1, x), weights, cross_weights, now};
}

BertPooler::BertPooler(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"))),
      activation(child<Tanh>("activation")) {}

Tensor BertPooler::forward(const Tensor& hidden_states) { return activation(dense(hidden_states.select(1, 0))); }

Value EncoderInputs::to_value() const {
  return tuple({hidden_states, mask.to_value(), calque::to_value(head_mask), encoder_hidden_states, encoder_mask.to_value(),
                past.to_value(), use_cache, eager, want_hidden_states, want_attentions});
}

EncoderInputs EncoderInputs::from_value(const Value& value) {
  const Values& items = value.to_items();
  EncoderInputs in;
  in.hidden_states = items.at(0).to_tensor();
  in.mask = AttentionMask::from_value(items.at(1));
  in.head_mask = calque::from_value<std::vector<Tensor>>(items.at(2));
  in.encoder_hidden_states = items.at(3).to_tensor_or_none();
  in.encoder_mask = AttentionMask::from_value(items.at(4));
  in.past = KeyValueCache::from_value(items.at(5));
  in.use_cache = items.at(6).to_bool();
  in.eager = items.at(7).to_bool();
  in.want_hidden_states = items.at(8).to_bool();
  in.want_attentions = items.at(9).to_bool();
  return in;
}

Value EncoderResult::to_value() const {
  return tuple({last_hidden_state, calque::to_value(hidden_states), calque::to_value(attentions),
                calque::to_value(cross_attentions), cache.to_value()});
}

EncoderResult EncoderResult::from_value(const Value& value) {
  const Values& items = value.to_items();
  return {items.at(0).to_tensor(), calque::from_value<std::vector<Tensor>>(items.at(1)),
          calque::from_value<std::vector<Tensor>>(items.at(2)), calque::from_value<std::vector<Tensor>>(items.at(3)),
          KeyValueCache::from_value(items.at(4))};
}

std::vector<Tensor> head_masks(const Tensor& head_mask, int64_t layers, DType dtype) {
  if (!head_mask.defined()) return {};
  if (head_mask.dim() != 1 && head_mask.dim() != 2)
    throw UserError("argument head_mask: has " + std::to_string(head_mask.dim()) +
                    " dimensions, expected [heads] or [layers, heads]");
  const Tensor factors = head_mask.to(dtype).unsqueeze(-1).unsqueeze(-1);
  std::vector<Tensor> out;
  for (int64_t i = 0; i < layers; ++i) out.push_back((head_mask.dim() == 1 ? factors : factors.select(0, i)).unsqueeze(0));
  return out;
}

EncoderInputs encoder_inputs(const PretrainedModel& model, const ModelInputs& in, const Tensor& embeddings) {
  const Config& config = model.config();
  EncoderInputs out;
  out.hidden_states = embeddings;
  out.past = in[arg::past_key_values];
  const bool causal = config.flag("is_decoder") && !(in[arg::attention_mask].defined() && in[arg::attention_mask].dim() > 2);
  out.mask = causal ? causal_mask(embeddings, in[arg::attention_mask], {.past = out.past.length()})
                    : bidirectional_mask(in[arg::attention_mask]);
  out.head_mask = head_masks(in[arg::head_mask], config.integer("num_hidden_layers"), embeddings.dtype());
  if (config.flag("is_decoder")) {
    out.encoder_hidden_states = in[arg::encoder_hidden_states];
    out.encoder_mask = bidirectional_mask(in[arg::encoder_attention_mask]);
    out.use_cache = model.wants_cache(in);
  }
  out.want_hidden_states = model.wants_hidden_states(in);
  out.want_attentions = model.wants_attentions(in);
  out.eager = eager_attention(config, out.want_attentions, in[arg::head_mask]);
  return out;
}

ModelOutput encoder_output(const EncoderResult& result, const Tensor& pooled) {
  ModelOutput out;
  out.set("last_hidden_state", result.last_hidden_state);
  if (pooled.defined()) out.set("pooler_output", pooled);
  out.set("hidden_states", result.hidden_states);
  out.set("past_key_values", result.cache);
  out.set("attentions", result.attentions);
  out.set("cross_attentions", result.cross_attentions);
  return out;
}

BertEncoder::BertEncoder(const Config& c, const std::string& family)
    : FamilyModule(family), layer(child<ModuleList>("layer")) {
  for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layer->emplace<BertLayer>(c, family);
}

}  // namespace calque
