// CLIP: a model of texts and a model of pictures, whose outputs are projected into one space and compared.
#include "calque/base/error.h"
#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/indexing.h"
#include "zoo/blocks/clip_layers.h"
#include "zoo/heads/vision_heads.h"

namespace calque::clip {

namespace {

constexpr char clip_family[] = "transformers.models.clip.modeling_clip.CLIP";

std::vector<std::string> clip_wholes() { return {"CLIPTextEmbeddings", "CLIPEncoderLayer", "CLIPVisionEmbeddings"}; }

struct CLIPTextModel : ModelOf<CLIPTextModel, ClipTexts> {
  static constexpr const char* torch_type = "transformers.models.clip.modeling_clip.CLIPTextModel";
  explicit CLIPTextModel(const Config& c) : ModelOf(c, clip_family) {}
  ModelOutput forward(const ModelInputs& in) override {
    const Tensor ids = in[arg::input_ids];
    EncoderInputs inputs = unmasked_inputs(*this, in, embeddings(ids, in[arg::position_ids]));
    inputs.mask = causal_mask(inputs.hidden_states, in[arg::attention_mask]);
    EncoderResult result = encoder(inputs);
    result.last_hidden_state = final_layer_norm(result.last_hidden_state);
    const Tensor rows = arange(ids.sym_size(0), DType::int64, std::nullopt, ids.device());
    return encoder_output(result, index(result.last_hidden_state, {rows, end_of_text(ids)}));
  }
  std::vector<std::string> no_split_modules() const override { return clip_wholes(); }
  void init_weights(Module& module) override {
    if (!init_clip_part(module, config())) PretrainedModel::init_weights(module);
  }

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
  void init_weights(Module& module) override {
    &module == this ? init_projection(text_projection, config()) : PretrainedModel::init_weights(module);
  }
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
  void init_weights(Module& module) override {
    &module == this ? init_projection(visual_projection, config()) : VisionModel::init_weights(module);
  }
  Child<CLIPVisionModel> vision_model;
  Child<Linear> visual_projection;
};

struct CLIPModel : ModelOf<CLIPModel, ProjectedTowers> {
  static constexpr const char* torch_type = "transformers.models.clip.modeling_clip.CLIPModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,   arg::pixel_values,      arg::attention_mask,       arg::position_ids,
      arg::return_loss, arg::output_attentions, arg::output_hidden_states, arg::interpolate_pos_encoding};
  explicit CLIPModel(const Config& c)
      : ModelOf(c, std::make_shared<CLIPTextModel>(c.nested("text_config")),
                std::make_shared<CLIPVisionModel>(c.nested("vision_config")),
                c.nested("text_config").integer("hidden_size")) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput pictures = vision_model(in), texts = text_model(in);
    const Tensor seen = visual_projection(pictures["pooler_output"]), said = text_projection(texts["pooler_output"]);
    const Tensor image_embeds = normalized_rows(seen), text_embeds = normalized_rows(said);
    return compared(in, text_embeds, image_embeds, with_field(texts, "pooler_output", said),
                    with_field(pictures, "pooler_output", seen));
  }
  std::string base_model_prefix() const override { return "clip"; }
  std::vector<std::string> no_split_modules() const override { return clip_wholes(); }
};

// The first token is none of the patches.
struct CLIPForImageClassification : ModelOf<CLIPForImageClassification, TowerClassification> {
  static constexpr const char* torch_type = "transformers.models.clip.modeling_clip.CLIPForImageClassification";
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::labels, arg::output_attentions,
                                                        arg::output_hidden_states};
  explicit CLIPForImageClassification(const Config& c)
      : ModelOf(c, std::make_shared<CLIPVisionModel>(c.nested("vision_config")), 1) {}
  std::string base_model_prefix() const override { return "clip"; }
  std::vector<std::string> no_split_modules() const override { return clip_wholes(); }
  void init_weights(Module& module) override {
    PretrainedModel::init_weights(module);
    if (&module == this && classifier) init_projection(*classifier, config());
  }
};

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
