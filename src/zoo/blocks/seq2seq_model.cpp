#include "seq2seq_model.h"

#include <cmath>

#include "../heads/cross_arguments.h"
#include "../heads/decoder_heads.h"
#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/ops.h"
#include "encoder_decoder.h"

namespace calque {

namespace {

std::string part_name(const Seq2SeqStyle& style, const char* part) { return std::string(style.prefix) + part; }

std::optional<Child<LayerNorm>> norm_if(bool wanted, Module& module, const char* name, const Config& config) {
  if (!wanted) return std::nullopt;
  return module.child<LayerNorm>(name, config.integer("d_model"));
}

// The positions of embeddings that follow `past` others: counted, or counting only what is no padding.
Tensor positions_of(const Seq2SeqStyle& style, const Config& config, const Tensor& ids, const Tensor& embeds,
                    const SymInt& past) {
  if (style.positions != Seq2SeqStyle::Positions::sinusoidal_of_ids) return positions_after(past, embeds);
  const int64_t pad = config.integer("pad_token_id");
  if (!ids.defined()) return positions_after(past + pad + 1, embeds).expand({embeds.sym_size(0), embeds.sym_size(1)});
  const Tensor kept = ne(ids, pad).to(DType::int32);
  const Tensor counted = (cumsum(kept, 1).to(DType::int32) + Scalar(past)) * kept;
  return counted.to(DType::int64) + pad;
}

// The rows that a table of positions must have for them.
SymInt rows_for(const Config& config, const Tensor& embeds, const SymInt& past) {
  return past + embeds.sym_size(1) + config.optional_integer("pad_token_id").value_or(0) + 1;
}

}  // namespace

std::vector<std::string> Seq2SeqPretrained::no_split_modules() const {
  std::vector<std::string> out = {part_name(*style, "EncoderLayer"), part_name(*style, "DecoderLayer")};
  if (style->keeps_attention_whole) out.push_back(part_name(*style, "Attention"));
  return out;
}

std::vector<std::string> Seq2SeqPretrained::keys_to_ignore_on_load_missing() const {
  std::vector<std::string> out;
  if (style->final_logits_bias) out.push_back("final_logits_bias");
  if (style->computed_positions)
    out.insert(out.end(), {"model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"});
  return out;
}

std::vector<std::string> Seq2SeqPretrained::keys_to_ignore_on_save() const {
  if (!style->computed_positions || !can_generate() || !is_encoder_decoder()) return {};
  return {"model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"};
}

void Seq2SeqPretrained::init_weights(Module& module) {
  const double deviation = config().number("init_std");
  if (auto* positions = dynamic_cast<PositionEmbedding*>(&module)) {
    positions->reset(deviation);
  } else if (auto* linear = dynamic_cast<Linear*>(&module)) {
    init::normal_(linear->weight, 0, deviation);
    if (linear->bias.defined()) init::zeros_(linear->bias);
  } else if (auto* embedding = dynamic_cast<Embedding*>(&module)) {
    init::normal_(embedding->weight, 0, deviation);
    if (embedding->options.padding_idx) init::zeros_((*embedding->weight).select(0, *embedding->options.padding_idx));
  } else {
    PretrainedModel::init_weights(module);
  }
}

std::shared_ptr<Embedding> Seq2SeqPretrained::make_embedding(int64_t vocabulary) const {
  const int64_t size = config().integer("d_model");
  const std::optional<int64_t> pad = config().optional_integer("pad_token_id");
  if (!style->scaled_embedding) return std::make_shared<Embedding>(vocabulary, size, EmbeddingOptions{.padding_idx = pad});
  const double scale = config().flag("scale_embedding") ? std::sqrt(static_cast<double>(size)) : 1;
  return std::make_shared<ScaledWordEmbedding>(style->type("ScaledWordEmbedding"), vocabulary, size, pad, scale);
}

double Seq2SeqPretrained::scale_behind() const {
  if (style->scaled_embedding || !config().flag("scale_embedding")) return 1;
  return std::sqrt(static_cast<double>(config().integer("d_model")));
}

Seq2SeqEncoder::Seq2SeqEncoder(const Seq2SeqStyle& style, const Config& c)
    : Seq2SeqPretrained(style, part_name(style, "Encoder"), c),
      embed_tokens(child_module("embed_tokens", make_embedding(c.integer("vocab_size")))),
      embed_positions(child<PositionEmbedding>("embed_positions", style, c.integer("max_position_embeddings"),
                                               c.integer("d_model"), c.optional_integer("pad_token_id"))),
      layers(child<ModuleList>("layers")),
      layernorm_embedding(norm_if(style.embedding_norm, *this, "layernorm_embedding", c)),
      layer_norm(norm_if(style.pre_norm, *this, "layer_norm", c)) {
  for (int64_t i = 0; i < c.integer("encoder_layers"); ++i) layers->emplace<Seq2SeqEncoderLayer>(style, c);
}

std::vector<std::string> Seq2SeqEncoder::argument_names() const {
  return {"input_ids", "attention_mask", "inputs_embeds", "output_attentions", "output_hidden_states", "head_mask"};
}

ModelOutput Seq2SeqEncoder::forward(const ModelInputs& in) {
  Tensor embeds = embedded(in, embed_tokens);
  if (in.input_ids.defined() && scale_behind() != 1) embeds = embeds * scale_behind();
  const Tensor positions =
      embed_positions(positions_of(*style, config(), in.input_ids, embeds, 0), rows_for(config(), embeds, 0));
  Tensor x = embeds + (positions.dtype() == embeds.dtype() ? positions : positions.to(embeds.dtype()));
  if (layernorm_embedding) x = (*layernorm_embedding)(x);
  x = functional::dropout(x, config().number("dropout"), training());

  const AttentionMask mask = bidirectional_mask(in.attention_mask);
  const bool eager = eager_attention(config(), wants_attentions(in), in.head_mask);
  LayerOutputs outputs(*this, in);
  const std::vector<Seq2SeqEncoderLayer*> all = layers->items<Seq2SeqEncoderLayer>();
  for (size_t i = 0; i < all.size(); ++i) {
    outputs.before_layer(x);
    if (drops_layer(training(), config().number("encoder_layerdrop"))) continue;
    auto [hidden, weights] = (*all[i])(x, mask, layer_head_mask(in.head_mask, i, all.size(), "head_mask"), eager);
    x = hidden;
    outputs.after_layer(weights, {});
  }
  if (layer_norm) x = (*layer_norm)(x);
  outputs.before_layer(x);
  return outputs.with("last_hidden_state", x);
}

Seq2SeqDecoder::Seq2SeqDecoder(const Seq2SeqStyle& style, const Config& c)
    : Seq2SeqPretrained(style, part_name(style, "Decoder"), c),
      embed_tokens(child_module(
          "embed_tokens", make_embedding(c.integer(style.separate_vocabularies ? "decoder_vocab_size" : "vocab_size")))),
      embed_positions(child<PositionEmbedding>("embed_positions", style, c.integer("max_position_embeddings"),
                                               c.integer("d_model"), c.optional_integer("pad_token_id"))),
      layers(child<ModuleList>("layers")),
      layernorm_embedding(norm_if(style.embedding_norm, *this, "layernorm_embedding", c)),
      layer_norm(norm_if(style.pre_norm, *this, "layer_norm", c)) {
  for (int64_t i = 0; i < c.integer("decoder_layers"); ++i) layers->emplace<Seq2SeqDecoderLayer>(style, c);
}

std::vector<std::string> Seq2SeqDecoder::argument_names() const {
  return {std::begin(cross_decoder_arguments), std::end(cross_decoder_arguments)};
}

ModelOutput Seq2SeqDecoder::forward(const ModelInputs& in) {
  if (in.input_ids.defined() == in.inputs_embeds.defined())
    throw UserError("You must specify exactly one of decoder_input_ids or decoder_inputs_embeds");
  Tensor embeds = in.inputs_embeds.defined() ? in.inputs_embeds : embed_tokens(in.input_ids);
  if (scale_behind() != 1 && (in.input_ids.defined() || style->scales_given_embeds)) embeds = embeds * scale_behind();
  const SymInt past = in.past_key_values.length();
  const Tensor positions =
      embed_positions(positions_of(*style, config(), in.input_ids, embeds, past), rows_for(config(), embeds, past));
  if (layernorm_embedding && style->norm_before_positions) embeds = (*layernorm_embedding)(embeds);
  Tensor x = embeds + (positions.dtype() == embeds.dtype() ? positions : positions.to(embeds.dtype()));
  if (layernorm_embedding && !style->norm_before_positions) x = (*layernorm_embedding)(x);
  x = functional::dropout(x, config().number("dropout"), training());

  const AttentionMask mask = causal_mask(embeds, in.attention_mask, {.past = past});
  const AttentionMask encoder_mask =
      in.encoder_hidden_states.defined() ? bidirectional_mask(in.encoder_attention_mask) : AttentionMask();
  const bool eager =
      eager_attention(config(), wants_attentions(in), in.head_mask.defined() ? in.head_mask : in.cross_attn_head_mask);
  LayerOutputs outputs(*this, in);
  const std::vector<Seq2SeqDecoderLayer*> all = layers->items<Seq2SeqDecoderLayer>();
  for (size_t i = 0; i < all.size(); ++i) {
    outputs.before_layer(x);
    if (drops_layer(training(), config().number("decoder_layerdrop"))) continue;
    auto [hidden, weights, cross_weights, now] =
        (*all[i])(x, mask, in.encoder_hidden_states, encoder_mask, in.past_key_values.layer(i),
                  layer_head_mask(in.head_mask, i, all.size(), "head_mask"),
                  layer_head_mask(in.cross_attn_head_mask, i, all.size(), "cross_attn_head_mask"), eager);
    x = hidden;
    outputs.after_layer(weights, now);
    if (cross_weights.defined()) outputs.cross_attention(cross_weights);
  }
  if (layer_norm) x = (*layer_norm)(x);
  outputs.before_layer(x);
  return outputs.with("last_hidden_state", x);
}

Seq2SeqModel::Seq2SeqModel(const Seq2SeqStyle& style, const std::string& name, const Config& c)
    : Seq2SeqPretrained(style, name, c),
      shared(shares_embeddings() ? std::optional(child_module("shared", make_embedding(c.integer("vocab_size"))))
                                 : std::nullopt),
      encoder(child<Seq2SeqEncoder>("encoder", style, c)),
      decoder(child<Seq2SeqDecoder>("decoder", style, c)) {}

std::vector<std::string> Seq2SeqModel::argument_names() const {
  return {"input_ids",         "attention_mask",      "decoder_input_ids",    "decoder_attention_mask",
          "encoder_outputs",   "past_key_values",     "inputs_embeds",        "decoder_inputs_embeds",
          "use_cache",         "output_attentions",   "output_hidden_states", "head_mask",
          "decoder_head_mask", "cross_attn_head_mask"};
}

Tensor Seq2SeqModel::shifted(const Tensor& ids) const {
  return style->starts_with_last_token ? wrap_last_token(config(), ids) : shift_tokens_right(config(), ids);
}

ModelOutput Seq2SeqModel::forward(const ModelInputs& given) {
  ModelInputs in = given;
  if (style->decoder_ids_from_input_ids && !in.decoder_input_ids.defined() && !in.decoder_inputs_embeds.defined()) {
    if (!in.input_ids.defined())
      throw UserError(
          "without decoder_input_ids and decoder_inputs_embeds the decoder's ids are made from input_ids, which are not "
          "given either");
    in.decoder_input_ids = shifted(in.input_ids);
  }
  const ModelOutput encoded =
      in.encoder_outputs.is_none() ? encoder(encoder_inputs(in)) : given_encoder_outputs(in.encoder_outputs);
  return encoder_decoder_output(encoded, decoder(decoder_inputs(in, encoded)));
}

PretrainedModel::TiedWeights Seq2SeqModel::tied_weights() const {
  if (!shared) return {};
  TiedWeights out;
  for (const char* name : {"decoder.embed_tokens.weight", "encoder.embed_tokens.weight"}) {
    const Tensor& own = get_parameter(name);
    if (config().flag("tie_word_embeddings") || own.is_same(get_parameter("shared.weight")) ||
        own.device().type == DeviceType::meta)
      out.emplace_back(name, "shared.weight");
  }
  return out;
}

}  // namespace calque
