#include "decoder_parts.h"

#include "calque/nn/functional.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "zoo/blocks/child_if.h"

namespace calque {

namespace {

Tensor initial_weight(NormKind kind, const std::vector<int64_t>& sizes) {
  const SymInts shape(sizes.begin(), sizes.end());
  return kind == NormKind::rms_around_one ? zeros(shape) : ones(shape);
}

// Pairs of neighbours put side by side by halves.
Tensor neighbours_apart(const Tensor& x) {
  const int64_t half = x.size(-1) / 2;
  const Tensor pairs = x.view({x.sym_size(0), x.sym_size(1), x.sym_size(2), half, 2});
  return pairs.transpose(4, 3).reshape({x.sym_size(0), x.sym_size(1), x.sym_size(2), 2 * half});
}

}  // namespace

DecoderNorm::DecoderNorm(std::string type, const NormDesign& design, const std::vector<int64_t>& sizes)
    : NamedModule(std::move(type)),
      kind(design.kind),
      eps(design.eps),
      weight(register_parameter("weight", initial_weight(design.kind, sizes))) {}

Tensor DecoderNorm::forward(const Tensor& hidden_states) {
  const Tensor wide = hidden_states.to(DType::float32);
  const Tensor centred = kind == NormKind::centred ? wide - wide.mean({-1}, true) : wide;
  const Tensor variance = pow(centred, 2).mean({-1}, true);
  const Tensor normed = centred * rsqrt(variance + eps);
  switch (kind) {
    case NormKind::rms: return *weight * normed.to(hidden_states.dtype());
    case NormKind::rms_wide: return (*weight * normed).to(hidden_states.dtype());
    case NormKind::rms_around_one: return (normed * (1.0 + weight->to(DType::float32))).to(hidden_states.dtype());
    case NormKind::centred:
    case NormKind::layer: break;
  }
  return (weight->to(DType::float32) * normed).to(hidden_states.dtype());
}

void DecoderNorm::reset() { (*weight).fill_(kind == NormKind::rms_around_one ? 0 : 1); }

HeadNorms::HeadNorms(std::string type, int64_t heads, int64_t size, double eps)
    : NamedModule(std::move(type)), norms(child<ModuleList>("norms")) {
  for (int64_t i = 0; i < heads; ++i) norms->emplace<LayerNorm>(Sizes(size), LayerNormOptions{.eps = eps, .bias = false});
}

Tensor HeadNorms::forward(const Tensor& hidden_states) {
  std::vector<Tensor> out;
  int64_t head = 0;
  for (LayerNorm* norm : norms->items<LayerNorm>()) {
    out.push_back((*norm)(hidden_states.slice(2, head, head + 1)));
    ++head;
  }
  return cat(out, 2);
}

NormSlot::NormSlot(Module& parent, const char* name, const DecoderDesign& design, const NormDesign& norm,
                   const std::vector<int64_t>& sizes) {
  if (!name) return;
  if (norm.kind == NormKind::layer)
    layer_.emplace(parent.child<LayerNorm>(name, Sizes(sizes), LayerNormOptions{.eps = norm.eps}));
  else
    own_.emplace(parent.child<DecoderNorm>(name, design.names + design.norm_class, norm, sizes));
}

DecoderAttention::DecoderAttention(const Config& c, const DecoderDesign& whole, size_t layer)
    : NamedModule(whole.names + "Attention"),
      design(whole.attention),
      turns(whole.layers[layer].rotary >= 0),
      q_proj(child_if<Linear>(design.projection == Projection::separate, *this, "q_proj", c.integer("hidden_size"),
                              design.heads * design.head_size, design.bias)),
      k_proj(child_if<Linear>(q_proj.has_value(), *this, "k_proj", c.integer("hidden_size"),
                              design.key_heads * design.head_size, design.bias)),
      v_proj(child_if<Linear>(q_proj.has_value(), *this, "v_proj", c.integer("hidden_size"),
                              design.key_heads * design.head_size, design.bias)),
      joined(child_if<Linear>(!q_proj, *this, design.projection == Projection::joined ? "qkv_proj" : "query_key_value",
                              c.integer("hidden_size"), (design.heads + 2 * design.key_heads) * design.head_size,
                              design.bias)),
      o_proj(child<Linear>(design.output, design.heads * design.head_size, c.integer("hidden_size"), design.output_bias)) {
  const int64_t heads = design.heads, key_heads = design.key_heads, size = design.head_size;
  if (design.sinks) sinks.emplace(register_parameter("sinks", zeros({heads})));
  const auto norms = [&](const std::vector<int64_t>& query, const std::vector<int64_t>& key) {
    q_norm_.emplace(*this, design.query_norm_name, whole, design.query_norm_kind, query);
    k_norm_.emplace(*this, design.key_norm_name, whole, design.query_norm_kind, key);
  };
  switch (design.query_norm) {
    case QueryNorm::none: break;
    case QueryNorm::heads: norms({size}, {size}); break;
    case QueryNorm::whole: norms({heads * size}, {key_heads * size}); break;
    case QueryNorm::each_head: norms({heads, size}, {key_heads, size}); break;
    case QueryNorm::list: {
      const std::string type = whole.names + "LayerNormPerHead";
      q_norms_.emplace(child<HeadNorms>(design.query_norm_name, type, heads, size, design.query_norm_kind.eps));
      k_norms_.emplace(child<HeadNorms>(design.key_norm_name, type, key_heads, size, design.query_norm_kind.eps));
    }
  }
}

DecoderAttention::Heads DecoderAttention::projected(const Tensor& x) const {
  const SymInt batch = x.sym_size(0), length = x.sym_size(1);
  const int64_t heads = design.heads, key_heads = design.key_heads, size = design.head_size;
  const auto split = [&](const Tensor& y, int64_t count) { return y.view({batch, length, count, size}); };
  if (q_proj) {
    Tensor query = (*q_proj)(x), key = (*k_proj)(x);
    if (design.query_norm == QueryNorm::whole) {
      query = (*q_norm_)(query);
      key = (*k_norm_)(key);
    }
    return {split(query, heads), split(key, key_heads), split((*v_proj)(x), key_heads)};
  }
  const Tensor all = (*joined)(x);
  if (design.projection == Projection::by_head) {
    const int64_t each = heads / key_heads;
    const Tensor groups = all.view({batch, length, key_heads, each + 2, size});
    const auto repeated = [&](const Tensor& x) {
      return design.repeats_keys ? x.expand({-1, -1, -1, each, -1}).reshape({batch, length, heads, size}) : x.squeeze(3);
    };
    return {groups.slice(3, 0, each).reshape({batch, length, heads, size}), repeated(groups.slice(3, each, each + 1)),
            repeated(groups.slice(3, each + 1))};
  }
  const int64_t keys_from = heads * size, values_from = keys_from + key_heads * size;
  return {split(all.slice(-1, 0, keys_from), heads), split(all.slice(-1, keys_from, values_from), key_heads),
          split(all.slice(-1, values_from), key_heads)};
}

Tensor turn(const Tensor& x, const Tensor& cosine, const Tensor& sine, Turning how) {
  if (how == Turning::neighbours) return apply_interleaved_rotary(x, cosine, sine);
  return apply_rotary(how == Turning::halves ? x : neighbours_apart(x), cosine, sine);
}

Tensor DecoderAttention::turned(const Tensor& x, const Tensor& cosine, const Tensor& sine) const {
  if (!turns) return x;
  const Tensor y = turn(design.wide_turning ? x.to(DType::float32) : x, cosine, sine, design.turning);
  return y.dtype() == x.dtype() ? y : y.to(x.dtype());
}

DecoderAttention::Result DecoderAttention::forward(const Tensor& x, const Tensor& cosine, const Tensor& sine,
                                                   const AttentionMask& mask, const LayerCache& past, bool eager) {
  Heads now = projected(x);
  if (q_norms_) {
    now.query = (*q_norms_)(now.query);
    now.key = (*k_norms_)(now.key);
  } else if (q_norm_ && design.query_norm != QueryNorm::whole) {
    now.query = (*q_norm_)(now.query);
    now.key = (*k_norm_)(now.key);
  }
  const Tensor query = turned(now.query.transpose(1, 2), cosine, sine);
  const Tensor key = turned(now.key.transpose(1, 2), cosine, sine);
  const LayerCache cache = past.updated(key, now.value.transpose(1, 2));
  const AttentionResult attended = attend(query, cache.key, cache.value, mask,
                                          {.scale = design.scale,
                                           .dropout = training() ? design.dropout : 0,
                                           .eager = eager,
                                           .softmax_in_float32 = true,
                                           .soft_cap = design.soft_cap,
                                           .sinks = sinks ? Tensor(**sinks) : Tensor()});
  const Tensor out = o_proj(attended.output);
  return {training() ? functional::dropout(out, design.output_dropout) : out, attended.weights, cache};
}

DecoderFeedForward::DecoderFeedForward(std::string type, int64_t hidden_size, const FeedForwardDesign& given)
    : NamedModule(std::move(type)),
      design(given),
      activation(activation_named(design.activation)),
      gate_proj(child_if<Linear>(design.kind == FeedForwardDesign::Kind::gated, *this, "gate_proj", hidden_size, design.size,
                                 design.bias)),
      up(child<Linear>(design.up, hidden_size, (design.kind == FeedForwardDesign::Kind::gated_joined ? 2 : 1) * design.size,
                       design.bias)),
      down(child<Linear>(design.down, design.size, hidden_size, design.bias)) {}

Tensor DecoderFeedForward::forward(const Tensor& x) {
  if (gate_proj) {
    const Tensor gate = activation((*gate_proj)(x));
    return down(gate * up(x));
  }
  if (design.kind == FeedForwardDesign::Kind::gated_joined) {
    const std::vector<Tensor> halves = up(x).chunk(2, -1);
    return down(halves[1] * activation(halves[0]));
  }
  const Tensor out = down(activation(up(x)));
  return training() ? functional::dropout(out, design.dropout) : out;
}

}  // namespace calque
