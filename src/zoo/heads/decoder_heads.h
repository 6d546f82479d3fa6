// What decoder-only models share: the outputs collected over their layers, and the heads on top of a base model (language
// modelling, classification by the last token, question answering).
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../blocks/attention.h"
#include "../blocks/encoder_decoder.h"
#include "arguments.h"
#include "calque/hub/best_logit.h"
#include "calque/hub/pretrained_model.h"
#include "calque/nn/container.h"
#include "calque/nn/dropout.h"
#include "calque/nn/functional.h"
#include "calque/nn/linear.h"
#include "calque/op/operators.h"
#include "head_model.h"
#include "losses.h"

namespace calque {

// Layers that are left out while training, each with this probability (for which a number is drawn even where it is 0); some
// architectures keep the state before one all the same.
struct LayerDrop {
  std::optional<double> probability = {};  // none: the architecture leaves out none
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
      const bool dropped = drop.probability && drops_layer(training_, *drop.probability);
      if (!dropped || drop.keeps_state) before_layer(x);
      if (!dropped) x = kept(call(*layer, x, at));
    }
    return x;
  }
  // The same for layers that look across to an encoder's output, where there is one.
  template <class Layer>
  Tensor run_across(const ModuleList& layers, const ModelInputs& in, Tensor x, const AttentionMask& mask, bool eager,
                    LayerDrop drop) {
    const Tensor& encoder = in[arg::encoder_hidden_states];
    const AttentionMask encoder_mask =
        encoder.defined() ? bidirectional_mask(in[arg::encoder_attention_mask]) : AttentionMask{};
    const auto call = [&](Layer& layer, const Tensor& state, size_t i) {
      return layer(state, mask, encoder, encoder_mask, in[arg::past_key_values].layer(i),
                   head_mask_of_layer(in[arg::head_mask], i), head_mask_of_layer(in[arg::cross_attn_head_mask], i), eager);
    };
    return run<Layer>(layers, std::move(x), call, drop);
  }

  std::vector<Tensor> hidden_states, attentions, cross_attentions;
  KeyValueCache cache;

 private:
  // What a layer gave: hidden states, weights, keys and values; weights across before these where it has any.
  Tensor kept(const std::tuple<Tensor, Tensor, LayerCache>& result);
  Tensor kept(const std::tuple<Tensor, Tensor, Tensor, LayerCache>& result);

  bool training_, want_hidden_states_, want_attentions_, want_cache_;
};

// inputs_embeds, or the embedding of input_ids; UserError unless exactly one is given.
Tensor embedded(const ModelInputs& inputs, const Child<Embedding>& embedding);
Tensor positions_after(const SymInt& past, const Tensor& embeds);  // [1, length]
// For each row the last position that is no padding, [batch].
Tensor last_token(const Config& config, const ModelInputs& inputs, const Tensor& logits);
// Of hidden states [batch, length, size] the last `keep` positions; 0: all.
Tensor last_positions(const Tensor& hidden, int64_t keep);

// `labels` behind inputs_embeds.
std::vector<ModelArgument> labelled_arguments(std::span<const ModelArgument> arguments);

// A head on a decoder; what it takes follows from what the decoder takes.
struct DecoderHead : HeadModel {
  DecoderHead(const HeadClass& head, const Config& c) : HeadModel(head, c, false, {}) {}

 protected:
  DecoderHead(const DecoderHead&) = default;
};

struct CausalLM : CopiedAs<CausalLM, DecoderHead>, BestLogitModel {
  CausalLM(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override { return output(in, nullptr); }
  ModelOutput forward_best(const ModelInputs& in, BestLogit& best) override {
    return output(in, head_keeps_order() ? &best : nullptr);
  }
  virtual Tensor head_logits(const Tensor& logits) { return logits; }
  // What a family adds to the output, and to the loss in it.
  virtual void finish(const ModelInputs& /*in*/, const ModelOutput& /*base*/, ModelOutput& /*out*/) {}
  virtual bool head_keeps_order() const { return true; }  // the largest of what head_logits takes is that of what it gives
  TiedWeights tied_weights() const override;
  bool can_generate() const override { return true; }
  Child<Linear>* output_embeddings() override { return &lm_head; }

  Child<Linear> lm_head;

 private:
  ModelOutput output(const ModelInputs& in, BestLogit* best);
  std::string tied_to_;
};

struct LastTokenClassification : CopiedAs<LastTokenClassification, DecoderHead> {
  LastTokenClassification(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<Linear> score;
};

// A label for each token.
struct DecoderTokenClassification : CopiedAs<DecoderTokenClassification, DecoderHead> {
  DecoderTokenClassification(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<Dropout> dropout;
  Child<Linear> classifier;
};

struct QuestionAnswering : CopiedAs<QuestionAnswering, DecoderHead> {
  QuestionAnswering(const HeadClass& head, const Config& c);
  ModelOutput forward(const ModelInputs& in) override;
  Child<Linear> qa_outputs;
};

}  // namespace calque
