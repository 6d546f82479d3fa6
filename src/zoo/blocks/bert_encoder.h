// BERT's encoder: attention and feed-forward layers with the norm after each residual, self and cross attention, learned
// distances where the configuration asks for them. Families that share it give the prefix of their class names
// ("transformers.models.bert.modeling_bert.Bert"), which the modules put before "SelfAttention", "Layer" and so on.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "activations.h"
#include "attention.h"
#include "calque/hub/cache.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/config_schema.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/prune.h"
#include "calque/nn/activation.h"
#include "calque/nn/container.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "child_if.h"
#include "family_module.h"
#include "query_key_value.h"

namespace calque {

// What BERT's relatives ask of a configuration. Those with embeddings of their own size cut what the heads leave over.
ConfigSchema bert_schema(std::vector<KeyRule> own = {});

// Self attention, or cross attention where encoder_hidden_states are given.
struct BertSelfAttention : FamilyModule<BertSelfAttention, QueryKeyValue> {
  static constexpr const char* part = "SelfAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states",         "attention_mask",  "head_mask",
                                                      "encoder_hidden_states", "past_key_values", "eager"};
  // Output, weights (undefined when fused), keys and values with the new ones.
  using Result = std::tuple<Tensor, Tensor, LayerCache>;
  BertSelfAttention(const Config& c, std::string family, bool cross = false);
  std::string type_name() const override { return family + (cross ? "CrossAttention" : "SelfAttention"); }
  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                 const Tensor& encoder_hidden_states, const LayerCache& past, bool eager);

  bool cross;
  std::string position_embedding_type;                 // "absolute", "relative_key" or "relative_key_query"
  std::optional<Child<Embedding>> distance_embedding;  // none when positions are absolute

 private:
  Tensor distance_scores(const Tensor& query, const Tensor& key, const SymInt& past) const;
};

// dense, dropout, residual, norm: what follows attention and feed-forward.
struct BertResidual : NamedModule<BertResidual> {
  static constexpr const char* forward_arguments[] = {"hidden_states", "input_tensor"};
  BertResidual(const Config& c, std::string name, int64_t in_features);
  Tensor forward(const Tensor& hidden_states, const Tensor& input_tensor);
  Child<Linear> dense;
  Child<LayerNorm> norm;
  Child<Dropout> dropout;
};

struct BertAttention : FamilyModule<BertAttention>, PrunableAttention {
  static constexpr const char* part = "Attention";
  static constexpr auto& forward_arguments = BertSelfAttention::forward_arguments;
  BertAttention(const Config& c, const std::string& family, bool cross = false);
  BertSelfAttention::Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                    const Tensor& encoder_hidden_states, const LayerCache& past, bool eager);
  void prune_heads(const std::vector<int64_t>& heads) override;
  bool is_self_attention() const override { return !self->cross; }
  Child<BertSelfAttention> self;
  Child<BertResidual> output;
  std::set<int64_t> pruned_heads;
};

struct BertIntermediate : FamilyModule<BertIntermediate> {
  static constexpr const char* part = "Intermediate";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  BertIntermediate(const Config& c, std::string family);
  Tensor forward(const Tensor& hidden_states);
  Child<Linear> dense;
  Activation act_fn;
};

struct BertLayer : Checkpointed<FamilyModule<BertLayer>> {
  static constexpr const char* part = "Layer";
  static constexpr const char* forward_arguments[] = {
      "hidden_states",          "attention_mask",  "head_mask", "encoder_hidden_states",
      "encoder_attention_mask", "past_key_values", "eager"};
  // Output, weights, cross weights, keys and values.
  using Result = std::tuple<Tensor, Tensor, Tensor, LayerCache>;
  BertLayer(const Config& c, const std::string& family);
  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                 const Tensor& encoder_hidden_states, const AttentionMask& encoder_mask, const LayerCache& past, bool eager);
  Child<BertAttention> attention;
  std::optional<Child<BertAttention>> crossattention;  // by add_cross_attention
  Child<BertIntermediate> intermediate;
  Child<BertResidual> output;
  int64_t chunk_size_feed_forward;  // positions that the feed-forward takes at once; 0: all
};

