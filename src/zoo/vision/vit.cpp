// ViT: a picture cut into patches, a token in front of them, and an encoder with norms before attention and feed-forward.
#include "calque/base/error.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/dropout.h"
#include "zoo/blocks/bert_encoder.h"
#include "zoo/blocks/vit_layers.h"
#include "zoo/heads/vision_heads.h"

namespace calque::vit {

namespace {

constexpr char vit_family[] = "transformers.models.vit.modeling_vit.ViT";

struct ViTEmbeddings : Typed<ViTEmbeddings> {
  static constexpr const char* torch_type = "transformers.models.vit.modeling_vit.ViTEmbeddings";
  static constexpr const char* forward_arguments[] = {"pixel_values", "bool_masked_pos", "interpolate_pos_encoding"};
  ViTEmbeddings(const Config& c, bool use_mask_token)
      : cls_token(register_parameter("cls_token", unset_parameter({1, 1, c.integer("hidden_size")}))),
        mask_token(
            register_parameter("mask_token", use_mask_token ? unset_parameter({1, 1, c.integer("hidden_size")}) : Tensor())),
        patch_embeddings(child<ViTPatchEmbeddings>("patch_embeddings", c, vit_family)),
        position_embeddings(register_parameter(
            "position_embeddings", unset_parameter({1, patch_embeddings->num_patches + 1, c.integer("hidden_size")}))),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}

  Tensor forward(const Tensor& pixel_values, const Tensor& bool_masked_pos, bool interpolate_pos_encoding) {
    const Tensor patches = with_mask_token(patch_embeddings(pixel_values), mask_token, bool_masked_pos);
    const SymInt height = pixel_values.sym_size(2), width = pixel_values.sym_size(3);
    const PictureSize own = patch_embeddings->image_size;
    if (!interpolate_pos_encoding && guard(sym_or(height != own.height, width != own.width)))
      throw UserError("Input image size (" + height.str() + "*" + width.str() + ") doesn't match model (" +
                      std::to_string(own.height) + "*" + std::to_string(own.width) +
                      "); interpolate_pos_encoding takes pictures of other sizes");
    const Tensor tokens = cat({cls_token->expand({patches.sym_size(0), -1, -1}), patches}, 1);
    return dropout(tokens + (interpolate_pos_encoding ? positions_for(position_embeddings, 1, patches.sym_size(1), height,
                                                                      width, patch_embeddings->patch_size)
                                                      : *position_embeddings));
  }

  Parameter cls_token, mask_token;
  Child<ViTPatchEmbeddings> patch_embeddings;
  Parameter position_embeddings;
  Child<Dropout> dropout;
};

struct ViTIntermediate : Typed<ViTIntermediate> {
  static constexpr const char* torch_type = "transformers.models.vit.modeling_vit.ViTIntermediate";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit ViTIntermediate(const Config& c)
      : dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("intermediate_size"))),
        act_fn(activation_named(c.text("hidden_act"))) {}
  Tensor forward(const Tensor& hidden_states) { return act_fn(dense(hidden_states)); }
  Child<Linear> dense;
  Activation act_fn;
};

struct ViTOutput : Typed<ViTOutput> {
  static constexpr const char* torch_type = "transformers.models.vit.modeling_vit.ViTOutput";
  static constexpr const char* forward_arguments[] = {"hidden_states", "input_tensor"};
  explicit ViTOutput(const Config& c)
      : dense(child<Linear>("dense", c.integer("intermediate_size"), c.integer("hidden_size"))),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}
  Tensor forward(const Tensor& hidden_states, const Tensor& input_tensor) {
    return dropout(dense(hidden_states)) + input_tensor;
  }
  Child<Linear> dense;
  Child<Dropout> dropout;
};

struct ViTLayer : Checkpointed<Typed<ViTLayer>> {
  static constexpr const char* torch_type = "transformers.models.vit.modeling_vit.ViTLayer";
  static constexpr auto& forward_arguments = ViTSelfAttention::forward_arguments;
  explicit ViTLayer(const Config& c)
      : attention(child<ViTAttention>("attention", c, vit_family)),
        intermediate(child<ViTIntermediate>("intermediate", c)),
        output(child<ViTOutput>("output", c)),
        layernorm_before(child<LayerNorm>("layernorm_before", c.integer("hidden_size"),
                                          LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        layernorm_after(child<LayerNorm>("layernorm_after", c.integer("hidden_size"),
                                         LayerNormOptions{.eps = c.number("layer_norm_eps")})) {}
  ViTSelfAttention::Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                   bool eager) {
    auto [attended, weights] = attention(layernorm_before(hidden_states), mask, head_mask, eager);
    const Tensor x = attended + hidden_states;
    return {output(intermediate(layernorm_after(x)), x), weights};
  }
  Child<ViTAttention> attention;
  Child<ViTIntermediate> intermediate;
  Child<ViTOutput> output;
  Child<LayerNorm> layernorm_before, layernorm_after;
};

struct ViTEncoder : Typed<ViTEncoder> {
  static constexpr const char* torch_type = "transformers.models.vit.modeling_vit.ViTEncoder";
  static constexpr const char* forward_arguments[] = {"inputs"};
  explicit ViTEncoder(const Config& c) : layer(child<ModuleList>("layer")) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layer->emplace<ViTLayer>(c);
  }
  EncoderResult forward(const EncoderInputs& in) { return run_encoder_layers<ViTLayer>(*layer, in); }
  Child<ModuleList> layer;
};

