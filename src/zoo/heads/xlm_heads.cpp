#include "xlm_heads.h"

#include "calque/base/error.h"
#include "decoder_heads.h"
#include "encoder_heads.h"

namespace calque {

XlmWords::PredLayer::PredLayer(std::string type, const Config& c)
    : type_(std::move(type)), proj(child<Linear>("proj", c.integer("emb_dim"), c.integer("vocab_size"))) {}

XlmWords::XlmWords(const HeadClass& head, const Config& c)
    : CopiedAs(head, c), pred_layer(child<PredLayer>("pred_layer", std::string(head.family->name) + "PredLayer", c)) {
  if (c.flag("asm"))
    throw UserError(ErrorKind::unsupported_operator,
                    "\"asm\" is true, but only a plain product over all words is supported, no adaptive softmax");
  take_by_default(head, arguments_with(arguments_with(model->arguments(), arg::inputs_embeds, {arg::labels}),
                                       arg::output_hidden_states, {arg::logits_to_keep}));
}

ModelOutput XlmWords::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  const Tensor states = last_positions(base["last_hidden_state"], in[arg::logits_to_keep].value_or(0));
  return masked_lm_output(base, pred_layer(states), in[arg::labels]);
}

PretrainedModel::TiedWeights XlmWords::tied_weights() const {
  if (!config().flag("tie_word_embeddings")) return {};
  return {{"pred_layer.proj.weight", base_model_prefix() + ".embeddings.weight"}};
}

Child<Linear>* XlmWords::output_embeddings() { return &pred_layer->proj; }

XlmSpanSearch::XlmSpanSearch(const HeadClass& head, const Config& c)
    : CopiedAs(head, c), qa_outputs(child<SQuADHead>("qa_outputs", c)) {
  take_by_default(
      head, arguments_with(model->arguments(), arg::inputs_embeds,
                           {arg::start_positions, arg::end_positions, arg::is_impossible, arg::cls_index, arg::p_mask}));
}

ModelOutput XlmSpanSearch::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  ModelOutput out = qa_outputs(base["last_hidden_state"], in[arg::start_positions], in[arg::end_positions],
                               in[arg::cls_index], in[arg::is_impossible], in[arg::p_mask]);
  out.take(base, {"hidden_states", "attentions"});
  return out;
}

std::vector<ModelClass> xlm_classes(const HeadFamily& family, ModelClass base) {
  const auto dropout = [](const Config& c) { return c.number("dropout"); };
  return {std::move(base),
          head_class<XlmWords>({"masked-lm", "pretraining"}, {&family, "WithLMHeadModel"}),
          head_class<SummaryClassification>({"sequence-classification"},
                                            {.family = &family, .part = "ForSequenceClassification", .classifier = nullptr}),
          head_class<WordClassification>({"token-classification"},
                                         {.family = &family, .part = "ForTokenClassification", .dropout = dropout}),
          head_class<PlainSpans>({"question-answering"}, {&family, "ForQuestionAnsweringSimple"}),
          head_class<XlmSpanSearch>({"special"}, {&family, "ForQuestionAnswering"}),
          head_class<SummaryChoice>({"multiple-choice"},
                                    {.family = &family, .part = "ForMultipleChoice", .features = "num_labels"})};
}

}  // namespace calque
