// Heads on encoders of raw sound: letters by connectionist temporal classification, one label for a sound; and what the models of
// wav2vec 2.0 and HuBERT have in common.
#pragma once

#include "../blocks/speech_encoder.h"
#include "head_model.h"
#include "losses.h"
#include "speech_arguments.h"

namespace calque {

inline constexpr ModelArgument speech_arguments[] = {arg::input_values, arg::attention_mask, arg::mask_time_indices,
                                                     arg::output_attentions, arg::output_hidden_states};
inline constexpr ModelArgument speech_labelled_arguments[] = {arg::input_values, arg::attention_mask, arg::labels,
                                                              arg::output_attentions, arg::output_hidden_states};

// Samples of which the convolutions make so many frames.
ModelInputs example_sound(const Config& config, int64_t batch, int64_t frames);
// Layers behind the encoder that make frames fewer.
int64_t speech_adapter_layers(const Config& config);
// The hidden states of all layers, weighted and added.
Tensor weighted_layers(const ModelOutput& base, const Tensor& layer_weights);

struct SpeechPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string main_input_name() const override { return "input_values"; }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override {
    return example_sound(config(), sizes.batch, sizes.length);
  }
};

// What hides frames from a model that learns, where the configuration masks any.
std::optional<Parameter> masked_spec_embedding(Module& model, const Config& config);
// Samples up to the encoder.
struct HeardFrames {
  Tensor states;   // projected, with frames and features hidden
  Tensor before;   // the projection
  Tensor kept;     // [batch, frames]: true where there is sound; undefined without an attention_mask
  ModelInputs in;  // with a mask over frames
};
HeardFrames heard_frames(const PretrainedModel& model, Child<SpeechFeatureEncoder>& extractor,
                         Child<SpeechFeatureProjection>& projection, const std::optional<Parameter>& masked_spec_embed,
                         bool hides_kept_alone, const ModelInputs& in);

struct SpeechHead : HeadModel {
  SpeechHead(const HeadClass& head, const Config& c, std::span<const ModelArgument> own = speech_labelled_arguments)
      : HeadModel(head, c, false, own) {}
  std::string main_input_name() const override { return "input_values"; }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override {
    return example_sound(config(), sizes.batch, sizes.length);
  }

 protected:
  SpeechHead(const SpeechHead&) = default;
};

struct SpeechCTC : CopiedAs<SpeechCTC, SpeechHead> {
  SpeechCTC(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<Dropout> dropout;
  Child<Linear> lm_head;
};

struct SpeechClassification : CopiedAs<SpeechClassification, SpeechHead> {
  SpeechClassification(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  void init_weights(Module& module) override;
  std::optional<Parameter> layer_weights;  // by use_weighted_layer_sum
  Child<Linear> projector, classifier;
};

// What a head reads: the last hidden state, or all of them weighted, which are in the output only where they were asked for.
struct HeardStates {
  ModelOutput base;
  Tensor states;
};
HeardStates heard_states(const Child<PretrainedModel>& model, const Config& config, const ModelInputs& in,
                         const std::optional<Parameter>& layer_weights);
std::optional<Parameter> layer_weights_of(Module& module, const Config& config);
// UserError where an adapter makes frames fewer, which `what` cannot have.
void refuse_adapter(const Config& config, const char* what);

}  // namespace calque
