#include "decoder_heads.h"

#include "calque/base/error.h"
#include "calque/hub/text_part.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/embedding.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/zeros.h"

namespace calque {

LayerOutputs::LayerOutputs(const PretrainedModel& model, const ModelInputs& inputs)
    : training_(model.training()),
      want_hidden_states_(model.wants_hidden_states(inputs)),
      want_attentions_(model.wants_attentions(inputs)),
      want_cache_(model.wants_cache(inputs)) {}

void LayerOutputs::before_layer(const Tensor& hidden_state) {
  if (want_hidden_states_) hidden_states.push_back(hidden_state);
}

void LayerOutputs::after_layer(const Tensor& weights, const LayerCache& now) {
  if (want_attentions_) attentions.push_back(weights);
  if (want_cache_) cache.layers.push_back(now);
}

void LayerOutputs::cross_attention(const Tensor& weights) {
  if (want_attentions_) cross_attentions.push_back(weights);
}

ModelOutput LayerOutputs::with(std::string name, const Tensor& result) const {
  ModelOutput out;
  out.set(std::move(name), result);
  out.set("past_key_values", cache);
  out.set("hidden_states", hidden_states);
  out.set("attentions", attentions);
  out.set("cross_attentions", cross_attentions);
  return out;
}

ModelOutput LayerOutputs::with_last(const Tensor& hidden_state) {
  before_layer(hidden_state);
  return with("last_hidden_state", hidden_state);
}

Tensor LayerOutputs::kept(const std::tuple<Tensor, Tensor, LayerCache>& result) {
  after_layer(std::get<1>(result), std::get<2>(result));
  return std::get<0>(result);
}

Tensor LayerOutputs::kept(const std::tuple<Tensor, Tensor, Tensor, LayerCache>& result) {
  after_layer(std::get<1>(result), std::get<3>(result));
  if (const Tensor& across = std::get<2>(result); across.defined()) cross_attention(across);
  return std::get<0>(result);
}

Tensor embedded(const ModelInputs& inputs, const Child<Embedding>& embedding) {
  if (inputs[arg::input_ids].defined() == inputs[arg::inputs_embeds].defined())
    throw UserError("You must specify exactly one of input_ids or inputs_embeds");
  return inputs[arg::inputs_embeds].defined() ? inputs[arg::inputs_embeds] : embedding(inputs[arg::input_ids]);
}

Tensor positions_after(const SymInt& past, const Tensor& embeds) {
  const Tensor positions = arange(embeds.sym_size(1), DType::int64, std::nullopt, embeds.device());
  return (positions + Scalar(past)).unsqueeze(0);
}

Tensor last_token(const Config& config, const ModelInputs& inputs, const Tensor& logits) {
  const std::optional<int64_t> pad = text_part(config).optional_integer("pad_token_id");
  const SymInt batch = logits.sym_size(0);
  if (!pad) {
    if (batch.is_symbolic() || batch.as_int() != 1)
      throw UserError("Cannot handle batch sizes > 1 if no padding token is defined: set pad_token_id in the config");
    return full({batch}, -1, DType::int64, std::nullopt, logits.device());
  }
  if (!inputs[arg::input_ids].defined()) return full({batch}, -1, DType::int64, std::nullopt, logits.device());
  const Tensor kept = ne(inputs[arg::input_ids], *pad).to(DType::int32);
  const Tensor positions = arange(inputs[arg::input_ids].sym_size(-1), DType::int32, std::nullopt, logits.device());
  return (positions * kept).argmax(-1);
}

Tensor last_positions(const Tensor& hidden, int64_t keep) { return keep == 0 ? hidden : hidden.slice(1, -keep); }

std::vector<ModelArgument> labelled_arguments(std::span<const ModelArgument> arguments) {
  return arguments_with(arguments, arg::inputs_embeds, {arg::labels});
}

CausalLM::CausalLM(const HeadClass& head, const Config& c)
    : CopiedAs(head, c),
      lm_head(child<Linear>("lm_head", text_part(c).integer(head.features), text_part(c).integer("vocab_size"), head.bias)),
      tied_to_(base_model_prefix() + "." + head.embedding + ".weight") {
  take_by_default(head,
                  arguments_with(labelled_arguments(model->arguments()), arg::output_hidden_states, {arg::logits_to_keep}));
}

ModelOutput CausalLM::output(const ModelInputs& in, BestLogit* best) {
  const ModelOutput base = model(in);
  const Tensor hidden = last_positions(base["last_hidden_state"], in[arg::logits_to_keep].value_or(0));
  const Tensor logits = head_logits(best ? (*best)(lm_head, hidden) : lm_head(hidden));
  ModelOutput out;
  if (const Tensor labels = in[arg::labels]; labels.defined()) out.set("loss", causal_lm_loss(logits, labels));
  out.set("logits", logits);
  out.take(base, {"past_key_values", "hidden_states", "attentions", "cross_attentions", "image_hidden_states"});
  finish(in, base, out);
  return out;
}

PretrainedModel::TiedWeights CausalLM::tied_weights() const {
  if (!config().flag("tie_word_embeddings")) return {};
  return {{"lm_head.weight", tied_to_}};
}

LastTokenClassification::LastTokenClassification(const HeadClass& head, const Config& c)
    : CopiedAs(head, c), score(child<Linear>("score", text_part(c).integer(head.features), num_labels(c), false)) {
  take_by_default(head, labelled_arguments(model->arguments()));
}

ModelOutput LastTokenClassification::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  const Tensor logits = score(base["last_hidden_state"]);
  const Tensor rows = arange(logits.sym_size(0), DType::int64, std::nullopt, logits.device());
  const Tensor pooled = index(logits, {rows, last_token(config(), in, logits)});
  ModelOutput out;
  if (const Tensor labels = in[arg::labels]; labels.defined())
    out.set("loss", sequence_classification_loss(config(), pooled, labels));
  out.set("logits", pooled);
  out.take(base, {"past_key_values", "hidden_states", "attentions"});
  return out;
}

