// The decoder of Llama and its relatives: word embeddings, layers that are told the angles of their positions, a norm behind the
// last one, and the heads on top. What families differ in is a DecoderDesign; a family is a function that makes one from its
// configuration.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../heads/decoder_heads.h"
#include "calque/hub/adaptable.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/registry.h"
#include "decoder_parts.h"
#include "experts.h"
#include "latent_attention.h"

namespace calque {

namespace arg {

inline constexpr ArgumentName<bool> output_router_logits{"output_router_logits"};

}  // namespace arg

struct DecoderLayer : Checkpointed<NamedModule<DecoderLayer>> {
  static constexpr auto& forward_arguments = DecoderAttention::forward_arguments;
  using Result = std::tuple<Tensor, Tensor, LayerCache, Tensor>;  // as of attention, and the router's logits

  DecoderLayer(const Config& config, const DecoderDesign& design, size_t layer);
  Result forward(const Tensor& x, const Tensor& cosine, const Tensor& sine, const AttentionMask& mask,
                 const LayerCache& past, bool eager);

 private:
  std::tuple<Tensor, Tensor> fed_forward(const Tensor& x) const;  // and the router's logits
  Tensor added(const Tensor& x, const Tensor& more) const;

  bool parallel_, adds_parts_first_, one_dropout_;
  double residual_scale_, residual_dropout_;
  std::optional<Child<DecoderAttention>> attention_;
  std::optional<Child<LatentAttention>> latent_;
  std::optional<Child<DecoderFeedForward>> feed_forward_;
  std::optional<Child<Experts>> experts_;
  NormSlot before_attention_, after_attention_, before_feed_forward_, after_feed_forward_;
  std::optional<Child<Dropout>> attention_dropout_, feed_forward_dropout_;
};

// An Embedding that scales what it gives.
struct ScaledEmbedding : NamedModule<ScaledEmbedding, Embedding>, ScaledEmbeddings {
  ScaledEmbedding(std::string type, int64_t count, int64_t size, EmbeddingOptions options, double scale);
  Tensor forward(const Tensor& input);
  Tensor scale_of_embeddings() const override { return *embed_scale; }

  Buffer embed_scale;
};

struct DecoderModel : PretrainedModel, OwnWeightForm {
  static constexpr ModelArgument forward_arguments[] = {arg::input_ids,         arg::attention_mask,      arg::position_ids,
                                                        arg::past_key_values,   arg::inputs_embeds,       arg::use_cache,
                                                        arg::output_attentions, arg::output_hidden_states};
  DecoderModel(const Config& config, const DecoderDesign& design);

  ModelOutput forward(const ModelInputs& in) override;
  std::string type_name() const override { return design.names + design.model; }
  std::span<const ModelArgument> arguments() const override { return arguments_; }
  std::string base_model_prefix() const override { return design.prefix; }
  std::vector<std::string> no_split_modules() const override;
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override { return design.unexpected; }
  WeightForm weight_form() const override { return design.form; }
  bool wants_router_logits(const ModelInputs& in) const {
    return in[arg::output_router_logits].value_or(config().flag("output_router_logits"));
  }
  bool supports_sdpa() const override { return design.fused_attention; }
  void init_weights(Module& module) override;
  Child<Embedding>* input_embeddings() override { return &embeddings; }

  DecoderDesign design;
  Child<Embedding> embeddings;
  Child<ModuleList> layers;
  NormSlot norm;
  std::vector<Child<RotaryEmbedding>> rotary;
  std::optional<Child<Dropout>> dropout;
  std::optional<Constant> slopes;  // of ALiBi

 protected:
  std::shared_ptr<Module> copy_self() const override;

 private:
  std::vector<ModelArgument> arguments_;
  SymInt tokens_before(const ModelInputs& in, const Tensor& embeds) const;
  AttentionMask mask_of(const LayerDesign& layer, const LayerCache& cache, const SymInt& past, const Tensor& embeds,
                        const ModelInputs& in) const;
  AttentionMask with_distances(const AttentionMask& mask, const SymInt& past, const Tensor& embeds,
                               const Tensor& attention_mask, bool eager) const;
};

std::unique_ptr<PretrainedModel> decoder_model(const Config& config, const DecoderDesign& design);
template <DecoderDesign (*design)(const Config&)>
std::unique_ptr<PretrainedModel> decoder_of(const Config& config, bool) {
  return decoder_model(config, design(config));
}

// A head whose logits are scaled and capped as the design says.
struct DecoderCausalLM : CopiedAs<DecoderCausalLM, CausalLM> {
  DecoderCausalLM(const HeadClass& head, const Config& c);
  Tensor head_logits(const Tensor& logits) override;
  bool head_keeps_order() const override;
  void finish(const ModelInputs& in, const ModelOutput& base, ModelOutput& out) override;

 private:
  double scale_, divisor_;
  std::optional<double> cap_;
};

// The heads that the families share, each with the last part of its class's name.
enum class DecoderHeadKind { causal_lm, sequence_classification, token_classification, question_answering };
ModelClass decoder_base(const HeadFamily& family, const char* part = "Model");
// The base model and heads of the names that transformers gives nearly all: ForCausalLM, ForSequenceClassification,
// ForTokenClassification, ForQuestionAnswering (the first `heads` of them, the last with a base model of this name where given).
std::vector<ModelClass> decoder_classes(const HeadFamily& family, int heads = 4, const char* base_of_answering = nullptr);
ModelClass decoder_class(DecoderHeadKind kind, const HeadClass& head);

}  // namespace calque
