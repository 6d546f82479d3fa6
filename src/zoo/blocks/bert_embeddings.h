// BERT's embeddings: words, positions and token types, added, then a norm. The size may be other than the encoder's.
#pragma once

#include "bert_encoder.h"

namespace calque {

struct BertEmbeddingsOptions {
  std::optional<int64_t> size = std::nullopt;              // none: hidden_size
  std::optional<int64_t> position_padding = std::nullopt;  // the position of padding, whose row starts as zeros
  bool positions = true;
  bool norm = true;
};

struct BertEmbeddings : FamilyModule<BertEmbeddings> {
  static constexpr const char* part = "Embeddings";
  static constexpr const char* forward_arguments[] = {"input_ids", "token_type_ids", "position_ids", "inputs_embeds",
                                                      "past_key_values_length"};
  BertEmbeddings(const Config& c, std::string family, BertEmbeddingsOptions options = {});
  // Of input_ids or inputs_embeds; token types are 0 and positions count on from the past where none are given.
  Tensor forward(const Tensor& input_ids, const Tensor& token_type_ids, const Tensor& position_ids,
                 const Tensor& inputs_embeds, const SymInt& past);

  Child<Embedding> word_embeddings;
  std::optional<Child<Embedding>> position_embeddings;
  Child<Embedding> token_type_embeddings;
  std::optional<Child<LayerNorm>> norm;
  Child<Dropout> dropout;
  Buffer position_ids, token_type_ids;  // 0, 1, 2, ... and zeros, [1, max_position_embeddings]
};

// The inputs of a model through its embeddings; UserError unless exactly one of input_ids and inputs_embeds is given.
void check_one_input(const ModelInputs& in);
Tensor embed(const Child<BertEmbeddings>& embeddings, const ModelInputs& in);
// RoBERTa's positions: padding has the position of its own id; the other tokens count on from there, behind what the cache holds.
Tensor positions_behind_padding(const ModelInputs& in, int64_t padding);

}  // namespace calque
