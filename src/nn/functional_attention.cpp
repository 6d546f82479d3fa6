// torch.nn.functional.multi_head_attention_forward, by the same operators in the same order.
#include <array>
#include <cmath>
#include <limits>

#include "calque/base/warning.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/softmax.h"
#include "nn/mask.h"

namespace calque {

Tensor nn_detail::canonical_mask(const Tensor& mask, const char* mask_name, const Tensor& other, const char* other_name,
                                 DType target) {
  if (!mask.defined()) return mask;
  if (mask.dtype() != DType::bool_ && !is_floating(mask.dtype()))
    throw UserError(std::string("only bool and floating types of ") + mask_name + " are supported");
  if (other.defined() && other.dtype() != mask.dtype())
    warn(std::string("Support for mismatched ") + mask_name + " and " + other_name +
         " is deprecated. Use same type for both instead.");
  if (is_floating(mask.dtype())) return mask;
  return zeros_like(mask, target).masked_fill_(mask, -std::numeric_limits<double>::infinity());
}

namespace functional {
namespace {

using Three = std::array<Tensor, 3>;

// (..., n * E) as n tensors that are contiguous together.
std::vector<Tensor> apart(const Tensor& projected, int64_t n, const SymInt& width) {
  const Tensor parts = projected.unflatten(-1, {n, width}).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous();
  std::vector<Tensor> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(parts.select(0, i));
  return out;
}

Three project_packed(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& weight, const Tensor& bias) {
  const SymInt width = q.sym_size(-1);
  if (k.is_same(v) && q.is_same(k)) {
    const std::vector<Tensor> parts = apart(linear(q, weight, bias), 3, width);
    return {parts[0], parts[1], parts[2]};
  }
  if (k.is_same(v)) {
    const std::vector<Tensor> weights = weight.split({width, width * 2});
    const std::vector<Tensor> biases = bias.defined() ? bias.split({width, width * 2}) : std::vector<Tensor>(2);
    const Tensor query = linear(q, weights[0], biases[0]);
    const std::vector<Tensor> parts = apart(linear(k, weights[1], biases[1]), 2, width);
    return {query, parts[0], parts[1]};
  }
  const std::vector<Tensor> weights = weight.chunk(3);
  const std::vector<Tensor> biases = bias.defined() ? bias.chunk(3) : std::vector<Tensor>(3);
  return {linear(q, weights[0], biases[0]), linear(k, weights[1], biases[1]), linear(v, weights[2], biases[2])};
}

void check_sizes(const Tensor& mask, std::initializer_list<SymInt> expected) {
  const std::string wanted = str(SymIntList(expected));
  if (str(mask.sym_sizes()) != wanted)
    throw UserError("The shape of the " + std::to_string(mask.dim()) + "D attn_mask is torch.Size(" + str(mask.sym_sizes()) +
                    "), but should be " + wanted + ".");
}

}  // namespace

std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in,
                                                        const MultiHeadAttentionWeights& w,
                                                        const MultiHeadAttentionCall& call) {
  const bool batched = query_in.dim() == 3;
  if (query_in.dim() != 2 && query_in.dim() != 3)
    throw UserError("query should be unbatched 2D or batched 3D tensor but received " + std::to_string(query_in.dim()) +
                    "-D query tensor");
  if (key_in.dim() != query_in.dim() || value_in.dim() != query_in.dim()) {
    throw UserError("For " + std::string(batched ? "batched (3-D)" : "unbatched (2-D)") +
                    " `query`, expected `key` and `value` to be " + (batched ? "3" : "2") + "-D but found " +
                    std::to_string(key_in.dim()) + "-D and " + std::to_string(value_in.dim()) + "-D tensors respectively");
  }
  Tensor query = query_in, key = key_in, value = value_in, key_padding_mask = call.key_padding_mask,
         attn_mask = call.attn_mask;
  if (!batched) {
    query = query.unsqueeze(1);
    key = key.unsqueeze(1);
    value = value.unsqueeze(1);
    if (key_padding_mask.defined()) key_padding_mask = key_padding_mask.unsqueeze(0);
  }
  const SymInt target_length = query.sym_size(0), batch = query.sym_size(1);
  SymInt source_length = key.sym_size(0);
  key_padding_mask = nn_detail::canonical_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype());
  bool is_causal = call.is_causal;
  if (is_causal && !attn_mask.defined()) throw UserError("Need attn_mask if specifying the is_causal hint.");
  if (is_causal && !key_padding_mask.defined() && !call.need_weights) {
    attn_mask = Tensor();  // the hint says it all
  } else {
    attn_mask = nn_detail::canonical_mask(attn_mask, "attn_mask", {}, "", query.dtype());
    if (key_padding_mask.defined()) is_causal = false;
  }
  const int64_t heads = w.num_heads, head_size = w.embed_dim / heads;
  if (guard(query.sym_size(-1) != w.embed_dim))
    throw UserError("was expecting embedding dimension of " + std::to_string(w.embed_dim) + ", but got " +
                    query.sym_size(-1).str());

