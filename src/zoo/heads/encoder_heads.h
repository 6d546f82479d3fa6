// Heads on top of an encoder: classification of the pooled output, of tokens, of spans and of choices, and what their outputs
// have in common. The output of a base model has last_hidden_state, and pooler_output where it pools.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "arguments.h"
#include "calque/hub/pretrained_model.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"
#include "head_model.h"
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
ModelOutput causal_lm_output(const ModelInputs& in, const Child<PretrainedModel>& model,
                             const std::function<Tensor(const Tensor&)>& words);

// Choices [batch, choices, ...] as rows of one batch, and the logits of the rows [batch * choices, 1] back.
ModelInputs choices_as_rows(const ModelInputs& in);
ModelOutput multiple_choice_output(const ModelOutput& base, const Tensor& logits, const ModelInputs& in);
ModelInputs example_choices(const PretrainedModel& model, const ExampleSizes& sizes);

// classifier_dropout, or hidden_dropout_prob where there is none.
double classifier_dropout(const Config& config);
double hidden_dropout(const Config& config);

// What models of BERT's kind take, which are decoders where they are told to be; as a decoder with a head; with words left out.
inline constexpr ModelArgument bert_arguments[] = {arg::input_ids,
                                                   arg::attention_mask,
                                                   arg::token_type_ids,
                                                   arg::position_ids,
                                                   arg::inputs_embeds,
                                                   arg::encoder_hidden_states,
                                                   arg::encoder_attention_mask,
                                                   arg::past_key_values,
                                                   arg::use_cache,
                                                   arg::head_mask,
                                                   arg::output_attentions,
                                                   arg::output_hidden_states};
inline constexpr auto bert_causal_lm_arguments =
    with_arguments(with_arguments(names_of(bert_arguments), arg::encoder_attention_mask, {arg::labels}), arg::use_cache,
                   {arg::logits_to_keep});
inline constexpr auto bert_masked_lm_arguments =
    without_arguments(bert_causal_lm_arguments, {arg::past_key_values, arg::use_cache, arg::logits_to_keep});

// A head that takes what encoders take, and labels.
struct EncoderHead : HeadModel {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids, arg::attention_mask, arg::token_type_ids,    arg::position_ids,        arg::inputs_embeds,
      arg::labels,    arg::head_mask,      arg::output_attentions, arg::output_hidden_states};
  EncoderHead(const HeadClass& head, const Config& c, bool pools, std::span<const ModelArgument> own = forward_arguments)
      : HeadModel(head, c, pools, own) {}

 protected:
  EncoderHead(const EncoderHead&) = default;
};

// Dropout and a linear layer on the pooled output.
struct PooledClassification : CopiedAs<PooledClassification, EncoderHead> {
  PooledClassification(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<Dropout> dropout;
  Child<Linear> classifier;
};

struct TokenClassification : CopiedAs<TokenClassification, EncoderHead> {
  TokenClassification(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<Dropout> dropout;
  Child<Linear> classifier;
};

struct SpanClassification : CopiedAs<SpanClassification, EncoderHead> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,       arg::attention_mask, arg::token_type_ids, arg::position_ids,      arg::inputs_embeds,
      arg::start_positions, arg::end_positions,  arg::head_mask,      arg::output_attentions, arg::output_hidden_states};
  SpanClassification(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<Linear> qa_outputs;
};

struct MultipleChoice : CopiedAs<MultipleChoice, EncoderHead> {
  MultipleChoice(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return example_choices(*this, sizes); }
  Child<Dropout> dropout;
  Child<Linear> classifier;
};

}  // namespace calque
