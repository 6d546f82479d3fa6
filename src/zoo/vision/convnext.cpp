// ConvNeXT: stages of depthwise convolutions, with norms and feed-forward layers over the channels.
#include "calque/hub/registry.h"
#include "calque/nn/convolution.h"
#include "calque/nn/init.h"
#include "calque/nn/normalization.h"
#include "calque/op/aten/reductions.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/child_if.h"
#include "zoo/heads/vision_heads.h"

namespace calque::convnext {

namespace {

// Over the channels, which are the last dimension or the second one.
struct ConvNextLayerNorm : Typed<ConvNextLayerNorm, LayerNorm> {
  static constexpr const char* torch_type = "transformers.models.convnext.modeling_convnext.ConvNextLayerNorm";
  static constexpr const char* forward_arguments[] = {"features"};
  ConvNextLayerNorm(int64_t size, bool channels_first)
      : Typed(size, LayerNormOptions{.eps = 1e-6}), channels_first(channels_first) {}
  Tensor forward(const Tensor& features) {
    if (!channels_first) return LayerNorm::forward(features);
    return LayerNorm::forward(features.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
  }
  bool channels_first;
};

struct ConvNextEmbeddings : Typed<ConvNextEmbeddings> {
  static constexpr const char* torch_type = "transformers.models.convnext.modeling_convnext.ConvNextEmbeddings";
  static constexpr const char* forward_arguments[] = {"pixel_values"};
  explicit ConvNextEmbeddings(const Config& c)
      : channels(c.integer("num_channels")),
        patch_embeddings(child<Conv2d>("patch_embeddings", channels, c.integers("hidden_sizes").front(),
                                       picture_size(c, "patch_size").both(),
                                       ConvOptions{.stride = picture_size(c, "patch_size").both()})),
        layernorm(child<ConvNextLayerNorm>("layernorm", c.integers("hidden_sizes").front(), true)) {}
  Tensor forward(const Tensor& pixel_values) {
    return layernorm(patch_embeddings(checked_pixels(pixel_values, channels, pixel_values.dtype())));
  }
  int64_t channels;
  Child<Conv2d> patch_embeddings;
  Child<ConvNextLayerNorm> layernorm;
};

struct ConvNextLayer : Typed<ConvNextLayer> {
  static constexpr const char* torch_type = "transformers.models.convnext.modeling_convnext.ConvNextLayer";
  static constexpr const char* forward_arguments[] = {"features"};
  ConvNextLayer(const Config& c, int64_t size, double drop)
      : layer_scale_parameter(register_parameter(
            "layer_scale_parameter", c.number("layer_scale_init_value") > 0 ? unset_parameter({size}) : Tensor())),
        dwconv(child<Conv2d>("dwconv", size, size, 7, ConvOptions{.padding = Sizes(3), .groups = size})),
        layernorm(child<ConvNextLayerNorm>("layernorm", size, false)),
        pwconv1(child<Linear>("pwconv1", size, 4 * size)),
        act(activation_named(c.text("hidden_act"))),
        pwconv2(child<Linear>("pwconv2", 4 * size, size)),
        drop_path(child<DropPath>("drop_path", "transformers.models.convnext.modeling_convnext.ConvNextDropPath", drop)) {}
  Tensor forward(const Tensor& features) {
    Tensor x = layernorm(dwconv(features).permute({0, 2, 3, 1}));
    x = pwconv2(act(pwconv1(x)));
    if (layer_scale_parameter.defined()) x = *layer_scale_parameter * x;
    return features + drop_path(x.permute({0, 3, 1, 2}));
  }
  Parameter layer_scale_parameter;
  Child<Conv2d> dwconv;
  Child<ConvNextLayerNorm> layernorm;
  Child<Linear> pwconv1;
  Activation act;
  Child<Linear> pwconv2;
  Child<DropPath> drop_path;
};

struct ConvNextStage : Typed<ConvNextStage> {
  static constexpr const char* torch_type = "transformers.models.convnext.modeling_convnext.ConvNextStage";
  static constexpr const char* forward_arguments[] = {"features"};
  ConvNextStage(const Config& c, int64_t in_channels, int64_t out_channels, int64_t stride, const std::vector<double>& drops)
      : downsampling_layer(child<Sequential>("downsampling_layer")), layers(child<Sequential>("layers")) {
    if (in_channels != out_channels || stride > 1) {
      downsampling_layer->emplace<ConvNextLayerNorm>(in_channels, true);
      downsampling_layer->emplace<Conv2d>(in_channels, out_channels, 2, ConvOptions{.stride = stride});
    }
    for (const double drop : drops) layers->emplace<ConvNextLayer>(c, out_channels, drop);
  }
  Tensor forward(const Tensor& features) {
    Tensor x = features;
    if (!downsampling_layer->empty()) x = downsampling_layer(x);
    return layers(x);
  }
  Child<Sequential> downsampling_layer, layers;
};

struct ConvNextEncoder : Typed<ConvNextEncoder> {
  static constexpr const char* torch_type = "transformers.models.convnext.modeling_convnext.ConvNextEncoder";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit ConvNextEncoder(const Config& c) : stages(child<ModuleList>("stages")) {
    const std::vector<int64_t> sizes = one_a_stage(c, "hidden_sizes", static_cast<size_t>(c.integer("num_stages")));
    const std::vector<std::vector<double>> drops = drop_rates(c);
    for (size_t i = 0; i < sizes.size(); ++i)
      stages->emplace<ConvNextStage>(c, sizes[i > 0 ? i - 1 : 0], sizes[i], i > 0 ? 2 : 1, drops[i]);
  }
  // What goes in, and the output of each stage.
  std::vector<Tensor> forward(const Tensor& hidden_states) { return through_stages<ConvNextStage>(*stages, hidden_states); }
  Child<ModuleList> stages;

