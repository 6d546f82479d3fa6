// DINOv2: ViT with scales of its layers' branches, positions for pictures of any size, and optionally a gated feed-forward.
#include "calque/hub/checkpointing.h"
#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/splitting.h"
#include "zoo/blocks/bert_encoder.h"
#include "zoo/blocks/vit_layers.h"
#include "zoo/heads/vision_heads.h"

namespace calque::dinov2 {

namespace {

constexpr char dinov2_family[] = "transformers.models.dinov2.modeling_dinov2.Dinov2";

struct Dinov2Embeddings : Typed<Dinov2Embeddings> {
  static constexpr const char* torch_type = "transformers.models.dinov2.modeling_dinov2.Dinov2Embeddings";
  static constexpr const char* forward_arguments[] = {"pixel_values", "bool_masked_pos"};
  explicit Dinov2Embeddings(const Config& c)
      : cls_token(register_parameter("cls_token", unset_parameter({1, 1, c.integer("hidden_size")}))),
        mask_token(register_parameter("mask_token",
                                      c.flag("use_mask_token") ? unset_parameter({1, c.integer("hidden_size")}) : Tensor())),
        patch_embeddings(child<ViTPatchEmbeddings>("patch_embeddings", c, dinov2_family)),
        position_embeddings(register_parameter(
            "position_embeddings", unset_parameter({1, patch_embeddings->num_patches + 1, c.integer("hidden_size")}))),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}

  Tensor forward(const Tensor& pixel_values, const Tensor& bool_masked_pos) {
    const Tensor patches = with_mask_token(patch_embeddings(pixel_values), mask_token, bool_masked_pos);
    const Tensor tokens = cat({cls_token->expand({patches.sym_size(0), -1, -1}), patches}, 1);
    // Interpolated in float32, whatever the weights are.
    const Tensor table = position_embeddings->to(DType::float32);
    const Tensor positions = positions_for(table, 1, patches.sym_size(1), pixel_values.sym_size(2), pixel_values.sym_size(3),
                                           patch_embeddings->patch_size);
    return dropout(tokens + positions.to(position_embeddings->dtype()));
  }

  Parameter cls_token, mask_token;
  Child<ViTPatchEmbeddings> patch_embeddings;
  Parameter position_embeddings;
  Child<Dropout> dropout;
};

struct Dinov2LayerScale : Typed<Dinov2LayerScale> {
  static constexpr const char* torch_type = "transformers.models.dinov2.modeling_dinov2.Dinov2LayerScale";
  static constexpr const char* forward_arguments[] = {"hidden_state"};
  explicit Dinov2LayerScale(const Config& c)
      : lambda1(register_parameter("lambda1", unset_parameter({c.integer("hidden_size")}))) {}
  Tensor forward(const Tensor& hidden_state) { return hidden_state * *lambda1; }
  Parameter lambda1;
};

struct Dinov2MLP : Typed<Dinov2MLP> {
  static constexpr const char* torch_type = "transformers.models.dinov2.modeling_dinov2.Dinov2MLP";
  static constexpr const char* forward_arguments[] = {"hidden_state"};
  explicit Dinov2MLP(const Config& c)
      : Dinov2MLP(c, scaled_size(c, "mlp_ratio", c.number("mlp_ratio"), c.integer("hidden_size"))) {}
  Dinov2MLP(const Config& c, int64_t size)
      : fc1(child<Linear>("fc1", c.integer("hidden_size"), size)),
        activation(activation_named(c.text("hidden_act"))),
        fc2(child<Linear>("fc2", size, c.integer("hidden_size"))) {}
  Tensor forward(const Tensor& hidden_state) { return fc2(activation(fc1(hidden_state))); }
  Child<Linear> fc1;
  Activation activation;
  Child<Linear> fc2;
};

// Two thirds as wide, in eights; the gate is the first half of what weights_in gives.
struct Dinov2SwiGLUFFN : Typed<Dinov2SwiGLUFFN> {
  static constexpr const char* torch_type = "transformers.models.dinov2.modeling_dinov2.Dinov2SwiGLUFFN";
  static constexpr const char* forward_arguments[] = {"hidden_state"};
  explicit Dinov2SwiGLUFFN(const Config& c) : Dinov2SwiGLUFFN(c.integer("hidden_size"), width(c)) {}
  Dinov2SwiGLUFFN(int64_t hidden_size, int64_t size)
      : weights_in(child<Linear>("weights_in", hidden_size, 2 * size)),
        weights_out(child<Linear>("weights_out", size, hidden_size)) {}
  Tensor forward(const Tensor& hidden_state) {
    const std::vector<Tensor> both = chunk(weights_in(hidden_state), 2, -1);
    return weights_out(silu(both[0]) * both[1]);
  }
  Child<Linear> weights_in, weights_out;

