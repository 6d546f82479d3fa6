#include "xlm_heads.h"

#include "calque/base/error.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/zeros.h"
#include "decoder_heads.h"
#include "encoder_heads.h"

namespace calque {

XlmWords::PredLayer::PredLayer(std::string type, const Config& c)
    : NamedModule(std::move(type)), proj(child<Linear>("proj", c.integer("emb_dim"), c.integer("vocab_size"))) {}

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

// The text with a mask behind it, read anew for every word.
ModelInputs XlmWords::next_word_inputs(const Tensor& ids, const ModelOutput&, const Tensor&) const {
  const Tensor mask = full({ids.size(0), 1}, config().integer("mask_token_id"), DType::int64);
  const Tensor text = cat({ids, mask}, 1);
  ModelInputs in{{arg::input_ids, text}};
  if (const auto language = config().optional_integer("lang_id")) in.set(arg::langs, full_like(text, *language));
  return in;
}

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

Architecture xlm_architecture(const HeadFamily& family, std::string model_type, std::string config_class, ModelClass base,
                              const std::string& more) {
  const auto dropout = [](const Config& c) { return c.number("dropout"); };
  return {
      .model_type = std::move(model_type),
      .config_class = std::move(config_class),
      .attribute_map = {{"hidden_size", "emb_dim"},
                        {"num_attention_heads", "n_heads"},
                        {"num_hidden_layers", "n_layers"},
                        {"n_words", "vocab_size"},
                        {"bos_index", "bos_token_id"},
                        {"eos_index", "eos_token_id"},
                        {"pad_index", "pad_token_id"}},
      .defaults = "{" + more + R"("vocab_size": 30145, "emb_dim": 2048, "n_layers": 12, "n_heads": 16, "dropout": 0.1,
        "attention_dropout": 0.1, "gelu_activation": true, "sinusoidal_embeddings": false, "causal": false, "asm": false,
        "n_langs": 1, "use_lang_emb": true, "max_position_embeddings": 512, "embed_init_std": 0.02209708691207961,
        "layer_norm_eps": 1e-12, "init_std": 0.02, "unk_index": 3, "mask_index": 5, "is_encoder": true,
        "summary_type": "first", "summary_use_proj": true, "summary_activation": null, "summary_proj_to_labels": true,
        "summary_first_dropout": 0.1, "start_n_top": 5, "end_n_top": 5, "mask_token_id": 0, "lang_id": 0,
        "pad_token_id": 2, "bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": true})",
      .schema = {.keys = {{"emb_dim", KeyKind::size},
                          {"n_langs", KeyKind::groups},
                          {"embed_init_std", KeyKind::magnitude},
                          {"lang_id", KeyKind::token},
                          {"unk_index", KeyKind::token},
                          {"mask_index", KeyKind::token},
                          {"start_n_top", KeyKind::length},
                          {"end_n_top", KeyKind::length}},
                 .relations = {multiple("emb_dim", "n_heads")}},
      .classes = {std::move(base),
                  head_class<XlmWords>({"masked-lm", "causal-lm", "pretraining"}, {&family, "WithLMHeadModel"}),
                  head_class<SummaryClassification>(
                      {"sequence-classification"},
                      {.family = &family, .part = "ForSequenceClassification", .classifier = nullptr}),
                  head_class<WordClassification>({"token-classification"},
                                                 {.family = &family, .part = "ForTokenClassification", .dropout = dropout}),
                  head_class<PlainSpans>({"question-answering"}, {&family, "ForQuestionAnsweringSimple"}),
                  head_class<XlmSpanSearch>({"special"}, {&family, "ForQuestionAnswering"}),
                  head_class<SummaryChoice>({"multiple-choice"},
                                            {.family = &family, .part = "ForMultipleChoice", .features = "num_labels"})},
  };
}

}  // namespace calque