struct ViTPooler : Typed<ViTPooler> {
  static constexpr const char* torch_type = "transformers.models.vit.modeling_vit.ViTPooler";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit ViTPooler(const Config& c)
      : dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("pooler_output_size"))),
        activation(activation_named(c.text("pooler_act"))) {}
  Tensor forward(const Tensor& hidden_states) { return activation(dense(hidden_states.select(1, 0))); }
  Child<Linear> dense;
  Activation activation;
};

struct ViTPretrained : VisionModel {
  using VisionModel::VisionModel;
  std::string base_model_prefix() const override { return "vit"; }
  std::vector<std::string> no_split_modules() const override { return {"ViTEmbeddings", "ViTLayer"}; }
  void init_weights(Module& module) override {
    VisionModel::init_weights(module);
    auto* embeddings = dynamic_cast<ViTEmbeddings*>(&module);
    if (!embeddings) return;
    init::trunc_normal_(embeddings->position_embeddings, 0, config().number("initializer_range"));
    init::trunc_normal_(embeddings->cls_token, 0, config().number("initializer_range"));
    if (embeddings->mask_token.defined()) init::zeros_(embeddings->mask_token);
  }
};

struct ViTModel : ModelOf<ViTModel, ViTPretrained> {
  static constexpr const char* torch_type = "transformers.models.vit.modeling_vit.ViTModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::pixel_values, arg::bool_masked_pos,   arg::interpolate_pos_encoding, arg::attention_mask,
      arg::head_mask,    arg::output_attentions, arg::output_hidden_states};
  explicit ViTModel(const Config& c, bool pools = true, bool use_mask_token = false)
      : ModelOf(c),
        embeddings(child<ViTEmbeddings>("embeddings", c, use_mask_token)),
        encoder(child<ViTEncoder>("encoder", c)),
        layernorm(
            child<LayerNorm>("layernorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        pooler(child_if<ViTPooler>(pools, *this, "pooler", c)) {}

  ModelOutput forward(const ModelInputs& in) override {
    const Tensor embedded =
        embeddings(in[arg::pixel_values], in[arg::bool_masked_pos], in[arg::interpolate_pos_encoding].value_or(false));
    EncoderResult result = encoder(encoder_inputs(*this, in, embedded));
    result.last_hidden_state = layernorm(result.last_hidden_state);
    return encoder_output(result, pooler ? (*pooler)(result.last_hidden_state) : Tensor());
  }

  Child<ViTEmbeddings> embeddings;
  Child<ViTEncoder> encoder;
  Child<LayerNorm> layernorm;
  std::optional<Child<ViTPooler>> pooler;
};

struct ViTForMaskedImageModeling : CopiedAs<ViTForMaskedImageModeling, VisionHead> {
  ViTForMaskedImageModeling(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false, ViTModel::forward_arguments), decoder(pixel_decoder(*this, c, c.integer("hidden_size"))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const PictureSize patch = picture_size(config(), "patch_size");
    const int64_t stride = config().integer("encoder_stride");
    if (in[arg::bool_masked_pos].defined() && (patch.height != stride || patch.width != stride))
      throw UserError(
          "When `bool_masked_pos` is provided, `patch_size` must be equal to `encoder_stride` to ensure that the "
          "reconstructed image has the same dimensions as the input. Got `patch_size` = " +
          config().find("patch_size")->str() + " and `encoder_stride` = " + std::to_string(stride) + ".");
    const ModelOutput base = model(in);
    return masked_picture_output(config(), base, decoder, base["last_hidden_state"].slice(1, 1), in);
  }
  Child<Sequential> decoder;
};

struct ViTForImageClassification : CopiedAs<ViTForImageClassification, PictureClassification> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::pixel_values,        arg::labels,    arg::interpolate_pos_encoding,
      arg::attention_mask,      arg::head_mask, arg::output_attentions,
      arg::output_hidden_states};
  ViTForImageClassification(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false, forward_arguments, c.integer("hidden_size")) {}
  Tensor features(const ModelOutput& base) const override { return base["last_hidden_state"].select(1, 0); }
};

std::unique_ptr<PretrainedModel> masking_model(const Config& config, bool pools) {
  return std::make_unique<ViTModel>(config, pools, true);
}

constexpr HeadFamily vit_heads{vit_family, "vit", made_model<ViTModel>};
constexpr HeadFamily vit_masking_heads{vit_family, "vit", masking_model};

void complete_vit(Config& config) {
  if (!config.has("pooler_output_size")) config.set("pooler_output_size", config.integer("hidden_size"));
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "vit",
      .config_class = "ViTConfig",
      .attribute_map = {},
      .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
        "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02,
        "layer_norm_eps": 1e-12, "image_size": 224, "patch_size": 16, "num_channels": 3, "qkv_bias": true,
        "encoder_stride": 16, "pooler_output_size": null, "pooler_act": "tanh"})",
      .schema = {.keys = {{"encoder_stride", KeyKind::size}, {"pooler_output_size", KeyKind::size}},
                 .relations = {multiple("hidden_size", "num_attention_heads")}},
      .complete = complete_vit,
      .classes = {model_class<ViTModel>("ViTModel", {"default", "image-feature-extraction"}),
                  head_class<ViTForMaskedImageModeling>({"masked-image-modeling"},
                                                        {&vit_masking_heads, "ForMaskedImageModeling"}),
                  head_class<ViTForImageClassification>({"image-classification"}, {&vit_heads, "ForImageClassification"})},
  });
}

}  // namespace calque::vit
