// Cohere: Llama's parts with attention and feed-forward side by side, norms without bias, rotary positions of neighbouring
// numbers, norms of queries and keys where asked for, logits scaled.
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "calque/nn/linear.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/unary.h"
#include "zoo/blocks/attention.h"
#include "zoo/blocks/child_if.h"
#include "zoo/blocks/rotary_decoder.h"

namespace calque::cohere {

namespace {

// Over the last dimension; the weight may have more (one for each head).
struct CohereLayerNorm : Typed<CohereLayerNorm> {
  static constexpr const char* torch_type = "transformers.models.cohere.modeling_cohere.CohereLayerNorm";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit CohereLayerNorm(const Config& c) : CohereLayerNorm(c, {c.integer("hidden_size")}) {}
  CohereLayerNorm(const Config& c, const std::vector<int64_t>& sizes)
      : eps(c.number("layer_norm_eps")), weight(register_parameter("weight", ones(SymInts(sizes.begin(), sizes.end())))) {}
  Tensor forward(const Tensor& hidden_states) {
    const Tensor wide = hidden_states.to(DType::float32);
    const Tensor centred = wide - wide.mean({-1}, true);
    const Tensor variance = pow(centred, 2).mean({-1}, true);
    return (weight->to(DType::float32) * (centred * rsqrt(variance + eps))).to(hidden_states.dtype());
  }
  double eps;
  Parameter weight;
};

int64_t head_size(const Config& c) {
  return c.optional_integer("head_dim").value_or(c.integer("hidden_size") / c.integer("num_attention_heads"));
}

struct CohereAttention : Typed<CohereAttention> {
  static constexpr const char* torch_type = "transformers.models.cohere.modeling_cohere.CohereAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states",  "cosine",          "sine",
                                                      "attention_mask", "past_key_values", "eager"};
  using Result = std::tuple<Tensor, Tensor, LayerCache>;  // output, weights, keys and values

  explicit CohereAttention(const Config& c)
      : heads(c.integer("num_attention_heads")),
        key_heads(c.integer("num_key_value_heads")),
        size(head_size(c)),
        dropout(c.optional_number("attention_dropout").value_or(0)),
        q_proj(child<Linear>("q_proj", c.integer("hidden_size"), heads * size, c.flag("attention_bias"))),
        k_proj(child<Linear>("k_proj", c.integer("hidden_size"), key_heads * size, c.flag("attention_bias"))),
        v_proj(child<Linear>("v_proj", c.integer("hidden_size"), key_heads * size, c.flag("attention_bias"))),
        o_proj(child<Linear>("o_proj", heads * size, c.integer("hidden_size"), c.flag("attention_bias"))),
        q_norm(child_if<CohereLayerNorm>(c.flag("use_qk_norm"), *this, "q_norm", c, std::vector<int64_t>{heads, size})),
        k_norm(child_if<CohereLayerNorm>(c.flag("use_qk_norm"), *this, "k_norm", c, std::vector<int64_t>{key_heads, size})) {
  }

  Result forward(const Tensor& x, const Tensor& cosine, const Tensor& sine, const AttentionMask& mask,
                 const LayerCache& past, bool eager) {
    const Tensor query = turned(q_proj(x), heads, q_norm, cosine, sine);
    const Tensor key = turned(k_proj(x), key_heads, k_norm, cosine, sine);
    const LayerCache now = past.updated(key, split_heads(v_proj(x), key_heads, size));
    const AttentionResult attended = attend(
        query, now.key, now.value, mask, {.dropout = training() ? dropout : 0, .eager = eager, .softmax_in_float32 = true});
    return {o_proj(attended.output), attended.weights, now};
  }
  // [batch, length, heads * size] to [batch, heads, length, size], normed and turned in float32.
  Tensor turned(const Tensor& x, int64_t count, const std::optional<Child<CohereLayerNorm>>& norm, const Tensor& cosine,
                const Tensor& sine) const {
    Tensor split = x.view({x.sym_size(0), x.sym_size(1), count, size});
    if (norm) split = (*norm)(split);
    return apply_interleaved_rotary(split.transpose(1, 2).to(DType::float32), cosine, sine).to(x.dtype());
  }

