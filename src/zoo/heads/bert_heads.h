// BERT's own heads, which other families took over: predictions of words (with a transform before and a bias of their own)
// and of whether one sentence follows another, alone and together, and the models that have them under the name "cls".
#pragma once

#include <optional>
#include <string>

#include "../blocks/bert_encoder.h"
#include "encoder_heads.h"

namespace calque {

struct BertPredictionHeadTransform : FamilyModule<BertPredictionHeadTransform> {
  static constexpr const char* part = "PredictionHeadTransform";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  // `size` of the result; hidden_size by default.
  BertPredictionHeadTransform(const Config& c, std::string family, std::optional<int64_t> size = std::nullopt);
  Tensor forward(const Tensor& hidden_states);
  Child<Linear> dense;
  Activation act_fn;
  Child<LayerNorm> norm;
};

struct BertLMPredictionHead : FamilyModule<BertLMPredictionHead> {
  static constexpr const char* part = "LMPredictionHead";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  BertLMPredictionHead(const Config& c, const std::string& family, std::optional<int64_t> size = std::nullopt);
  Tensor forward(const Tensor& hidden_states);
  Child<BertPredictionHeadTransform> transform;
  Child<Linear> decoder;
  Parameter bias;  // the decoder's, where word embeddings are tied
};

struct BertOnlyMLMHead : FamilyModule<BertOnlyMLMHead> {
  static constexpr const char* part = "OnlyMLMHead";
  static constexpr const char* forward_arguments[] = {"sequence_output"};
  BertOnlyMLMHead(const Config& c, const std::string& family, std::optional<int64_t> size = std::nullopt);
  Tensor forward(const Tensor& sequence_output);
  Child<BertLMPredictionHead> predictions;
};

struct BertOnlyNSPHead : FamilyModule<BertOnlyNSPHead> {
  static constexpr const char* part = "OnlyNSPHead";
  static constexpr const char* forward_arguments[] = {"pooled_output"};
  BertOnlyNSPHead(const Config& c, std::string family);
  Tensor forward(const Tensor& pooled_output);
  Child<Linear> seq_relationship;
};

struct BertPreTrainingHeads : FamilyModule<BertPreTrainingHeads> {
  static constexpr const char* part = "PreTrainingHeads";
  static constexpr const char* forward_arguments[] = {"sequence_output", "pooled_output"};
  BertPreTrainingHeads(const Config& c, const std::string& family);
  std::tuple<Tensor, Tensor> forward(const Tensor& sequence_output, const Tensor& pooled_output);
  Child<BertLMPredictionHead> predictions;
  Child<Linear> seq_relationship;
};

// Word scores tied to the embeddings of the submodule `base`.
PretrainedModel::TiedWeights tied_predictions(const Config& config, const std::string& base);
// Loss and logits of the two pretraining tasks; `second` is next_sentence_label or sentence_order_label, `name` of its logits.
ModelOutput pretraining_output(const ModelOutput& base, const Tensor& words, const Tensor& sentences, const Tensor& labels,
                               const Tensor& second, const char* name);
// The start values that PretrainedModel does not know; whether it was one.
bool init_bert_head(Module& module);

struct BertMaskedLM : CopiedAs<BertMaskedLM, EncoderHead> {
  BertMaskedLM(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  TiedWeights tied_weights() const override { return tied_predictions(config(), base_model_prefix()); }
  Child<Linear>* output_embeddings() override { return &cls->predictions->decoder; }
  Child<BertOnlyMLMHead> cls;
};

// As a decoder: each position predicts the next.
struct BertCausalLM : CopiedAs<BertCausalLM, EncoderHead> {
  BertCausalLM(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  TiedWeights tied_weights() const override { return tied_predictions(config(), base_model_prefix()); }
  bool can_generate() const override { return true; }
  Child<Linear>* output_embeddings() override { return &cls->predictions->decoder; }
  Child<BertOnlyMLMHead> cls;
};

struct BertNextSentence : CopiedAs<BertNextSentence, EncoderHead> {
  BertNextSentence(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<BertOnlyNSPHead> cls;
};

struct BertPreTraining : CopiedAs<BertPreTraining, EncoderHead> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids, arg::attention_mask,      arg::token_type_ids, arg::position_ids,      arg::inputs_embeds,
      arg::labels,    arg::next_sentence_label, arg::head_mask,      arg::output_attentions, arg::output_hidden_states};
  BertPreTraining(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  TiedWeights tied_weights() const override { return tied_predictions(config(), base_model_prefix()); }
  Child<Linear>* output_embeddings() override { return &cls->predictions->decoder; }
  Child<BertPreTrainingHeads> cls;
};

}  // namespace calque
