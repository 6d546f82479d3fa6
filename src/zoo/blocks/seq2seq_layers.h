// The layers of BART and its relatives (mBART, PLBart, Pegasus, Blenderbot, Marian, M2M100): attention to oneself and across
// to the encoder, layers of encoder and decoder, word embeddings with a scale, tables of positions. What a family does in
// its own way is in its Seq2SeqStyle, an object that lives as long as the program.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "activations.h"
#include "attention.h"
#include "calque/hub/cache.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/config.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "embeddings.h"
#include "encoder_decoder.h"

namespace calque {

struct Seq2SeqStyle {
  const char* module;  // of transformers: "transformers.models.bart.modeling_bart"
  const char* prefix;  // of the class names: "Bart"

  bool pre_norm = false;  // norms before attention and feed-forward, and one behind the last layer; otherwise behind each
  // A norm of embeddings and positions together, or in the decoder of the embeddings alone.
  enum class EmbeddingNorm { none, with_positions, before_decoder_positions } embedding_norm = EmbeddingNorm::none;
  enum class Positions { learned, sinusoidal, sinusoidal_of_ids } positions = Positions::learned;
  int64_t position_offset = 0;  // rows of the table in front of position 0
  // The scale is part of the embedding module, or follows it, or follows decoder_inputs_embeds as well.
  enum class EmbeddingScale { none, inside, behind, behind_given_too } embedding_scale = EmbeddingScale::inside;

  bool dummy_mask = false, dummy_decoder_ids = false;  // among transformers 4's dummy inputs, beside input_ids
  bool decoder_ids_from_input_ids = false;             // where no decoder_input_ids are given
  // The decoder's ids that follow from other ids: behind the start token, or behind their own last one.
  Tensor (*shifted)(const Config& config, const Tensor& ids) = shift_tokens_right;
  bool labels_switch_cache_off = true;
  bool final_logits_bias = true;
  bool separate_vocabularies = false;  // share_encoder_decoder_embeddings and decoder_vocab_size count
  bool computed_positions = false;     // the tables of positions are neither saved nor missed
  bool saved_sinusoids = false;        // a table of sinusoidal_of_ids is a parameter, and saved
  bool keeps_attention_whole = false;  // attention modules are not split over devices either
  bool key_bias = true;
  bool given_positions = false;                                  // the decoder takes position_ids
  const char* position_rows = "max_position_embeddings";         // the configuration's name for the rows of the tables
  const char* learned_positions = "LearnedPositionalEmbedding";  // what the class of learned positions is called

  bool normalizes_embeddings() const { return embedding_norm != EmbeddingNorm::none; }
  std::string type(const std::string& part) const { return std::string(module) + "." + prefix + part; }
};

// A row for each position: a parameter (learned, or sines that are kept as one), or a buffer of sines.
struct PositionEmbedding : Typed<PositionEmbedding> {
  static constexpr const char* forward_arguments[] = {"position_ids", "rows"};
  PositionEmbedding(const Seq2SeqStyle& style, int64_t num_positions, int64_t embedding_dim,
                    std::optional<int64_t> padding_idx);
  std::string type_name() const override;
  std::string extra_repr() const override;
  // `rows`: how many a table must have for these positions; a buffer that has fewer is not read (sinusoids_at).
  Tensor forward(const Tensor& position_ids, const SymInt& rows);
  // What the table starts with; learned ones are normal with this deviation.
  void reset(double deviation);

  const Tensor& table() const { return weights ? **weights : **weight; }

  const Seq2SeqStyle* style;
  int64_t num_positions, embedding_dim;
  std::optional<int64_t> padding_idx;
  std::optional<Parameter> weight;
  std::optional<Buffer> weights;
};

struct Seq2SeqAttention : Typed<Seq2SeqAttention> {
  static constexpr const char* forward_arguments[] = {"hidden_states",  "key_value_states", "past_key_values",
                                                      "attention_mask", "layer_head_mask",  "eager"};
  using Result = std::tuple<Tensor, Tensor, LayerCache>;  // output, weights, keys and values

  Seq2SeqAttention(const Seq2SeqStyle& style, int64_t size, int64_t heads, double dropout);
  std::string type_name() const override { return style->type("Attention"); }
  // With key_value_states it looks across to them; their keys and values are made once and kept in the cache.
  Result forward(const Tensor& hidden_states, const Tensor& key_value_states, const LayerCache& past,
                 const AttentionMask& mask, const Tensor& head_mask, bool eager);

  const Seq2SeqStyle* style;
  int64_t heads, head_size;
  double dropout;
  Child<Linear> k_proj, v_proj, q_proj, out_proj;
};

struct Seq2SeqEncoderLayer : Checkpointed<Typed<Seq2SeqEncoderLayer>> {
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "layer_head_mask", "eager"};
  using Result = std::tuple<Tensor, Tensor>;  // output, weights

  Seq2SeqEncoderLayer(const Seq2SeqStyle& style, const Config& config);
  std::string type_name() const override { return style->type("EncoderLayer"); }
  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask, bool eager);

  const Seq2SeqStyle* style;
  double dropout, activation_dropout;
  Activation activation;
  Child<Seq2SeqAttention> self_attn;
  Child<LayerNorm> self_attn_layer_norm;
  Child<Linear> fc1, fc2;
  Child<LayerNorm> final_layer_norm;
};

struct Seq2SeqDecoderLayer : Checkpointed<Typed<Seq2SeqDecoderLayer>> {
  static constexpr const char* forward_arguments[] = {
      "hidden_states",   "attention_mask",  "encoder_hidden_states",      "encoder_attention_mask",
      "past_key_values", "layer_head_mask", "cross_attn_layer_head_mask", "eager"};
  using Result = std::tuple<Tensor, Tensor, Tensor, LayerCache>;  // output, weights, weights across, keys and values

  Seq2SeqDecoderLayer(const Seq2SeqStyle& style, const Config& config);
  std::string type_name() const override { return style->type("DecoderLayer"); }
  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& encoder_hidden_states,
                 const AttentionMask& encoder_mask, const LayerCache& past, const Tensor& head_mask,
                 const Tensor& cross_head_mask, bool eager);

  const Seq2SeqStyle* style;
  double dropout, activation_dropout;
  Activation activation;
  Child<Seq2SeqAttention> self_attn;
  Child<LayerNorm> self_attn_layer_norm;
  Child<Seq2SeqAttention> encoder_attn;
  Child<LayerNorm> encoder_attn_layer_norm;
  Child<Linear> fc1, fc2;
  Child<LayerNorm> final_layer_norm;
};

}  // namespace calque