 private:
  // From 0 to drop_path_rate over all layers.
  static std::vector<std::vector<double>> drop_rates(const Config& c) {
    std::vector<std::vector<double>> out;
    int64_t all = 0, at = 0;
    const std::vector<int64_t> depths = one_a_stage(c, "depths", c.integers("hidden_sizes").size());
    for (const int64_t depth : depths) all += depth;
    for (const int64_t depth : depths) {
      out.emplace_back();
      for (int64_t i = 0; i < depth; ++i, ++at)
        out.back().push_back(all > 1 ? c.number("drop_path_rate") * static_cast<double>(at) / static_cast<double>(all - 1)
                                     : 0);
    }
    return out;
  }
};

struct ConvNextPretrained : VisionModel {
  using VisionModel::VisionModel;
  bool supports_gradient_checkpointing() const override { return false; }
  std::string base_model_prefix() const override { return "convnext"; }
  std::vector<std::string> no_split_modules() const override { return {"ConvNextLayer", "ConvNextStage"}; }
  void init_weights(Module& module) override {
    VisionModel::init_weights(module);
    auto* layer = dynamic_cast<ConvNextLayer*>(&module);
    if (layer && layer->layer_scale_parameter.defined())
      init::constant_(layer->layer_scale_parameter, config().number("layer_scale_init_value"));
  }
};

constexpr ModelArgument convnext_arguments[] = {arg::pixel_values, arg::output_hidden_states};

struct ConvNextModel : ModelOf<ConvNextModel, ConvNextPretrained> {
  static constexpr const char* torch_type = "transformers.models.convnext.modeling_convnext.ConvNextModel";
  static constexpr auto& forward_arguments = convnext_arguments;
  explicit ConvNextModel(const Config& c, bool = true)
      : ModelOf(c),
        embeddings(child<ConvNextEmbeddings>("embeddings", c)),
        encoder(child<ConvNextEncoder>("encoder", c)),
        layernorm(child<LayerNorm>("layernorm", c.integers("hidden_sizes").back(),
                                   LayerNormOptions{.eps = c.number("layer_norm_eps")})) {}
  ModelOutput forward(const ModelInputs& in) override {
    const std::vector<Tensor> states = encoder(embeddings(in[arg::pixel_values]));
    return stages_output(states, layernorm(mean(states.back(), {-2, -1})), wants_hidden_states(in));
  }
  Child<ConvNextEmbeddings> embeddings;
  Child<ConvNextEncoder> encoder;
  Child<LayerNorm> layernorm;
};

struct ConvNextForImageClassification : CopiedAs<ConvNextForImageClassification, PictureClassification> {
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::labels, arg::output_hidden_states};
  ConvNextForImageClassification(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, true, forward_arguments, c.integers("hidden_sizes").back()) {}
};

struct ConvNextBackbone : ModelOf<ConvNextBackbone, ConvNextPretrained> {
  static constexpr const char* torch_type = "transformers.models.convnext.modeling_convnext.ConvNextBackbone";
  static constexpr auto& forward_arguments = convnext_arguments;
  explicit ConvNextBackbone(const Config& c)
      : ModelOf(c),
        embeddings(child<ConvNextEmbeddings>("embeddings", c)),
        encoder(child<ConvNextEncoder>("encoder", c)),
        hidden_states_norms(*this, c, [sizes = c.integers("hidden_sizes")](size_t stage) {
          return std::make_shared<ConvNextLayerNorm>(sizes.at(stage), true);
        }) {}
  ModelOutput forward(const ModelInputs& in) override {
    const std::vector<Tensor> states = encoder(embeddings(in[arg::pixel_values]));
    return backbone_output(states, config(), wants_hidden_states(in), hidden_states_norms);
  }
  Child<ConvNextEmbeddings> embeddings;
  Child<ConvNextEncoder> encoder;
  StageNorms hidden_states_norms;
};

constexpr HeadFamily convnext_heads{"transformers.models.convnext.modeling_convnext.ConvNext", "convnext",
                                    made_model<ConvNextModel>};

void complete_convnext(Config& config) { complete_backbone(config, std::ssize(config.integers("depths"))); }

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "convnext",
      .config_class = "ConvNextConfig",
      .attribute_map = {},
      .defaults = R"({"num_channels": 3, "patch_size": 4, "num_stages": 4, "hidden_sizes": [96, 192, 384, 768],
        "depths": [3, 3, 9, 3], "hidden_act": "gelu", "initializer_range": 0.02, "layer_norm_eps": 1e-12,
        "layer_scale_init_value": 1e-06, "drop_path_rate": 0.0, "image_size": 224, "out_features": null,
        "out_indices": null})",
      .schema = {.keys = {{"num_stages", KeyKind::groups}, {"layer_scale_init_value", KeyKind::number}}},
      .complete = complete_convnext,
      .classes = {model_class<ConvNextModel>("ConvNextModel", {"default", "image-feature-extraction"}),
                  head_class<ConvNextForImageClassification>({"image-classification"},
                                                             {&convnext_heads, "ForImageClassification"}),
                  model_class<ConvNextBackbone>("ConvNextBackbone", {"backbone"})},
  });
}

}  // namespace calque::convnext
