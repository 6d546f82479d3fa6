// Attention whose keys and values are made of a small latent state, which is what a cache keeps: multi-head latent attention. A part
// of each query and key turns with the position; that part of the keys is the same for all heads.
#pragma once

#include <optional>
#include <string>

#include "decoder_parts.h"

namespace calque {

struct LatentAttention : NamedModule<LatentAttention> {
  static constexpr auto& forward_arguments = DecoderAttention::forward_arguments;
  LatentAttention(const Config& config, const DecoderDesign& design);
  DecoderAttention::Result forward(const Tensor& x, const Tensor& cosine, const Tensor& sine, const AttentionMask& mask,
                                   const LayerCache& past, bool eager);

  AttentionDesign design;
  LatentDesign sizes;
  std::optional<Child<Linear>> q_proj, q_a_proj;
  NormSlot q_a_layernorm;
  std::optional<Child<Linear>> q_b_proj;
  Child<Linear> kv_a_proj_with_mqa;
  NormSlot kv_a_layernorm;
  Child<Linear> kv_b_proj, o_proj;
};

}  // namespace calque
