// The attention of GPT-Neo and GPT-J: four Linear layers, dropout of the weights and of what comes out, scores in float32. A family
// derives from it and says what becomes of queries and keys.
#pragma once

#include <tuple>

#include "attention.h"
#include "calque/hub/cache.h"
#include "calque/hub/config.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"

namespace calque {

struct GptAttention : Module {
  using Result = std::tuple<Tensor, Tensor, LayerCache>;  // output, weights, keys and values
  struct Options {
    const char* attention_dropout;  // names in the configuration
    const char* residual_dropout;
    bool output_bias = false;
    std::optional<double> scale = {};
  };
  GptAttention(const Config& c, const Options& options);

  int64_t heads, size;
  std::optional<double> scale;
  Child<Dropout> attn_dropout, resid_dropout;
  Child<Linear> k_proj, v_proj, q_proj, out_proj;

 protected:
  // Queries and keys as the family has them; the values are those of `x`.
  Result attended(const Tensor& x, const Tensor& query, const Tensor& key, const AttentionMask& mask, const LayerCache& past,
                  const Tensor& head_mask, bool eager);
};

// With the embeddings of the tokens' types, which are words of the vocabulary.
Tensor with_token_types(const Tensor& x, const Tensor& token_type_ids, Child<Embedding>& words);

}  // namespace calque
