// The encoder of CLIP and its relatives (SigLIP, AltCLIP's and GIT's pictures): norms before attention and feed-forward,
// attention with projections k_proj, v_proj, q_proj and out_proj; the embeddings of pictures and of texts; and the losses
// of pairs. Families give the prefix of their class names.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "activations.h"
#include "bert_encoder.h"
#include "calque/hub/checkpointing.h"
#include "calque/nn/convolution.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "family_module.h"
#include "projected_attention.h"
#include "vision.h"
#include "zoo/heads/vision_heads.h"

namespace calque {

struct ClipAttention : NamedModule<ClipAttention, ProjectedAttention> {
  static constexpr auto& forward_arguments = ProjectedAttention::forward_arguments;
  ClipAttention(const Config& c, const std::string& family);
  std::string name;
};

struct ClipMLP : FamilyModule<ClipMLP> {
  static constexpr const char* part = "MLP";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  ClipMLP(const Config& c, std::string family);
  Tensor forward(const Tensor& hidden_states) { return fc2(activation(fc1(hidden_states))); }
  Activation activation;
  Child<Linear> fc1, fc2;
};

struct ClipEncoderLayer : Checkpointed<FamilyModule<ClipEncoderLayer>> {
  static constexpr const char* part = "EncoderLayer";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "head_mask", "eager"};
  ClipEncoderLayer(const Config& c, const std::string& family);
  std::tuple<Tensor, Tensor> forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                     bool eager);  // output, weights
  Child<ClipAttention> self_attn;
  Child<LayerNorm> layer_norm1;
  Child<ClipMLP> mlp;
  Child<LayerNorm> layer_norm2;
};

struct ClipEncoder : FamilyModule<ClipEncoder> {
  static constexpr const char* part = "Encoder";
  static constexpr const char* forward_arguments[] = {"inputs"};
  ClipEncoder(const Config& c, const std::string& family);
  EncoderResult forward(const EncoderInputs& in) { return run_encoder_layers<ClipEncoderLayer>(*layers, in); }
  Child<ModuleList> layers;
};

// Patches, behind a token of their own where there is one, and learned positions.
struct ClipVisionEmbeddings : FamilyModule<ClipVisionEmbeddings> {
  static constexpr const char* part = "VisionEmbeddings";
  static constexpr const char* forward_arguments[] = {"pixel_values", "interpolate_pos_encoding"};
  ClipVisionEmbeddings(const Config& c, std::string family, bool has_class_token = true);
  Tensor forward(const Tensor& pixel_values, bool interpolate_pos_encoding);
  int64_t channels;
  PictureSize image_size, patch_size;
  Parameter class_embedding;  // undefined where there is none
  Child<Conv2d> patch_embedding;
  Child<Embedding> position_embedding;
};

struct ClipTextEmbeddings : FamilyModule<ClipTextEmbeddings> {
  static constexpr const char* part = "TextEmbeddings";
  static constexpr const char* forward_arguments[] = {"input_ids", "position_ids"};
  ClipTextEmbeddings(const Config& c, std::string family);
  Tensor forward(const Tensor& input_ids, const Tensor& position_ids);
  Child<Embedding> token_embedding, position_embedding;
  Buffer position_ids;
};

// What a model hands its layers, without a mask: the one in the inputs of a whole model is the texts'.
EncoderInputs unmasked_inputs(const PretrainedModel& model, const ModelInputs& in, const Tensor& embedded);

// What models of texts have as CLIP has it: a norm behind the layers.
struct ClipTexts : PretrainedModel {
  static constexpr ModelArgument forward_arguments[] = {arg::input_ids, arg::attention_mask, arg::position_ids,
                                                        arg::output_attentions, arg::output_hidden_states};
  ClipTexts(const Config& c, const std::string& family);
  std::string base_model_prefix() const override { return "text_model"; }  // of a whole model's checkpoint
  Child<Embedding>* input_embeddings() override { return &embeddings->token_embedding; }
  Child<ClipTextEmbeddings> embeddings;
  Child<ClipEncoder> encoder;
  Child<LayerNorm> final_layer_norm;

 protected:
  ClipTexts(const ClipTexts&) = default;
};

// A model of pictures as CLIP has it: a norm before the layers, and the first token through a norm behind them.
struct ClipPictures : VisionModel {
  static constexpr ModelArgument forward_arguments[] = {arg::pixel_values, arg::interpolate_pos_encoding,
                                                        arg::output_attentions, arg::output_hidden_states};
  ClipPictures(const Config& c, const std::string& family);
  std::string base_model_prefix() const override { return "vision_model"; }  // of a whole model's checkpoint
  ModelOutput forward(const ModelInputs& in) override;
  void init_weights(Module& module) override;
  Child<ClipVisionEmbeddings> embeddings;
  Child<LayerNorm> pre_layrnorm;
  Child<ClipEncoder> encoder;
  Child<LayerNorm> post_layernorm;

 protected:
  ClipPictures(const ClipPictures&) = default;
};

// The start values of CLIP's parts, which grow with initializer_factor; whether it was one.
bool init_clip_part(Module& module, const Config& config);

// Vectors of length 1, as CLIP computes them.
Tensor normalized_rows(const Tensor& x);
// logits_per_image, logits_per_text, the embeddings and both models' outputs; before them the loss, where there is one.
ModelOutput pairs_output(const Tensor& loss, const Tensor& logits_per_text, const Tensor& text_embeds,
                         const Tensor& image_embeds, const ModelOutput& text, const ModelOutput& vision);
// Each text belongs to the picture of its own row.
Tensor pairs_loss(const Tensor& logits_per_text);
// The output with another value in one of its fields.
ModelOutput with_field(const ModelOutput& output, std::string_view name, const Tensor& value);

// A model of texts beside a model of pictures.
struct TwoTowers : PretrainedModel {
  TwoTowers(const Config& c, std::shared_ptr<PretrainedModel> text, std::shared_ptr<PretrainedModel> vision);
  Child<Embedding>* input_embeddings() override { return text_model->input_embeddings(); }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override;
  Child<PretrainedModel> text_model, vision_model;

 protected:
  TwoTowers(const TwoTowers&) = default;
};

// Their outputs are projected into one space and compared by a learned scale. `text_size` is that of the texts' outputs.
struct ProjectedTowers : TwoTowers {
  ProjectedTowers(const Config& c, std::shared_ptr<PretrainedModel> text, std::shared_ptr<PretrainedModel> vision,
                  int64_t text_size);
  void init_weights(Module& module) override;
  Parameter logit_scale;
  Child<Linear> visual_projection, text_projection;

 protected:
  ProjectedTowers(const ProjectedTowers&) = default;
  ModelOutput compared(const ModelInputs& in, const Tensor& text_embeds, const Tensor& image_embeds, const ModelOutput& text,
                       const ModelOutput& vision) const;
};
// A projection's start values: their deviation is by what it sums over.
void init_projection(const Child<Linear>& projection, const Config& config);

// Scores of labels from the mean over a picture's patches, which follow `lead` tokens that are none.
struct TowerClassification : PretrainedModel {
  TowerClassification(const Config& c, std::shared_ptr<PretrainedModel> vision, int64_t lead);
  ModelOutput forward(const ModelInputs& in) override;
  std::string main_input_name() const override { return "pixel_values"; }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return vision_model->example_inputs(sizes); }
  int64_t lead;
  Child<PretrainedModel> vision_model;
  std::optional<Child<Linear>> classifier;

 protected:
  TowerClassification(const TowerClassification&) = default;
};

}  // namespace calque
