#include "calque/nn/transformer.h"

#include <limits>

#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/shaping.h"
#include "calque/op/aten/zeros.h"
#include "nn/mask.h"

namespace calque {

// ---- attention ------------------------------------------------------------------------------------------------------

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& options)
    : embed_dim(embed_dim),
      kdim(options.kdim.value_or(embed_dim)),
      vdim(options.vdim.value_or(embed_dim)),
      num_heads(num_heads),
      dropout(options.dropout),
      batch_first(options.batch_first),
      add_zero_attn(options.add_zero_attn),
      in_proj_weight(register_parameter("in_proj_weight", {})),
      q_proj_weight(register_parameter("q_proj_weight", {})),
      k_proj_weight(register_parameter("k_proj_weight", {})),
      v_proj_weight(register_parameter("v_proj_weight", {})),
      in_proj_bias(register_parameter("in_proj_bias", {})),
      out_proj(child<NonDynamicallyQuantizableLinear>("out_proj", embed_dim, embed_dim, options.bias, options.factory)) {
  if (embed_dim <= 0 || num_heads <= 0) {
    throw UserError("embed_dim and num_heads must be greater than 0, got embed_dim=" + std::to_string(embed_dim) +
                    " and num_heads=" + std::to_string(num_heads) + " instead");
  }
  if (embed_dim % num_heads != 0) throw UserError("embed_dim must be divisible by num_heads");
  const auto add_parameter = [&](const char* name, SymIntList sizes) {
    register_parameter(name, empty(sizes, options.factory.dtype, std::nullopt, options.factory.device));
  };
  if (kdim == embed_dim && vdim == embed_dim) {
    add_parameter("in_proj_weight", {3 * embed_dim, embed_dim});
  } else {
    add_parameter("q_proj_weight", {embed_dim, embed_dim});
    add_parameter("k_proj_weight", {embed_dim, kdim});
    add_parameter("v_proj_weight", {embed_dim, vdim});
  }
  if (options.bias) add_parameter("in_proj_bias", {3 * embed_dim});
  if (options.add_bias_kv) {
    add_parameter("bias_k", {1, 1, embed_dim});
    add_parameter("bias_v", {1, 1, embed_dim});
  }
  reset_parameters();
}

Tensor MultiheadAttention::bias_k() const {
  const Tensor* found = find_tensor("bias_k");
  return found ? *found : Tensor();
}

Tensor MultiheadAttention::bias_v() const {
  const Tensor* found = find_tensor("bias_v");
  return found ? *found : Tensor();
}

void MultiheadAttention::reset_parameters() {
  for (const Tensor& weight : {*in_proj_weight, *q_proj_weight, *k_proj_weight, *v_proj_weight})
    if (weight.defined()) init::xavier_uniform_(weight);
  if (in_proj_bias.defined()) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  for (const Tensor& bias : {bias_k(), bias_v()})
    if (bias.defined()) init::xavier_normal_(bias);
}

std::tuple<Tensor, Tensor> MultiheadAttention::forward(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in,
                                                       const Tensor& key_padding_mask, bool need_weights,
                                                       const Tensor& attn_mask, bool average_attn_weights, bool is_causal) {
  const Tensor padding =
      nn_detail::canonical_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query_in.dtype());
  const Tensor mask = nn_detail::canonical_mask(attn_mask, "attn_mask", {}, "", query_in.dtype());
  Tensor query = query_in, key = key_in, value = value_in;
  const bool swaps = batch_first && query.dim() == 3;
  if (swaps) {
    // One tensor stays one: the projection looks whether they are the same.
    query = query_in.transpose(1, 0);
    key = key_in.is_same(query_in) && key_in.is_same(value_in) ? query : key_in.transpose(1, 0);
    value = value_in.is_same(key_in) ? key : value_in.transpose(1, 0);
  }
  const functional::MultiHeadAttentionWeights weights{.embed_dim = embed_dim,
                                                      .num_heads = num_heads,
                                                      .in_proj_weight = in_proj_weight,
                                                      .q_proj_weight = q_proj_weight,
                                                      .k_proj_weight = k_proj_weight,
                                                      .v_proj_weight = v_proj_weight,
                                                      .in_proj_bias = in_proj_bias,
                                                      .bias_k = bias_k(),
                                                      .bias_v = bias_v(),
                                                      .out_proj_weight = out_proj->weight,
                                                      .out_proj_bias = out_proj->bias,
                                                      .add_zero_attn = add_zero_attn,
                                                      .dropout_p = dropout};
  auto [out, attention] = functional::multi_head_attention_forward(query, key, value, weights,
                                                                   {.training = training(),
                                                                    .key_padding_mask = padding,
                                                                    .need_weights = need_weights,
                                                                    .attn_mask = mask,
                                                                    .average_attn_weights = average_attn_weights,
                                                                    .is_causal = is_causal});
  return {swaps ? out.transpose(1, 0) : out, attention};
}

