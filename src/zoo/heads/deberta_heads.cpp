#include "deberta_heads.h"

#include "calque/nn/init.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/losses.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"

namespace calque {

bool init_deberta_head(Module& module) {
  if (auto* head = dynamic_cast<DebertaLMPredictionHead*>(&module)) {
    init::zeros_(head->bias);
    return true;
  }
  return init_bert_head(module);
}

double deberta_classifier_dropout(const Config& config) {
  return config.optional_number("cls_dropout").value_or(config.number("hidden_dropout_prob"));
}

ModelOutput deberta_classification_output(const Config& config, const ModelOutput& base, const Tensor& logits,
                                          const Tensor& labels) {
  if (!labels.defined() || config.has("problem_type")) return sequence_classification_output(config, base, logits, labels);
  if (num_labels(config) == 1) {
    const Tensor flat = logits.view({-1}).to(labels.dtype());
    return labelled_output(base, mse_loss(flat, labels.view({-1})), flat);
  }
  if (labels.dim() > 1 && !(!labels.sym_size(-1).is_symbolic() && labels.size(-1) == 1)) {
    const Tensor likelihood = log_softmax(logits, -1) * labels;
    return labelled_output(base, neg(likelihood.sum({-1}).mean()), logits);
  }
  // The mean over labels that are there; 0 when there are none.
  const Tensor flat = labels.view({-1}).to(DType::int64);
  const Tensor there = ge(flat, 0);
  const Tensor each = cross_entropy_loss(logits.to(DType::float32), where(there, flat, -100), {}, 0);
  return labelled_output(base, each.sum() / clamp(there.to(DType::float32).sum(), 1), logits);
}

// A generation's old heads have "Legacy" before the family's prefix: "...modeling_deberta.LegacyDeberta".
static std::string legacy_name(const char* family) {
  std::string name = family;
  return name.insert(name.rfind('.') + 1, "Legacy");
}

DebertaMaskedLM::DebertaMaskedLM(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, false),
      cls(child_if<BertOnlyMLMHead>(c.flag("legacy"), *this, "cls", c, legacy_name(head.family->name),
                                    c.optional_integer("embedding_size").value_or(c.integer("hidden_size")))),
      lm_predictions(child_if<DebertaOnlyMLMHead>(!c.flag("legacy"), *this, "lm_predictions", c, head.family->name)) {}

ModelOutput DebertaMaskedLM::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  const Tensor& x = base["last_hidden_state"];
  const Tensor logits = cls ? (*cls)(x) : (*lm_predictions)(x, *(*model->input_embeddings())->weight);
  return masked_lm_output(base, logits, in[arg::labels]);
}

static std::string pooler_name(const char* family) {
  const std::string name = family;
  return name.substr(0, name.rfind('.') + 1) + "ContextPooler";
}

DebertaPooled::DebertaPooled(const HeadClass& head, const Config& c, int64_t outputs)
    : EncoderHead(head, c, false),
      pooler(child<DebertaContextPooler>("pooler", c, pooler_name(head.family->name))),
      classifier(child<Linear>("classifier", c.integer("hidden_size"), outputs)),
      dropout(child<Dropout>("dropout", deberta_classifier_dropout(c))) {}

ModelOutput DebertaSequenceClassification::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  return deberta_classification_output(config(), base, classified(base), in[arg::labels]);
}

ModelOutput DebertaMultipleChoice::forward(const ModelInputs& in) {
  const ModelOutput base = model(choices_as_rows(in));
  return multiple_choice_output(base, classified(base), in);
}

Architecture deberta_architecture(const char* model_type, const char* config_class, const std::string& sizes,
                                  std::vector<ModelClass> classes) {
  return {.model_type = model_type,
          .config_class = config_class,
          .attribute_map = {},
          .defaults = "{" + sizes + R"(, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 0,
        "initializer_range": 0.02, "layer_norm_eps": 1e-07, "relative_attention": false, "max_relative_positions": -1,
        "pad_token_id": 0, "bos_token_id": null, "eos_token_id": null, "position_biased_input": true, "pos_att_type": null,
        "pooler_dropout": 0.0, "pooler_hidden_act": "gelu", "legacy": true, "tie_word_embeddings": true})",
          .schema = deberta_schema(),
          .complete = complete_deberta,
          .classes = std::move(classes)};
}

std::vector<ModelClass> deberta_classes(const HeadFamily& family, ModelClass base_model) {
  return {std::move(base_model), head_class<DebertaMaskedLM>({"pretraining", "masked-lm"}, {&family, "ForMaskedLM"}),
          head_class<SpanClassification>({"question-answering"}, {&family, "ForQuestionAnswering"}),
          head_class<DebertaSequenceClassification>({"sequence-classification"}, {&family, "ForSequenceClassification"}),
          head_class<TokenClassification>({"token-classification"}, {&family, "ForTokenClassification", hidden_dropout})};
}

}  // namespace calque
