// torch.nn.functional.multi_head_attention_forward, by the same operators in the same order.
#include <array>
#include <cmath>
#include <limits>

#include "calque/base/warning.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/zeros.h"
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

void check_dimensions(const Tensor& query, const Tensor& key, const Tensor& value) {
  const bool batched = query.dim() == 3;
  if (query.dim() != 2 && query.dim() != 3)
    throw UserError("query should be unbatched 2D or batched 3D tensor but received " + std::to_string(query.dim()) +
                    "-D query tensor");
  if (key.dim() != query.dim() || value.dim() != query.dim())
    throw UserError("For " + std::string(batched ? "batched (3-D)" : "unbatched (2-D)") +
                    " `query`, expected `key` and `value` to be " + (batched ? "3" : "2") + "-D but found " +
                    std::to_string(key.dim()) + "-D and " + std::to_string(value.dim()) + "-D tensors respectively");
}

Three project(const Tensor& query, const Tensor& key, const Tensor& value, const MultiHeadAttentionWeights& w) {
  if (w.in_proj_weight.defined()) {
    if (str(key.sym_sizes()) != str(value.sym_sizes()))
      throw UserError("key shape torch.Size(" + str(key.sym_sizes()) + ") does not match value shape torch.Size(" +
                      str(value.sym_sizes()) + ")");
    return project_packed(query, key, value, w.in_proj_weight, w.in_proj_bias);
  }
  const std::vector<Tensor> biases = w.in_proj_bias.defined() ? w.in_proj_bias.chunk(3) : std::vector<Tensor>(3);
  return {linear(query, w.q_proj_weight, biases[0]), linear(key, w.k_proj_weight, biases[1]),
          linear(value, w.v_proj_weight, biases[2])};
}

// Both masks as numbers that are added to the scores.
struct Masks {
  Tensor attention, key_padding;
  bool causal;

  Masks(const MultiHeadAttentionCall& call, bool batched, DType dtype)
      : attention(call.attn_mask), key_padding(call.key_padding_mask), causal(call.is_causal) {
    if (!batched && key_padding.defined()) key_padding = key_padding.unsqueeze(0);
    key_padding = nn_detail::canonical_mask(key_padding, "key_padding_mask", attention, "attn_mask", dtype);
    if (causal && !attention.defined()) throw UserError("Need attn_mask if specifying the is_causal hint.");
    if (causal && !key_padding.defined() && !call.need_weights) {
      attention = Tensor();  // the hint says it all
    } else {
      attention = nn_detail::canonical_mask(attention, "attn_mask", {}, "", dtype);
      if (key_padding.defined()) causal = false;
    }
  }

  void check(const SymInt& rows, const SymInt& target_length, const SymInt& source_length) {
    if (!attention.defined()) return;
    if (attention.dim() == 2) {
      check_sizes(attention, {target_length, source_length});
      attention = attention.unsqueeze(0);
    } else if (attention.dim() == 3) {
      check_sizes(attention, {rows, target_length, source_length});
    } else {
      throw UserError("attn_mask's dimension " + std::to_string(attention.dim()) + " is not supported");
    }
  }

  // For a key that everybody sees.
  void widen() {
    if (attention.defined()) attention = pad(attention, {0, 1});
    if (key_padding.defined()) key_padding = pad(key_padding, {0, 1});
  }

  void join(const SymInt& batch, int64_t heads, const SymInt& source_length) {
    if (!key_padding.defined()) return;
    key_padding = key_padding.view({batch, 1, 1, source_length})
                      .expand({-1, heads, -1, -1})
                      .reshape({batch * heads, 1, source_length});
    attention = attention.defined() ? attention + key_padding : key_padding;
  }
};

}  // namespace

std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in,
                                                        const MultiHeadAttentionWeights& w,
                                                        const MultiHeadAttentionCall& call) {
  check_dimensions(query_in, key_in, value_in);
  const bool batched = query_in.dim() == 3;
  const auto with_batch = [&](const Tensor& x) { return batched ? x : x.unsqueeze(1); };
  const Tensor query = with_batch(query_in);
  const Tensor key = with_batch(key_in);
  const Tensor value = with_batch(value_in);
  const SymInt target_length = query.sym_size(0), batch = query.sym_size(1);
  Masks masks(call, batched, query.dtype());
  const int64_t heads = w.num_heads, head_size = w.embed_dim / heads;
  if (guard(query.sym_size(-1) != w.embed_dim))
    throw UserError("was expecting embedding dimension of " + std::to_string(w.embed_dim) + ", but got " +
                    query.sym_size(-1).str());
  auto [q, k, v] = project(query, key, value, w);

  const SymInt rows = batch * heads;
  masks.check(rows, target_length, key.sym_size(0));
  if (w.bias_k.defined() && w.bias_v.defined()) {
    k = cat(std::vector<Tensor>{k, w.bias_k.repeat({1, batch, 1})});
    v = cat(std::vector<Tensor>{v, w.bias_v.repeat({1, batch, 1})});
    masks.widen();
  }
  q = q.view({target_length, rows, head_size}).transpose(0, 1);
  k = k.view({k.sym_size(0), rows, head_size}).transpose(0, 1);
  v = v.view({v.sym_size(0), rows, head_size}).transpose(0, 1);
  if (w.add_zero_attn) {
    const auto zero = [&](const Tensor& like) {
      return zeros({rows, 1, head_size}, like.dtype(), std::nullopt, like.device());
    };
    k = cat(std::vector<Tensor>{k, zero(k)}, 1);
    v = cat(std::vector<Tensor>{v, zero(v)}, 1);
    masks.widen();
  }
  const SymInt source_length = k.sym_size(1);
  masks.join(batch, heads, source_length);
  const double dropout_p = call.training ? w.dropout_p : 0;
  Tensor& mask = masks.attention;

  if (!call.need_weights) {
    if (mask.defined())
      mask = mask.dim() == 3 && guard_or(mask.sym_size(0) == 1, false) ? mask.unsqueeze(0)
                                                                       : mask.view({batch, heads, -1, source_length});
    q = q.view({batch, heads, target_length, head_size});
    k = k.view({batch, heads, source_length, head_size});
    v = v.view({batch, heads, source_length, head_size});
    Tensor out = scaled_dot_product_attention(q, k, v, mask, dropout_p, masks.causal);
    out = out.permute({2, 0, 1, 3}).reshape({batch * target_length, w.embed_dim});
    out = linear(out, w.out_proj_weight, w.out_proj_bias);
    out = out.view({target_length, batch, out.sym_size(1)});
    return {batched ? out : out.squeeze(1), Tensor()};
  }
  const Tensor scaled = q * Scalar(std::sqrt(1.0 / static_cast<double>(head_size)));
  Tensor weights = mask.defined() ? baddbmm(mask, scaled, k.transpose(-2, -1)) : bmm(scaled, k.transpose(-2, -1));
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
