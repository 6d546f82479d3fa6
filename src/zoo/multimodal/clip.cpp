// CLIP: a model of texts and a model of pictures, whose outputs are projected into one space and compared.
#include "calque/base/error.h"
#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/unary.h"
#include "zoo/blocks/clip_layers.h"
#include "zoo/heads/vision_heads.h"

namespace calque::clip {

namespace {

constexpr char clip_family[] = "transformers.models.clip.modeling_clip.CLIP";

std::vector<std::string> clip_wholes() { return {"CLIPTextEmbeddings", "CLIPEncoderLayer", "CLIPVisionEmbeddings"}; }

struct CLIPTextModel : ModelOf<CLIPTextModel> {
  static constexpr const char* torch_type = "transformers.models.clip.modeling_clip.CLIPTextModel";
  static constexpr ModelArgument forward_arguments[] = {arg::input_ids, arg::attention_mask, arg::position_ids,
                                                        arg::output_attentions, arg::output_hidden_states};
  explicit CLIPTextModel(const Config& c)
      : ModelOf(c),
        embeddings(child<ClipTextEmbeddings>("embeddings", c, clip_family)),
        encoder(child<ClipEncoder>("encoder", c, clip_family)),
        final_layer_norm(child<LayerNorm>("final_layer_norm", c.integer("hidden_size"),
                                          LayerNormOptions{.eps = c.number("layer_norm_eps")})) {}

  ModelOutput forward(const ModelInputs& in) override {
    const Tensor ids = in[arg::input_ids];
    EncoderInputs inputs = unmasked_inputs(*this, in, embeddings(ids, in[arg::position_ids]));
    inputs.mask = causal_mask(inputs.hidden_states, in[arg::attention_mask]);
    EncoderResult result = encoder(inputs);
    result.last_hidden_state = final_layer_norm(result.last_hidden_state);
    const Tensor rows = arange(ids.sym_size(0), DType::int64, std::nullopt, ids.device());
    return encoder_output(result, index(result.last_hidden_state, {rows, end_of_text(ids)}));
  }
  std::string base_model_prefix() const override { return "text_model"; }  // of a whole model's checkpoint
  std::vector<std::string> no_split_modules() const override { return clip_wholes(); }
  Child<Embedding>* input_embeddings() override { return &embeddings->token_embedding; }
  void init_weights(Module& module) override {
    if (!init_clip_part(module, config())) PretrainedModel::init_weights(module);
  }

  Child<ClipTextEmbeddings> embeddings;
  Child<ClipEncoder> encoder;
  Child<LayerNorm> final_layer_norm;

