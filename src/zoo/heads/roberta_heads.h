// RoBERTa's heads, which XLM-RoBERTa, CamemBERT and MPNet took over: words with a bias of their own, and classification of the first
// token.
#pragma once

#include "../blocks/bert_encoder.h"
#include "encoder_heads.h"

namespace calque {

struct RobertaLMHead : FamilyModule<RobertaLMHead> {
  static constexpr const char* part = "LMHead";
  static constexpr const char* forward_arguments[] = {"features"};
  RobertaLMHead(const Config& c, std::string family);
  Tensor forward(const Tensor& features);
  Child<Linear> dense;
  Child<LayerNorm> layer_norm;
  Child<Linear> decoder;
  Parameter bias;  // the decoder's, where word embeddings are tied
};

// Of the first token.
struct RobertaClassificationHead : FamilyModule<RobertaClassificationHead> {
  static constexpr const char* part = "ClassificationHead";
  static constexpr const char* forward_arguments[] = {"features"};
  RobertaClassificationHead(const Config& c, std::string family);
  Tensor forward(const Tensor& features);
  Child<Linear> dense;
  Child<Dropout> dropout;
  Child<Linear> out_proj;
};

struct RobertaMaskedLM : CopiedAs<RobertaMaskedLM, EncoderHead> {
  RobertaMaskedLM(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  TiedWeights tied_weights() const override;
  Child<Linear>* output_embeddings() override { return &lm_head->decoder; }
  Child<RobertaLMHead> lm_head;
};

struct RobertaCausalLM : CopiedAs<RobertaCausalLM, EncoderHead> {
  RobertaCausalLM(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  TiedWeights tied_weights() const override;
  bool can_generate() const override { return true; }
  Child<Linear>* output_embeddings() override { return &lm_head->decoder; }
  Child<RobertaLMHead> lm_head;
};

struct RobertaSequenceClassification : CopiedAs<RobertaSequenceClassification, EncoderHead> {
  RobertaSequenceClassification(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<RobertaClassificationHead> classifier;
};

}  // namespace calque