// ---- layers ---------------------------------------------------------------------------------------------------------

static Tensor activate(const std::string& name, const Tensor& x) {
  if (name == "relu") return relu(x);
  if (name == "gelu") return gelu(x);
  throw UserError("activation should be relu/gelu, not " + name);
}

static MultiheadAttentionOptions attention_options(const TransformerLayerOptions& options) {
  return {.dropout = options.dropout, .bias = options.bias, .batch_first = options.batch_first, .factory = options.factory};
}
static LayerNormOptions norm_options(const TransformerLayerOptions& options) {
  return {.eps = options.layer_norm_eps, .bias = options.bias, .factory = options.factory};
}

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerLayerOptions& options)
    : norm_first(options.norm_first),
      activation(options.activation),
      self_attn(child<MultiheadAttention>("self_attn", d_model, nhead, attention_options(options))),
      linear1(child<Linear>("linear1", d_model, options.dim_feedforward, options.bias, options.factory)),
      dropout(child<Dropout>("dropout", options.dropout)),
      linear2(child<Linear>("linear2", options.dim_feedforward, d_model, options.bias, options.factory)),
      norm1(child<LayerNorm>("norm1", d_model, norm_options(options))),
      norm2(child<LayerNorm>("norm2", d_model, norm_options(options))),
      dropout1(child<Dropout>("dropout1", options.dropout)),
      dropout2(child<Dropout>("dropout2", options.dropout)) {}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const Tensor& src_mask, const Tensor& src_key_padding_mask,
                                        bool is_causal) {
  const Tensor padding =
      nn_detail::canonical_mask(src_key_padding_mask, "src_key_padding_mask", src_mask, "src_mask", src.dtype());
  const Tensor mask = nn_detail::canonical_mask(src_mask, "src_mask", {}, "", src.dtype());
  const auto attend = [&](const Tensor& x) {
    return dropout1(std::get<0>(self_attn(x, x, x, padding, false, mask, true, is_causal)));
  };
  const auto feed = [&](const Tensor& x) { return dropout2(linear2(dropout(activate(activation, linear1(x))))); };
  if (norm_first) {
    const Tensor x = src + attend(norm1(src));
    return x + feed(norm2(x));
  }
  const Tensor x = norm1(src + attend(src));
  return norm2(x + feed(x));
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t nhead, const TransformerLayerOptions& options)
    : norm_first(options.norm_first),
      activation(options.activation),
      self_attn(child<MultiheadAttention>("self_attn", d_model, nhead, attention_options(options))),
      multihead_attn(child<MultiheadAttention>("multihead_attn", d_model, nhead, attention_options(options))),
      linear1(child<Linear>("linear1", d_model, options.dim_feedforward, options.bias, options.factory)),
      dropout(child<Dropout>("dropout", options.dropout)),
      linear2(child<Linear>("linear2", options.dim_feedforward, d_model, options.bias, options.factory)),
      norm1(child<LayerNorm>("norm1", d_model, norm_options(options))),
      norm2(child<LayerNorm>("norm2", d_model, norm_options(options))),
      norm3(child<LayerNorm>("norm3", d_model, norm_options(options))),
      dropout1(child<Dropout>("dropout1", options.dropout)),
      dropout2(child<Dropout>("dropout2", options.dropout)),
      dropout3(child<Dropout>("dropout3", options.dropout)) {}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask,
                                        const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                        const Tensor& memory_key_padding_mask, bool tgt_is_causal, bool memory_is_causal) {
  const auto attend = [&](const Tensor& x) {
    return dropout1(std::get<0>(self_attn(x, x, x, tgt_key_padding_mask, false, tgt_mask, true, tgt_is_causal)));
  };
  const auto look_back = [&](const Tensor& x) {
    return dropout2(
        std::get<0>(multihead_attn(x, memory, memory, memory_key_padding_mask, false, memory_mask, true, memory_is_causal)));
  };
  const auto feed = [&](const Tensor& x) { return dropout3(linear2(dropout(activate(activation, linear1(x))))); };
  if (norm_first) {
    Tensor x = tgt + attend(norm1(tgt));
    x = x + look_back(norm2(x));
    return x + feed(norm3(x));
  }
  Tensor x = norm1(tgt + attend(tgt));
  x = norm2(x + look_back(x));
  return norm3(x + feed(x));
}

