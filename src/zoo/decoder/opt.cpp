// OPT: learned positions counted over what the attention mask keeps, norms before or after, embeddings that may be narrower
// than the layers.
#include "calque/hub/checkpointing.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/container.h"
#include "calque/nn/functional.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/scans.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/child_if.h"
#include "zoo/blocks/embeddings.h"
#include "zoo/blocks/projected_attention.h"
#include "zoo/heads/decoder_heads.h"

namespace calque::opt {

namespace {

struct OPTAttention : Typed<OPTAttention, ProjectedAttention> {
  static constexpr const char* torch_type = "transformers.models.opt.modeling_opt.OPTAttention";
  explicit OPTAttention(const Config& c)
      : Typed(Options{.hidden_size = c.integer("hidden_size"),
                      .heads = c.integer("num_attention_heads"),
                      .dropout = c.number("attention_dropout"),
                      .bias = c.flag("enable_bias"),
                      .softmax_in_float32 = true}) {}
};

struct OPTDecoderLayer : Checkpointed<Typed<OPTDecoderLayer>> {
  static constexpr const char* torch_type = "transformers.models.opt.modeling_opt.OPTDecoderLayer";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "past_key_values", "head_mask",
                                                      "eager"};
  explicit OPTDecoderLayer(const Config& c)
      : norm_before(c.flag("do_layer_norm_before")),
        dropout(c.number("dropout")),
        activation_fn(activation_named(c.text("activation_function"))),
        self_attn(child<OPTAttention>("self_attn", c)),
        self_attn_layer_norm(child<LayerNorm>("self_attn_layer_norm", c.integer("hidden_size"), norm_options(c))),
        fc1(child<Linear>("fc1", c.integer("hidden_size"), c.integer("ffn_dim"), c.flag("enable_bias"))),
        fc2(child<Linear>("fc2", c.integer("ffn_dim"), c.integer("hidden_size"), c.flag("enable_bias"))),
        final_layer_norm(child<LayerNorm>("final_layer_norm", c.integer("hidden_size"), norm_options(c))) {}
  static LayerNormOptions norm_options(const Config& c) {
    return {.elementwise_affine = c.flag("layer_norm_elementwise_affine")};
  }

  OPTAttention::Result forward(const Tensor& hidden_states, const AttentionMask& mask, const LayerCache& past,
                               const Tensor& head_mask, bool eager) {
    auto [attended, weights, now] =
        self_attn(norm_before ? self_attn_layer_norm(hidden_states) : hidden_states, mask, Tensor(), past, head_mask, eager);
    Tensor x = hidden_states + functional::dropout(attended, dropout, training());
    if (!norm_before) x = self_attn_layer_norm(x);
    const Tensor fed = fc2(activation_fn(fc1(norm_before ? final_layer_norm(x) : x)));
    x = x + functional::dropout(fed, dropout, training());
    if (!norm_before) x = final_layer_norm(x);
    return {x, weights, now};
  }

  bool norm_before;
  double dropout;
  Activation activation_fn;
  Child<OPTAttention> self_attn;
  Child<LayerNorm> self_attn_layer_norm;
  Child<Linear> fc1, fc2;
  Child<LayerNorm> final_layer_norm;
};

struct OPTPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "model"; }
  std::vector<std::string> no_split_modules() const override { return {"OPTDecoderLayer"}; }
};

