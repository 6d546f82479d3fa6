// Swin: attention within windows that shift, in stages that halve the picture.
#include "calque/hub/registry.h"
#include "zoo/blocks/child_if.h"
#include "zoo/blocks/swin_layers.h"
#include "zoo/heads/vision_heads.h"

namespace calque::swin {

namespace {

constexpr SwinStyle swin_style{.family = "transformers.models.swin.modeling_swin.Swin"};

struct SwinPretrained : VisionModel {
  using VisionModel::VisionModel;
  std::string base_model_prefix() const override { return "swin"; }
  std::vector<std::string> no_split_modules() const override { return {"SwinStage"}; }
  void init_weights(Module& module) override {
    VisionModel::init_weights(module);
    init_swin_part(module);
  }
};

struct SwinModel : ModelOf<SwinModel, SwinPretrained> {
  static constexpr const char* torch_type = "transformers.models.swin.modeling_swin.SwinModel";
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::bool_masked_pos, arg::output_attentions,
                                                        arg::output_hidden_states, arg::interpolate_pos_encoding};
  explicit SwinModel(const Config& c, bool = true, bool use_mask_token = false)
      : ModelOf(c),
        embeddings(child<SwinEmbeddings>("embeddings", swin_style, c, use_mask_token)),
        encoder(child<SwinEncoder>("encoder", swin_style, c)),
        layernorm(
            child<LayerNorm>("layernorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})) {}
  ModelOutput forward(const ModelInputs& in) override {
    const SwinGrid grid =
        embeddings(in[arg::pixel_values], in[arg::bool_masked_pos], in[arg::interpolate_pos_encoding].value_or(false));
    const SwinResult result = encoder(grid, swin_wishes(*this, in));
    const Tensor last = layernorm(result.last_hidden_state);
    return swin_output(result, last, swin_pooled(last));
  }
  Child<SwinEmbeddings> embeddings;
  Child<SwinEncoder> encoder;
  Child<LayerNorm> layernorm;
};

struct SwinForMaskedImageModeling : CopiedAs<SwinForMaskedImageModeling, VisionHead> {
  SwinForMaskedImageModeling(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false, SwinModel::forward_arguments), decoder(pixel_decoder(*this, c, c.integer("hidden_size"))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return masked_picture_output(config(), base, decoder, base["last_hidden_state"], in);
  }
  Child<Sequential> decoder;
};

struct SwinForImageClassification : CopiedAs<SwinForImageClassification, VisionHead> {
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::labels, arg::output_attentions,
                                                        arg::output_hidden_states, arg::interpolate_pos_encoding};
  SwinForImageClassification(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, true, forward_arguments),
        classifier(label_scores(*this, "classifier", c, c.integer("hidden_size"))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    ModelOutput out =
        sequence_classification_output(config(), base, scored(classifier, base["pooler_output"]), in[arg::labels]);
    out.take(base, {"reshaped_hidden_states"});
    return out;
  }
  std::optional<Child<Linear>> classifier;
};

// The stages' outputs as pictures, before they are halved, each through a norm of its own.
struct SwinBackbone : ModelOf<SwinBackbone, SwinPretrained> {
  static constexpr const char* torch_type = "transformers.models.swin.modeling_swin.SwinBackbone";
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::output_hidden_states,
                                                        arg::output_attentions};
  explicit SwinBackbone(const Config& c)
      : ModelOf(c),
        embeddings(child<SwinEmbeddings>("embeddings", swin_style, c, false)),
        encoder(child<SwinEncoder>("encoder", swin_style, c)),
        hidden_states_norms(child<ModuleDict>("hidden_states_norms")) {
    for (const int64_t stage : out_stages(c))
      hidden_states_norms->set(
          stage_name(stage), std::make_shared<LayerNorm>(swin_features(c, static_cast<size_t>(stage > 0 ? stage - 1 : 0))));
  }
  ModelOutput forward(const ModelInputs& in) override {
    SwinWishes wishes = swin_wishes(*this, in);
    wishes.always_partition = wishes.before_downsampling = wishes.hidden_states = true;
    const SwinResult result = encoder(embeddings(in[arg::pixel_values], Tensor(), false), wishes);
    ModelOutput out = backbone_output(
        result.reshaped_hidden_states, config(), wants_hidden_states(in), [&](int64_t stage, const Tensor& x) {
          const SymInt height = x.sym_size(2), width = x.sym_size(3);
          const Tensor rows = x.permute({0, 2, 3, 1}).contiguous().view({x.sym_size(0), height * width, x.sym_size(1)});
          const Tensor normed = (*hidden_states_norms)[stage_name(stage)].call({rows}).to_tensor();
          return as_picture(normed, height, width);
        });
    out.set("attentions", result.attentions);
    return out;
  }
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override { return {R"(^(swin\.)?layernorm\.)"}; }
  Child<SwinEmbeddings> embeddings;
  Child<SwinEncoder> encoder;
  Child<ModuleDict> hidden_states_norms;
};

std::unique_ptr<PretrainedModel> swin_for_masks(const Config& config, bool pools) {
  return std::make_unique<SwinModel>(config, pools, true);
}

constexpr HeadFamily swin_heads{swin_style.family, "swin", made_model<SwinModel>};
constexpr HeadFamily swin_masking_heads{swin_style.family, "swin", swin_for_masks};

void complete_swin(Config& config) {
  complete_swin_sizes(config);
  complete_backbone(config, config.integer("num_layers"));
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "swin",
      .config_class = "SwinConfig",
      .attribute_map = {{"num_attention_heads", "num_heads"}, {"num_hidden_layers", "num_layers"}},
      .defaults = R"({"image_size": 224, "patch_size": 4, "num_channels": 3, "embed_dim": 96, "depths": [2, 2, 6, 2],
        "num_heads": [3, 6, 12, 24], "window_size": 7, "mlp_ratio": 4.0, "qkv_bias": true, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "drop_path_rate": 0.1, "hidden_act": "gelu", "use_absolute_embeddings": false,
        "initializer_range": 0.02, "layer_norm_eps": 1e-05, "encoder_stride": 32, "out_features": null,
        "out_indices": null})",
      .schema = swin_schema({{"encoder_stride", KeyKind::size}}),
      .complete = complete_swin,
      .classes = {model_class<SwinModel>("SwinModel", {"default", "image-feature-extraction"}),
                  head_class<SwinForMaskedImageModeling>({"masked-image-modeling"},
                                                         {&swin_masking_heads, "ForMaskedImageModeling"}),
                  head_class<SwinForImageClassification>({"image-classification"}, {&swin_heads, "ForImageClassification"}),
                  model_class<SwinBackbone>("SwinBackbone", {"backbone"})},
  });
}

}  // namespace calque::swin
