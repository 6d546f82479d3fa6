// XGLM: scaled word embeddings, sinusoidal positions that start at row 2, norms before attention and feed-forward, cross
// attention where asked for.
#include <cmath>

#include "calque/base/error.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/container.h"
#include "calque/nn/functional.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/normalization.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/child_if.h"
#include "zoo/blocks/embeddings.h"
#include "zoo/blocks/projected_attention.h"
#include "zoo/heads/cross_arguments.h"
#include "zoo/heads/decoder_heads.h"

namespace calque::xglm {

namespace {

struct XGLMSinusoidalPositionalEmbedding : Typed<XGLMSinusoidalPositionalEmbedding> {
  static constexpr const char* torch_type = "transformers.models.xglm.modeling_xglm.XGLMSinusoidalPositionalEmbedding";
  static constexpr const char* forward_arguments[] = {"position_ids", "length"};
  static constexpr int64_t offset = 2;
  XGLMSinusoidalPositionalEmbedding(int64_t positions, int64_t size, std::optional<int64_t> padding)
      : padding(padding), weights(register_buffer("weights", sinusoidal_table(positions + offset, size, padding), false)) {}
  Tensor forward(const Tensor& position_ids, const SymInt& length) {
    return sinusoids_at(position_ids + offset, length + offset, weights, padding);
  }
  std::optional<int64_t> padding;
  Buffer weights;
};

struct XGLMAttention : Typed<XGLMAttention, ProjectedAttention> {
  static constexpr const char* torch_type = "transformers.models.xglm.modeling_xglm.XGLMAttention";
  explicit XGLMAttention(const Config& c)
      : Typed(Options{.hidden_size = c.integer("hidden_size"),
                      .heads = c.integer("num_attention_heads"),
                      .dropout = c.number("attention_dropout")}) {}
};

struct XGLMDecoderLayer : Checkpointed<Typed<XGLMDecoderLayer>> {
  static constexpr const char* torch_type = "transformers.models.xglm.modeling_xglm.XGLMDecoderLayer";
  static constexpr const char* forward_arguments[] = {
      "hidden_states",   "attention_mask", "encoder_hidden_states", "encoder_attention_mask",
      "past_key_values", "head_mask",      "cross_attn_head_mask",  "eager"};
  using Result = std::tuple<Tensor, Tensor, Tensor, LayerCache>;  // hidden states, weights, cross weights, keys and values

  explicit XGLMDecoderLayer(const Config& c)
      : dropout(c.number("dropout")),
        activation_dropout(c.number("activation_dropout")),
        activation_fn(activation_named(c.text("activation_function"))),
        self_attn(child<XGLMAttention>("self_attn", c)),
        encoder_attn(child_if<XGLMAttention>(c.flag("add_cross_attention"), *this, "encoder_attn", c)),
        encoder_attn_layer_norm(
            child_if<LayerNorm>(c.flag("add_cross_attention"), *this, "encoder_attn_layer_norm", c.integer("hidden_size"))),
        self_attn_layer_norm(child<LayerNorm>("self_attn_layer_norm", c.integer("hidden_size"))),
        fc1(child<Linear>("fc1", c.integer("hidden_size"), c.integer("ffn_dim"))),
        fc2(child<Linear>("fc2", c.integer("ffn_dim"), c.integer("hidden_size"))),
        final_layer_norm(child<LayerNorm>("final_layer_norm", c.integer("hidden_size"))) {}

  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& encoder,
                 const AttentionMask& encoder_mask, const LayerCache& past, const Tensor& head_mask,
                 const Tensor& cross_head_mask, bool eager) {
    auto [attended, weights, now] = self_attn(self_attn_layer_norm(hidden_states), mask, Tensor(), past, head_mask, eager);
    Tensor x = hidden_states + functional::dropout(attended, dropout, training());
    Tensor cross_weights;
    if (encoder.defined()) {
      if (!encoder_attn)
        throw UserError(
            "encoder_hidden_states are given, but the model has no cross attention: set add_cross_attention in the config");
      auto [looked_up, its_weights, with_cross] =
          (*encoder_attn)((*encoder_attn_layer_norm)(x), encoder_mask, encoder, now, cross_head_mask, eager);
      x = x + functional::dropout(looked_up, dropout, training());
      cross_weights = its_weights;
      now = with_cross;
    }
    const Tensor inner = functional::dropout(activation_fn(fc1(final_layer_norm(x))), activation_dropout, training());
    return {x + functional::dropout(fc2(inner), dropout, training()), weights, cross_weights, now};
  }

