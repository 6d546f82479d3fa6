#include "seq2seq_heads.h"

#include "../blocks/encoder_decoder.h"
#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
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
  if (inputs[arg::start_positions].defined() && inputs[arg::end_positions].defined())
    out.set("loss", question_answering_loss(start, end, inputs[arg::start_positions], inputs[arg::end_positions]));
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

std::span<const ModelArgument> Seq2SeqConditionalGeneration::arguments() const {
  static constexpr ModelArgument all[] = {
      arg::input_ids,       arg::attention_mask,    arg::decoder_input_ids,   arg::decoder_attention_mask,
      arg::encoder_outputs, arg::past_key_values,   arg::inputs_embeds,       arg::decoder_inputs_embeds,
      arg::labels,          arg::use_cache,         arg::output_attentions,   arg::output_hidden_states,
      arg::head_mask,       arg::decoder_head_mask, arg::cross_attn_head_mask};
  return all;
}

ModelOutput Seq2SeqConditionalGeneration::forward(const ModelInputs& given) {
  ModelInputs in = given;
  if (in[arg::labels].defined()) {
    if (style->labels_switch_cache_off) in.set(arg::use_cache, false);
    if (!in[arg::decoder_input_ids].defined() && !in[arg::decoder_inputs_embeds].defined())
      in.set(arg::decoder_input_ids, model->shifted(in[arg::labels]));
  }
  const ModelOutput base = model(in);
  Tensor logits = lm_head(base["last_hidden_state"]);
  if (final_logits_bias) logits = logits + **final_logits_bias;
  ModelOutput out;
  if (in[arg::labels].defined()) out.set("loss", token_loss(logits, in[arg::labels]));
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

std::span<const ModelArgument> Seq2SeqCausalLM::arguments() const { return cross_decoder_lm_arguments; }

ModelOutput Seq2SeqCausalLM::forward(const ModelInputs& in) {
  const ModelOutput base = model->decoder(in);
  const Tensor logits = lm_head(last_positions(base["last_hidden_state"], in[arg::logits_to_keep].value_or(0)));
  ModelOutput out;
  if (in[arg::labels].defined()) out.set("loss", token_loss(logits, in[arg::labels]));
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

std::span<const ModelArgument> Seq2SeqSequenceClassification::arguments() const {
  static constexpr ModelArgument all[] = {
      arg::input_ids,         arg::attention_mask,      arg::decoder_input_ids,     arg::decoder_attention_mask,
      arg::encoder_outputs,   arg::inputs_embeds,       arg::decoder_inputs_embeds, arg::labels,
      arg::use_cache,         arg::output_attentions,   arg::output_hidden_states,  arg::head_mask,
      arg::decoder_head_mask, arg::cross_attn_head_mask};
  return all;
}

ModelOutput Seq2SeqSequenceClassification::forward(const ModelInputs& given) {
  ModelInputs in = given;
  if (in[arg::labels].defined()) in.set(arg::use_cache, false);
  if (!in[arg::input_ids].defined())
    throw UserError(name + ": the end tokens are looked for in input_ids; inputs_embeds are not supported");
  const ModelOutput base = model(in);
  const Tensor logits = classification_head(state_at_end(config(), in[arg::input_ids], base["last_hidden_state"]));
  ModelOutput out;
  if (in[arg::labels].defined()) out.set("loss", sequence_classification_loss(config(), logits, in[arg::labels]));
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

std::span<const ModelArgument> Seq2SeqQuestionAnswering::arguments() const { return seq2seq_answer_arguments; }

ModelOutput Seq2SeqQuestionAnswering::forward(const ModelInputs& given) {
  ModelInputs in = given;
  if (in[arg::start_positions].defined() && in[arg::end_positions].defined()) in.set(arg::use_cache, false);
  const ModelOutput base = model(in);
  ModelOutput out;
  set_question_answering(out, qa_outputs(base["last_hidden_state"]), in);
  take_encoder_decoder_fields(out, base);
  return out;
}

PretrainedModel::TiedWeights Seq2SeqQuestionAnswering::tied_weights() const {
  return below("model.", model->tied_weights());
}

ModelClass seq2seq_class(const Seq2SeqStyle& style, const char* part, std::initializer_list<std::string_view> tasks,
                         std::unique_ptr<PretrainedModel> (*make)(const Seq2SeqStyle&, const std::string& name,
                                                                  const Config&)) {
  const std::string name = std::string(style.prefix) + part;
  return {
      name, {tasks.begin(), tasks.end()}, [&style, name, make](const Config& config) { return make(style, name, config); }};
}

std::vector<ModelClass> seq2seq_classes(const Seq2SeqStyle& style,
                                        std::initializer_list<std::string_view> generation_tasks) {
  return {seq2seq_class<Seq2SeqModel>(style, "Model", {"default"}),
          seq2seq_class<Seq2SeqConditionalGeneration>(style, "ForConditionalGeneration", generation_tasks),
          seq2seq_class<Seq2SeqCausalLM>(style, "ForCausalLM", {"causal-lm"})};
}

Architecture seq2seq_architecture(const char* model_type, const char* config_class, const std::string& defaults,
                                  std::vector<ModelClass> classes) {
  return {.model_type = model_type,
          .config_class = config_class,
          .attribute_map = {{"num_attention_heads", "encoder_attention_heads"},
                            {"hidden_size", "d_model"},
                            {"num_hidden_layers", "encoder_layers"}},
          .defaults = "{" + defaults + "}",
          .schema = {.relations = {multiple("d_model", "encoder_attention_heads"),
                                   multiple("d_model", "decoder_attention_heads")},
                     .tables = {{"max_position_embeddings", "d_model"}}},
          .classes = std::move(classes)};
}

const char* const seq2seq_large_defaults =
    R"("vocab_size": 50265, "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096, "decoder_attention_heads": 16,
    "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "use_cache": true, "is_encoder_decoder": true,
    "activation_function": "gelu", "d_model": 1024, "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
    "init_std": 0.02)";

}  // namespace calque
