// GIT's model of pictures: CLIP's, with the norm behind the layers over all patches.
#include "calque/hub/registry.h"
#include "zoo/blocks/clip_layers.h"

namespace calque::git {

namespace {

constexpr char git_family[] = "transformers.models.git.modeling_git.GitVision";

struct GitVisionTransformer : Typed<GitVisionTransformer> {
  static constexpr const char* torch_type = "transformers.models.git.modeling_git.GitVisionTransformer";
  static constexpr const char* forward_arguments[] = {"inputs", "interpolate_pos_encoding"};
  explicit GitVisionTransformer(const Config& c)
      : embeddings(child<ClipVisionEmbeddings>("embeddings", c, "transformers.models.git.modeling_git.Git")),
        pre_layrnorm(
            child<LayerNorm>("pre_layrnorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        encoder(child<ClipEncoder>("encoder", c, git_family)),
        post_layernorm(child<LayerNorm>("post_layernorm", c.integer("hidden_size"),
                                        LayerNormOptions{.eps = c.number("layer_norm_eps")})) {}
  // The inputs' hidden states are the pixels.
  EncoderResult forward(const EncoderInputs& pixels, bool interpolate_pos_encoding) {
    EncoderInputs in = pixels;
    in.hidden_states = pre_layrnorm(embeddings(pixels.hidden_states, interpolate_pos_encoding));
    EncoderResult result = encoder(in);
    result.last_hidden_state = post_layernorm(result.last_hidden_state);
    return result;
  }
  Child<ClipVisionEmbeddings> embeddings;
  Child<LayerNorm> pre_layrnorm;
  Child<ClipEncoder> encoder;
  Child<LayerNorm> post_layernorm;
};

struct GitVisionModel : ModelOf<GitVisionModel, VisionModel> {
  static constexpr const char* torch_type = "transformers.models.git.modeling_git.GitVisionModel";
  static constexpr auto& forward_arguments = ClipPictures::forward_arguments;
  explicit GitVisionModel(const Config& c) : ModelOf(c), vision_model(child<GitVisionTransformer>("vision_model", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    return encoder_output(
        vision_model(unmasked_inputs(*this, in, in[arg::pixel_values]), in[arg::interpolate_pos_encoding].value_or(false)));
  }
  std::string base_model_prefix() const override { return "git.image_encoder"; }  // of a whole model's checkpoint
  std::vector<std::string> no_split_modules() const override { return {"GitVisionEmbeddings", "GitVisionEncoderLayer"}; }
  void init_weights(Module& module) override {
    auto* pictures = dynamic_cast<ClipVisionEmbeddings*>(&module);
    if (!pictures || !init_clip_part(*pictures, config())) VisionModel::init_weights(module);
  }
  Child<GitVisionTransformer> vision_model;
};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "git_vision_model",
      .config_class = "GitVisionConfig",
      .attribute_map = {},
      .defaults = R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
        "num_channels": 3, "image_size": 224, "patch_size": 16, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-05,
        "attention_dropout": 0.0, "initializer_range": 0.02})",
      .schema = {.relations = {multiple("hidden_size", "num_attention_heads")}},
      .classes = {model_class<GitVisionModel>("GitVisionModel", {"special"})},
  });
}

}  // namespace calque::git
