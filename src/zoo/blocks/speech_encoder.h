// The encoder of raw sound that wav2vec 2.0 and HuBERT share: convolutions that turn samples into frames, their projection, a convolution
// for positions with a weight that is split into direction and length, layers with the norm behind or (stable) in front. Families
// give the prefix of their class names ("transformers.models.hubert.modeling_hubert.Hubert").
#pragma once

#include <string>
#include <tuple>

#include "bert_encoder.h"
#include "calque/hub/checkpointing.h"
#include "calque/nn/convolution.h"
#include "projected_attention.h"

namespace calque {

// What such encoders ask of a configuration beside `own`.
ConfigSchema speech_schema(std::vector<KeyRule> own);
// The lists of the convolutions, which have to be of one length. UserError names what is not as it should be.
void check_speech_convolutions(const Config& config);

// One convolution over time, with a norm of the family's choice: over each channel, over the channels, or none.
struct SpeechConvLayer : Checkpointed<Typed<SpeechConvLayer>> {
  enum class Norm { none, group, layer };
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  SpeechConvLayer(const Config& c, std::string family, size_t number, Norm norm);
  std::string type_name() const override;
  Tensor forward(const Tensor& hidden_states);
  std::string family;
  Norm kind;
  Child<Conv1d> conv;
  std::optional<Child<LayerNorm>> layer_norm;
  std::optional<Child<GroupNorm>> group_norm;  // of the same name in the checkpoint
  Activation activation;
};

// Samples [batch, samples] to features [batch, channels, frames].
struct SpeechFeatureEncoder : FamilyModule<SpeechFeatureEncoder> {
  static constexpr const char* part = "FeatureEncoder";
  static constexpr const char* forward_arguments[] = {"input_values"};
  SpeechFeatureEncoder(const Config& c, const std::string& family);
  Tensor forward(const Tensor& input_values);
  Child<ModuleList> conv_layers;
};

struct SpeechFeatureProjection : FamilyModule<SpeechFeatureProjection> {
  static constexpr const char* part = "FeatureProjection";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  SpeechFeatureProjection(const Config& c, std::string family, bool norm);
  std::tuple<Tensor, Tensor> forward(const Tensor& hidden_states);  // projected, and before the projection
  std::optional<Child<LayerNorm>> layer_norm;
  Child<Linear> projection;
  Child<Dropout> dropout;
};

// A weight as its direction and, for each place of the kernel, its length.
struct WeightNormParts : Typed<WeightNormParts> {
  static constexpr const char* torch_type = "torch.nn.utils.parametrize.ParametrizationList";
  explicit WeightNormParts(const Tensor& weight);
  Tensor forward();
  Parameter original0, original1;
};

struct WeightParametrizations : Typed<WeightParametrizations> {
  static constexpr const char* torch_type = "torch.nn.modules.container.ModuleDict";
  explicit WeightParametrizations(const Tensor& start) : weight(child<WeightNormParts>("weight", start)) {}
  Tensor forward() { return weight(); }
  Child<WeightNormParts> weight;
};

// A convolution whose weight is computed from such parts, padded by half its kernel.
struct WeightNormedConv1d : Typed<WeightNormedConv1d> {
  static constexpr const char* torch_type = "torch.nn.utils.parametrize.ParametrizedConv1d";
  static constexpr const char* forward_arguments[] = {"input"};
  WeightNormedConv1d(int64_t channels, int64_t kernel, int64_t groups);
  std::string extra_repr() const override;
  Tensor forward(const Tensor& input);
  int64_t kernel, groups;
  Parameter bias;
  Child<WeightParametrizations> parametrizations;
};

struct SpeechPositions : FamilyModule<SpeechPositions> {
  static constexpr const char* part = "PositionalConvEmbedding";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  SpeechPositions(const Config& c, std::string family);
  Tensor forward(const Tensor& hidden_states);
  int64_t kernel;
  std::optional<Child<WeightNormedConv1d>> normed;  // one of the two is "conv"
  std::optional<Child<Conv1d>> plain;
  std::optional<Child<BatchNorm1d>> batch_norm;  // of what the plain one gets
  Activation activation;
};

struct SpeechAttention : Typed<SpeechAttention, ProjectedAttention> {
  SpeechAttention(const Config& c, std::string family);
  std::string type_name() const override { return family + "Attention"; }
  std::string family;
};

struct SpeechFeedForward : FamilyModule<SpeechFeedForward> {
  static constexpr const char* part = "FeedForward";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  SpeechFeedForward(const Config& c, std::string family);
  Tensor forward(const Tensor& hidden_states);
  Child<Dropout> intermediate_dropout;
  Child<Linear> intermediate_dense;
  Activation activation;
  Child<Linear> output_dense;
  Child<Dropout> output_dropout;
};

// A small network behind a layer, for one language of many.
struct SpeechAttnAdapter : FamilyModule<SpeechAttnAdapter> {
  static constexpr const char* part = "AttnAdapterLayer";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  SpeechAttnAdapter(const Config& c, std::string family);
  Tensor forward(const Tensor& hidden_states);
  Child<LayerNorm> norm;
  Child<Linear> linear_1;
  Child<ReLU> act_fn;
  Child<Linear> linear_2;
};

struct SpeechLayer : Checkpointed<Typed<SpeechLayer>> {
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "head_mask", "eager"};
  using Result = std::tuple<Tensor, Tensor>;  // output, weights
  SpeechLayer(const Config& c, const std::string& family);
  std::string type_name() const override { return family + (stable ? "EncoderLayerStableLayerNorm" : "EncoderLayer"); }
  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask, bool eager);
  std::string family;
  bool stable;
  Child<SpeechAttention> attention;
  Child<Dropout> dropout;
  Child<LayerNorm> layer_norm;
  Child<SpeechFeedForward> feed_forward;
  Child<LayerNorm> final_layer_norm;
  std::optional<Child<SpeechAttnAdapter>> adapter_layer;  // by adapter_attn_dim
};

