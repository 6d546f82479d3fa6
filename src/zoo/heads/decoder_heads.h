// What decoder-only models share: the outputs collected over their layers, and the heads on top of a base model (language
// modelling, classification by the last token, question answering).
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../blocks/attention.h"
#include "arguments.h"
#include "calque/hub/best_logit.h"
#include "calque/hub/pretrained_model.h"
#include "calque/nn/container.h"
#include "calque/nn/dropout.h"
#include "calque/nn/functional.h"
#include "calque/nn/linear.h"
#include "calque/op/ops.h"
#include "losses.h"

namespace calque {

// Layers that are left out while training, each with this probability; some architectures keep the state before one all the same.
struct LayerDrop {
  double probability = 0;
  bool keeps_state = false;
};

// Hidden states, attentions and caches of the layers, as far as they are asked for.
class LayerOutputs {
 public:
  LayerOutputs(const PretrainedModel& model, const ModelInputs& inputs);
  void before_layer(const Tensor& hidden_state);
  void after_layer(const Tensor& weights, const LayerCache& now);
  void cross_attention(const Tensor& weights);
  // The model's output: the named tensor first, then the cache, then what was collected.
  ModelOutput with(std::string name, const Tensor& result) const;
  // The same of the last hidden state, which is the last of the hidden states too.
  ModelOutput with_last(const Tensor& hidden_state);

  // The layers one after another: call(layer, x, its number) gives what the layer does.
  template <class Layer, class Call>
  Tensor run(const ModuleList& layers, Tensor x, const Call& call, LayerDrop drop = {}) {
    size_t i = 0;
    for (Layer* layer : layers.items<Layer>()) {
      const size_t at = i++;
      const bool dropped = drops_layer(drop.probability);
      if (!dropped || drop.keeps_state) before_layer(x);
      if (!dropped) x = kept(call(*layer, x, at));
    }
    return x;
  }
  // The same for layers that look across to an encoder's output, where there is one.
  template <class Layer>
  Tensor run_across(const ModuleList& layers, const ModelInputs& in, Tensor x, const AttentionMask& mask, bool eager,
                    LayerDrop drop) {
    const Tensor& encoder = in.encoder_hidden_states;
    const AttentionMask encoder_mask = encoder.defined() ? bidirectional_mask(in.encoder_attention_mask) : AttentionMask{};
    const auto call = [&](Layer& layer, const Tensor& state, size_t i) {
      return layer(state, mask, encoder, encoder_mask, in.past_key_values.layer(i), head_mask_of_layer(in.head_mask, i),
                   head_mask_of_layer(in.cross_attn_head_mask, i), eager);
    };
    return run<Layer>(layers, std::move(x), call, drop);
  }

  std::vector<Tensor> hidden_states, attentions, cross_attentions;
  KeyValueCache cache;

 private:
  // What a layer gave: hidden states, weights, keys and values; weights across before these where it has any.
  Tensor kept(const std::tuple<Tensor, Tensor, LayerCache>& result);
  Tensor kept(const std::tuple<Tensor, Tensor, Tensor, LayerCache>& result);
  // Whether a layer is left out of this call, with that probability: only while training.
  static bool drops_layer(double probability);

  bool want_hidden_states_, want_attentions_, want_cache_;
};

// inputs_embeds, or the embedding of input_ids; UserError unless exactly one is given.
Tensor embedded(const ModelInputs& inputs, const Child<Embedding>& embedding);
Tensor positions_after(const SymInt& past, const Tensor& embeds);  // [1, length]
// For each row the last position that is no padding, [batch].
Tensor last_token(const Config& config, const ModelInputs& inputs, const Tensor& logits);
// Of hidden states [batch, length, size] the last `keep` positions; 0: all.
Tensor last_positions(const Tensor& hidden, int64_t keep);

template <class BaseModel>
consteval auto labelled_arguments() {
  return with_arguments(names_of(BaseModel::forward_arguments), "inputs_embeds", {"labels"});
}

template <class D, class BaseModel, class Pretrained>
struct CausalLM : ModelOf<D, Pretrained> {
  static constexpr auto forward_arguments =
      with_arguments(labelled_arguments<BaseModel>(), "output_hidden_states", {"logits_to_keep"});
  // `features`: the size of the base model's output where it is not the hidden size.
  CausalLM(const Config& c, const std::string& base, std::string embedding, bool bias = false,
           std::optional<int64_t> features = {})
      : ModelOf<D, Pretrained>(c),
        model(this->template child<BaseModel>(base, c)),
        lm_head(this->template child<Linear>("lm_head", features.value_or(c.integer("hidden_size")), c.integer("vocab_size"),
                                             bias)),
        tied_to_(base + "." + std::move(embedding) + ".weight") {}

  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const Tensor hidden = last_positions(base["last_hidden_state"], in.logits_to_keep);
    const bool best_alone = in.best_logit && head_keeps_order();
    const Tensor logits = head_logits(best_alone ? (*in.best_logit)(lm_head, hidden) : lm_head(hidden));
    ModelOutput out;
    if (in.labels.defined()) out.set("loss", causal_lm_loss(logits, in.labels));
    out.set("logits", logits);
    out.take(base, {"past_key_values", "hidden_states", "attentions", "cross_attentions"});
    return out;
  }
  virtual Tensor head_logits(const Tensor& logits) { return logits; }
  virtual bool head_keeps_order() const { return true; }  // the largest of what head_logits takes is that of what it gives
  PretrainedModel::TiedWeights tied_weights() const override {
    if (!this->config().flag("tie_word_embeddings")) return {};
    return {{"lm_head.weight", tied_to_}};
  }
  bool can_generate() const override { return true; }
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<Linear>* output_embeddings() override { return &lm_head; }

