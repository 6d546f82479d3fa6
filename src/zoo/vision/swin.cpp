// Swin: attention within windows that shift, in stages that halve the picture.
#include "calque/hub/registry.h"
#include "zoo/blocks/child_if.h"
#include "zoo/blocks/swin_layers.h"
#include "zoo/heads/vision_heads.h"

namespace calque::swin {

namespace {

constexpr SwinStyle swin_style{.family = "transformers.models.swin.modeling_swin.Swin", .base = "swin"};

struct SwinModel : ModelOf<SwinModel, SwinPictures> {
  static constexpr const char* torch_type = "transformers.models.swin.modeling_swin.SwinModel";
  static constexpr auto& forward_arguments = swin_arguments;
  explicit SwinModel(const Config& c, bool = true, bool use_mask_token = false)
      : ModelOf(swin_style, c, use_mask_token),
        layernorm(
            child<LayerNorm>("layernorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})) {}
  ModelOutput forward(const ModelInputs& in) override {
    const SwinResult result = encoded(in);
    return swin_output(result, layernorm(result.last_hidden_state));
  }
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

// The stages' outputs as pictures, before they are halved, each through a norm of its own.
struct SwinBackbone : ModelOf<SwinBackbone, SwinPictures> {
  static constexpr const char* torch_type = "transformers.models.swin.modeling_swin.SwinBackbone";
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::output_hidden_states,
                                                        arg::output_attentions};
  explicit SwinBackbone(const Config& c)
      : ModelOf(swin_style, c, false),
        hidden_states_norms(*this, c, [&](size_t before) { return std::make_shared<LayerNorm>(swin_features(c, before)); }) {
  }
  ModelOutput forward(const ModelInputs& in) override {
    SwinWishes wishes = swin_wishes(*this, in);
    wishes.always_partition = wishes.before_downsampling = wishes.hidden_states = true;
    const SwinResult result = encoder(embeddings(in[arg::pixel_values], Tensor(), false), wishes);
    ModelOutput out = backbone_output(
        result.reshaped_hidden_states, config(), wants_hidden_states(in), [&](int64_t stage, const Tensor& x) {
          const SymInt height = x.sym_size(2), width = x.sym_size(3);
          const Tensor rows = x.permute({0, 2, 3, 1}).contiguous().view({x.sym_size(0), height * width, x.sym_size(1)});
          return as_picture(hidden_states_norms(stage, rows), height, width);
        });
    out.set("attentions", result.attentions);
    return out;
  }
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override { return {R"(^(swin\.)?layernorm\.)"}; }
  StageNorms hidden_states_norms;
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
      .attribute_map = swin_attributes(),
      .defaults = swin_defaults(R"(, "encoder_stride": 32, "out_features": null, "out_indices": null)"),
      .schema = swin_schema({{"encoder_stride", KeyKind::size}}),
      .complete = complete_swin,
      .classes = {model_class<SwinModel>("SwinModel", {"default", "image-feature-extraction"}),
                  head_class<SwinForMaskedImageModeling>({"masked-image-modeling"},
                                                         {&swin_masking_heads, "ForMaskedImageModeling"}),
                  head_class<SwinImageClassification>({"image-classification"}, {&swin_heads, "ForImageClassification"}),
                  model_class<SwinBackbone>("SwinBackbone", {"backbone"})},
  });
}

}  // namespace calque::swin
