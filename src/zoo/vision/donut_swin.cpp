// Donut's encoder of pages: Swin as it was, without a norm behind the last stage.
#include "calque/hub/registry.h"
#include "zoo/blocks/swin_layers.h"
#include "zoo/heads/vision_heads.h"

namespace calque::donut_swin {

namespace {

constexpr SwinStyle donut_style{.family = "transformers.models.donut.modeling_donut_swin.DonutSwin",
                                .extra_position = true,
                                .saved_index = true,
                                .softmax_in_float32 = false};

struct DonutSwinModel : ModelOf<DonutSwinModel, VisionModel> {
  static constexpr const char* torch_type = "transformers.models.donut.modeling_donut_swin.DonutSwinModel";
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::bool_masked_pos, arg::output_attentions,
                                                        arg::output_hidden_states, arg::interpolate_pos_encoding};
  explicit DonutSwinModel(const Config& c, bool = true)
      : ModelOf(c),
        embeddings(child<SwinEmbeddings>("embeddings", donut_style, c, false)),
        encoder(child<SwinEncoder>("encoder", donut_style, c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const SwinGrid grid =
        embeddings(in[arg::pixel_values], in[arg::bool_masked_pos], in[arg::interpolate_pos_encoding].value_or(false));
    const SwinResult result = encoder(grid, swin_wishes(*this, in));
    return swin_output(result, result.last_hidden_state, swin_pooled(result.last_hidden_state));
  }
  std::string base_model_prefix() const override { return "donut"; }
  std::vector<std::string> no_split_modules() const override { return {"DonutSwinStage"}; }
  bool supports_sdpa() const override { return false; }
  void init_weights(Module& module) override {
    VisionModel::init_weights(module);
    init_swin_part(module);
  }
  Child<SwinEmbeddings> embeddings;
  Child<SwinEncoder> encoder;
};

struct DonutSwinForImageClassification : CopiedAs<DonutSwinForImageClassification, VisionHead> {
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::labels, arg::output_attentions,
                                                        arg::output_hidden_states, arg::interpolate_pos_encoding};
  DonutSwinForImageClassification(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, true, forward_arguments),
        classifier(label_scores(*this, "classifier", c, c.integer("hidden_size"))) {}
  bool supports_sdpa() const override { return false; }
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    ModelOutput out =
        sequence_classification_output(config(), base, scored(classifier, base["pooler_output"]), in[arg::labels]);
    out.take(base, {"reshaped_hidden_states"});
    return out;
  }
  std::optional<Child<Linear>> classifier;
};

constexpr HeadFamily donut_heads{donut_style.family, "donut", made_model<DonutSwinModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "donut-swin",
      .config_class = "DonutSwinConfig",
      .attribute_map = {{"num_attention_heads", "num_heads"}, {"num_hidden_layers", "num_layers"}},
      .defaults = R"({"image_size": 224, "patch_size": 4, "num_channels": 3, "embed_dim": 96, "depths": [2, 2, 6, 2],
        "num_heads": [3, 6, 12, 24], "window_size": 7, "mlp_ratio": 4.0, "qkv_bias": true, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "drop_path_rate": 0.1, "hidden_act": "gelu", "use_absolute_embeddings": false,
        "initializer_range": 0.02, "layer_norm_eps": 1e-05})",
      .schema = swin_schema(),
      .complete = complete_swin_sizes,
      .classes = {model_class<DonutSwinModel>("DonutSwinModel", {"default"}),
                  head_class<DonutSwinForImageClassification>({"image-classification"},
                                                              {&donut_heads, "ForImageClassification"})},
  });
}

}  // namespace calque::donut_swin
