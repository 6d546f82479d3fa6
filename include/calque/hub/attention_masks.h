// Attention masks as transformers 4 makes them, for code written against it: 1 and 0 become 0 and the lowest finite number of a
// dtype, to be added to scores. The models of zoo/ use the boolean masks of zoo/blocks/attention.h. "4d" is [batch, 1, query, key].
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "calque/hub/pretrained_model.h"

namespace calque {

// [batch, key] or [batch, query, key].
Tensor invert_attention_mask(const Tensor& mask, DType dtype);
// Of a decoder: causal, with the ones of a cached prefix where the mask is longer than the query; [batch, 1, query, key] of ones and zeros.
Tensor create_extended_attention_mask_for_decoder(int64_t batch, int64_t length, const Tensor& mask);
// UserError for a mask that is neither [batch, key] nor [batch, query, key].
Tensor get_extended_attention_mask(const Tensor& mask, int64_t batch, int64_t length, bool is_decoder, DType dtype);
// One a layer, [1, heads, 1, 1] (chunked: one dimension more); undefined tensors where no mask is given. [heads] or [layers, heads].
std::vector<Tensor> get_head_mask(const Tensor& head_mask, int64_t layers, DType dtype, bool is_attention_chunked = false);

class AttentionMaskConverter {
 public:
  explicit AttentionMaskConverter(bool is_causal, std::optional<int64_t> sliding_window = std::nullopt);

  // Undefined for one query without a window: nothing is hidden.
  Tensor to_causal_4d(int64_t batch, int64_t query, int64_t key, DType dtype) const;
  Tensor to_4d(const Tensor& mask, int64_t query, DType dtype, std::optional<int64_t> key = std::nullopt) const;

  static Tensor make_causal_mask(int64_t batch, int64_t query, DType dtype, int64_t past = 0,
                                 std::optional<int64_t> sliding_window = std::nullopt);
  static Tensor expand_mask(const Tensor& mask, DType dtype, std::optional<int64_t> query = std::nullopt);
  // Rows that may look at nothing look at everything, so that a softmax over them is finite.
  static Tensor unmask_unattended(const Tensor& mask, double lowest);

 private:
  bool is_causal_;
  std::optional<int64_t> sliding_window_;
};

// The mask of a decoder's attention: from [batch, key], taken as it is when it is 4d already, causal alone when undefined.
Tensor prepare_4d_causal_attention_mask(const Tensor& mask, int64_t batch, int64_t query, const Tensor& embeds, int64_t past,
                                        std::optional<int64_t> sliding_window = std::nullopt);
Tensor prepare_4d_attention_mask(const Tensor& mask, DType dtype, std::optional<int64_t> query = std::nullopt);

}  // namespace calque
