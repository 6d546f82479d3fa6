#include "bert_heads.h"

#include "calque/nn/init.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/zeros.h"

namespace calque {

BertPredictionHeadTransform::BertPredictionHeadTransform(const Config& c, std::string family, std::optional<int64_t> size)
    : FamilyModule(std::move(family)),
      dense(child<Linear>("dense", c.integer("hidden_size"), size.value_or(c.integer("hidden_size")))),
      act_fn(activation_named(c.text("hidden_act"))),
      norm(child<LayerNorm>("LayerNorm", size.value_or(c.integer("hidden_size")),
                            LayerNormOptions{.eps = c.number("layer_norm_eps")})) {}

Tensor BertPredictionHeadTransform::forward(const Tensor& hidden_states) { return norm(act_fn(dense(hidden_states))); }

BertLMPredictionHead::BertLMPredictionHead(const Config& c, const std::string& family, std::optional<int64_t> size)
    : FamilyModule(family),
      transform(child<BertPredictionHeadTransform>("transform", c, family, size)),
      decoder(child<Linear>("decoder", size.value_or(c.integer("hidden_size")), c.integer("vocab_size"))),
      bias(register_parameter("bias", zeros({c.integer("vocab_size")}))) {}

Tensor BertLMPredictionHead::forward(const Tensor& hidden_states) { return decoder(transform(hidden_states)); }

BertOnlyMLMHead::BertOnlyMLMHead(const Config& c, const std::string& family, std::optional<int64_t> size)
    : FamilyModule(family), predictions(child<BertLMPredictionHead>("predictions", c, family, size)) {}

Tensor BertOnlyMLMHead::forward(const Tensor& sequence_output) { return predictions(sequence_output); }

BertOnlyNSPHead::BertOnlyNSPHead(const Config& c, std::string family)
    : FamilyModule(std::move(family)), seq_relationship(child<Linear>("seq_relationship", c.integer("hidden_size"), 2)) {}

Tensor BertOnlyNSPHead::forward(const Tensor& pooled_output) { return seq_relationship(pooled_output); }

BertPreTrainingHeads::BertPreTrainingHeads(const Config& c, const std::string& family)
    : FamilyModule(family),
      predictions(child<BertLMPredictionHead>("predictions", c, family)),
      seq_relationship(child<Linear>("seq_relationship", c.integer("hidden_size"), 2)) {}

std::tuple<Tensor, Tensor> BertPreTrainingHeads::forward(const Tensor& sequence_output, const Tensor& pooled_output) {
  return {predictions(sequence_output), seq_relationship(pooled_output)};
}

PretrainedModel::TiedWeights tied_predictions(const Config& config, const std::string& base) {
  if (!config.flag("tie_word_embeddings")) return {};
  return {{"cls.predictions.decoder.weight", base + ".embeddings.word_embeddings.weight"},
          {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
}

ModelOutput pretraining_output(const ModelOutput& base, const Tensor& words, const Tensor& sentences, const Tensor& labels,
                               const Tensor& second, const char* name) {
  ModelOutput out;
  if (labels.defined() && second.defined()) {
    const Tensor loss = token_loss(words, labels);
    out.set("loss", loss + token_loss(sentences, second));
  }
  out.set("prediction_logits", words);
  out.set(name, sentences);
  out.take(base, {"hidden_states", "attentions"});
  return out;
}

bool init_bert_head(Module& module) {
  auto* head = dynamic_cast<BertLMPredictionHead*>(&module);
  if (head) init::zeros_(head->bias);
  return head != nullptr;
}

BertMaskedLM::BertMaskedLM(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, false, bert_masked_lm_arguments), cls(child<BertOnlyMLMHead>("cls", c, head.family->name)) {}

ModelOutput BertMaskedLM::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  return masked_lm_output(base, cls(base["last_hidden_state"]), in[arg::labels]);
}

BertCausalLM::BertCausalLM(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, false, bert_causal_lm_arguments), cls(child<BertOnlyMLMHead>("cls", c, head.family->name)) {}

ModelOutput BertCausalLM::forward(const ModelInputs& in) {
  return causal_lm_output(in, model, [&](const Tensor& x) { return cls(x); });
}

BertNextSentence::BertNextSentence(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, true), cls(child<BertOnlyNSPHead>("cls", c, head.family->name)) {}

ModelOutput BertNextSentence::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  return masked_lm_output(base, cls(base["pooler_output"]), in[arg::labels]);
}

BertPreTraining::BertPreTraining(const HeadClass& head, const Config& c)
    : CopiedAs(head, c, true, forward_arguments), cls(child<BertPreTrainingHeads>("cls", c, head.family->name)) {}

ModelOutput BertPreTraining::forward(const ModelInputs& in) {
  const ModelOutput base = model(in);
  const auto [words, sentences] = cls(base["last_hidden_state"], base["pooler_output"]);
  return pretraining_output(base, words, sentences, in[arg::labels], in[arg::next_sentence_label],
                            "seq_relationship_logits");
}

}  // namespace calque
