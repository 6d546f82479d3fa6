#include "seq2seq_heads.h"

#include "../blocks/encoder_decoder.h"
#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/op/ops.h"
#include "cross_arguments.h"
#include "decoder_heads.h"

namespace calque {

namespace {

// The ties of a model that is a child of another.
PretrainedModel::TiedWeights below(const std::string& prefix, const PretrainedModel::TiedWeights& ties) {
  PretrainedModel::TiedWeights out;
  for (const auto& [name, source] : ties) out.emplace_back(prefix + name, prefix + source);
  return out;
}

int64_t target_vocabulary(const Seq2SeqPretrained& model) {
  return model.config().integer(model.shares_embeddings() ? "vocab_size" : "decoder_vocab_size");
}

Config decoder_alone(Config config) {
  config.set("is_decoder", true);
  config.set("is_encoder_decoder", false);
  return config;
}

}  // namespace

void set_question_answering(ModelOutput& out, const Tensor& logits, const ModelInputs& inputs) {
  const std::vector<Tensor> both = logits.split(1, -1);
  const Tensor start = both[0].squeeze(-1).contiguous();
  const Tensor end = both[1].squeeze(-1).contiguous();
  if (inputs.start_positions.defined() && inputs.end_positions.defined())
    out.set("loss", question_answering_loss(start, end, inputs.start_positions, inputs.end_positions));
  out.set("start_logits", start);
  out.set("end_logits", end);
}

Seq2SeqConditionalGeneration::Seq2SeqConditionalGeneration(const Seq2SeqStyle& style, const std::string& name,
                                                           const Config& c)
    : Seq2SeqPretrained(style, name, c),
      model(child<Seq2SeqModel>("model", style, std::string(style.prefix) + "Model", c)),
      lm_head(child<Linear>("lm_head", c.integer("d_model"), target_vocabulary(*this), false)) {
  if (style.final_logits_bias)
    final_logits_bias.emplace(register_buffer("final_logits_bias", zeros({1, target_vocabulary(*this)})));
}

std::vector<std::string> Seq2SeqConditionalGeneration::argument_names() const {
  return {"input_ids",       "attention_mask",    "decoder_input_ids",   "decoder_attention_mask",
          "encoder_outputs", "past_key_values",   "inputs_embeds",       "decoder_inputs_embeds",
          "labels",          "use_cache",         "output_attentions",   "output_hidden_states",
          "head_mask",       "decoder_head_mask", "cross_attn_head_mask"};
}

ModelOutput Seq2SeqConditionalGeneration::forward(const ModelInputs& given) {
  ModelInputs in = given;
  if (in.labels.defined()) {
    if (style->labels_switch_cache_off) in.use_cache = false;
    if (!in.decoder_input_ids.defined() && !in.decoder_inputs_embeds.defined())
      in.decoder_input_ids = model->shifted(in.labels);
  }
  const ModelOutput base = model(in);
  Tensor logits = lm_head(base["last_hidden_state"]);
  if (final_logits_bias) logits = logits + **final_logits_bias;
  ModelOutput out;
  if (in.labels.defined()) out.set("loss", token_loss(logits, in.labels));
  out.set("logits", logits);
  take_encoder_decoder_fields(out, base);
  return out;
}

PretrainedModel::TiedWeights Seq2SeqConditionalGeneration::tied_weights() const {
  TiedWeights out = below("model.", model->tied_weights());
  if (!config().flag("tie_word_embeddings")) return out;
  out.emplace_back("lm_head.weight", model->shared ? "model.shared.weight" : "model.decoder.embed_tokens.weight");
  return out;
}

Seq2SeqDecoderWrapper::Seq2SeqDecoderWrapper(const Seq2SeqStyle& style, const Config& c)
    : Seq2SeqPretrained(style, std::string(style.prefix) + "DecoderWrapper", c),
      decoder(child<Seq2SeqDecoder>("decoder", style, c)) {}

Seq2SeqCausalLM::Seq2SeqCausalLM(const Seq2SeqStyle& style, const std::string& name, const Config& c)
    : Seq2SeqPretrained(style, name, decoder_alone(c)),
      model(child<Seq2SeqDecoderWrapper>("model", style, config())),
      lm_head(child<Linear>("lm_head", c.integer("d_model"), c.integer("vocab_size"), false)) {}

std::vector<std::string> Seq2SeqCausalLM::argument_names() const {
  return {cross_decoder_lm_arguments.begin(), cross_decoder_lm_arguments.end()};
}

ModelOutput Seq2SeqCausalLM::forward(const ModelInputs& in) {
  const ModelOutput base = model->decoder(in);
  const Tensor logits = lm_head(last_positions(base["last_hidden_state"], in.logits_to_keep));
  ModelOutput out;
  if (in.labels.defined()) out.set("loss", token_loss(logits, in.labels));
  out.set("logits", logits);
  out.take(base, {"past_key_values", "hidden_states", "attentions", "cross_attentions"});
  return out;
}

PretrainedModel::TiedWeights Seq2SeqCausalLM::tied_weights() const {
  if (!config().flag("tie_word_embeddings")) return {};
  return {{"lm_head.weight", "model.decoder.embed_tokens.weight"}};
}

Tensor Seq2SeqClassificationHead::forward(const Tensor& hidden_states) {
  const Tensor inner = tanh(dense(dropout(hidden_states)));
  return out_proj(dropout(inner));
}

Seq2SeqSequenceClassification::Seq2SeqSequenceClassification(const Seq2SeqStyle& style, const std::string& name,
                                                             const Config& c)
    : Seq2SeqPretrained(style, name, c),
      model(child<Seq2SeqModel>("model", style, std::string(style.prefix) + "Model", c)),
      classification_head(child<Seq2SeqClassificationHead>("classification_head", style.type("ClassificationHead"),
                                                           c.integer("d_model"), num_labels(c),
                                                           c.number("classifier_dropout"))) {}

std::vector<std::string> Seq2SeqSequenceClassification::argument_names() const {
  return {"input_ids",         "attention_mask",      "decoder_input_ids",     "decoder_attention_mask",
          "encoder_outputs",   "inputs_embeds",       "decoder_inputs_embeds", "labels",
          "use_cache",         "output_attentions",   "output_hidden_states",  "head_mask",
          "decoder_head_mask", "cross_attn_head_mask"};
}

ModelOutput Seq2SeqSequenceClassification::forward(const ModelInputs& given) {
  ModelInputs in = given;
  if (in.labels.defined()) in.use_cache = false;
  if (!in.input_ids.defined())
    throw UserError(name + ": the end tokens are looked for in input_ids; inputs_embeds are not supported");
  const ModelOutput base = model(in);
  const Tensor logits = classification_head(state_at_end(config(), in.input_ids, base["last_hidden_state"]));
  ModelOutput out;
  if (in.labels.defined()) out.set("loss", sequence_classification_loss(config(), logits, in.labels));
  out.set("logits", logits);
  take_encoder_decoder_fields(out, base);
  return out;
}

PretrainedModel::TiedWeights Seq2SeqSequenceClassification::tied_weights() const {
  return below("model.", model->tied_weights());
}

Seq2SeqQuestionAnswering::Seq2SeqQuestionAnswering(const Seq2SeqStyle& style, const std::string& name, const Config& c)
    : Seq2SeqPretrained(style, name, c),
      model(child<Seq2SeqModel>("model", style, std::string(style.prefix) + "Model", c)),
      qa_outputs(child<Linear>("qa_outputs", c.integer("d_model"), 2)) {}

std::vector<std::string> Seq2SeqQuestionAnswering::argument_names() const {
  return {
      "input_ids",         "attention_mask",       "decoder_input_ids", "decoder_attention_mask", "encoder_outputs",
      "start_positions",   "end_positions",        "inputs_embeds",     "decoder_inputs_embeds",  "use_cache",
      "output_attentions", "output_hidden_states", "head_mask",         "decoder_head_mask",      "cross_attn_head_mask"};
}

ModelOutput Seq2SeqQuestionAnswering::forward(const ModelInputs& given) {
  ModelInputs in = given;
  if (in.start_positions.defined() && in.end_positions.defined()) in.use_cache = false;
  const ModelOutput base = model(in);
  ModelOutput out;
  set_question_answering(out, qa_outputs(base["last_hidden_state"]), in);
  take_encoder_decoder_fields(out, base);
  return out;
}

PretrainedModel::TiedWeights Seq2SeqQuestionAnswering::tied_weights() const {
  return below("model.", model->tied_weights());
}

}  // namespace calque
