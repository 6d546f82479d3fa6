// The encoder of CLIP and its relatives (SigLIP, AltCLIP's and GIT's pictures): norms before attention and feed-forward,
// attention with projections k_proj, v_proj, q_proj and out_proj; the embeddings of pictures and of texts; and the losses
// of pairs. Families give the prefix of their class names.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "activations.h"
#include "bert_encoder.h"
#include "calque/nn/convolution.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "family_module.h"
#include "projected_attention.h"
#include "vision.h"

namespace calque {

struct ClipAttention : Typed<ClipAttention, ProjectedAttention> {
  static constexpr auto& forward_arguments = ProjectedAttention::forward_arguments;
  ClipAttention(const Config& c, const std::string& family);
  std::string type_name() const override { return name; }
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

struct ClipEncoderLayer : FamilyModule<ClipEncoderLayer> {
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

}  // namespace calque
