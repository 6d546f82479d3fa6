#include "bert_embeddings.h"

#include "calque/base/error.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/scans.h"
#include "calque/op/aten/zeros.h"

namespace calque {

static int64_t size_of(const Config& c, const BertEmbeddingsOptions& options) {
  return options.size.value_or(c.integer("hidden_size"));
}

BertEmbeddings::BertEmbeddings(const Config& c, std::string family, BertEmbeddingsOptions options)
    : FamilyModule(std::move(family)),
      word_embeddings(child<Embedding>("word_embeddings", c.integer("vocab_size"), size_of(c, options),
                                       EmbeddingOptions{.padding_idx = c.optional_integer("pad_token_id")})),
      position_embeddings(child_if<Embedding>(options.positions, *this, "position_embeddings",
                                              c.integer("max_position_embeddings"), size_of(c, options),
                                              EmbeddingOptions{.padding_idx = options.position_padding})),
      token_type_embeddings(child<Embedding>("token_type_embeddings", c.integer("type_vocab_size"), size_of(c, options))),
      norm(child_if<LayerNorm>(options.norm, *this, "LayerNorm", size_of(c, options),
                               LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))),
      position_ids(register_buffer("position_ids", arange(c.integer("max_position_embeddings")).unsqueeze(0), false)),
      token_type_ids(
          register_buffer("token_type_ids", zeros({1, c.integer("max_position_embeddings")}, DType::int64), false)) {
  if (c.optional_text("position_embedding_type").value_or("absolute") != "absolute") position_embeddings.reset();
}

Tensor BertEmbeddings::forward(const Tensor& input_ids, const Tensor& given_types, const Tensor& given_positions,
                               const Tensor& inputs_embeds, const SymInt& past) {
  const Tensor words = inputs_embeds.defined() ? inputs_embeds : word_embeddings(input_ids);
  const SymInt batch = words.sym_size(0), length = words.sym_size(1);
  const Tensor types = given_types.defined() ? given_types : token_type_ids->slice(1, 0, length).expand({batch, length});
  Tensor x = words + token_type_embeddings(types);
  if (position_embeddings) {
    const Tensor positions = given_positions.defined() ? given_positions : position_ids->slice(1, past, past + length);
    x = x + (*position_embeddings)(positions);
  }
  return dropout(norm ? (*norm)(x) : x);
}

void check_one_input(const ModelInputs& in) {
  if (in[arg::input_ids].defined() == in[arg::inputs_embeds].defined())
    throw UserError("You must specify exactly one of input_ids or inputs_embeds");
}

Tensor embed(const Child<BertEmbeddings>& embeddings, const ModelInputs& in) {
  check_one_input(in);
  return embeddings(in[arg::input_ids], in[arg::token_type_ids], in[arg::position_ids], in[arg::inputs_embeds],
                    in[arg::past_key_values].length());
}

Tensor positions_behind_padding(const ModelInputs& in, int64_t padding) {
  if (!in[arg::input_ids].defined()) {
    const SymInt batch = in[arg::inputs_embeds].sym_size(0), length = in[arg::inputs_embeds].sym_size(1);
    const Tensor counted =
        arange(padding + 1, length + (padding + 1), DType::int64, std::nullopt, in[arg::inputs_embeds].device());
    return counted.unsqueeze(0).expand({batch, length});
  }
  const Tensor kept = ne(in[arg::input_ids], padding).to(DType::int32);
  const Tensor counted = cumsum(kept, 1).to(DType::int32);
  return ((counted + Scalar(in[arg::past_key_values].length())) * kept).to(DType::int64) + padding;
}

}  // namespace calque
