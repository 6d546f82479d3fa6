// Attention with four Linear layers (q_proj, k_proj, v_proj, out_proj): to oneself with a cache, or across to an encoder's
// output, whose keys and values are made once. A family derives from it to give it its class name.
#pragma once

#include <tuple>

#include "attention.h"
#include "calque/hub/cache.h"
#include "calque/nn/linear.h"

namespace calque {

struct ProjectedAttention : Typed<ProjectedAttention> {
  static constexpr const char* forward_arguments[] = {"hidden_states",   "attention_mask", "key_value_states",
                                                      "past_key_values", "head_mask",      "eager"};
  using Result = std::tuple<Tensor, Tensor, LayerCache>;  // output, weights, keys and values

  struct Options {
    int64_t hidden_size;
    int64_t heads;
    double dropout = 0;
    bool bias = true;
    int64_t memory_size = 0;  // of the encoder's output; 0: as the hidden size
    bool softmax_in_float32 = false;
  };
  explicit ProjectedAttention(const Options& options);
  // `key_value_states` undefined: to oneself.
  Result forward(const Tensor& x, const AttentionMask& mask, const Tensor& key_value_states, const LayerCache& past,
                 const Tensor& head_mask, bool eager);

  int64_t heads, size;
  double dropout;
  bool softmax_in_float32;
  Child<Linear> k_proj, v_proj, q_proj, out_proj;
};

}  // namespace calque
