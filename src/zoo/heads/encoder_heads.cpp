#include "encoder_heads.h"

#include "calque/base/error.h"
#include "calque/op/aten/dropout.h"
#include "decoder_heads.h"

namespace calque {

ModelOutput labelled_output(const ModelOutput& base, const Tensor& loss, const Tensor& logits) {
  ModelOutput out;
  if (loss.defined()) out.set("loss", loss);
  out.set("logits", logits);
  out.take(base, {"mems", "hidden_states", "attentions"});
  return out;
}

ModelOutput masked_lm_output(const ModelOutput& base, const Tensor& logits, const Tensor& labels) {
  return labelled_output(base, labels.defined() ? token_loss(logits, labels) : Tensor(), logits);
}

ModelOutput token_classification_output(const ModelOutput& base, const Tensor& logits, const Tensor& labels) {
  return masked_lm_output(base, logits, labels);
}

ModelOutput sequence_classification_output(const Config& config, const ModelOutput& base, const Tensor& logits,
                                           const Tensor& labels) {
  return labelled_output(base, labels.defined() ? sequence_classification_loss(config, logits, labels) : Tensor(), logits);
}

ModelOutput span_output(const ModelOutput& base, const Tensor& logits, const ModelInputs& in) {
  const std::vector<Tensor> both = logits.split(1, -1);
  if (both.size() != 2)
    throw UserError("question answering: the config has " + std::to_string(both.size()) +
                    " labels, expected 2 (start and end)");
  const Tensor start = both[0].squeeze(-1).contiguous();
  const Tensor end = both[1].squeeze(-1).contiguous();
  ModelOutput out;
  if (in[arg::start_positions].defined() && in[arg::end_positions].defined())
    out.set("loss", question_answering_loss(start, end, in[arg::start_positions], in[arg::end_positions]));
  out.set("start_logits", start);
  out.set("end_logits", end);
  out.take(base, {"mems", "hidden_states", "attentions"});
  return out;
}

ModelOutput causal_lm_output(const ModelInputs& in, const Child<PretrainedModel>& model,
                             const std::function<Tensor(const Tensor&)>& words) {
  ModelInputs inner = in;
  if (in[arg::labels].defined()) inner.set(arg::use_cache, false);
  const ModelOutput base = model(inner);
  const Tensor logits = words(last_positions(base["last_hidden_state"], in[arg::logits_to_keep].value_or(0)));
  ModelOutput out;
  if (in[arg::labels].defined()) out.set("loss", causal_lm_loss(logits, in[arg::labels]));
  out.set("logits", logits);
  out.take(base, {"past_key_values", "hidden_states", "attentions", "cross_attentions"});
  return out;
}

ModelInputs choices_as_rows(const ModelInputs& in) {
  const auto rows = [](const Tensor& x) { return x.defined() ? x.view({-1, x.sym_size(-1)}) : x; };
  ModelInputs out = in;
  out.set(arg::input_ids, rows(in[arg::input_ids]));
  out.set(arg::attention_mask, rows(in[arg::attention_mask]));
  out.set(arg::token_type_ids, rows(in[arg::token_type_ids]));
  out.set(arg::position_ids, rows(in[arg::position_ids]));
  if (in[arg::inputs_embeds].defined())
    out.set(arg::inputs_embeds,
            in[arg::inputs_embeds].view({-1, in[arg::inputs_embeds].sym_size(-2), in[arg::inputs_embeds].sym_size(-1)}));
  return out;
}

ModelOutput multiple_choice_output(const ModelOutput& base, const Tensor& logits, const ModelInputs& in) {
  const Tensor& given = in[arg::input_ids].defined() ? in[arg::input_ids] : in[arg::inputs_embeds];
  const Tensor by_choice = logits.view({-1, given.sym_size(1)});
  return labelled_output(base, in[arg::labels].defined() ? class_loss(by_choice, in[arg::labels]) : Tensor(), by_choice);
}

ModelInputs example_choices(const PretrainedModel& model, const ExampleSizes& sizes) {
  return example_tokens(model, {sizes.batch, sizes.choices, sizes.length});
}

double classifier_dropout(const Config& config) {
  return config.optional_number("classifier_dropout").value_or(config.number("hidden_dropout_prob"));
}

double hidden_dropout(const Config& config) { return config.number("hidden_dropout_prob"); }

PooledClassification::PooledClassification(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, true),
      dropout(child<Dropout>("dropout", head.dropout(c))),
      classifier(child<Linear>("classifier", c.integer("hidden_size"), num_labels(c))) {}

ModelOutput PooledClassification::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  return sequence_classification_output(config(), base, classifier(dropout(base["pooler_output"])), in[arg::labels]);
}

TokenClassification::TokenClassification(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, false),
      dropout(child<Dropout>("dropout", head.dropout(c))),
      classifier(child<Linear>("classifier", c.integer("hidden_size"), num_labels(c))) {}

ModelOutput TokenClassification::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  return token_classification_output(base, classifier(dropout(base["last_hidden_state"])), in[arg::labels]);
}

SpanClassification::SpanClassification(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, false, forward_arguments),
      qa_outputs(child<Linear>("qa_outputs", c.integer("hidden_size"), num_labels(c))) {}

ModelOutput SpanClassification::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  return span_output(base, qa_outputs(base["last_hidden_state"]), in);
}

MultipleChoice::MultipleChoice(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, true),
      dropout(child<Dropout>("dropout", head.dropout(c))),
      classifier(child<Linear>("classifier", c.integer("hidden_size"), 1)) {}

ModelOutput MultipleChoice::forward(const ModelInputs& in) {
  const ModelOutput base = model(choices_as_rows(in));
  return multiple_choice_output(base, classifier(dropout(base["pooler_output"])), in);
}

}  // namespace calque
