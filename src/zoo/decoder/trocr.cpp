// TrOCR's decoder: learned or sinusoidal positions, norms after attention and feed-forward, cross attention to an image
// encoder's output, which may have another size.
#include <cmath>

#include "calque/base/error.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/container.h"
#include "calque/nn/functional.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/scans.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/child_if.h"
#include "zoo/blocks/embeddings.h"
#include "zoo/blocks/projected_attention.h"
#include "zoo/heads/cross_arguments.h"
#include "zoo/heads/decoder_heads.h"

namespace calque::trocr {

namespace {

// Positions count what is no padding, from the row behind the padding's.
struct TrOCRSinusoidalPositionalEmbedding : Typed<TrOCRSinusoidalPositionalEmbedding> {
  static constexpr const char* torch_type = "transformers.models.trocr.modeling_trocr.TrOCRSinusoidalPositionalEmbedding";
  static constexpr const char* forward_arguments[] = {"input_ids", "past_key_values_length"};
  TrOCRSinusoidalPositionalEmbedding(int64_t positions, int64_t size, int64_t padding)
      : padding(padding), weights(register_constant("weights", sinusoidal_table(positions, size, padding))) {}
  Tensor forward(const Tensor& input_ids, const SymInt& past) {
    const Tensor kept = ne(input_ids, padding).to(DType::int64);
    const Tensor counted = (cumsum(kept, 1) + Scalar(past)) * kept + padding;
    return sinusoids_at(counted, padding + 1 + past + input_ids.sym_size(1), weights, padding);
  }
  int64_t padding;
  Constant weights;
};

struct TrOCRAttention : Typed<TrOCRAttention, ProjectedAttention> {
  static constexpr const char* torch_type = "transformers.models.trocr.modeling_trocr.TrOCRAttention";
  TrOCRAttention(const Config& c, bool cross)
      : Typed(Options{.hidden_size = c.integer("hidden_size"),
                      .heads = c.integer("num_attention_heads"),
                      .dropout = c.number("attention_dropout"),
                      .memory_size = cross ? c.optional_integer("cross_attention_hidden_size").value_or(0) : 0}) {}
};

struct TrOCRDecoderLayer : Checkpointed<Typed<TrOCRDecoderLayer>> {
  static constexpr const char* torch_type = "transformers.models.trocr.modeling_trocr.TrOCRDecoderLayer";
  static constexpr const char* forward_arguments[] = {
      "hidden_states",   "attention_mask", "encoder_hidden_states", "encoder_attention_mask",
      "past_key_values", "head_mask",      "cross_attn_head_mask",  "eager"};
  using Result = std::tuple<Tensor, Tensor, Tensor, LayerCache>;  // hidden states, weights, cross weights, keys and values

  explicit TrOCRDecoderLayer(const Config& c)
      : dropout(c.number("dropout")),
        activation_dropout(c.number("activation_dropout")),
        activation_fn(activation_named(c.text("activation_function"))),
        self_attn(child<TrOCRAttention>("self_attn", c, false)),
        self_attn_layer_norm(child<LayerNorm>("self_attn_layer_norm", c.integer("hidden_size"))),
        encoder_attn(child_if<TrOCRAttention>(c.flag("is_decoder"), *this, "encoder_attn", c, true)),
        encoder_attn_layer_norm(
            child_if<LayerNorm>(c.flag("is_decoder"), *this, "encoder_attn_layer_norm", c.integer("hidden_size"))),
        fc1(child<Linear>("fc1", c.integer("hidden_size"), c.integer("decoder_ffn_dim"))),
        fc2(child<Linear>("fc2", c.integer("decoder_ffn_dim"), c.integer("hidden_size"))),
        final_layer_norm(child<LayerNorm>("final_layer_norm", c.integer("hidden_size"))) {}

  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& encoder,
                 const AttentionMask& encoder_mask, const LayerCache& past, const Tensor& head_mask,
                 const Tensor& cross_head_mask, bool eager) {
    auto [attended, weights, now] = self_attn(hidden_states, mask, Tensor(), past, head_mask, eager);
    Tensor x = self_attn_layer_norm(hidden_states + functional::dropout(attended, dropout, training()));
    Tensor cross_weights;
    if (encoder.defined()) {
      if (!encoder_attn)
        throw UserError(
            "encoder_hidden_states are given, but the model has no cross attention: set is_decoder in the config");
      auto [looked_up, its_weights, with_cross] = (*encoder_attn)(x, encoder_mask, encoder, now, cross_head_mask, eager);
      x = (*encoder_attn_layer_norm)(x + functional::dropout(looked_up, dropout, training()));
      cross_weights = its_weights;
      now = with_cross;
    }
    const Tensor inner = functional::dropout(activation_fn(fc1(x)), activation_dropout, training());
    return {final_layer_norm(x + functional::dropout(fc2(inner), dropout, training())), weights, cross_weights, now};
  }

