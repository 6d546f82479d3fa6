// Llama: rotary positions, grouped heads, RMS norms, gated feed-forward.
#include <cmath>

#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/linear.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/unary.h"
#include "zoo/blocks/attention.h"
#include "zoo/blocks/rotary_decoder.h"

namespace calque::llama {

namespace {

struct LlamaRMSNorm : Typed<LlamaRMSNorm> {
  static constexpr const char* torch_type = "transformers.models.llama.modeling_llama.LlamaRMSNorm";
  explicit LlamaRMSNorm(const Config& c)
      : eps(c.number("rms_norm_eps")), weight(register_parameter("weight", ones({c.integer("hidden_size")}))) {}
  Tensor forward(const Tensor& hidden_states) {
    const Tensor wide = hidden_states.to(DType::float32);
    const Tensor variance = pow(wide, 2).mean({-1}, true);
    return *weight * (wide * rsqrt(variance + eps)).to(hidden_states.dtype());
  }
  double eps;
  Parameter weight;
};

int64_t head_size(const Config& config) { return config.integer("head_dim"); }

struct LlamaAttention : Typed<LlamaAttention> {
  static constexpr const char* torch_type = "transformers.models.llama.modeling_llama.LlamaAttention";
  using Result = std::tuple<Tensor, Tensor, LayerCache>;  // output, weights, keys and values

  explicit LlamaAttention(const Config& c)
      : heads(c.integer("num_attention_heads")),
        key_heads(c.integer("num_key_value_heads")),
        size(head_size(c)),
        dropout(c.number("attention_dropout")),
        q_proj(child<Linear>("q_proj", c.integer("hidden_size"), heads * size, c.flag("attention_bias"))),
        k_proj(child<Linear>("k_proj", c.integer("hidden_size"), key_heads * size, c.flag("attention_bias"))),
        v_proj(child<Linear>("v_proj", c.integer("hidden_size"), key_heads * size, c.flag("attention_bias"))),
        o_proj(child<Linear>("o_proj", heads * size, c.integer("hidden_size"), c.flag("attention_bias"))) {}

  Result forward(const Tensor& x, const Tensor& cosine, const Tensor& sine, const AttentionMask& mask,
                 const LayerCache& past, bool eager) {
    const Tensor query = apply_rotary(split_heads(q_proj(x), heads, size), cosine, sine);
    const Tensor key = apply_rotary(split_heads(k_proj(x), key_heads, size), cosine, sine);
    const Tensor value = split_heads(v_proj(x), key_heads, size);
    const LayerCache now = past.updated(key, value);
    const AttentionResult attended = attend(
        query, now.key, now.value, mask, {.dropout = training() ? dropout : 0, .eager = eager, .softmax_in_float32 = true});
    return {o_proj(attended.output), attended.weights, now};
  }

  int64_t heads, key_heads, size;
  double dropout;
  Child<Linear> q_proj, k_proj, v_proj, o_proj;
};

struct LlamaMLP : Typed<LlamaMLP, GatedFeedForward> {
  static constexpr const char* torch_type = "transformers.models.llama.modeling_llama.LlamaMLP";
  explicit LlamaMLP(const Config& c) : Typed(c, c.flag("mlp_bias")) {}
};

struct LlamaDecoderLayer : Typed<LlamaDecoderLayer> {
  static constexpr const char* torch_type = "transformers.models.llama.modeling_llama.LlamaDecoderLayer";
  explicit LlamaDecoderLayer(const Config& c)
      : self_attn(child<LlamaAttention>("self_attn", c)),
        mlp(child<LlamaMLP>("mlp", c)),
        input_layernorm(child<LlamaRMSNorm>("input_layernorm", c)),
        post_attention_layernorm(child<LlamaRMSNorm>("post_attention_layernorm", c)) {}
  LlamaAttention::Result forward(const Tensor& x, const Tensor& cosine, const Tensor& sine, const AttentionMask& mask,
                                 const LayerCache& past, bool eager) {
    auto [attended, weights, now] = self_attn(input_layernorm(x), cosine, sine, mask, past, eager);
    const Tensor y = x + attended;
    return {y + mlp(post_attention_layernorm(y)), weights, now};
  }
  Child<LlamaAttention> self_attn;
  Child<LlamaMLP> mlp;
  Child<LlamaRMSNorm> input_layernorm, post_attention_layernorm;
};

struct LlamaPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "model"; }
  std::vector<std::string> no_split_modules() const override { return {"LlamaDecoderLayer"}; }
  void init_weights(Module& module) override {
    if (auto* norm = dynamic_cast<LlamaRMSNorm*>(&module))
      (*norm->weight).fill_(1);
    else
      PretrainedModel::init_weights(module);
  }
};

struct LlamaModel : RotaryDecoder<LlamaModel, LlamaPretrained, LlamaDecoderLayer, LlamaRMSNorm> {
  static constexpr const char* torch_type = "transformers.models.llama.modeling_llama.LlamaModel";
  explicit LlamaModel(const Config& c) : RotaryDecoder(c, head_size(c), false) {}
};

constexpr ModelArgument llama_span_arguments[] = {arg::input_ids,       arg::attention_mask,    arg::position_ids,
                                                  arg::past_key_values, arg::inputs_embeds,     arg::start_positions,
                                                  arg::end_positions,   arg::output_attentions, arg::output_hidden_states};

void complete(Config& config) {
  if (!config.has("num_key_value_heads")) config.set("num_key_value_heads", config.integer("num_attention_heads"));
  if (!config.has("head_dim")) config.set("head_dim", config.integer("hidden_size") / config.integer("num_attention_heads"));
  complete_rope_parameters(config, 10000);
}

constexpr HeadFamily llama_heads{"transformers.models.llama.modeling_llama.Llama", "model", made_model<LlamaModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "llama",
      .config_class = "LlamaConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": null, "hidden_act": "silu", "max_position_embeddings": 2048,
        "initializer_range": 0.02, "rms_norm_eps": 1e-06, "use_cache": true, "pad_token_id": null, "bos_token_id": 1,
        "eos_token_id": 2, "pretraining_tp": 1, "tie_word_embeddings": false, "attention_bias": false,
        "attention_dropout": 0.0, "mlp_bias": false, "head_dim": null})",
      .schema = rotary_schema(),
      .complete = complete,
      .classes = {model_class<LlamaModel>("LlamaModel", {"default"}),
                  head_class<CausalLM>({"causal-lm"},
                                       {.family = &llama_heads, .part = "ForCausalLM", .embedding = "embed_tokens"}),
                  head_class<LastTokenClassification>({"sequence-classification"},
                                                      {&llama_heads, "ForSequenceClassification"}),
                  head_class<QuestionAnswering>({"question-answering"}, {.family = &llama_heads,
                                                                         .part = "ForQuestionAnswering",
                                                                         .arguments = llama_span_arguments,
                                                                         .base = "transformer"})},
  });
}

}  // namespace calque::llama