struct BertPooler : FamilyModule<BertPooler> {
  static constexpr const char* part = "Pooler";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  BertPooler(const Config& c, std::string family);
  Tensor forward(const Tensor& hidden_states);  // of the first token
  Child<Linear> dense;
  Child<Tanh> activation;
};

// Everything that goes through the layers of an encoder or a decoder, whatever their class.
struct EncoderInputs {
  Tensor hidden_states;
  AttentionMask mask;
  std::vector<Tensor> head_mask;  // one a layer, or none
  Tensor encoder_hidden_states;
  AttentionMask encoder_mask;
  KeyValueCache past;
  bool use_cache = false, eager = false, want_hidden_states = false, want_attentions = false;

  Value to_value() const;
  static EncoderInputs from_value(const Value& value);
};
struct EncoderResult {
  Tensor last_hidden_state;
  std::vector<Tensor> hidden_states, attentions, cross_attentions;
  KeyValueCache cache;

  Value to_value() const;
  static EncoderResult from_value(const Value& value);
};
// Masks, caches and wishes of a model's inputs for embeddings of length past + query.
EncoderInputs encoder_inputs(const PretrainedModel& model, const ModelInputs& in, const Tensor& embeddings);
// last_hidden_state, pooler_output, and what was asked for.
ModelOutput encoder_output(const EncoderResult& result, const Tensor& pooled = {});
// 4.40's head masks [heads] or [layers, heads], one [1, heads, 1, 1] a layer; none stays none.
std::vector<Tensor> head_masks(const Tensor& head_mask, int64_t layers, DType dtype);

// The layers one after another; Layer is called as BertLayer is.
template <class Layer>
EncoderResult run_layers(const ModuleList& layers, const EncoderInputs& in) {
  EncoderResult out;
  Tensor x = in.hidden_states;
  size_t i = 0;
  for (Layer* layer : layers.items<Layer>()) {
    if (in.want_hidden_states) out.hidden_states.push_back(x);
    const Tensor head_mask = i < in.head_mask.size() ? in.head_mask[i] : Tensor();
    auto [y, weights, cross_weights, now] =
        (*layer)(x, in.mask, head_mask, in.encoder_hidden_states, in.encoder_mask, in.past.layer(i++), in.eager);
    x = y;
    if (in.want_attentions) {
      out.attentions.push_back(weights);
      if (cross_weights.defined()) out.cross_attentions.push_back(cross_weights);
    }
    if (in.use_cache) out.cache.layers.push_back(now);
  }
  out.last_hidden_state = x;
  if (in.want_hidden_states) out.hidden_states.push_back(x);
  return out;
}

// The same for layers of encoders only: (hidden states, mask, head mask, eager) to (hidden states, weights).
template <class Layer>
EncoderResult run_encoder_layers(const ModuleList& layers, const EncoderInputs& in) {
  EncoderResult out;
  Tensor x = in.hidden_states;
  size_t i = 0;
  for (Layer* layer : layers.items<Layer>()) {
    if (in.want_hidden_states) out.hidden_states.push_back(x);
    auto [y, weights] = (*layer)(x, in.mask, i < in.head_mask.size() ? in.head_mask[i] : Tensor(), in.eager);
    x = y;
    if (in.want_attentions) out.attentions.push_back(weights);
    ++i;
  }
  out.last_hidden_state = x;
  if (in.want_hidden_states) out.hidden_states.push_back(x);
  return out;
}

struct BertEncoder : FamilyModule<BertEncoder> {
  static constexpr const char* part = "Encoder";
  static constexpr const char* forward_arguments[] = {"inputs"};
  BertEncoder(const Config& c, const std::string& family);
  EncoderResult forward(const EncoderInputs& in) { return run_layers<BertLayer>(*layer, in); }
  Child<ModuleList> layer;
};

}  // namespace calque