struct SpeechEncoder : Typed<SpeechEncoder> {
  static constexpr const char* forward_arguments[] = {"inputs", "attention_mask"};
  SpeechEncoder(const Config& c, const std::string& family);
  std::string type_name() const override { return family + (stable ? "EncoderStableLayerNorm" : "Encoder"); }
  // `kept` [batch, frames] is true where there is sound. The hidden states are those behind the layers.
  EncoderResult forward(const EncoderInputs& in, const Tensor& kept);
  std::string family;
  bool stable;
  double layerdrop;
  Child<SpeechPositions> pos_conv_embed;
  Child<LayerNorm> layer_norm;
  Child<Dropout> dropout;
  Child<ModuleList> layers;
};

// How many frames the convolutions make of so many samples; with the adapter's `strides` behind them.
Tensor speech_frames(const Config& config, const Tensor& samples, int64_t adapter_layers = 0);
// A mask over samples as one over `frames` frames, true where there is sound.
Tensor speech_frame_mask(const Config& config, const SymInt& frames, const Tensor& attention_mask,
                         int64_t adapter_layers = 0);

// SpecAugment: spans of frames, and of features, that are hidden from a model that learns. The masks [batch, length] are drawn as
// transformers draws them with numpy, from the process's generator.
Tensor spec_augment_mask(int64_t batch, int64_t length, double probability, int64_t span, int64_t least,
                         const std::vector<int64_t>& lengths = {});
// Hidden states with the given frames replaced by `embed`, or while training with frames and features drawn as the
// configuration says.
Tensor spec_augmented(const PretrainedModel& model, const Tensor& hidden_states, const Tensor& mask_time_indices,
                      const Tensor& embed, const Tensor& kept);

}  // namespace calque
