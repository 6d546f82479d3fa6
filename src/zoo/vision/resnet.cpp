// ResNet: stages of convolutions with residuals, each half as large as the one before.
#include "calque/base/error.h"
#include "calque/hub/registry.h"
#include "calque/nn/convolution.h"
#include "calque/nn/init.h"
#include "calque/nn/normalization.h"
#include "calque/nn/pooling.h"
#include "calque/nn/shaping.h"
#include "calque/op/operators.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/child_if.h"
#include "zoo/heads/vision_heads.h"

namespace calque::resnet {

namespace {

struct ResNetConvOptions {
  int64_t kernel_size = 3, stride = 1;
  std::string activation = "relu";  // empty: none
};

struct ResNetConvLayer : Typed<ResNetConvLayer> {
  static constexpr const char* torch_type = "transformers.models.resnet.modeling_resnet.ResNetConvLayer";
  static constexpr const char* forward_arguments[] = {"input"};
  ResNetConvLayer(int64_t in_channels, int64_t out_channels, const ResNetConvOptions& o)
      : convolution(child<Conv2d>("convolution", in_channels, out_channels, o.kernel_size,
                                  ConvOptions{.stride = o.stride, .padding = Sizes(o.kernel_size / 2), .bias = false})),
        normalization(child<BatchNorm2d>("normalization", out_channels)),
        activation(o.activation.empty() ? nullptr : activation_named(o.activation)) {}
  Tensor forward(const Tensor& input) {
    const Tensor x = normalization(convolution(input));
    return activation ? activation(x) : x;
  }
  Child<Conv2d> convolution;
  Child<BatchNorm2d> normalization;
  Activation activation;
};

struct ResNetEmbeddings : Typed<ResNetEmbeddings> {
  static constexpr const char* torch_type = "transformers.models.resnet.modeling_resnet.ResNetEmbeddings";
  static constexpr const char* forward_arguments[] = {"pixel_values"};
  explicit ResNetEmbeddings(const Config& c)
      : channels(c.integer("num_channels")),
        embedder(child<ResNetConvLayer>("embedder", channels, c.integer("embedding_size"),
                                        ResNetConvOptions{7, 2, c.text("hidden_act")})),
        pooler(child<MaxPool2d>("pooler", 3, MaxPoolOptions{.stride = 2, .padding = 1})) {}
  Tensor forward(const Tensor& pixel_values) {
    // In their own dtype, as the weights' convolution will say where they differ.
    return pooler(embedder(checked_pixels(pixel_values, channels, pixel_values.dtype())));
  }
  int64_t channels;
  Child<ResNetConvLayer> embedder;
  Child<MaxPool2d> pooler;
};

struct ResNetShortCut : Typed<ResNetShortCut> {
  static constexpr const char* torch_type = "transformers.models.resnet.modeling_resnet.ResNetShortCut";
  static constexpr const char* forward_arguments[] = {"input"};
  ResNetShortCut(int64_t in_channels, int64_t out_channels, int64_t stride)
      : convolution(
            child<Conv2d>("convolution", in_channels, out_channels, 1, ConvOptions{.stride = stride, .bias = false})),
        normalization(child<BatchNorm2d>("normalization", out_channels)) {}
  Tensor forward(const Tensor& input) { return normalization(convolution(input)); }
  Child<Conv2d> convolution;
  Child<BatchNorm2d> normalization;
};

// "basic": two convolutions; "bottleneck": three, of which the middle one works on a quarter of the channels.
struct ResNetLayer : Typed<ResNetLayer> {
  static constexpr const char* forward_arguments[] = {"hidden_state"};
  ResNetLayer(const Config& c, int64_t in_channels, int64_t out_channels, int64_t stride)
      : bottleneck(c.text("layer_type") == "bottleneck"),
        shortcut(child_if<ResNetShortCut>(in_channels != out_channels || stride != 1, *this, "shortcut", in_channels,
                                          out_channels, stride)),
        layer(child<Sequential>("layer", layers(c, in_channels, out_channels, stride))),
        activation(activation_named(c.text("hidden_act"))) {}
  std::string type_name() const override {
    return std::string("transformers.models.resnet.modeling_resnet.") +
           (bottleneck ? "ResNetBottleNeckLayer" : "ResNetBasicLayer");
  }
  Tensor forward(const Tensor& hidden_state) {
    const Tensor x = layer(hidden_state);
    return activation(x + (shortcut ? (*shortcut)(hidden_state) : hidden_state));
  }

  bool bottleneck;
  std::optional<Child<ResNetShortCut>> shortcut;
  Child<Sequential> layer;
  Activation activation;

