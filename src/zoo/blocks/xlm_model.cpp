#include "xlm_model.h"

#include <cmath>

#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "chunking.h"
#include "zoo/blocks/child_if.h"

namespace calque {

XlmAttention::XlmAttention(const std::string& module, const Config& c)
    : NamedModule(module + "MultiHeadAttention"),
      heads(c.integer("n_heads")),
      size(c.integer("emb_dim") / heads),
      dropout(c.number("attention_dropout")),
      q_lin(child<Linear>("q_lin", heads * size, heads * size)),
      k_lin(child<Linear>("k_lin", heads * size, heads * size)),
      v_lin(child<Linear>("v_lin", heads * size, heads * size)),
      out_lin(child<Linear>("out_lin", heads * size, heads * size)) {}

std::tuple<Tensor, Tensor> XlmAttention::forward(const Tensor& input, const AttentionMask& mask) {
  const AttentionResult attended = attend(split_heads(q_lin(input), heads, size), split_heads(k_lin(input), heads, size),
                                          split_heads(v_lin(input), heads, size), mask,
                                          {.dropout = training() ? dropout : 0, .eager = true, .softmax_in_float32 = true});
  return {out_lin(attended.output), attended.weights};
}

XlmFeedForward::XlmFeedForward(const std::string& module, const Config& c)
    : NamedModule(module + "TransformerFFN"),
      dropout(c.number("dropout")),
      chunk_size(c.optional_integer("chunk_size_feed_forward").value_or(0)),
      activation(activation_named(c.flag("gelu_activation") ? "gelu" : "relu")),
      lin1(child<Linear>("lin1", c.integer("emb_dim"), 4 * c.integer("emb_dim"))),
      lin2(child<Linear>("lin2", 4 * c.integer("emb_dim"), c.integer("emb_dim"))) {}

Tensor XlmFeedForward::forward(const Tensor& input) {
  const auto one = [&](const Tensor& x) { return functional::dropout(lin2(activation(lin1(x))), dropout, training()); };
  return apply_chunking_to_forward(one, chunk_size, 1, input);
}

XlmModel::XlmModel(const Config& c, std::string names)
    : PretrainedModel(c),
      names_(std::move(names)),
      position_embeddings(
          child<Embedding>("position_embeddings", c.integer("max_position_embeddings"), c.integer("emb_dim"))),
      lang_embeddings(child_if<Embedding>(c.integer("n_langs") > 1 && c.flag("use_lang_emb"), *this, "lang_embeddings",
                                          c.integer("n_langs"), c.integer("emb_dim"))),
      embeddings(child<Embedding>("embeddings", c.integer("vocab_size"), c.integer("emb_dim"),
                                  EmbeddingOptions{.padding_idx = c.optional_integer("pad_token_id")})),
      layer_norm_emb(
          child<LayerNorm>("layer_norm_emb", c.integer("emb_dim"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      attentions(child<ModuleList>("attentions")),
      layer_norm1(child<ModuleList>("layer_norm1")),
      ffns(child<ModuleList>("ffns")),
      layer_norm2(child<ModuleList>("layer_norm2")),
      before_(c.flag("pre_norm")),
      dropout_(c.number("dropout")),
      layer_drop_(c.optional_number("layerdrop")) {
  if (c.has("is_encoder") && !c.flag("is_encoder"))
    throw UserError(ErrorKind::unsupported_operator, "\"is_encoder\" is false, but the model is an encoder alone");
  config().attention_implementation = "eager";
  const std::string module = names_.substr(0, names_.rfind('.') + 1);
  for (int64_t i = 0; i < c.integer("n_layers"); ++i) {
    attentions->emplace<XlmAttention>(module, c);
    layer_norm1->emplace<LayerNorm>(c.integer("emb_dim"), LayerNormOptions{.eps = c.number("layer_norm_eps")});
    ffns->emplace<XlmFeedForward>(module, c);
    layer_norm2->emplace<LayerNorm>(c.integer("emb_dim"), LayerNormOptions{.eps = c.number("layer_norm_eps")});
  }
}

std::shared_ptr<Module> XlmModel::copy_self() const { return nn_detail::shared_module(std::make_unique<XlmModel>(*this)); }

void XlmModel::init_weights(Module& module) {
  PretrainedModel::init_weights(module);
  if (auto* embedding = dynamic_cast<Embedding*>(&module)) {
    init::normal_(embedding->weight, 0, config().number("embed_init_std"));
    if (embedding->options.padding_idx) init::zeros_((*embedding->weight).select(0, *embedding->options.padding_idx));
  }
  if (&module != this || !config().flag("sinusoidal_embeddings")) return;
  const Tensor table = *position_embeddings->weight;
  const Tensor columns = floor_divide(arange(table.size(1), DType::float64), 2) * 2 / static_cast<double>(table.size(1));
  const Tensor angles = arange(table.size(0), DType::float64).unsqueeze(1) / pow(10000.0, columns);
  table.slice(1, 0, std::nullopt, 2).copy_(sin(angles).slice(1, 0, std::nullopt, 2));
  table.slice(1, 1, std::nullopt, 2).copy_(cos(angles).slice(1, 1, std::nullopt, 2));
}

// Without a mask as many of each row as are no padding, or as `lengths` says.
Tensor XlmModel::kept_tokens(const ModelInputs& in, const Tensor& embeds) const {
  if (in[arg::attention_mask].defined()) return in[arg::attention_mask];
  Tensor lengths = in[arg::lengths];
  if (!lengths.defined() && !in[arg::input_ids].defined())
    return ones({embeds.sym_size(0), embeds.sym_size(1)}, DType::bool_, std::nullopt, embeds.device());
  if (!lengths.defined()) lengths = ne(in[arg::input_ids], config().integer("pad_token_id")).sum({1});
  return lt(arange(embeds.sym_size(1), DType::int64, std::nullopt, embeds.device()), lengths.unsqueeze(1));
}

Tensor XlmModel::embedded_words(const ModelInputs& in) const {
  const Tensor words = embedded(in, embeddings);
  const Tensor positions = in[arg::position_ids].defined() ? in[arg::position_ids] : positions_after(0, words);
  Tensor x = words + position_embeddings(positions);
  if (in[arg::langs].defined() && lang_embeddings) x = x + (*lang_embeddings)(in[arg::langs]);
  if (in[arg::token_type_ids].defined()) x = x + embeddings(in[arg::token_type_ids]);
  return functional::dropout(layer_norm_emb(x), dropout_, training());
}

ModelOutput XlmModel::forward(const ModelInputs& in) {
  Tensor x = embedded_words(in);
  const Tensor kept = kept_tokens(in, x);
  const Tensor factors = kept.unsqueeze(-1).to(x.dtype());
  const AttentionMask mask = config().flag("causal") ? causal_mask(x, Tensor(), {.explicit_mask = true})
                                                     : AttentionMask{ne(kept, 0).unsqueeze(1).unsqueeze(1), false};
  x = x * factors;
  const std::vector<XlmFeedForward*> feed_forwards = ffns->items<XlmFeedForward>();
  const std::vector<LayerNorm*> norms1 = layer_norm1->items<LayerNorm>(), norms2 = layer_norm2->items<LayerNorm>();
  LayerOutputs outputs(*this, in);
  const auto layer = [&](XlmAttention& attention, const Tensor& state, size_t i) {
    const auto [attended, weights] = attention(before_ ? (*norms1[i])(state) : state, mask);
    const Tensor y = state + functional::dropout(attended, dropout_, training());
    const Tensor z = before_ ? y : (*norms1[i])(y);
    const Tensor fed = z + (*feed_forwards[i])(before_ ? (*norms2[i])(z) : z);
    return std::tuple((before_ ? fed : (*norms2[i])(fed)) * factors, weights, LayerCache());
  };
  x = outputs.run<XlmAttention>(*attentions, x, layer, {.probability = layer_drop_});
  ModelOutput out = outputs.with_last(x), kept_fields;
  kept_fields.take(out, {"last_hidden_state", "hidden_states", "attentions"});
  return kept_fields;
}

}  // namespace calque
