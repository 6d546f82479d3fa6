// The encoder of XLM, which FlauBERT has too: words, positions and languages, whose states are zero where there is padding, and
// layers with norms behind attention and feed-forward, or before them.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "../heads/decoder_heads.h"
#include "../heads/summary_heads.h"
#include "activations.h"
#include "attention.h"
#include "calque/hub/pretrained_model.h"
#include "calque/nn/container.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "family_module.h"

namespace calque {

namespace arg {

inline constexpr ArgumentName<Tensor> lengths{"lengths"};  // [batch]: what counts without an attention_mask

}  // namespace arg

struct XlmAttention : NamedModule<XlmAttention> {
  static constexpr const char* forward_arguments[] = {"input", "mask"};
  XlmAttention(const std::string& module, const Config& c);
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const AttentionMask& mask);  // output, weights

  int64_t heads, size;
  double dropout;
  Child<Linear> q_lin, k_lin, v_lin, out_lin;
};

struct XlmFeedForward : NamedModule<XlmFeedForward> {
  static constexpr const char* forward_arguments[] = {"input"};
  XlmFeedForward(const std::string& module, const Config& c);
  Tensor forward(const Tensor& input);

  double dropout;
  int64_t chunk_size;
  Activation activation;
  Child<Linear> lin1, lin2;
};

struct XlmModel : PretrainedModel {
 private:
  std::string names_;  // first: registering asks for it

 public:
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,      arg::attention_mask,    arg::langs,
      arg::token_type_ids, arg::position_ids,      arg::lengths,
      arg::inputs_embeds,  arg::output_attentions, arg::output_hidden_states};
  // `names` is what its classes begin with, "transformers.models.xlm.modeling_xlm.XLM".
  XlmModel(const Config& c, std::string names);

  ModelOutput forward(const ModelInputs& in) override;
  std::string type_name() const override { return names_ + "Model"; }
  std::span<const ModelArgument> arguments() const override { return forward_arguments; }
  std::string base_model_prefix() const override { return "transformer"; }
  bool supports_sdpa() const override { return false; }
  bool supports_gradient_checkpointing() const override { return false; }
  void init_weights(Module& module) override;
  Child<Embedding>* input_embeddings() override { return &embeddings; }

  Child<Embedding> position_embeddings;
  std::optional<Child<Embedding>> lang_embeddings;
  Child<Embedding> embeddings;
  Child<LayerNorm> layer_norm_emb;
  Child<ModuleList> attentions, layer_norm1, ffns, layer_norm2;

 protected:
  std::shared_ptr<Module> copy_self() const override;

 private:
  Tensor kept_tokens(const ModelInputs& in, const Tensor& embeds) const;
  Tensor embedded_words(const ModelInputs& in) const;

  bool before_;  // norms
  double dropout_;
  std::optional<double> layer_drop_;  // none: no layer is left out
};

}  // namespace calque
