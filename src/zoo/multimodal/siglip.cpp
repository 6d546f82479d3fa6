// SigLIP: texts and pictures compared as CLIP does, each pair by itself (a sigmoid). Pictures have no token of their own: an
// attention with a learned query pools them. Texts are read in both directions, and their last token stands for them.
#include "calque/base/error.h"
#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "calque/nn/transformer.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/unary.h"
#include "zoo/blocks/clip_layers.h"
#include "zoo/heads/vision_heads.h"

namespace calque::siglip {

namespace {

constexpr char siglip_family[] = "transformers.models.siglip.modeling_siglip.Siglip";

struct SiglipMultiheadAttentionPoolingHead : Typed<SiglipMultiheadAttentionPoolingHead> {
  static constexpr const char* torch_type = "transformers.models.siglip.modeling_siglip.SiglipMultiheadAttentionPoolingHead";
  static constexpr const char* forward_arguments[] = {"hidden_state"};
  explicit SiglipMultiheadAttentionPoolingHead(const Config& c)
      : probe(register_parameter("probe", unset_parameter({1, 1, c.integer("hidden_size")}))),
        attention(child<MultiheadAttention>("attention", c.integer("hidden_size"), c.integer("num_attention_heads"),
                                            MultiheadAttentionOptions{.batch_first = true})),
        layernorm(
            child<LayerNorm>("layernorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        mlp(child<ClipMLP>("mlp", c, siglip_family)) {}
  Tensor forward(const Tensor& hidden_state) {
    const Tensor query = probe->repeat({hidden_state.sym_size(0), 1, 1});
    const Tensor pooled = std::get<0>(attention(query, hidden_state, hidden_state));
    return (pooled + mlp(layernorm(pooled))).select(1, 0);
  }
  Parameter probe;
  Child<MultiheadAttention> attention;
  Child<LayerNorm> layernorm;
  Child<ClipMLP> mlp;
};

// What the original's JAX code starts with.
void lecun_normal(const Tensor& weight) {
  const double deviation = 1 / std::sqrt(static_cast<double>(init::fan_in_and_fan_out(weight).first));
  init::trunc_normal_(weight, 0, 1);  // cut at two deviations
  weight.mul_(deviation / 0.87962566103423978);
}

void init_siglip_part(Module& module, const Config& config) {
  const auto xavier = [](const Child<Linear>& linear) {
    init::xavier_uniform_(linear->weight);
    init::zeros_(linear->bias);
  };
  if (auto* pictures = dynamic_cast<ClipVisionEmbeddings*>(&module)) {
    const auto width = static_cast<double>(config.integer("hidden_size"));
    init::normal_(pictures->position_embedding->weight, 0, 1 / std::sqrt(width));
  } else if (auto* embedding = dynamic_cast<Embedding*>(&module)) {
    const auto fan_in = static_cast<double>(init::fan_in_and_fan_out(embedding->weight).first);
    init::normal_(embedding->weight, 0, 1 / std::sqrt(fan_in));
  } else if (auto* attention = dynamic_cast<ClipAttention*>(&module)) {
    for (const Child<Linear>* one : {&attention->q_proj, &attention->k_proj, &attention->v_proj, &attention->out_proj})
      xavier(*one);
  } else if (auto* mlp = dynamic_cast<ClipMLP*>(&module)) {
    for (const Child<Linear>* one : {&mlp->fc1, &mlp->fc2}) {
      init::xavier_uniform_((*one)->weight);
      init::normal_((*one)->bias, 0, 1e-6);
    }
  } else if (auto* head = dynamic_cast<SiglipMultiheadAttentionPoolingHead*>(&module)) {
    init::xavier_uniform_(head->probe);
    init::xavier_uniform_(head->attention->in_proj_weight);
    init::zeros_(head->attention->in_proj_bias);
  } else if (auto* linear = dynamic_cast<Linear*>(&module)) {
    lecun_normal(linear->weight);
    if (linear->bias.defined()) init::zeros_(linear->bias);
  } else if (auto* convolution = dynamic_cast<Conv2d*>(&module)) {
    lecun_normal(convolution->weight);
    if (convolution->bias.defined()) init::zeros_(convolution->bias);
  } else if (auto* norm = dynamic_cast<LayerNorm*>(&module)) {
    norm->reset_parameters();
  }
}

std::vector<std::string> siglip_wholes() {
  return {"SiglipTextEmbeddings", "SiglipVisionEmbeddings", "SiglipEncoderLayer", "SiglipMultiheadAttentionPoolingHead"};
}

struct SiglipTextModel : ModelOf<SiglipTextModel, ClipTexts> {
  static constexpr const char* torch_type = "transformers.models.siglip.modeling_siglip.SiglipTextModel";
  explicit SiglipTextModel(const Config& c)
      : ModelOf(c, siglip_family), head(child<Linear>("head", c.integer("hidden_size"), c.integer("projection_size"))) {}
  ModelOutput forward(const ModelInputs& in) override {
    EncoderResult result = encoder(encoder_inputs(*this, in, embeddings(in[arg::input_ids], in[arg::position_ids])));
    result.last_hidden_state = final_layer_norm(result.last_hidden_state);
    return encoder_output(result, head(result.last_hidden_state.select(1, -1)));
  }
  std::vector<std::string> no_split_modules() const override { return siglip_wholes(); }
  void init_weights(Module& module) override { init_siglip_part(module, config()); }
  Child<Linear> head;
};

struct SiglipVisionModel : ModelOf<SiglipVisionModel, VisionModel> {
  static constexpr const char* torch_type = "transformers.models.siglip.modeling_siglip.SiglipVisionModel";
  static constexpr auto& forward_arguments = ClipPictures::forward_arguments;
  explicit SiglipVisionModel(const Config& c)
      : ModelOf(c),
        embeddings(child<ClipVisionEmbeddings>("embeddings", c, siglip_family, false)),
        encoder(child<ClipEncoder>("encoder", c, siglip_family)),
        post_layernorm(child<LayerNorm>("post_layernorm", c.integer("hidden_size"),
                                        LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        head(child_if<SiglipMultiheadAttentionPoolingHead>(!c.has("vision_use_head") || c.flag("vision_use_head"), *this,
                                                           "head", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const Tensor embedded = embeddings(in[arg::pixel_values], in[arg::interpolate_pos_encoding].value_or(false));
    EncoderResult result = encoder(unmasked_inputs(*this, in, embedded));
    result.last_hidden_state = post_layernorm(result.last_hidden_state);
    return encoder_output(result, head ? (*head)(result.last_hidden_state) : Tensor());
  }
  std::string base_model_prefix() const override { return "vision_model"; }
  std::vector<std::string> no_split_modules() const override { return siglip_wholes(); }
  void init_weights(Module& module) override { init_siglip_part(module, config()); }
  Child<ClipVisionEmbeddings> embeddings;
  Child<ClipEncoder> encoder;
  Child<LayerNorm> post_layernorm;
  std::optional<Child<SiglipMultiheadAttentionPoolingHead>> head;
};

struct SiglipModel : ModelOf<SiglipModel, TwoTowers> {
  static constexpr const char* torch_type = "transformers.models.siglip.modeling_siglip.SiglipModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,   arg::pixel_values,      arg::attention_mask,       arg::position_ids,
      arg::return_loss, arg::output_attentions, arg::output_hidden_states, arg::interpolate_pos_encoding};
  explicit SiglipModel(const Config& c)
      : ModelOf(c, std::make_shared<SiglipTextModel>(c.nested("text_config")),
                std::make_shared<SiglipVisionModel>(c.nested("vision_config"))),
        logit_scale(register_parameter("logit_scale", unset_parameter({1}))),
        logit_bias(register_parameter("logit_bias", unset_parameter({1}))) {}

  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput pictures = vision_model(in), texts = text_model(in);
    const auto unit = [](const Tensor& x) { return x / norm(x, 2, {-1}, true); };
    const Tensor image_embeds = unit(pictures["pooler_output"]), text_embeds = unit(texts["pooler_output"]);
    const Tensor logits = matmul(text_embeds, image_embeds.t()) * exp(logit_scale) + *logit_bias;
    return pairs_output(in[arg::return_loss].value_or(false) ? loss(logits) : Tensor(), logits, text_embeds, image_embeds,
                        texts, pictures);
  }
  std::string base_model_prefix() const override { return "siglip"; }
  std::vector<std::string> no_split_modules() const override { return siglip_wholes(); }
  void init_weights(Module& module) override {
    if (&module != this) return init_siglip_part(module, config());
    init::zeros_(logit_scale);
    init::zeros_(logit_bias);
  }

  Parameter logit_scale, logit_bias;

 private:
  // A text and the picture of its row belong together; no other pair does.
  static Tensor loss(const Tensor& logits) {
    const Tensor together = eye(logits.sym_size(0), std::nullopt, std::nullopt, logits.device());
    const Tensor likelihoods = log_sigmoid((2 * together - ones_like(logits)) * logits);
    return mean(-sum(likelihoods, {-1}));
  }
};

struct SiglipForImageClassification : ModelOf<SiglipForImageClassification, TowerClassification> {
  static constexpr const char* torch_type = "transformers.models.siglip.modeling_siglip.SiglipForImageClassification";
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::labels, arg::output_attentions,
                                                        arg::output_hidden_states, arg::interpolate_pos_encoding};
  explicit SiglipForImageClassification(const Config& c)
      : ModelOf(c, std::make_shared<SiglipVisionModel>(c.nested("vision_config")), 0) {}
  std::string base_model_prefix() const override { return "siglip"; }
  std::vector<std::string> no_split_modules() const override { return siglip_wholes(); }
  void init_weights(Module& module) override {
    init_siglip_part(module, config());
    if (&module != this || !classifier) return;
    init_projection(*classifier, config());
  }
};

void complete_siglip(Config& config) {
  complete_part(config, "text_config", "siglip_text_model");
  complete_part(config, "vision_config", "siglip_vision_model");
}

void complete_text(Config& config) {
  if (!config.has("projection_size")) config.set("projection_size", config.integer("hidden_size"));
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "siglip_text_model",
      .config_class = "SiglipTextConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 32000, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "max_position_embeddings": 64, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-06,
        "attention_dropout": 0.0, "pad_token_id": 1, "bos_token_id": 49406, "eos_token_id": 49407, "projection_size": null})",
      .schema = {.keys = {{"projection_size", KeyKind::size}},
                 .relations = {multiple("hidden_size", "num_attention_heads")}},
      .complete = complete_text,
      .classes = {model_class<SiglipTextModel>("SiglipTextModel", {"special"})},
  });
  registry.add({
      .model_type = "siglip_vision_model",
      .config_class = "SiglipVisionConfig",
      .attribute_map = {},
      .defaults = R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
        "num_channels": 3, "image_size": 224, "patch_size": 16, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-06,
        "attention_dropout": 0.0})",
      .schema = {.relations = {multiple("hidden_size", "num_attention_heads")}},
      .classes = {model_class<SiglipVisionModel>("SiglipVisionModel", {"special"})},
  });
  registry.add({
      .model_type = "siglip",
      .config_class = "SiglipConfig",
      .attribute_map = {},
      .defaults = R"({"text_config": null, "vision_config": null, "initializer_factor": 1.0})",
      .complete = complete_siglip,
      .classes = {model_class<SiglipModel>("SiglipModel", {"default", "zero-shot-image-classification"}),
                  model_class<SiglipForImageClassification>("SiglipForImageClassification", {"image-classification"})},
  });
}

}  // namespace calque::siglip