  Child<BaseModel> model;
  Child<Linear> lm_head;

 private:
  std::string tied_to_;
};

template <class D, class BaseModel, class Pretrained>
struct LastTokenClassification : ModelOf<D, Pretrained> {
  static constexpr auto forward_arguments = labelled_arguments<BaseModel>();
  LastTokenClassification(const Config& c, const std::string& base, std::optional<int64_t> features = {})
      : ModelOf<D, Pretrained>(c),
        model(this->template child<BaseModel>(base, c)),
        score(this->template child<Linear>("score", features.value_or(c.integer("hidden_size")), num_labels(c), false)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const Tensor logits = score(base["last_hidden_state"]);
    const Tensor rows = arange(logits.sym_size(0), DType::int64, std::nullopt, logits.device());
    const Tensor pooled = index(logits, {rows, last_token(this->config(), in, logits)});
    ModelOutput out;
    if (in.labels.defined()) out.set("loss", sequence_classification_loss(this->config(), pooled, in.labels));
    out.set("logits", pooled);
    out.take(base, {"past_key_values", "hidden_states", "attentions"});
    return out;
  }
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<BaseModel> model;
  Child<Linear> score;
};

// A label for each token.
template <class D, class BaseModel, class Pretrained>
struct DecoderTokenClassification : ModelOf<D, Pretrained> {
  static constexpr auto forward_arguments = labelled_arguments<BaseModel>();
  DecoderTokenClassification(const Config& c, const std::string& base)
      : ModelOf<D, Pretrained>(c),
        model(this->template child<BaseModel>(base, c)),
        dropout(this->template child<Dropout>(
            "dropout", c.optional_number("classifier_dropout").value_or(c.optional_number("hidden_dropout").value_or(0.1)))),
        classifier(this->template child<Linear>("classifier", c.integer("hidden_size"), num_labels(c))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const Tensor logits = classifier(dropout(base["last_hidden_state"]));
    ModelOutput out;
    if (in.labels.defined())
      out.set("loss", functional::cross_entropy(logits.view({-1, num_labels(this->config())}), in.labels.view({-1})));
    out.set("logits", logits);
    out.take(base, {"hidden_states", "attentions"});
    return out;
  }
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<BaseModel> model;
  Child<Dropout> dropout;
  Child<Linear> classifier;
};

template <class D, class BaseModel, class Pretrained>
struct QuestionAnswering : ModelOf<D, Pretrained> {
  static constexpr auto forward_arguments =
      with_arguments(without_arguments(names_of(BaseModel::forward_arguments), {"past_key_values", "use_cache"}),
                     "inputs_embeds", {"start_positions", "end_positions"});
  QuestionAnswering(const Config& c, const std::string& base, std::optional<int64_t> features = {})
      : ModelOf<D, Pretrained>(c),
        model(this->template child<BaseModel>(base, c)),
        qa_outputs(this->template child<Linear>("qa_outputs", features.value_or(c.integer("hidden_size")), 2)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const std::vector<Tensor> both = qa_outputs(base["last_hidden_state"]).split(1, -1);
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
  Child<Embedding>* input_embeddings() override { return model->input_embeddings(); }
  Child<BaseModel> model;
  Child<Linear> qa_outputs;
};

}  // namespace calque