 private:
  // Configurations of the first checkpoints have 2 for a token that is the last of the vocabulary.
  Tensor end_of_text(const Tensor& ids) const {
    const int64_t end = config().integer("eos_token_id");
    return end == 2 ? ids.to(DType::int32).argmax(-1) : eq(ids.to(DType::int32), end).to(DType::int32).argmax(-1);
  }
};

struct CLIPVisionModel : ModelOf<CLIPVisionModel, ClipPictures> {
  static constexpr const char* torch_type = "transformers.models.clip.modeling_clip.CLIPVisionModel";
  explicit CLIPVisionModel(const Config& c) : ModelOf(c, clip_family) {}
  std::vector<std::string> no_split_modules() const override { return clip_wholes(); }
};

// A part's embeds, and of its output everything but what is projected.
ModelOutput projected_output(const char* name, const Tensor& embeds, const ModelOutput& base) {
  ModelOutput out;
  out.set(name, embeds);
  out.take(base, {"last_hidden_state", "hidden_states", "attentions"});
  return out;
}

struct CLIPTextModelWithProjection : ModelOf<CLIPTextModelWithProjection> {
  static constexpr const char* torch_type = "transformers.models.clip.modeling_clip.CLIPTextModelWithProjection";
  static constexpr auto& forward_arguments = CLIPTextModel::forward_arguments;
  explicit CLIPTextModelWithProjection(const Config& c)
      : ModelOf(c),
        text_model(child<CLIPTextModel>("text_model", c)),
        text_projection(child<Linear>("text_projection", c.integer("hidden_size"), c.integer("projection_dim"), false)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = text_model(in);
    return projected_output("text_embeds", text_projection(base["pooler_output"]), base);
  }
  std::string base_model_prefix() const override { return "text_model"; }
  std::vector<std::string> no_split_modules() const override { return clip_wholes(); }
  Child<Embedding>* input_embeddings() override { return text_model->input_embeddings(); }
  void init_weights(Module& module) override;
  Child<CLIPTextModel> text_model;
  Child<Linear> text_projection;
};

struct CLIPVisionModelWithProjection : ModelOf<CLIPVisionModelWithProjection, VisionModel> {
  static constexpr const char* torch_type = "transformers.models.clip.modeling_clip.CLIPVisionModelWithProjection";
  static constexpr auto& forward_arguments = ClipPictures::forward_arguments;
  explicit CLIPVisionModelWithProjection(const Config& c)
      : ModelOf(c),
        vision_model(child<CLIPVisionModel>("vision_model", c)),
        visual_projection(child<Linear>("visual_projection", c.integer("hidden_size"), c.integer("projection_dim"), false)) {
  }
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = vision_model(in);
    return projected_output("image_embeds", visual_projection(base["pooler_output"]), base);
  }
  std::string base_model_prefix() const override { return "vision_model"; }
  std::vector<std::string> no_split_modules() const override { return clip_wholes(); }
  void init_weights(Module& module) override;
  Child<CLIPVisionModel> vision_model;
  Child<Linear> visual_projection;
};

struct CLIPModel : ModelOf<CLIPModel> {
  static constexpr const char* torch_type = "transformers.models.clip.modeling_clip.CLIPModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,   arg::pixel_values,      arg::attention_mask,       arg::position_ids,
      arg::return_loss, arg::output_attentions, arg::output_hidden_states, arg::interpolate_pos_encoding};
  explicit CLIPModel(const Config& c)
      : ModelOf(c),
        logit_scale(register_parameter("logit_scale", full({}, c.number("logit_scale_init_value")))),
        text_model(child<CLIPTextModel>("text_model", c.nested("text_config"))),
        vision_model(child<CLIPVisionModel>("vision_model", c.nested("vision_config"))),
        visual_projection(child<Linear>("visual_projection", vision_model->config().integer("hidden_size"),
                                        c.integer("projection_dim"), false)),
        text_projection(child<Linear>("text_projection", text_model->config().integer("hidden_size"),
                                      c.integer("projection_dim"), false)) {}

  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput pictures = vision_model(in), texts = text_model(in);
    const Tensor seen = visual_projection(pictures["pooler_output"]), said = text_projection(texts["pooler_output"]);
    const Tensor image_embeds = normalized_rows(seen), text_embeds = normalized_rows(said);
    const Tensor logits = matmul(text_embeds, image_embeds.t()) * exp(logit_scale);
    return pairs_output(in[arg::return_loss].value_or(false) ? pairs_loss(logits) : Tensor(), logits, text_embeds,
                        image_embeds, with_field(texts, "pooler_output", said), with_field(pictures, "pooler_output", seen));
  }
  std::string base_model_prefix() const override { return "clip"; }
  std::vector<std::string> no_split_modules() const override { return clip_wholes(); }
  Child<Embedding>* input_embeddings() override { return text_model->input_embeddings(); }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override {
    ModelInputs in = text_model->example_inputs(sizes);
    in.set(arg::pixel_values, vision_model->example_inputs(sizes)[arg::pixel_values]);
    return in;
  }
  void init_weights(Module& module) override;

  Parameter logit_scale;
  Child<CLIPTextModel> text_model;
  Child<CLIPVisionModel> vision_model;
  Child<Linear> visual_projection, text_projection;
};

