// Rotary position embeddings: the angles of a configuration's rope_parameters, and the turning of queries and keys.
#pragma once

#include <tuple>

#include "calque/hub/config.h"
#include "calque/nn/typed.h"

namespace calque {

// Old files have "rope_theta" and "rope_scaling", new ones "rope_parameters"; this makes the new form of either.
void complete_rope_parameters(Config& config, double default_theta);

struct RotaryEmbedding : Typed<RotaryEmbedding> {
  static constexpr const char* forward_arguments[] = {"x", "position_ids"};
  RotaryEmbedding(const Config& config, int64_t head_size);
  // Cosines and sines [batch, length, head size], in the dtype of x.
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& position_ids);

  double attention_scaling = 1;
  Buffer inv_freq;
};

Tensor rotate_half(const Tensor& x);
// x [batch, heads, length, head size].
Tensor apply_rotary(const Tensor& x, const Tensor& cosine, const Tensor& sine);

}  // namespace calque