  int64_t heads, key_heads, size;
  double dropout;
  Child<Linear> q_proj, k_proj, v_proj, o_proj;
  std::optional<Child<CohereLayerNorm>> q_norm, k_norm;
};

struct CohereMLP : Typed<CohereMLP, GatedFeedForward> {
  static constexpr const char* torch_type = "transformers.models.cohere.modeling_cohere.CohereMLP";
  explicit CohereMLP(const Config& c) : Typed(c, false) {}
};

struct CohereDecoderLayer : Typed<CohereDecoderLayer> {
  static constexpr const char* torch_type = "transformers.models.cohere.modeling_cohere.CohereDecoderLayer";
  static constexpr auto& forward_arguments = CohereAttention::forward_arguments;
  explicit CohereDecoderLayer(const Config& c)
      : self_attn(child<CohereAttention>("self_attn", c)),
        mlp(child<CohereMLP>("mlp", c)),
        input_layernorm(child<CohereLayerNorm>("input_layernorm", c)) {}
  CohereAttention::Result forward(const Tensor& x, const Tensor& cosine, const Tensor& sine, const AttentionMask& mask,
                                  const LayerCache& past, bool eager) {
    const Tensor y = input_layernorm(x);
    auto [attended, weights, now] = self_attn(y, cosine, sine, mask, past, eager);
    return {x + attended + mlp(y), weights, now};
  }
  Child<CohereAttention> self_attn;
  Child<CohereMLP> mlp;
  Child<CohereLayerNorm> input_layernorm;
};

struct CoherePretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "model"; }
  std::vector<std::string> no_split_modules() const override { return {"CohereDecoderLayer"}; }
  void init_weights(Module& module) override {
    if (auto* norm = dynamic_cast<CohereLayerNorm*>(&module))
      init::ones_(norm->weight);
    else
      PretrainedModel::init_weights(module);
  }
};

struct CohereModel : RotaryDecoder<CohereModel, CoherePretrained, CohereDecoderLayer, CohereLayerNorm> {
  static constexpr const char* torch_type = "transformers.models.cohere.modeling_cohere.CohereModel";
  explicit CohereModel(const Config& c) : RotaryDecoder(c, head_size(c), true) {}
};

constexpr HeadFamily cohere_heads{"transformers.models.cohere.modeling_cohere.Cohere", "model", made_model<CohereModel>};

struct CohereForCausalLM : CopiedAs<CohereForCausalLM, CausalLM> {
  CohereForCausalLM(const HeadClass& head, const Config& c) : CopiedAs(head, c), logit_scale(c.number("logit_scale")) {}
  Tensor head_logits(const Tensor& logits) override { return logits * logit_scale; }
  bool head_keeps_order() const override { return logit_scale > 0; }
  double logit_scale;
};

void complete(Config& config) {
  if (!config.has("num_key_value_heads")) config.set("num_key_value_heads", config.integer("num_attention_heads"));
  complete_rope_parameters(config, 500000);
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "cohere",
      .config_class = "CohereConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "logit_scale": 0.0625,
        "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": null, "hidden_act": "silu",
        "max_position_embeddings": 8192, "initializer_range": 0.02, "layer_norm_eps": 1e-05, "use_cache": true,
        "pad_token_id": 0, "bos_token_id": 5, "eos_token_id": 255001, "tie_word_embeddings": true, "attention_bias": false,
        "attention_dropout": 0.0, "use_qk_norm": false})",
      .schema = rotary_schema({{"logit_scale", KeyKind::number}}),
      .complete = complete,
      .classes = {model_class<CohereModel>("CohereModel", {"default"}),
                  head_class<CohereForCausalLM>(
                      {"causal-lm"}, {.family = &cohere_heads, .part = "ForCausalLM", .embedding = "embed_tokens"})},
  });
}

}  // namespace calque::cohere