// The mean over the patches, without the first token.
struct CLIPForImageClassification : ModelOf<CLIPForImageClassification> {
  static constexpr const char* torch_type = "transformers.models.clip.modeling_clip.CLIPForImageClassification";
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::labels, arg::output_attentions,
                                                        arg::output_hidden_states};
  explicit CLIPForImageClassification(const Config& c)
      : ModelOf(c),
        vision_model(child<CLIPVisionModel>("vision_model", c.nested("vision_config"))),
        classifier(label_scores(*this, "classifier", c, vision_model->config().integer("hidden_size"))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = vision_model(in);
    const Tensor pooled = mean(base["last_hidden_state"].slice(1, 1), {1});
    return sequence_classification_output(config(), base, scored(classifier, pooled), in[arg::labels]);
  }
  std::string base_model_prefix() const override { return "clip"; }
  std::string main_input_name() const override { return "pixel_values"; }
  std::vector<std::string> no_split_modules() const override { return clip_wholes(); }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return vision_model->example_inputs(sizes); }
  void init_weights(Module& module) override;
  Child<CLIPVisionModel> vision_model;
  std::optional<Child<Linear>> classifier;
};

// A projection's deviation is by what it sums over.
void init_projection(const Child<Linear>& projection, const Config& config) {
  init::normal_(projection->weight, 0,
                std::pow(projection->in_features, -0.5) * config.optional_number("initializer_factor").value_or(1));
}

void CLIPTextModelWithProjection::init_weights(Module& module) {
  &module == this ? init_projection(text_projection, config()) : PretrainedModel::init_weights(module);
}
void CLIPVisionModelWithProjection::init_weights(Module& module) {
  &module == this ? init_projection(visual_projection, config()) : VisionModel::init_weights(module);
}
void CLIPModel::init_weights(Module& module) {
  PretrainedModel::init_weights(module);
  if (&module != this) return;
  init::constant_(logit_scale, config().number("logit_scale_init_value"));
  init_projection(text_projection, config());
  init_projection(visual_projection, config());
}
void CLIPForImageClassification::init_weights(Module& module) {
  PretrainedModel::init_weights(module);
  if (&module == this && classifier) init_projection(*classifier, config());
}

void complete_clip(Config& config) {
  complete_part(config, "text_config", "clip_text_model");
  complete_part(config, "vision_config", "clip_vision_model");
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "clip_text_model",
      .config_class = "CLIPTextConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048, "projection_dim": 512,
        "num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77, "hidden_act": "quick_gelu",
        "layer_norm_eps": 1e-05, "attention_dropout": 0.0, "initializer_range": 0.02, "initializer_factor": 1.0,
        "pad_token_id": 1, "bos_token_id": 49406, "eos_token_id": 49407})",
      .schema = {.relations = {multiple("hidden_size", "num_attention_heads")}},
      .classes = {model_class<CLIPTextModel>("CLIPTextModel", {"special"}),
                  model_class<CLIPTextModelWithProjection>("CLIPTextModelWithProjection", {"special"})},
  });
  registry.add({
      .model_type = "clip_vision_model",
      .config_class = "CLIPVisionConfig",
      .attribute_map = {},
      .defaults = R"({"hidden_size": 768, "intermediate_size": 3072, "projection_dim": 512, "num_hidden_layers": 12,
        "num_attention_heads": 12, "num_channels": 3, "image_size": 224, "patch_size": 32, "hidden_act": "quick_gelu",
        "layer_norm_eps": 1e-05, "attention_dropout": 0.0, "initializer_range": 0.02, "initializer_factor": 1.0})",
      .schema = {.relations = {multiple("hidden_size", "num_attention_heads")}},
      .classes = {model_class<CLIPVisionModel>("CLIPVisionModel", {"special"}),
                  model_class<CLIPVisionModelWithProjection>("CLIPVisionModelWithProjection", {"special"})},
  });
  registry.add({
      .model_type = "clip",
      .config_class = "CLIPConfig",
      .attribute_map = {},
      .defaults = R"({"text_config": null, "vision_config": null, "projection_dim": 512, "logit_scale_init_value": 2.6592,
        "initializer_factor": 1.0})",
      .complete = complete_clip,
      .classes = {model_class<CLIPModel>("CLIPModel", {"default", "zero-shot-image-classification"}),
                  model_class<CLIPForImageClassification>("CLIPForImageClassification", {"image-classification"})},
  });
}

}  // namespace calque::clip
