#include "deberta_parts.h"

#include <sstream>

#include "bert_embeddings.h"
#include "calque/base/error.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/scatter.h"
#include "calque/op/aten/zeros.h"

namespace calque {

Tensor deberta_given_mask(const ModelInputs& in) {
  check_one_input(in);
  if (in[arg::attention_mask].defined()) return in[arg::attention_mask];
  const Tensor& given = in[arg::input_ids].defined() ? in[arg::input_ids] : in[arg::inputs_embeds];
  return ones({given.sym_size(0), given.sym_size(1)}, DType::float32, std::nullopt, given.device());
}

Tensor deberta_mask(const Tensor& attention_mask) {
  const Tensor kept = attention_mask.dtype() == DType::bool_ ? attention_mask : ne(attention_mask, 0);
  if (kept.dim() > 3) return kept;
  if (kept.dim() == 3) return kept.unsqueeze(1);
  const Tensor columns = kept.unsqueeze(1).unsqueeze(2);
  return bitwise_and(columns, columns.squeeze(-2).unsqueeze(-1));
}

Tensor by_distance(const Tensor& scores, const Tensor& distances, int64_t span) {
  const Tensor index = clamp(distances + span, 0, 2 * span - 1);
  return gather(scores, -1,
                index.expand({scores.sym_size(0), scores.sym_size(1), scores.sym_size(2), distances.sym_size(-1)}));
}

ConfigSchema deberta_schema() {
  return {.keys = {{"max_relative_positions", KeyKind::rows_or_not},
                   {"position_buckets", KeyKind::rows_or_not},
                   {"conv_kernel_size", KeyKind::rows},
                   {"conv_groups", KeyKind::heads}},
          .relations = {multiple("hidden_size", "num_attention_heads"), multiple("hidden_size", "conv_groups")}};
}

void complete_deberta(Config& config) {
  if (const Value* types = config.find("pos_att_type"); types && types->kind() == Value::Kind::string) {
    std::istringstream text(types->to_string());
    Values items;
    for (std::string one; std::getline(text, one, '|');) {
      std::string plain;
      for (const char letter : one)
        if (letter != ' ') plain += static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
      items.emplace_back(plain);
    }
    config.set("pos_att_type", list(std::move(items)));
  }
  if (!config.has("pooler_hidden_size")) config.set("pooler_hidden_size", config.integer("hidden_size"));
}

bool attends_positions(const Config& config, const char* type) {
  if (!config.has("pos_att_type")) return false;
  for (const Value& item : config.find("pos_att_type")->to_items())
    if (item.to_string() == type) return true;
  return false;
}

std::optional<int64_t> positive_integer(const Config& config, const char* key) {
  const int64_t value = config.optional_integer(key).value_or(0);
  return value > 0 ? std::optional(value) : std::nullopt;
}

int64_t max_relative_positions(const Config& config) {
  return positive_integer(config, "max_relative_positions").value_or(config.integer("max_position_embeddings"));
}

static int64_t deberta_embedding_size(const Config& c) {
  return c.optional_integer("embedding_size").value_or(c.integer("hidden_size"));
}

DebertaEmbeddings::DebertaEmbeddings(const Config& c, std::string family, const DebertaNorm& make_norm)
    : FamilyModule(std::move(family)),
      word_embeddings(child<Embedding>("word_embeddings", c.integer("vocab_size"), deberta_embedding_size(c),
                                       EmbeddingOptions{.padding_idx = c.optional_integer("pad_token_id")})),
      position_embeddings(child_if<Embedding>(c.flag("position_biased_input"), *this, "position_embeddings",
                                              c.integer("max_position_embeddings"), deberta_embedding_size(c))),
      token_type_embeddings(child_if<Embedding>(c.integer("type_vocab_size") > 0, *this, "token_type_embeddings",
                                                c.integer("type_vocab_size"), deberta_embedding_size(c))),
      embed_proj(child_if<Linear>(deberta_embedding_size(c) != c.integer("hidden_size"), *this, "embed_proj",
                                  deberta_embedding_size(c), c.integer("hidden_size"), false)),
      norm(child_module<Module>("LayerNorm", make_norm(c.integer("hidden_size"), c.number("layer_norm_eps")))),
      dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))),
      position_ids(register_buffer("position_ids", arange(c.integer("max_position_embeddings")).unsqueeze(0), false)) {}

Tensor DebertaEmbeddings::forward(const Tensor& input_ids, const Tensor& given_types, const Tensor& given_positions,
                                  const Tensor& mask, const Tensor& inputs_embeds) {
  Tensor x = inputs_embeds.defined() ? inputs_embeds : word_embeddings(input_ids);
  const SymInt batch = x.sym_size(0), length = x.sym_size(1);
  if (position_embeddings)
    x = x + (*position_embeddings)(given_positions.defined() ? given_positions : position_ids->slice(1, 0, length));
  if (token_type_embeddings) {
    const Tensor types =
        given_types.defined() ? given_types : zeros({batch, length}, DType::int64, std::nullopt, x.device());
    x = x + (*token_type_embeddings)(types);
  }
  if (embed_proj) x = (*embed_proj)(x);
  x = norm(x).to_tensor();
  if (mask.defined()) {
    Tensor kept = mask;
    if (kept.dim() == 4) kept = kept.squeeze(1).squeeze(1);
    if (kept.dim() != 3) kept = kept.unsqueeze(2);
    x = x * kept.to(x.dtype());
  }
  return dropout(x);
}

DebertaResidual::DebertaResidual(const Config& c, std::string name, int64_t in_features, const DebertaNorm& make_norm)
    : NamedModule(std::move(name)),
      dense(child<Linear>("dense", in_features, c.integer("hidden_size"))),
      norm(child_module<Module>("LayerNorm", make_norm(c.integer("hidden_size"), c.number("layer_norm_eps")))),
      dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}

Tensor DebertaResidual::forward(const Tensor& hidden_states, const Tensor& input_tensor) {
  return norm(dropout(dense(hidden_states)) + input_tensor).to_tensor();
}

DebertaContextPooler::DebertaContextPooler(const Config& c, std::string name)
    : NamedModule(std::move(name)),
      dense(child<Linear>("dense", c.integer("pooler_hidden_size"), c.integer("pooler_hidden_size"))),
      dropout(child<Dropout>("dropout", c.number("pooler_dropout"))),
      act_fn(activation_named(c.text("pooler_hidden_act"))) {}

Tensor DebertaContextPooler::forward(const Tensor& hidden_states) {
  return act_fn(dense(dropout(hidden_states.select(1, 0))));
}

DebertaLMPredictionHead::DebertaLMPredictionHead(const Config& c, std::string family)
    : FamilyModule(std::move(family)),
      dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"))),
      act_fn(activation_named(c.text("hidden_act"))),
      norm(child<LayerNorm>("LayerNorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
      bias(register_parameter("bias", zeros({c.integer("vocab_size")}))) {}

Tensor DebertaLMPredictionHead::forward(const Tensor& hidden_states, const Tensor& word_embeddings) {
  const Tensor x = norm(act_fn(dense(hidden_states)));
  return matmul(x, word_embeddings.t()) + *bias;
}

DebertaOnlyMLMHead::DebertaOnlyMLMHead(const Config& c, const std::string& family)
    : FamilyModule(family), lm_head(child<DebertaLMPredictionHead>("lm_head", c, family)) {}

}  // namespace calque
