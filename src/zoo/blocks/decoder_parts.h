// The parts of decoders with rotary positions, each as its design says: norms, attention, feed-forward. One C++ class serves all
// families; the name of a module's class is the family's.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "activations.h"
#include "attention.h"
#include "calque/hub/cache.h"
#include "calque/nn/container.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "decoder_design.h"
#include "family_module.h"

namespace calque {

// Over the last dimension; the weight may have more (one for each head).
struct DecoderNorm : NamedModule<DecoderNorm> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  DecoderNorm(std::string type, const NormDesign& design, const std::vector<int64_t>& sizes);
  Tensor forward(const Tensor& hidden_states);
  void reset();

  NormKind kind;
  double eps;
  Parameter weight;
};

// One LayerNorm without bias for each head of [batch, length, heads, size].
struct HeadNorms : NamedModule<HeadNorms> {
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  HeadNorms(std::string type, int64_t heads, int64_t size, double eps);
  Tensor forward(const Tensor& hidden_states);

  Child<ModuleList> norms;
};

// A norm of either library: a child of `parent`, or none.
class NormSlot {
 public:
  NormSlot(Module& parent, const char* name, const DecoderDesign& design, const NormDesign& norm,
           const std::vector<int64_t>& sizes);
  NormSlot(Module& parent, const char* name, const DecoderDesign& design, int64_t size)
      : NormSlot(parent, name, design, design.norm, {size}) {}
  explicit operator bool() const { return own_ || layer_; }
  Tensor operator()(const Tensor& x) const { return own_ ? (*own_)(x) : layer_ ? (*layer_)(x) : x; }

 private:
  std::optional<Child<DecoderNorm>> own_;
  std::optional<Child<LayerNorm>> layer_;
};

struct DecoderAttention : NamedModule<DecoderAttention> {
  static constexpr const char* forward_arguments[] = {"hidden_states",  "cosine",          "sine",
                                                      "attention_mask", "past_key_values", "eager"};
  using Result = std::tuple<Tensor, Tensor, LayerCache>;  // output, weights, keys and values

  DecoderAttention(const Config& config, const DecoderDesign& design, size_t layer);
  Result forward(const Tensor& x, const Tensor& cosine, const Tensor& sine, const AttentionMask& mask,
                 const LayerCache& past, bool eager);

  AttentionDesign design;
  bool turns;
  std::optional<Child<Linear>> q_proj, k_proj, v_proj;
  std::optional<Child<Linear>> joined;
  Child<Linear> o_proj;
  std::optional<Parameter> sinks;

 private:
  struct Heads {
    Tensor query, key, value;  // [batch, length, heads, size]
  };
  Heads projected(const Tensor& x) const;
  Tensor turned(const Tensor& x, const Tensor& cosine, const Tensor& sine) const;

  std::optional<NormSlot> q_norm_, k_norm_;
  std::optional<Child<HeadNorms>> q_norms_, k_norms_;
};

Tensor turn(const Tensor& x, const Tensor& cosine, const Tensor& sine, Turning how);

struct DecoderFeedForward : NamedModule<DecoderFeedForward> {
  static constexpr const char* forward_arguments[] = {"x"};
  DecoderFeedForward(std::string type, int64_t hidden_size, const FeedForwardDesign& design);
  Tensor forward(const Tensor& x);

  FeedForwardDesign design;
  Activation activation;
  std::optional<Child<Linear>> gate_proj;
  Child<Linear> up, down;
};

}  // namespace calque
