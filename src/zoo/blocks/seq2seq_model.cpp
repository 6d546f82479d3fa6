#include "seq2seq_model.h"

#include <cmath>

#include "../heads/cross_arguments.h"
#include "../heads/decoder_heads.h"
#include "calque/base/error.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/scans.h"
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

std::vector<std::string> Seq2SeqPretrained::dummy_input_names() const {
  std::vector<std::string> out = {"input_ids"};
  if (style->dummy_mask) out.push_back("attention_mask");
  if (style->dummy_decoder_ids) out.push_back("decoder_input_ids");
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
  if (style->embedding_scale != Seq2SeqStyle::EmbeddingScale::inside)
    return std::make_shared<Embedding>(vocabulary, size, EmbeddingOptions{.padding_idx = pad});
  const double scale = config().flag("scale_embedding") ? std::sqrt(static_cast<double>(size)) : 1;
  return std::make_shared<ScaledWordEmbedding>(style->type("ScaledWordEmbedding"), vocabulary, size, pad, scale);
}

double Seq2SeqPretrained::scale_behind() const {
  const Seq2SeqStyle::EmbeddingScale scale = style->embedding_scale;
  if (scale == Seq2SeqStyle::EmbeddingScale::inside || scale == Seq2SeqStyle::EmbeddingScale::none ||
      !config().flag("scale_embedding"))
    return 1;
  return std::sqrt(static_cast<double>(config().integer("d_model")));
}

Seq2SeqStack::Seq2SeqStack(const Seq2SeqStyle& style, const char* part, const char* vocabulary, const Config& c)
    : Seq2SeqPretrained(style, part_name(style, part), c),
      embed_tokens(child_module("embed_tokens", make_embedding(c.integer(vocabulary)))),
      embed_positions(child<PositionEmbedding>("embed_positions", style, c.integer(style.position_rows),
                                               c.integer("d_model"), c.optional_integer("pad_token_id"))),
      layers(child<ModuleList>("layers")),
      layernorm_embedding(norm_if(style.normalizes_embeddings(), *this, "layernorm_embedding", c)),
      layer_norm(norm_if(style.pre_norm, *this, "layer_norm", c)) {}

Seq2SeqEncoder::Seq2SeqEncoder(const Seq2SeqStyle& style, const Config& c)
    : Seq2SeqStack(style, "Encoder", "vocab_size", c) {
  for (int64_t i = 0; i < c.integer("encoder_layers"); ++i) layers->emplace<Seq2SeqEncoderLayer>(style, c);
}

std::span<const ModelArgument> Seq2SeqEncoder::arguments() const {
  static constexpr ModelArgument all[] = {arg::input_ids,         arg::attention_mask,       arg::inputs_embeds,
                                          arg::output_attentions, arg::output_hidden_states, arg::head_mask};
  return all;
}

ModelOutput Seq2SeqPretrained::through_encoder(ModuleList& layers, LayerNorm* norm, Tensor x, const AttentionMask& mask,
                                               const ModelInputs& in, bool eager) const {
  LayerOutputs outputs(*this, in);
  const std::vector<Seq2SeqEncoderLayer*> all = layers.items<Seq2SeqEncoderLayer>();
  for (size_t i = 0; i < all.size(); ++i) {
    outputs.before_layer(x);
    if (drops_layer(training(), config().number("encoder_layerdrop"))) continue;
    auto [hidden, weights] = (*all[i])(x, mask, layer_head_mask(in[arg::head_mask], i, all.size(), "head_mask"), eager);
    x = hidden;
    outputs.after_layer(weights, {});
  }
  if (norm) x = (*norm)(x);
  outputs.before_layer(x);
  return outputs.with("last_hidden_state", x);
}

ModelOutput Seq2SeqEncoder::forward(const ModelInputs& in) {
  Tensor embeds = embedded(in, embed_tokens);
  if (in[arg::input_ids].defined() && scale_behind() != 1) embeds = embeds * scale_behind();
  const Tensor positions =
      embed_positions(positions_of(*style, config(), in[arg::input_ids], embeds, 0), rows_for(config(), embeds, 0));
  Tensor x = embeds + (positions.dtype() == embeds.dtype() ? positions : positions.to(embeds.dtype()));
  if (layernorm_embedding) x = (*layernorm_embedding)(x);
  x = functional::dropout(x, config().number("dropout"), training());

  const AttentionMask mask = bidirectional_mask(in[arg::attention_mask]);
  const bool eager = eager_attention(config(), wants_attentions(in), in[arg::head_mask]);
  return through_encoder(*layers, layer_norm ? &**layer_norm : nullptr, x, mask, in, eager);
}

