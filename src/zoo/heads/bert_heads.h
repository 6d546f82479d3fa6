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

template <class D, class BaseModel, class Pretrained>
struct BertMaskedLM : EncoderHead<D, BaseModel, Pretrained> {
  static constexpr auto& forward_arguments = bert_masked_lm_arguments;
  BertMaskedLM(const Config& c, const char* base, const char* family)
      : EncoderHead<D, BaseModel, Pretrained>(c, base, false),
        cls(this->template child<BertOnlyMLMHead>("cls", c, family)),
        base_(base) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = this->model(in);
    return masked_lm_output(base, cls(base["last_hidden_state"]), in.labels);
  }
  PretrainedModel::TiedWeights tied_weights() const override { return tied_predictions(this->config(), base_); }
  Child<Linear>* output_embeddings() override { return &cls->predictions->decoder; }
  Child<BertOnlyMLMHead> cls;

 private:
  const char* base_;
};

// As a decoder: each position predicts the next.
template <class D, class BaseModel, class Pretrained>
struct BertCausalLM : EncoderHead<D, BaseModel, Pretrained> {
  static constexpr auto& forward_arguments = bert_causal_lm_arguments;
  BertCausalLM(const Config& c, const char* base, const char* family)
      : EncoderHead<D, BaseModel, Pretrained>(c, base, false),
        cls(this->template child<BertOnlyMLMHead>("cls", c, family)),
        base_(base) {}
  ModelOutput forward(const ModelInputs& in) override {
    return causal_lm_output(
        in, [&](const ModelInputs& inner) { return this->model(inner); }, [&](const Tensor& x) { return cls(x); });
  }
  PretrainedModel::TiedWeights tied_weights() const override { return tied_predictions(this->config(), base_); }
  bool can_generate() const override { return true; }
  Child<Linear>* output_embeddings() override { return &cls->predictions->decoder; }
  Child<BertOnlyMLMHead> cls;

 private:
  const char* base_;
};

template <class D, class BaseModel, class Pretrained>
struct BertNextSentence : EncoderHead<D, BaseModel, Pretrained> {
  BertNextSentence(const Config& c, const char* base, const char* family)
      : EncoderHead<D, BaseModel, Pretrained>(c, base, true), cls(this->template child<BertOnlyNSPHead>("cls", c, family)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = this->model(in);
    return masked_lm_output(base, cls(base["pooler_output"]), in.labels);
  }
  Child<BertOnlyNSPHead> cls;
};

template <class D, class BaseModel, class Pretrained>
struct BertPreTraining : EncoderHead<D, BaseModel, Pretrained> {
  static constexpr const char* forward_arguments[] = {
      "input_ids", "attention_mask",      "token_type_ids", "position_ids",      "inputs_embeds",
      "labels",    "next_sentence_label", "head_mask",      "output_attentions", "output_hidden_states"};
  BertPreTraining(const Config& c, const char* base, const char* family)
      : EncoderHead<D, BaseModel, Pretrained>(c, base, true),
        cls(this->template child<BertPreTrainingHeads>("cls", c, family)),
        base_(base) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = this->model(in);
    const auto [words, sentences] = cls(base["last_hidden_state"], base["pooler_output"]);
    return pretraining_output(base, words, sentences, in.labels, in.next_sentence_label, "seq_relationship_logits");
  }
  PretrainedModel::TiedWeights tied_weights() const override { return tied_predictions(this->config(), base_); }
  Child<Linear>* output_embeddings() override { return &cls->predictions->decoder; }
  Child<BertPreTrainingHeads> cls;

 private:
  const char* base_;
};

}  // namespace calque
