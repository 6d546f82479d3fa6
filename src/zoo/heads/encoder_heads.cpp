#include "encoder_heads.h"

#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/op/ops.h"
#include "decoder_heads.h"

namespace calque {

ModelOutput labelled_output(const ModelOutput& base, const Tensor& loss, const Tensor& logits) {
  ModelOutput out;
  if (loss.defined()) out.set("loss", loss);
  out.set("logits", logits);
  out.take(base, {"hidden_states", "attentions"});
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
  if (in.start_positions.defined() && in.end_positions.defined())
    out.set("loss", question_answering_loss(start, end, in.start_positions, in.end_positions));
  out.set("start_logits", start);
  out.set("end_logits", end);
  out.take(base, {"hidden_states", "attentions"});
  return out;
}

ModelOutput causal_lm_output(const ModelInputs& in, const std::function<ModelOutput(const ModelInputs&)>& model,
                             const std::function<Tensor(const Tensor&)>& words) {
  ModelInputs inner = in;
  if (in.labels.defined()) inner.use_cache = false;
  const ModelOutput base = model(inner);
  const Tensor logits = words(last_positions(base["last_hidden_state"], in.logits_to_keep));
  ModelOutput out;
  if (in.labels.defined()) out.set("loss", causal_lm_loss(logits, in.labels));
  out.set("logits", logits);
  out.take(base, {"past_key_values", "hidden_states", "attentions", "cross_attentions"});
  return out;
}

ModelInputs choices_as_rows(const ModelInputs& in) {
  const auto rows = [](const Tensor& x) { return x.defined() ? x.view({-1, x.sym_size(-1)}) : x; };
  ModelInputs out = in;
  out.input_ids = rows(in.input_ids);
  out.attention_mask = rows(in.attention_mask);
  out.token_type_ids = rows(in.token_type_ids);
  out.position_ids = rows(in.position_ids);
  if (in.inputs_embeds.defined())
    out.inputs_embeds = in.inputs_embeds.view({-1, in.inputs_embeds.sym_size(-2), in.inputs_embeds.sym_size(-1)});
  return out;
}

ModelOutput multiple_choice_output(const ModelOutput& base, const Tensor& logits, const ModelInputs& in) {
  const Tensor& given = in.input_ids.defined() ? in.input_ids : in.inputs_embeds;
  const Tensor by_choice = logits.view({-1, given.sym_size(1)});
  return labelled_output(base, in.labels.defined() ? functional::cross_entropy(by_choice, in.labels) : Tensor(), by_choice);
}

double classifier_dropout(const Config& config) {
  return config.optional_number("classifier_dropout").value_or(config.number("hidden_dropout_prob"));
}

double hidden_dropout(const Config& config) { return config.number("hidden_dropout_prob"); }

}  // namespace calque