  Three projected;
  if (w.in_proj_weight.defined()) {
    if (str(key.sym_sizes()) != str(value.sym_sizes()))
      throw UserError("key shape torch.Size(" + str(key.sym_sizes()) + ") does not match value shape torch.Size(" +
                      str(value.sym_sizes()) + ")");
    projected = project_packed(query, key, value, w.in_proj_weight, w.in_proj_bias);
  } else {
    const std::vector<Tensor> biases = w.in_proj_bias.defined() ? w.in_proj_bias.chunk(3) : std::vector<Tensor>(3);
    projected = {linear(query, w.q_proj_weight, biases[0]), linear(key, w.k_proj_weight, biases[1]),
                 linear(value, w.v_proj_weight, biases[2])};
  }
  auto& [q, k, v] = projected;

  if (attn_mask.defined()) {
    if (attn_mask.dim() == 2) {
      check_sizes(attn_mask, {target_length, source_length});
      attn_mask = attn_mask.unsqueeze(0);
    } else if (attn_mask.dim() == 3) {
      check_sizes(attn_mask, {batch * heads, target_length, source_length});
    } else {
      throw UserError("attn_mask's dimension " + std::to_string(attn_mask.dim()) + " is not supported");
    }
  }
  const auto widen_masks = [&] {
    if (attn_mask.defined()) attn_mask = pad(attn_mask, {0, 1});
    if (key_padding_mask.defined()) key_padding_mask = pad(key_padding_mask, {0, 1});
  };
  if (w.bias_k.defined() && w.bias_v.defined()) {
    k = cat(std::vector<Tensor>{k, w.bias_k.repeat({1, batch, 1})});
    v = cat(std::vector<Tensor>{v, w.bias_v.repeat({1, batch, 1})});
    widen_masks();
  }
  const SymInt rows = batch * heads;
  q = q.view({target_length, rows, head_size}).transpose(0, 1);
  k = k.view({k.sym_size(0), rows, head_size}).transpose(0, 1);
  v = v.view({v.sym_size(0), rows, head_size}).transpose(0, 1);
  if (w.add_zero_attn) {
    const auto zero = [&](const Tensor& like) {
      return zeros({rows, 1, head_size}, like.dtype(), std::nullopt, like.device());
    };
    k = cat(std::vector<Tensor>{k, zero(k)}, 1);
    v = cat(std::vector<Tensor>{v, zero(v)}, 1);
    widen_masks();
  }
  source_length = k.sym_size(1);
  if (key_padding_mask.defined()) {
    key_padding_mask =
        key_padding_mask.view({batch, 1, 1, source_length}).expand({-1, heads, -1, -1}).reshape({rows, 1, source_length});
    attn_mask = attn_mask.defined() ? attn_mask + key_padding_mask : key_padding_mask;
  }
  const double dropout_p = call.training ? w.dropout_p : 0;

  if (!call.need_weights) {
    if (attn_mask.defined())
      attn_mask = attn_mask.dim() == 3 && guard_or(attn_mask.sym_size(0) == 1, false)
                      ? attn_mask.unsqueeze(0)
                      : attn_mask.view({batch, heads, -1, source_length});
    q = q.view({batch, heads, target_length, head_size});
    k = k.view({batch, heads, source_length, head_size});
    v = v.view({batch, heads, source_length, head_size});
    Tensor out = scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal);
    out = out.permute({2, 0, 1, 3}).reshape({batch * target_length, w.embed_dim});
    out = linear(out, w.out_proj_weight, w.out_proj_bias);
    out = out.view({target_length, batch, out.sym_size(1)});
    return {batched ? out : out.squeeze(1), Tensor()};
  }
  const Tensor scaled = q * Scalar(std::sqrt(1.0 / static_cast<double>(head_size)));
  Tensor weights = attn_mask.defined() ? baddbmm(attn_mask, scaled, k.transpose(-2, -1)) : bmm(scaled, k.transpose(-2, -1));
  weights = calque::softmax(weights, -1);
  if (dropout_p > 0) weights = calque::dropout(weights, dropout_p, true);
  Tensor out = bmm(weights, v).transpose(0, 1).reshape({target_length * batch, w.embed_dim});
  out = linear(out, w.out_proj_weight, w.out_proj_bias);
  out = out.view({target_length, batch, out.sym_size(1)});
  weights = weights.view({batch, heads, target_length, source_length});
  if (call.average_attn_weights) weights = weights.mean({1});
  return {batched ? out : out.squeeze(1), batched ? weights : weights.squeeze(0)};
}

}  // namespace functional
}  // namespace calque
