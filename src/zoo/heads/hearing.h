// Encoder-decoders that hear features and write (Whisper, Speech2Text): an encoder of the family's own, the decoder of BART's relatives,
// and a head that is tied to the decoder's words.
#pragma once

#include "../blocks/seq2seq_model.h"
#include "calque/hub/registry.h"
#include "seq2seq_heads.h"
#include "speech_arguments.h"

namespace calque {

namespace arg {
inline constexpr ArgumentName<Tensor> decoder_position_ids{"decoder_position_ids"};
}  // namespace arg

// Lives as long as the program.
struct HearingStyle {
  const Seq2SeqStyle* seq2seq;
  const char* head;  // "lm_head" or "proj_out"
  std::shared_ptr<PretrainedModel> (*make_encoder)(const Config& config);
  // What of an encoder's `frames` the decoder may look at, from the mask over the features; undefined: all.
  Tensor (*frame_mask)(const Config& config, const SymInt& frames, const Tensor& attention_mask);
  // What training hides of the features.
  Tensor (*heard)(const PretrainedModel& model, const Tensor& input_features, const Tensor& attention_mask);
  // Features that the class can be called with, and their mask where it has one.
  ModelInputs (*example)(const Config& config, int64_t batch, int64_t length);
};

struct HearingModel : Seq2SeqPretrained {
  HearingModel(const HearingStyle& style, const Config& config);
  std::span<const ModelArgument> arguments() const override;
  std::string main_input_name() const override { return "input_features"; }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override;
  ModelOutput forward(const ModelInputs& inputs) override;
  void init_weights(Module& module) override { encoder->init_weights(module); }
  Child<Embedding>* input_embeddings() override { return &decoder->embed_tokens; }

  const HearingStyle* hearing;
  Child<PretrainedModel> encoder;
  Child<Seq2SeqDecoder> decoder;

 protected:
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::unique_ptr<Module>(new HearingModel(*this)));
  }
};

struct HearingConditionalGeneration : Seq2SeqPretrained {
  HearingConditionalGeneration(const HearingStyle& style, const Config& config);
  std::span<const ModelArgument> arguments() const override;
  std::string main_input_name() const override { return "input_features"; }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return model->example_inputs(sizes); }
  ModelOutput forward(const ModelInputs& inputs) override;
  void init_weights(Module& module) override { model->init_weights(module); }
  TiedWeights tied_weights() const override;
  bool can_generate() const override { return true; }
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<Linear>* output_embeddings() override { return &head; }

  Child<HearingModel> model;
  Child<Linear> head;

 protected:
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::unique_ptr<Module>(new HearingConditionalGeneration(*this)));
  }
};

// The classes Model and ForConditionalGeneration.
std::vector<ModelClass> hearing_classes(const HearingStyle& style);
// Features that differ from place to place.
Tensor example_features(const std::vector<int64_t>& sizes);

}  // namespace calque