// ---- stacks ---------------------------------------------------------------------------------------------------------

Tensor generate_square_subsequent_mask(int64_t size, Factory factory) {
  return triu(full({size, size}, -std::numeric_limits<double>::infinity(), factory.dtype, std::nullopt, factory.device), 1);
}

template <class Layer>
static std::shared_ptr<ModuleList> copies(const Layer& layer, int64_t count) {
  auto list = std::make_shared<ModuleList>();
  for (int64_t i = 0; i < count; ++i) list->append(deep_copy(layer));
  return list;
}

static bool detect_causal(const Tensor& mask, std::optional<bool> is_causal, const Tensor& sequence, bool batch_first) {
  if (is_causal) return *is_causal;
  if (!mask.defined()) return false;
  const SymInt length = sequence.sym_size(sequence.dim() == 2 || !batch_first ? 0 : 1);
  if (str(mask.sym_sizes()) != str(SymIntList({length, length}))) return false;
  const Tensor causal = generate_square_subsequent_mask(length.as_int(), {.dtype = mask.dtype(), .device = mask.device()});
  return (mask == causal).all().item_as<bool>();
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& encoder_layer, int64_t num_layers,
                                       std::shared_ptr<Module> norm)
    : layers(child_module("layers", copies(encoder_layer, num_layers))) {
  if (norm) this->norm.emplace(child_module("norm", std::move(norm)));
}

Tensor TransformerEncoder::forward(const Tensor& src, const Tensor& mask_in, const Tensor& src_key_padding_mask,
                                   std::optional<bool> is_causal) {
  const Tensor padding =
      nn_detail::canonical_mask(src_key_padding_mask, "src_key_padding_mask", mask_in, "mask", src.dtype());
  const Tensor mask = nn_detail::canonical_mask(mask_in, "mask", {}, "", src.dtype());
  const auto items = layers->items<TransformerEncoderLayer>();
  const bool causal = detect_causal(mask, is_causal, src, !items.empty() && items[0]->self_attn->batch_first);
  Tensor x = src;
  for (TransformerEncoderLayer* layer : items) x = (*layer)(x, mask, padding, causal);
  return norm ? (*norm)(x).to_tensor() : x;
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& decoder_layer, int64_t num_layers,
                                       std::shared_ptr<Module> norm)
    : layers(child_module("layers", copies(decoder_layer, num_layers))) {
  if (norm) this->norm.emplace(child_module("norm", std::move(norm)));
}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask,
                                   const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                   const Tensor& memory_key_padding_mask, std::optional<bool> tgt_is_causal,
                                   bool memory_is_causal) {
  const auto items = layers->items<TransformerDecoderLayer>();
  const bool causal = detect_causal(tgt_mask, tgt_is_causal, tgt, !items.empty() && items[0]->self_attn->batch_first);
  Tensor x = tgt;
  for (TransformerDecoderLayer* layer : items)
    x = (*layer)(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, causal, memory_is_causal);
  return norm ? (*norm)(x).to_tensor() : x;
}

}  // namespace calque