 private:
  static Sequential layers(const Config& c, int64_t in_channels, int64_t out_channels, int64_t stride) {
    if (c.text("layer_type") == "basic")
      return Sequential(ResNetConvLayer(in_channels, out_channels, {.stride = stride}),
                        ResNetConvLayer(out_channels, out_channels, {.activation = ""}));
    const int64_t reduced = scaled_size(c, "hidden_sizes", 0.25, out_channels);
    const bool first = c.flag("downsample_in_bottleneck");
    return Sequential(ResNetConvLayer(in_channels, reduced, {.kernel_size = 1, .stride = first ? stride : 1}),
                      ResNetConvLayer(reduced, reduced, {.stride = first ? 1 : stride}),
                      ResNetConvLayer(reduced, out_channels, {.kernel_size = 1, .activation = ""}));
  }
};

struct ResNetStage : Typed<ResNetStage> {
  static constexpr const char* torch_type = "transformers.models.resnet.modeling_resnet.ResNetStage";
  static constexpr const char* forward_arguments[] = {"input"};
  ResNetStage(const Config& c, int64_t in_channels, int64_t out_channels, int64_t stride, int64_t depth)
      : layers(child<Sequential>("layers")) {
    for (int64_t i = 0; i < depth; ++i)
      layers->emplace<ResNetLayer>(c, i == 0 ? in_channels : out_channels, out_channels, i == 0 ? stride : 1);
  }
  Tensor forward(const Tensor& input) {
    Tensor x = input;
    for (ResNetLayer* layer : layers->items<ResNetLayer>()) x = (*layer)(x);
    return x;
  }
  Child<Sequential> layers;
};

struct ResNetEncoder : Typed<ResNetEncoder> {
  static constexpr const char* torch_type = "transformers.models.resnet.modeling_resnet.ResNetEncoder";
  static constexpr const char* forward_arguments[] = {"hidden_state"};
  explicit ResNetEncoder(const Config& c) : stages(child<ModuleList>("stages")) {
    const std::vector<int64_t> sizes = c.integers("hidden_sizes"), depths = one_a_stage(c, "depths", sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i)
      stages->emplace<ResNetStage>(c, i == 0 ? c.integer("embedding_size") : sizes[i - 1], sizes[i],
                                   i == 0 && !c.flag("downsample_in_first_stage") ? 1 : 2, depths[i]);
  }
  // What goes in, and the output of each stage.
  std::vector<Tensor> forward(const Tensor& hidden_state) { return through_stages<ResNetStage>(*stages, hidden_state); }
  Child<ModuleList> stages;
};

struct ResNetPretrained : VisionModel {
  using VisionModel::VisionModel;
  bool supports_gradient_checkpointing() const override { return false; }
  std::string base_model_prefix() const override { return "resnet"; }
  std::vector<std::string> no_split_modules() const override { return {"ResNetConvLayer", "ResNetShortCut"}; }
  void init_weights(Module& module) override {
    VisionModel::init_weights(module);
    if (auto* convolution = dynamic_cast<Conv2d*>(&module))
      init::kaiming_normal_(convolution->weight, 0, "fan_out", "relu");
    else if (auto* linear = dynamic_cast<Linear*>(&module))
      linear->reset_parameters();
  }
};

constexpr ModelArgument resnet_arguments[] = {arg::pixel_values, arg::output_hidden_states};

struct ResNetModel : ModelOf<ResNetModel, ResNetPretrained> {
  static constexpr const char* torch_type = "transformers.models.resnet.modeling_resnet.ResNetModel";
  static constexpr auto& forward_arguments = resnet_arguments;
  explicit ResNetModel(const Config& c, bool = true)
      : ModelOf(c),
        embedder(child<ResNetEmbeddings>("embedder", c)),
        encoder(child<ResNetEncoder>("encoder", c)),
        pooler(child<AdaptiveAvgPool2d>("pooler", OptionalSizes{1, 1})) {}
  ModelOutput forward(const ModelInputs& in) override {
    const std::vector<Tensor> states = encoder(embedder(in[arg::pixel_values]));
    return stages_output(states, pooler(states.back()), wants_hidden_states(in));
  }
  Child<ResNetEmbeddings> embedder;
  Child<ResNetEncoder> encoder;
  Child<AdaptiveAvgPool2d> pooler;
};

struct ResNetForImageClassification : CopiedAs<ResNetForImageClassification, VisionHead> {
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::labels, arg::output_hidden_states};
  ResNetForImageClassification(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, true, forward_arguments), classifier(child<Sequential>("classifier", layers(c))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return sequence_classification_output(config(), base, classifier(base["pooler_output"]), in[arg::labels]);
  }
  Child<Sequential> classifier;

 private:
  static Sequential layers(const Config& c) {
    if (num_labels(c) == 0) return Sequential(Flatten());
    return Sequential(Flatten(), Linear(c.integers("hidden_sizes").back(), num_labels(c)));
  }
};

struct ResNetBackbone : ModelOf<ResNetBackbone, ResNetPretrained> {
  static constexpr const char* torch_type = "transformers.models.resnet.modeling_resnet.ResNetBackbone";
  static constexpr auto& forward_arguments = resnet_arguments;
  explicit ResNetBackbone(const Config& c)
      : ModelOf(c), embedder(child<ResNetEmbeddings>("embedder", c)), encoder(child<ResNetEncoder>("encoder", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const std::vector<Tensor> states = encoder(embedder(in[arg::pixel_values]));
    return backbone_output(states, config(), wants_hidden_states(in), [](int64_t, const Tensor& x) { return x; });
  }
  Child<ResNetEmbeddings> embedder;
  Child<ResNetEncoder> encoder;
};

constexpr HeadFamily resnet_heads{"transformers.models.resnet.modeling_resnet.ResNet", "resnet", made_model<ResNetModel>};

void complete_resnet(Config& config) {
  const std::string type = config.text("layer_type");
  if (type != "basic" && type != "bottleneck")
    throw UserError(ErrorKind::bad_file, "\"layer_type\" is \"" + type + "\", expected basic or bottleneck");
  complete_backbone(config, std::ssize(config.integers("depths")));
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "resnet",
      .config_class = "ResNetConfig",
      .attribute_map = {},
      .defaults = R"({"num_channels": 3, "embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048],
        "depths": [3, 4, 6, 3], "layer_type": "bottleneck", "hidden_act": "relu", "downsample_in_first_stage": false,
        "downsample_in_bottleneck": false, "out_features": null, "out_indices": null})",
      .complete = complete_resnet,
      .classes = {model_class<ResNetModel>("ResNetModel", {"default", "image-feature-extraction"}),
                  head_class<ResNetForImageClassification>({"image-classification"},
                                                           {&resnet_heads, "ForImageClassification"}),
                  model_class<ResNetBackbone>("ResNetBackbone", {"backbone"})},
  });
}

}  // namespace calque::resnet