 private:
  static int64_t width(const Config& c) {
    const int64_t whole = scaled_size(c, "mlp_ratio", c.number("mlp_ratio"), c.integer("hidden_size"));
    return (whole * 2 / 3 + 7) / 8 * 8;
  }
};

struct Dinov2Layer : Checkpointed<Typed<Dinov2Layer>> {
  static constexpr const char* torch_type = "transformers.models.dinov2.modeling_dinov2.Dinov2Layer";
  static constexpr auto& forward_arguments = ViTSelfAttention::forward_arguments;
  explicit Dinov2Layer(const Config& c)
      : norm1(child<LayerNorm>("norm1", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        attention(child<ViTAttention>("attention", c, dinov2_family)),
        layer_scale1(child<Dinov2LayerScale>("layer_scale1", c)),
        drop_path(child<DropPath>("drop_path", std::string(dinov2_family) + "DropPath", c.number("drop_path_rate"))),
        norm2(child<LayerNorm>("norm2", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        gated(child_if<Dinov2SwiGLUFFN>(c.flag("use_swiglu_ffn"), *this, "mlp", c)),
        mlp(child_if<Dinov2MLP>(!c.flag("use_swiglu_ffn"), *this, "mlp", c)),
        layer_scale2(child<Dinov2LayerScale>("layer_scale2", c)) {}
  ViTSelfAttention::Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                   bool eager) {
    auto [attended, weights] = attention(norm1(hidden_states), mask, head_mask, eager);
    const Tensor x = drop_path(layer_scale1(attended)) + hidden_states;
    const Tensor y = norm2(x);
    return {drop_path(layer_scale2(gated ? (*gated)(y) : (*mlp)(y))) + x, weights};
  }
  Child<LayerNorm> norm1;
  Child<ViTAttention> attention;
  Child<Dinov2LayerScale> layer_scale1;
  Child<DropPath> drop_path;
  Child<LayerNorm> norm2;
  std::optional<Child<Dinov2SwiGLUFFN>> gated;
  std::optional<Child<Dinov2MLP>> mlp;
  Child<Dinov2LayerScale> layer_scale2;
};

struct Dinov2Encoder : Typed<Dinov2Encoder> {
  static constexpr const char* torch_type = "transformers.models.dinov2.modeling_dinov2.Dinov2Encoder";
  static constexpr const char* forward_arguments[] = {"inputs"};
  explicit Dinov2Encoder(const Config& c) : layer(child<ModuleList>("layer")) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layer->emplace<Dinov2Layer>(c);
  }
  EncoderResult forward(const EncoderInputs& in) { return run_encoder_layers<Dinov2Layer>(*layer, in); }
  Child<ModuleList> layer;
};

struct Dinov2Pretrained : VisionModel {
  explicit Dinov2Pretrained(const Config& c)
      : VisionModel(c),
        embeddings(child<Dinov2Embeddings>("embeddings", c)),
        encoder(child<Dinov2Encoder>("encoder", c)),
        layernorm(
            child<LayerNorm>("layernorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})) {}
  std::string base_model_prefix() const override { return "dinov2"; }
  std::vector<std::string> no_split_modules() const override { return {"Dinov2Embeddings", "Dinov2Layer"}; }
  void init_weights(Module& module) override {
    VisionModel::init_weights(module);
    const double range = config().number("initializer_range");
    if (auto* embedded = dynamic_cast<Dinov2Embeddings*>(&module)) {
      init::trunc_normal_(embedded->position_embeddings, 0, range);
      init::trunc_normal_(embedded->cls_token, 0, range);
      if (embedded->mask_token.defined()) init::zeros_(embedded->mask_token);
    } else if (auto* linear = dynamic_cast<Linear*>(&module)) {
      init::trunc_normal_(linear->weight, 0, range);
    } else if (auto* convolution = dynamic_cast<Conv2d*>(&module)) {
      init::trunc_normal_(convolution->weight, 0, range);
    } else if (auto* scale = dynamic_cast<Dinov2LayerScale*>(&module)) {
      init::constant_(scale->lambda1, config().number("layerscale_value"));
    }
  }
  Child<Dinov2Embeddings> embeddings;
  Child<Dinov2Encoder> encoder;
  Child<LayerNorm> layernorm;

 protected:
  Dinov2Pretrained(const Dinov2Pretrained&) = default;
};

struct Dinov2Model : ModelOf<Dinov2Model, Dinov2Pretrained> {
  static constexpr const char* torch_type = "transformers.models.dinov2.modeling_dinov2.Dinov2Model";
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values,      arg::bool_masked_pos,
                                                        arg::attention_mask,    arg::head_mask,
                                                        arg::output_attentions, arg::output_hidden_states};
  explicit Dinov2Model(const Config& c, bool = true) : ModelOf(c) {}
  ModelOutput forward(const ModelInputs& in) override {
    EncoderResult result = encoder(encoder_inputs(*this, in, embeddings(in[arg::pixel_values], in[arg::bool_masked_pos])));
    result.last_hidden_state = layernorm(result.last_hidden_state);
    return encoder_output(result, result.last_hidden_state.select(1, 0));
  }
};

// The first token beside the mean of the patches.
struct Dinov2ForImageClassification : CopiedAs<Dinov2ForImageClassification, PictureClassification> {
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values,      arg::labels,
                                                        arg::attention_mask,    arg::head_mask,
                                                        arg::output_attentions, arg::output_hidden_states};
  Dinov2ForImageClassification(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, true, forward_arguments, 2 * c.integer("hidden_size")) {}
  Tensor features(const ModelOutput& base) const override {
    const Tensor& x = base["last_hidden_state"];
    return cat({x.select(1, 0), mean(x.slice(1, 1), {1})}, 1);
  }
};

struct Dinov2Backbone : ModelOf<Dinov2Backbone, Dinov2Pretrained> {
  static constexpr const char* torch_type = "transformers.models.dinov2.modeling_dinov2.Dinov2Backbone";
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::attention_mask, arg::output_attentions,
                                                        arg::output_hidden_states};
  explicit Dinov2Backbone(const Config& c) : ModelOf(c) {}
  ModelOutput forward(const ModelInputs& in) override {
    const Tensor pixels = in[arg::pixel_values];
    EncoderInputs inputs = encoder_inputs(*this, in, embeddings(pixels, Tensor()));
    inputs.want_hidden_states = true;
    const EncoderResult result = encoder(inputs);
    const PictureSize patch = embeddings->patch_embeddings->patch_size;
    ModelOutput out =
        backbone_output(result.hidden_states, config(), wants_hidden_states(in), [&](int64_t, const Tensor& state) {
          const Tensor x = config().flag("apply_layernorm") ? layernorm(state) : state;
          if (!config().flag("reshape_hidden_states")) return x;
          return as_picture(x.slice(1, 1), floor_div(pixels.sym_size(2), patch.height),
                            floor_div(pixels.sym_size(3), patch.width));
        });
    out.set("attentions", result.attentions);
    return out;
  }
};

constexpr HeadFamily dinov2_heads{dinov2_family, "dinov2", made_model<Dinov2Model>};

void complete_dinov2(Config& config) { complete_backbone(config, config.integer("num_hidden_layers")); }

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "dinov2",
      .config_class = "Dinov2Config",
      .attribute_map = {},
      .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "mlp_ratio": 4,
        "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02,
        "layer_norm_eps": 1e-06, "image_size": 224, "patch_size": 14, "num_channels": 3, "qkv_bias": true,
        "layerscale_value": 1.0, "drop_path_rate": 0.0, "use_swiglu_ffn": false, "out_features": null, "out_indices": null,
        "apply_layernorm": true, "reshape_hidden_states": true, "use_mask_token": true})",
      .schema = {.keys = {{"mlp_ratio", KeyKind::positive}, {"layerscale_value", KeyKind::number}},
                 .relations = {multiple("hidden_size", "num_attention_heads")}},
      .complete = complete_dinov2,
      .classes = {model_class<Dinov2Model>("Dinov2Model", {"default", "image-feature-extraction"}),
                  head_class<Dinov2ForImageClassification>({"image-classification"},
                                                           {&dinov2_heads, "ForImageClassification"}),
                  model_class<Dinov2Backbone>("Dinov2Backbone", {"backbone"})},
  });
}

}  // namespace calque::dinov2