DecoderTokenClassification::DecoderTokenClassification(const HeadClass& head, const Config& c)
    : CopiedAs(head, c),
      dropout(child<Dropout>(
          "dropout", c.optional_number("classifier_dropout").value_or(c.optional_number("hidden_dropout").value_or(0.1)))),
      classifier(child<Linear>(head.classifier, c.integer("hidden_size"), num_labels(c))) {
  take_by_default(head, labelled_arguments(model->arguments()));
}

ModelOutput DecoderTokenClassification::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  const Tensor logits = classifier(dropout(base["last_hidden_state"]));
  ModelOutput out;
  if (const Tensor labels = in[arg::labels]; labels.defined())
    out.set("loss", class_loss(logits.view({-1, num_labels(config())}), labels.view({-1})));
  out.set("logits", logits);
  out.take(base, {"hidden_states", "attentions"});
  return out;
}

QuestionAnswering::QuestionAnswering(const HeadClass& head, const Config& c)
    : CopiedAs(head, c), qa_outputs(child<Linear>("qa_outputs", c.integer(head.features), 2)) {
  take_by_default(head, arguments_with(arguments_without(model->arguments(), {arg::past_key_values, arg::use_cache}),
                                       arg::inputs_embeds, {arg::start_positions, arg::end_positions}));
}

ModelOutput QuestionAnswering::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  const std::vector<Tensor> both = qa_outputs(base["last_hidden_state"]).split(1, -1);
  const Tensor start = both[0].squeeze(-1).contiguous();
  const Tensor end = both[1].squeeze(-1).contiguous();
  const Tensor start_positions = in[arg::start_positions], end_positions = in[arg::end_positions];
  ModelOutput out;
  if (start_positions.defined() && end_positions.defined())
    out.set("loss", question_answering_loss(start, end, start_positions, end_positions));
  out.set("start_logits", start);
  out.set("end_logits", end);
  out.take(base, {"hidden_states", "attentions"});
  return out;
}

}  // namespace calque