  double dropout, activation_dropout;
  Activation activation_fn;
  Child<XGLMAttention> self_attn;
  std::optional<Child<XGLMAttention>> encoder_attn;
  std::optional<Child<LayerNorm>> encoder_attn_layer_norm;
  Child<LayerNorm> self_attn_layer_norm;
  Child<Linear> fc1, fc2;
  Child<LayerNorm> final_layer_norm;
};

struct XGLMPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "model"; }
  std::vector<std::string> no_split_modules() const override { return {"XGLMDecoderLayer"}; }
  // Position tables that old versions stored.
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override { return {R"(embed_positions\.weights)"}; }
};

struct XGLMModel : ModelOf<XGLMModel, XGLMPretrained> {
  static constexpr const char* torch_type = "transformers.models.xglm.modeling_xglm.XGLMModel";
  static constexpr auto forward_arguments =
      with_arguments(names_of(cross_decoder_arguments), arg::attention_mask, {arg::position_ids});
  explicit XGLMModel(const Config& c)
      : ModelOf(c),
        embed_tokens(child_module<Embedding>(
            "embed_tokens", std::make_shared<ScaledWordEmbedding>(
                                "transformers.models.xglm.modeling_xglm.XGLMScaledWordEmbedding", c.integer("vocab_size"),
                                c.integer("hidden_size"), c.optional_integer("pad_token_id"),
                                c.flag("scale_embedding") ? std::sqrt(c.number("hidden_size")) : 1))),
        embed_positions(child<XGLMSinusoidalPositionalEmbedding>("embed_positions", c.integer("max_position_embeddings"),
                                                                 c.integer("hidden_size"),
                                                                 c.optional_integer("pad_token_id"))),
        layers(child<ModuleList>("layers")),
        layer_norm(child<LayerNorm>("layer_norm", c.integer("hidden_size"))) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layers->emplace<XGLMDecoderLayer>(c);
  }

  ModelOutput forward(const ModelInputs& in) override {
    const Tensor embeds = embedded(in, embed_tokens);
    const SymInt past = in[arg::past_key_values].length();
    const Tensor positions = in[arg::position_ids].defined() ? in[arg::position_ids] : positions_after(past, embeds);
    const bool eager = eager_attention(config(), wants_attentions(in),
                                       in[arg::head_mask].defined() ? in[arg::head_mask] : in[arg::cross_attn_head_mask]);
    const AttentionMask mask = causal_mask(embeds, in[arg::attention_mask], {.past = past});
    Tensor x = embeds + embed_positions(positions, past + embeds.sym_size(1)).to(embeds.dtype());
    x = functional::dropout(x, config().number("dropout"), training());
    LayerOutputs outputs(*this, in);
    x = outputs.run_across<XGLMDecoderLayer>(*layers, in, x, mask, eager, {.probability = config().number("layerdrop")});
    return outputs.with_last(layer_norm(x));
  }

  Child<Embedding>* input_embeddings() override { return &embed_tokens; }

  Child<Embedding> embed_tokens;
  Child<XGLMSinusoidalPositionalEmbedding> embed_positions;
  Child<ModuleList> layers;
  Child<LayerNorm> layer_norm;
};

constexpr HeadFamily xglm_heads{"transformers.models.xglm.modeling_xglm.XGLM", "model", made_model<XGLMModel>};

constexpr auto xglm_lm_arguments = with_arguments(cross_decoder_lm_arguments, arg::attention_mask, {arg::position_ids});

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "xglm",
      .config_class = "XGLMConfig",
      .attribute_map = {{"num_attention_heads", "attention_heads"},
                        {"hidden_size", "d_model"},
                        {"num_hidden_layers", "num_layers"}},
      .defaults =
          R"({"vocab_size": 256008, "max_position_embeddings": 2048, "d_model": 1024, "ffn_dim": 4096, "num_layers": 24,
        "attention_heads": 16, "activation_function": "gelu", "dropout": 0.1, "attention_dropout": 0.1,
        "activation_dropout": 0.0, "layerdrop": 0.0, "init_std": 0.02, "scale_embedding": true, "use_cache": true,
        "decoder_start_token_id": 2, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "add_cross_attention": false,
        "tie_word_embeddings": true})",
      .schema = {.relations = {multiple("d_model", "attention_heads")}, .tables = {{"max_position_embeddings", "d_model"}}},
      .classes = {model_class<XGLMModel>("XGLMModel", {"default"}),
                  head_class<CausalLM>({"causal-lm"}, {.family = &xglm_heads,
                                                       .part = "ForCausalLM",
                                                       .arguments = xglm_lm_arguments,
                                                       .embedding = "embed_tokens"})},
  });
}

}  // namespace calque::xglm
