// Heads on top of an encoder: classification of the pooled output, of tokens, of spans and of choices, and what their outputs
// have in common. BaseModel is made from a Config and whether it pools; its output has last_hidden_state, and pooler_output
// where it does.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "arguments.h"
#include "calque/hub/pretrained_model.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"
#include "head_class.h"
#include "losses.h"

namespace calque {

// The outputs of the heads, with hidden_states and attentions of the base model; the loss where there are labels.
ModelOutput labelled_output(const ModelOutput& base, const Tensor& loss, const Tensor& logits);
ModelOutput masked_lm_output(const ModelOutput& base, const Tensor& logits, const Tensor& labels);
ModelOutput token_classification_output(const ModelOutput& base, const Tensor& logits, const Tensor& labels);
ModelOutput sequence_classification_output(const Config& config, const ModelOutput& base, const Tensor& logits,
                                           const Tensor& labels);
// Logits [batch, length, 2] into starts and ends.
ModelOutput span_output(const ModelOutput& base, const Tensor& logits, const ModelInputs& in);

// An encoder's model as a decoder: `words` makes the logits of hidden states. With labels there is no cache.
ModelOutput causal_lm_output(const ModelInputs& in, const std::function<ModelOutput(const ModelInputs&)>& model,
                             const std::function<Tensor(const Tensor&)>& words);

// Choices [batch, choices, ...] as rows of one batch, and the logits of the rows [batch * choices, 1] back.
ModelInputs choices_as_rows(const ModelInputs& in);
ModelOutput multiple_choice_output(const ModelOutput& base, const Tensor& logits, const ModelInputs& in);

// classifier_dropout, or hidden_dropout_prob where there is none.
double classifier_dropout(const Config& config);
double hidden_dropout(const Config& config);

// What models of BERT's kind take, which are decoders where they are told to be; as a decoder with a head; with words left out.
inline constexpr const char* bert_arguments[] = {"input_ids",
                                                 "attention_mask",
                                                 "token_type_ids",
                                                 "position_ids",
                                                 "inputs_embeds",
                                                 "encoder_hidden_states",
                                                 "encoder_attention_mask",
                                                 "past_key_values",
                                                 "use_cache",
                                                 "head_mask",
                                                 "output_attentions",
                                                 "output_hidden_states"};
inline constexpr auto bert_causal_lm_arguments = with_arguments(
    with_arguments(names_of(bert_arguments), "encoder_attention_mask", {"labels"}), "use_cache", {"logits_to_keep"});
inline constexpr auto bert_masked_lm_arguments =
    without_arguments(bert_causal_lm_arguments, {"past_key_values", "use_cache", "logits_to_keep"});

template <class D, class BaseModel, class Pretrained>
struct EncoderHead : ModelOf<D, Pretrained> {
  static constexpr const char* forward_arguments[] = {"input_ids",    "attention_mask",    "token_type_ids",
                                                      "position_ids", "inputs_embeds",     "labels",
                                                      "head_mask",    "output_attentions", "output_hidden_states"};
  EncoderHead(const Config& c, const char* base, bool pools)
      : ModelOf<D, Pretrained>(c), model(this->template child<BaseModel>(base, c, pools)) {}
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<BaseModel> model;
};

// Dropout and a linear layer on the pooled output.
template <class D, class BaseModel, class Pretrained>
struct PooledClassification : EncoderHead<D, BaseModel, Pretrained> {
  PooledClassification(const Config& c, const char* base, double p)
      : EncoderHead<D, BaseModel, Pretrained>(c, base, true),
        dropout(this->template child<Dropout>("dropout", p)),
        classifier(this->template child<Linear>("classifier", c.integer("hidden_size"), num_labels(c))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = this->model(in);
    return sequence_classification_output(this->config(), base, classifier(dropout(base["pooler_output"])), in.labels);
  }
  Child<Dropout> dropout;
  Child<Linear> classifier;
};

template <class D, class BaseModel, class Pretrained>
struct TokenClassification : EncoderHead<D, BaseModel, Pretrained> {
  TokenClassification(const Config& c, const char* base, double p, bool pools = false)
      : EncoderHead<D, BaseModel, Pretrained>(c, base, pools),
        dropout(this->template child<Dropout>("dropout", p)),
        classifier(this->template child<Linear>("classifier", c.integer("hidden_size"), num_labels(c))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = this->model(in);
    return token_classification_output(base, classifier(dropout(base["last_hidden_state"])), in.labels);
  }
  Child<Dropout> dropout;
  Child<Linear> classifier;
};

template <class D, class BaseModel, class Pretrained>
struct SpanClassification : EncoderHead<D, BaseModel, Pretrained> {
  static constexpr const char* forward_arguments[] = {
      "input_ids",       "attention_mask", "token_type_ids", "position_ids",      "inputs_embeds",
      "start_positions", "end_positions",  "head_mask",      "output_attentions", "output_hidden_states"};
  SpanClassification(const Config& c, const char* base, bool pools = false)
      : EncoderHead<D, BaseModel, Pretrained>(c, base, pools),
        qa_outputs(this->template child<Linear>("qa_outputs", c.integer("hidden_size"), num_labels(c))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = this->model(in);
    return span_output(base, qa_outputs(base["last_hidden_state"]), in);
  }
  Child<Linear> qa_outputs;
};

template <class D, class BaseModel, class Pretrained>
struct MultipleChoice : EncoderHead<D, BaseModel, Pretrained> {
  MultipleChoice(const Config& c, const char* base, double p, int64_t outputs = 1)
      : EncoderHead<D, BaseModel, Pretrained>(c, base, true),
        dropout(this->template child<Dropout>("dropout", p)),
        classifier(this->template child<Linear>("classifier", c.integer("hidden_size"), outputs)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = this->model(choices_as_rows(in));
    return multiple_choice_output(base, classifier(dropout(base["pooler_output"])), in);
  }
  Child<Dropout> dropout;
  Child<Linear> classifier;
};

}  // namespace calque