Seq2SeqDecoder::Seq2SeqDecoder(const Seq2SeqStyle& style, const Config& c)
    : Seq2SeqStack(style, "Decoder", style.separate_vocabularies ? "decoder_vocab_size" : "vocab_size", c) {
  for (int64_t i = 0; i < c.integer("decoder_layers"); ++i) layers->emplace<Seq2SeqDecoderLayer>(style, c);
}

std::span<const ModelArgument> Seq2SeqDecoder::arguments() const {
  static constexpr auto with_positions =
      with_arguments(names_of(cross_decoder_arguments), arg::inputs_embeds, {arg::position_ids});
  if (style->given_positions) return with_positions;
  return cross_decoder_arguments;
}

ModelOutput Seq2SeqDecoder::forward(const ModelInputs& in) {
  const Tensor input_ids = in[arg::input_ids], inputs_embeds = in[arg::inputs_embeds];
  const Tensor encoder_hidden_states = in[arg::encoder_hidden_states];
  const Tensor head_mask = in[arg::head_mask], cross_attn_head_mask = in[arg::cross_attn_head_mask];
  const KeyValueCache& past_key_values = in[arg::past_key_values];
  if (input_ids.defined() == inputs_embeds.defined())
    throw UserError("You must specify exactly one of decoder_input_ids or decoder_inputs_embeds");
  Tensor embeds = inputs_embeds.defined() ? inputs_embeds : embed_tokens(input_ids);
  const bool scales = input_ids.defined() || style->embedding_scale == Seq2SeqStyle::EmbeddingScale::behind_given_too;
  if (scale_behind() != 1 && scales) embeds = embeds * scale_behind();
  const SymInt past = past_key_values.length();
  const Tensor given = style->given_positions ? in[arg::position_ids] : Tensor();
  const Tensor positions = embed_positions(given.defined() ? given : positions_of(*style, config(), input_ids, embeds, past),
                                           rows_for(config(), embeds, past));
  const bool norm_first = style->embedding_norm == Seq2SeqStyle::EmbeddingNorm::before_decoder_positions;
  if (layernorm_embedding && norm_first) embeds = (*layernorm_embedding)(embeds);
  Tensor x = embeds + (positions.dtype() == embeds.dtype() ? positions : positions.to(embeds.dtype()));
  if (layernorm_embedding && !norm_first) x = (*layernorm_embedding)(x);
  x = functional::dropout(x, config().number("dropout"), training());

  const AttentionMask mask = causal_mask(embeds, in[arg::attention_mask], {.past = past});
  const AttentionMask encoder_mask =
      encoder_hidden_states.defined() ? bidirectional_mask(in[arg::encoder_attention_mask]) : AttentionMask();
  const bool eager = eager_attention(config(), wants_attentions(in), head_mask.defined() ? head_mask : cross_attn_head_mask);
  LayerOutputs outputs(*this, in);
  const std::vector<Seq2SeqDecoderLayer*> all = layers->items<Seq2SeqDecoderLayer>();
  for (size_t i = 0; i < all.size(); ++i) {
    outputs.before_layer(x);
    if (drops_layer(training(), config().number("decoder_layerdrop"))) continue;
    auto [hidden, weights, cross_weights, now] =
        (*all[i])(x, mask, encoder_hidden_states, encoder_mask, past_key_values.layer(i),
                  layer_head_mask(head_mask, i, all.size(), "head_mask"),
                  layer_head_mask(cross_attn_head_mask, i, all.size(), "cross_attn_head_mask"), eager);
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

std::span<const ModelArgument> Seq2SeqModel::arguments() const {
  static constexpr ModelArgument all[] = {
      arg::input_ids,         arg::attention_mask,      arg::decoder_input_ids,    arg::decoder_attention_mask,
      arg::encoder_outputs,   arg::past_key_values,     arg::inputs_embeds,        arg::decoder_inputs_embeds,
      arg::use_cache,         arg::output_attentions,   arg::output_hidden_states, arg::head_mask,
      arg::decoder_head_mask, arg::cross_attn_head_mask};
  return all;
}

Tensor Seq2SeqModel::shifted(const Tensor& ids) const { return style->shifted(config(), ids); }

ModelOutput Seq2SeqModel::forward(const ModelInputs& given) {
  ModelInputs in = given;
  if (style->decoder_ids_from_input_ids && !in[arg::decoder_input_ids].defined() &&
      !in[arg::decoder_inputs_embeds].defined()) {
    if (!in[arg::input_ids].defined())
      throw UserError(
          "without decoder_input_ids and decoder_inputs_embeds the decoder's ids are made from input_ids, which are not "
          "given either");
    in.set(arg::decoder_input_ids, shifted(in[arg::input_ids]));
  }
  const ModelOutput encoded =
      in[arg::encoder_outputs].is_none() ? encoder(encoder_inputs(in)) : given_encoder_outputs(in[arg::encoder_outputs]);
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
