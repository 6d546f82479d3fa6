#include "calque/hub/attention_masks.h"

#include "calque/base/error.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/shaping.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/finfo.h"

namespace calque {

static Tensor inverted(const Tensor& mask, DType dtype) { return (1.0 - mask.to(dtype)) * lowest_finite(dtype); }

Tensor invert_attention_mask(const Tensor& mask, DType dtype) {
  if (mask.dim() != 2 && mask.dim() != 3)
    throw UserError("invert_attention_mask: mask has " + std::to_string(mask.dim()) +
                    " dimensions, expected 2 (batch, key) or 3 (batch, query, key)");
  return inverted(mask.dim() == 3 ? mask.unsqueeze(1) : mask.unsqueeze(1).unsqueeze(1), dtype);
}

Tensor create_extended_attention_mask_for_decoder(int64_t batch, int64_t length, const Tensor& mask) {
  const Tensor ids = arange(length, DType::int64, std::nullopt, mask.device());
  Tensor causal =
      le(ids.unsqueeze(0).unsqueeze(0).expand({batch, length, length}), ids.unsqueeze(0).unsqueeze(2)).to(mask.dtype());
  if (const int64_t prefix = mask.size(1) - length; prefix > 0)
    causal = cat({ones({batch, length, prefix}, mask.dtype(), std::nullopt, mask.device()), causal}, -1);
  return causal.unsqueeze(1) * mask.unsqueeze(1).unsqueeze(1);
}

Tensor get_extended_attention_mask(const Tensor& mask, int64_t batch, int64_t length, bool is_decoder, DType dtype) {
  if (mask.dim() == 3) return inverted(mask.unsqueeze(1), dtype);
  if (mask.dim() == 2)
    return inverted(
        is_decoder ? create_extended_attention_mask_for_decoder(batch, length, mask) : mask.unsqueeze(1).unsqueeze(1),
        dtype);
  throw UserError("wrong shape for input_ids (shape [" + std::to_string(batch) + ", " + std::to_string(length) +
                  "]) or attention_mask (shape " + str(mask.sizes()) + ")");
}

std::vector<Tensor> get_head_mask(const Tensor& head_mask, int64_t layers, DType dtype, bool is_attention_chunked) {
  std::vector<Tensor> out(static_cast<size_t>(layers));
  if (!head_mask.defined()) return out;
  if (head_mask.dim() != 1 && head_mask.dim() != 2 && head_mask.dim() != 5)
    throw UserError("head_mask has " + std::to_string(head_mask.dim()) +
                    " dimensions, expected 1 (heads) or 2 (layers, heads)");
  if (head_mask.dim() != 1 && head_mask.size(0) != layers)
    throw UserError("head_mask is for " + std::to_string(head_mask.size(0)) + " layers, the model has " +
                    std::to_string(layers));
  for (int64_t i = 0; i < layers; ++i) {
    Tensor one = head_mask.dim() == 1 ? head_mask : head_mask.select(0, i);
    if (head_mask.dim() != 5) one = one.unsqueeze(0).unsqueeze(-1).unsqueeze(-1);
    one = one.to(dtype);
    out[static_cast<size_t>(i)] = is_attention_chunked ? one.unsqueeze(-1) : one;
  }
  return out;
}

AttentionMaskConverter::AttentionMaskConverter(bool is_causal, std::optional<int64_t> sliding_window)
    : is_causal_(is_causal), sliding_window_(sliding_window) {
  if (sliding_window && *sliding_window <= 0)
    throw UserError("AttentionMaskConverter: sliding_window must be a strictly positive integer, not `" +
                    std::to_string(*sliding_window) + "`");
}

Tensor AttentionMaskConverter::make_causal_mask(int64_t batch, int64_t query, DType dtype, int64_t past,
                                                std::optional<int64_t> sliding_window) {
  const Tensor positions = arange(query, DType::int64);
  Tensor mask = full({query, query}, lowest_finite(dtype), dtype).masked_fill(le(positions, positions.unsqueeze(1)), 0);
  if (past > 0) mask = cat({zeros({query, past}, dtype), mask}, -1);
  if (sliding_window) {
    const Tensor far = tril(ones({query, query + past}, DType::bool_), past - *sliding_window - 1);
    mask = mask.masked_fill(far, lowest_finite(dtype));
  }
  return mask.unsqueeze(0).unsqueeze(0).expand({batch, 1, query, query + past});
}

Tensor AttentionMaskConverter::to_causal_4d(int64_t batch, int64_t query, int64_t key, DType dtype) const {
  if (!is_causal_) throw UserError("AttentionMaskConverter: to_causal_4d is for a causal converter, and this one is not");
  if (query <= 1 && !sliding_window_) return {};
  return make_causal_mask(batch, query, dtype, key - query, sliding_window_);
}

Tensor AttentionMaskConverter::expand_mask(const Tensor& mask, DType dtype, std::optional<int64_t> query) {
  const int64_t key = mask.size(1);
  const Tensor hidden = 1.0 - mask.unsqueeze(1).unsqueeze(1).expand({mask.size(0), 1, query.value_or(key), key}).to(dtype);
  return hidden.masked_fill(hidden.to(DType::bool_), lowest_finite(dtype));
}

Tensor AttentionMaskConverter::to_4d(const Tensor& mask, int64_t query, DType dtype, std::optional<int64_t> key) const {
  Tensor causal;
  if ((query > 1 || sliding_window_) && is_causal_) {
    if (!key)
      throw UserError(
          "AttentionMaskConverter: this converter is causal; to_4d needs the key length (key_value_length) to make a causal "
          "mask");
    causal = make_causal_mask(mask.size(0), query, dtype, *key - query, sliding_window_);
  } else if (sliding_window_) {
    throw UserError("AttentionMaskConverter: a sliding window is for causal masks");
  }
  const Tensor expanded = expand_mask(mask, dtype, query);
  return causal.defined() ? causal.masked_fill(expanded.to(DType::bool_), lowest_finite(dtype)) : expanded;
}

Tensor AttentionMaskConverter::unmask_unattended(const Tensor& mask, double lowest) {
  if (mask.dtype() == DType::bool_)
    throw UserError("AttentionMaskConverter: unmask_unattended expects a floating-point mask, got a boolean one");
  return mask * logical_not(all(eq(mask, lowest), -1, true));
}

Tensor prepare_4d_causal_attention_mask(const Tensor& mask, int64_t batch, int64_t query, const Tensor& embeds, int64_t past,
                                        std::optional<int64_t> sliding_window) {
  const AttentionMaskConverter converter(true, sliding_window);
  const int64_t key = query + past;
  if (!mask.defined()) return converter.to_causal_4d(batch, query, key, embeds.dtype());
  if (mask.dim() == 2) return converter.to_4d(mask, query, embeds.dtype(), key);
  const std::vector<int64_t> expected{batch, 1, query, key};
  if (mask.dim() != 4 || !std::equal(expected.begin(), expected.end(), mask.sizes().begin()))
    throw UserError("Incorrect 4D attention_mask shape: " + str(mask.sizes()) + "; expected: " + str(IntList(expected)));
  const Tensor hidden = 1.0 - mask.to(embeds.dtype());
  return hidden.masked_fill(hidden.to(DType::bool_), lowest_finite(embeds.dtype()));
}

Tensor prepare_4d_attention_mask(const Tensor& mask, DType dtype, std::optional<int64_t> query) {
  return AttentionMaskConverter::expand_mask(mask, dtype, query);
}

}  // namespace calque