struct OPTDecoder : ModelOf<OPTDecoder, OPTPretrained> {
  static constexpr const char* torch_type = "transformers.models.opt.modeling_opt.OPTDecoder";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,    arg::attention_mask,    arg::past_key_values,      arg::inputs_embeds, arg::use_cache,
      arg::position_ids, arg::output_attentions, arg::output_hidden_states, arg::head_mask};
  explicit OPTDecoder(const Config& c)
      : ModelOf(c),
        embed_tokens(child<Embedding>("embed_tokens", c.integer("vocab_size"), c.integer("word_embed_proj_dim"),
                                      EmbeddingOptions{.padding_idx = c.optional_integer("pad_token_id")})),
        embed_positions(child<OffsetPositions>("embed_positions",
                                               "transformers.models.opt.modeling_opt.OPTLearnedPositionalEmbedding",
                                               c.integer("max_position_embeddings"), c.integer("hidden_size"))),
        project_out(child_if<Linear>(projects(c), *this, "project_out", c.integer("hidden_size"),
                                     c.integer("word_embed_proj_dim"), false)),
        project_in(child_if<Linear>(projects(c), *this, "project_in", c.integer("word_embed_proj_dim"),
                                    c.integer("hidden_size"), false)),
        final_layer_norm(child_if<LayerNorm>(c.flag("do_layer_norm_before") && !c.flag("_remove_final_layer_norm"), *this,
                                             "final_layer_norm", c.integer("hidden_size"),
                                             OPTDecoderLayer::norm_options(c))),
        layers(child<ModuleList>("layers")) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layers->emplace<OPTDecoderLayer>(c);
  }
  static bool projects(const Config& c) { return c.integer("word_embed_proj_dim") != c.integer("hidden_size"); }

  ModelOutput forward(const ModelInputs& in) override {
    Tensor embeds = embedded(in, embed_tokens);
    const SymInt past = in[arg::past_key_values].length();
    const bool eager = eager_attention(config(), wants_attentions(in), in[arg::head_mask]);
    const AttentionMask mask = causal_mask(embeds, in[arg::attention_mask], {.past = past});
    const Tensor positions =
        in[arg::position_ids].defined() ? in[arg::position_ids] : counted_positions(embeds, in[arg::attention_mask], past);
    if (project_in) embeds = (*project_in)(embeds);

    Tensor x = embeds + embed_positions(positions);
    LayerOutputs outputs(*this, in);
    const auto call = [&](OPTDecoderLayer& layer, const Tensor& state, size_t i) {
      return layer(state, mask, in[arg::past_key_values].layer(i), head_mask_of_layer(in[arg::head_mask], i), eager);
    };
    x = outputs.run<OPTDecoderLayer>(*layers, x, call, {.probability = config().number("layerdrop")});
    if (final_layer_norm) x = (*final_layer_norm)(x);
    if (project_out) x = (*project_out)(x);
    return outputs.with_last(x);
  }
  // Padding is position -1, the others count from 0.
  static Tensor counted_positions(const Tensor& embeds, const Tensor& attention_mask, const SymInt& past) {
    if (!attention_mask.defined() || attention_mask.dim() != 2) return positions_after(past, embeds);
    const Tensor kept = attention_mask.to(DType::int64);
    const Tensor positions = cumsum(kept, 1) * kept - 1;
    return past.is_symbolic() || past.as_int() != 0 ? positions.slice(1, past) : positions;
  }

  Child<Embedding>* input_embeddings() override { return &embed_tokens; }

  Child<Embedding> embed_tokens;
  Child<OffsetPositions> embed_positions;
  std::optional<Child<Linear>> project_out, project_in;
  std::optional<Child<LayerNorm>> final_layer_norm;
  Child<ModuleList> layers;
};

struct OPTModel : ModelOf<OPTModel, OPTPretrained> {
  static constexpr const char* torch_type = "transformers.models.opt.modeling_opt.OPTModel";
  static constexpr auto& forward_arguments = OPTDecoder::forward_arguments;
  explicit OPTModel(const Config& c) : ModelOf(c), decoder(child<OPTDecoder>("decoder", c)) {}
  ModelOutput forward(const ModelInputs& in) override { return decoder(in); }
  Child<Embedding>* input_embeddings() override { return decoder->input_embeddings(); }
  Child<OPTDecoder> decoder;
};

constexpr HeadFamily opt_heads{"transformers.models.opt.modeling_opt.OPT", "model", made_model<OPTModel>};

constexpr ModelArgument opt_lm_arguments[] = {
    arg::input_ids,    arg::attention_mask, arg::past_key_values,   arg::inputs_embeds,        arg::labels,   arg::use_cache,
    arg::position_ids, arg::logits_to_keep, arg::output_attentions, arg::output_hidden_states, arg::head_mask};
constexpr ModelArgument opt_span_arguments[] = {
    arg::input_ids,         arg::attention_mask,       arg::past_key_values, arg::inputs_embeds,
    arg::start_positions,   arg::end_positions,        arg::use_cache,       arg::position_ids,
    arg::output_attentions, arg::output_hidden_states, arg::head_mask};

void complete(Config& config) {
  if (!config.has("word_embed_proj_dim")) config.set("word_embed_proj_dim", config.integer("hidden_size"));
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "opt",
      .config_class = "OPTConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 50272, "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072,
        "max_position_embeddings": 2048, "do_layer_norm_before": true, "_remove_final_layer_norm": false,
        "word_embed_proj_dim": null, "dropout": 0.1, "attention_dropout": 0.0, "num_attention_heads": 12,
        "activation_function": "relu", "layerdrop": 0.0, "init_std": 0.02, "use_cache": true, "pad_token_id": 1,
        "bos_token_id": 2, "eos_token_id": 2, "enable_bias": true, "layer_norm_elementwise_affine": true,
        "tie_word_embeddings": true})",
      .schema = {.relations = {multiple("hidden_size", "num_attention_heads")}},
      .complete = complete,
      .classes = {model_class<OPTModel>("OPTModel", {"default"}),
                  head_class<CausalLM>({"causal-lm"}, {.family = &opt_heads,
                                                       .part = "ForCausalLM",
                                                       .arguments = opt_lm_arguments,
                                                       .embedding = "decoder.embed_tokens",
                                                       .features = "word_embed_proj_dim"}),
                  head_class<LastTokenClassification>(
                      {"sequence-classification"},
                      {.family = &opt_heads, .part = "ForSequenceClassification", .features = "word_embed_proj_dim"}),
                  head_class<QuestionAnswering>({"question-answering"}, {.family = &opt_heads,
                                                                         .part = "ForQuestionAnswering",
                                                                         .arguments = opt_span_arguments,
                                                                         .features = "word_embed_proj_dim"})},
  });
}

}  // namespace calque::opt