  double dropout, activation_dropout;
  Activation activation_fn;
  Child<TrOCRAttention> self_attn;
  Child<LayerNorm> self_attn_layer_norm;
  std::optional<Child<TrOCRAttention>> encoder_attn;
  std::optional<Child<LayerNorm>> encoder_attn_layer_norm;
  Child<Linear> fc1, fc2;
  Child<LayerNorm> final_layer_norm;
};

struct TrOCRPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "model"; }
  std::vector<std::string> no_split_modules() const override { return {"TrOCRDecoderLayer"}; }
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override {
    return {R"(embed_positions\._float_tensor)"};
  }
};

struct TrOCRDecoder : ModelOf<TrOCRDecoder, TrOCRPretrained> {
  static constexpr const char* torch_type = "transformers.models.trocr.modeling_trocr.TrOCRDecoder";
  static constexpr auto& forward_arguments = cross_decoder_arguments;
  explicit TrOCRDecoder(const Config& c)
      : ModelOf(c),
        embed_tokens(child_module<Embedding>(
            "embed_tokens", std::make_shared<ScaledWordEmbedding>(
                                "transformers.models.trocr.modeling_trocr.TrOCRScaledWordEmbedding", c.integer("vocab_size"),
                                c.integer("hidden_size"), c.optional_integer("pad_token_id"),
                                c.flag("scale_embedding") ? std::sqrt(c.number("hidden_size")) : 1))),
        learned(child_if<OffsetPositions>(c.flag("use_learned_position_embeddings"), *this, "embed_positions",
                                          "transformers.models.trocr.modeling_trocr.TrOCRLearnedPositionalEmbedding",
                                          c.integer("max_position_embeddings"), c.integer("hidden_size"))),
        sinusoidal(child_if<TrOCRSinusoidalPositionalEmbedding>(
            !c.flag("use_learned_position_embeddings"), *this, "embed_positions",
            c.integer("max_position_embeddings") + c.integer("pad_token_id") + 1, c.integer("hidden_size"),
            c.integer("pad_token_id"))),
        layernorm_embedding(
            child_if<LayerNorm>(c.flag("layernorm_embedding"), *this, "layernorm_embedding", c.integer("hidden_size"))),
        layers(child<ModuleList>("layers")) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layers->emplace<TrOCRDecoderLayer>(c);
  }

  ModelOutput forward(const ModelInputs& in) override {
    const Tensor embeds = embedded(in, embed_tokens);
    const SymInt past = in[arg::past_key_values].length();
    const bool eager = eager_attention(config(), wants_attentions(in),
                                       in[arg::head_mask].defined() ? in[arg::head_mask] : in[arg::cross_attn_head_mask]);
    const AttentionMask mask = causal_mask(embeds, in[arg::attention_mask], {.past = past});
    Tensor x = embeds + positions(in, embeds, past);
    if (layernorm_embedding) x = (*layernorm_embedding)(x);
    x = functional::dropout(x, config().number("dropout"), training());
    LayerOutputs outputs(*this, in);
    x = outputs.run_across<TrOCRDecoderLayer>(*layers, in, x, mask, eager,
                                              {.probability = config().number("decoder_layerdrop"), .keeps_state = true});
    return outputs.with_last(x);
  }
  Tensor positions(const ModelInputs& in, const Tensor& embeds, const SymInt& past) const {
    if (learned) return (*learned)(positions_after(past, embeds));
    if (!in[arg::input_ids].defined())
      throw UserError(
          "TrOCRDecoder: sinusoidal positions count the input_ids that are no padding, so inputs_embeds cannot stand for "
          "them");
    return (*sinusoidal)(in[arg::input_ids], past).to(embeds.dtype());
  }

  Child<Embedding>* input_embeddings() override { return &embed_tokens; }

  Child<Embedding> embed_tokens;
  std::optional<Child<OffsetPositions>> learned;  // one of the two is embed_positions
  std::optional<Child<TrOCRSinusoidalPositionalEmbedding>> sinusoidal;
  std::optional<Child<LayerNorm>> layernorm_embedding;
  Child<ModuleList> layers;
};

