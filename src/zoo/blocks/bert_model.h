// The model of BERT and of those that have its embeddings and pooler: embeddings, an encoder, a pooler where asked for. A
// family gives the names, the encoder and what its embeddings do otherwise.
#pragma once

#include <optional>
#include <type_traits>

#include "../heads/encoder_heads.h"
#include "bert_embeddings.h"
#include "bert_encoder.h"

namespace calque {

// Encoder is made from a Config, with the family's name where it has none of its own.
template <class D, class Pretrained, class Encoder>
struct BertLikeModel : ModelOf<D, Pretrained> {
  static constexpr auto& forward_arguments = bert_arguments;
  BertLikeModel(const Config& c, bool pools, const char* family, const BertEmbeddingsOptions& options = {})
      : ModelOf<D, Pretrained>(c),
        embeddings(this->template child<BertEmbeddings>("embeddings", c, family, options)),
        encoder(made_encoder(c, family)),
        pooler(child_if<BertPooler>(pools, *this, "pooler", c, family)) {}

  ModelOutput forward(const ModelInputs& in) override {
    const EncoderResult result = encoder(encoder_inputs(*this, in, embed(embeddings, in)));
    return encoder_output(result, pooler ? (*pooler)(result.last_hidden_state) : Tensor());
  }
  Child<Embedding>* input_embeddings() override { return &embeddings->word_embeddings; }

  Child<BertEmbeddings> embeddings;
  Child<Encoder> encoder;
  std::optional<Child<BertPooler>> pooler;

 private:
  Child<Encoder> made_encoder(const Config& c, const char* family) {
    if constexpr (std::is_constructible_v<Encoder, const Config&>)
      return this->template child<Encoder>("encoder", c);
    else
      return this->template child<Encoder>("encoder", c, family);
  }
};

}  // namespace calque
