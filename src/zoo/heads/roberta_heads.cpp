#include "roberta_heads.h"

#include "calque/op/aten/activation.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"

namespace calque {
namespace {

PretrainedModel::TiedWeights tied_lm_head(const PretrainedModel& model) {
  if (!model.config().flag("tie_word_embeddings")) return {};
  return {{"lm_head.decoder.weight", model.base_model_prefix() + ".embeddings.word_embeddings.weight"},
          {"lm_head.decoder.bias", "lm_head.bias"}};
}

}  // namespace

RobertaLMHead::RobertaLMHead(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"))),
      layer_norm(
          child<LayerNorm>("layer_norm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      decoder(child<Linear>("decoder", c.integer("hidden_size"), c.integer("vocab_size"))),
      bias(register_parameter("bias", zeros({c.integer("vocab_size")}))) {}

Tensor RobertaLMHead::forward(const Tensor& features) { return decoder(layer_norm(gelu(dense(features)))); }

RobertaClassificationHead::RobertaClassificationHead(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"))),
      dropout(child<Dropout>("dropout", classifier_dropout(c))),
      out_proj(child<Linear>("out_proj", c.integer("hidden_size"), num_labels(c))) {}

Tensor RobertaClassificationHead::forward(const Tensor& features) {
  const Tensor x = tanh(dense(dropout(features.select(1, 0))));
  return out_proj(dropout(x));
}

RobertaMaskedLM::RobertaMaskedLM(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, false, bert_masked_lm_arguments), lm_head(child<RobertaLMHead>("lm_head", c, head.family->name)) {}

ModelOutput RobertaMaskedLM::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  return masked_lm_output(base, lm_head(base["last_hidden_state"]), in[arg::labels]);
}

PretrainedModel::TiedWeights RobertaMaskedLM::tied_weights() const { return tied_lm_head(*this); }

RobertaCausalLM::RobertaCausalLM(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, false, bert_causal_lm_arguments), lm_head(child<RobertaLMHead>("lm_head", c, head.family->name)) {}

ModelOutput RobertaCausalLM::forward(const ModelInputs& in) {
  return causal_lm_output(in, model, [&](const Tensor& x) { return lm_head(x); });
}

PretrainedModel::TiedWeights RobertaCausalLM::tied_weights() const { return tied_lm_head(*this); }

RobertaSequenceClassification::RobertaSequenceClassification(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, false), classifier(child<RobertaClassificationHead>("classifier", c, head.family->name)) {}

ModelOutput RobertaSequenceClassification::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  return sequence_classification_output(config(), base, classifier(base["last_hidden_state"]), in[arg::labels]);
}

}  // namespace calque