struct TrOCRDecoderWrapper : ModelOf<TrOCRDecoderWrapper, TrOCRPretrained> {
  static constexpr const char* torch_type = "transformers.models.trocr.modeling_trocr.TrOCRDecoderWrapper";
  static constexpr auto& forward_arguments = TrOCRDecoder::forward_arguments;
  explicit TrOCRDecoderWrapper(const Config& c) : ModelOf(c), decoder(child<TrOCRDecoder>("decoder", c)) {}
  ModelOutput forward(const ModelInputs& in) override { return decoder(in); }
  Child<Embedding>* input_embeddings() override { return decoder->input_embeddings(); }
  Child<TrOCRDecoder> decoder;
};

Config as_decoder(Config config) {
  config.set("is_decoder", true);
  config.set("is_encoder_decoder", false);
  return config;
}

struct TrOCRForCausalLM : ModelOf<TrOCRForCausalLM, TrOCRPretrained> {
  static constexpr const char* torch_type = "transformers.models.trocr.modeling_trocr.TrOCRForCausalLM";
  static constexpr auto& forward_arguments = cross_decoder_labelled_arguments;
  explicit TrOCRForCausalLM(const Config& c)
      : ModelOf(as_decoder(c)),
        model(child<TrOCRDecoderWrapper>("model", config())),
        output_projection(child<Linear>("output_projection", c.integer("hidden_size"), c.integer("vocab_size"), false)) {}

  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const Tensor logits = output_projection(base["last_hidden_state"]);
    ModelOutput out;
    // Labels are not shifted: the caller shifts the ids.
    if (in[arg::labels].defined())
      out.set("loss", class_loss(logits.view({-1, logits.sym_size(-1)}), in[arg::labels].view({-1})));
    out.set("logits", logits);
    out.take(base, {"past_key_values", "hidden_states", "attentions", "cross_attentions"});
    return out;
  }
  TiedWeights tied_weights() const override {
    if (!config().flag("tie_word_embeddings")) return {};
    return {{"output_projection.weight", "model.decoder.embed_tokens.weight"}};
  }
  bool can_generate() const override { return true; }
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<Linear>* output_embeddings() override { return &output_projection; }

  Child<TrOCRDecoderWrapper> model;
  Child<Linear> output_projection;
};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "trocr",
      .config_class = "TrOCRConfig",
      .attribute_map = {{"num_attention_heads", "decoder_attention_heads"},
                        {"hidden_size", "d_model"},
                        {"num_hidden_layers", "decoder_layers"}},
      .defaults = R"({"vocab_size": 50265, "d_model": 1024, "decoder_layers": 12, "decoder_attention_heads": 16,
        "decoder_ffn_dim": 4096, "activation_function": "gelu", "max_position_embeddings": 512, "dropout": 0.1,
        "attention_dropout": 0.0, "activation_dropout": 0.0, "decoder_start_token_id": 2, "init_std": 0.02,
        "decoder_layerdrop": 0.0, "use_cache": true, "scale_embedding": false, "use_learned_position_embeddings": true,
        "layernorm_embedding": true, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
        "cross_attention_hidden_size": null, "is_decoder": false, "tie_word_embeddings": true})",
      .schema = {.relations = {multiple("d_model", "decoder_attention_heads")},
                 .tables = {{"max_position_embeddings", "d_model"}}},
      .classes = {model_class<TrOCRForCausalLM>("TrOCRForCausalLM", {"causal-lm"}),
                  model_class<TrOCRDecoder>("TrOCRDecoder", {"special"})},
  });
}

}  // namespace calque::trocr
