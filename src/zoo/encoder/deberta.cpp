// DeBERTa: attention in which contents and distances have scores of their own.
#include <algorithm>
#include <cmath>

#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/finfo.h"
#include "zoo/blocks/bert_embeddings.h"
#include "zoo/blocks/deberta_parts.h"
#include "zoo/heads/deberta_heads.h"

namespace calque::deberta {

namespace {

constexpr char deberta_family[] = "transformers.models.deberta.modeling_deberta.Deberta";

// Mean and variance in float32, the rest in the dtype of the input.
struct DebertaLayerNorm : Typed<DebertaLayerNorm> {
  static constexpr const char* torch_type = "transformers.models.deberta.modeling_deberta.DebertaLayerNorm";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  DebertaLayerNorm(int64_t size, double eps)
      : eps(eps), weight(register_parameter("weight", ones({size}))), bias(register_parameter("bias", zeros({size}))) {}
  Tensor forward(const Tensor& hidden_states) {
    const Tensor x = hidden_states.to(DType::float32);
    const Tensor centred = x - x.mean({-1}, true);
    const Tensor variance = pow(centred, 2).mean({-1}, true);
    return *weight * (centred / sqrt(variance + eps)).to(hidden_states.dtype()) + *bias;
  }
  double eps;
  Parameter weight, bias;
};
std::shared_ptr<Module> deberta_norm(int64_t size, double eps) { return std::make_shared<DebertaLayerNorm>(size, eps); }

struct DebertaSelfAttention : Typed<DebertaSelfAttention> {
  static constexpr const char* torch_type = "transformers.models.deberta.modeling_deberta.DisentangledSelfAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "relative_pos", "rel_embeddings"};
  explicit DebertaSelfAttention(const Config& c)
      : heads(c.integer("num_attention_heads")),
        size(c.integer("hidden_size") / heads),
        factor(1 + (c.has("pos_att_type") ? c.find("pos_att_type")->to_items().size() : 0)),
        farthest(max_relative_positions(c)),
        in_proj(child<Linear>("in_proj", c.integer("hidden_size"), 3 * heads * size, false)),
        q_bias(register_parameter("q_bias", zeros({heads * size}))),
        v_bias(register_parameter("v_bias", zeros({heads * size}))),
        head_logits_proj(child_if<Linear>(c.flag("talking_head"), *this, "head_logits_proj", heads, heads, false)),
        head_weights_proj(child_if<Linear>(c.flag("talking_head"), *this, "head_weights_proj", heads, heads, false)),
        pos_dropout(child_if<Dropout>(c.flag("relative_attention"), *this, "pos_dropout", c.number("hidden_dropout_prob"))),
        pos_proj(child_if<Linear>(pos_dropout && attends_positions(c, "c2p"), *this, "pos_proj", c.integer("hidden_size"),
                                  heads * size, false)),
        pos_q_proj(child_if<Linear>(pos_dropout && attends_positions(c, "p2c"), *this, "pos_q_proj",
                                    c.integer("hidden_size"), heads * size)),
        dropout(child<Dropout>("dropout", c.number("attention_probs_dropout_prob"))) {}

  std::tuple<Tensor, Tensor> forward(const Tensor& hidden_states, const Tensor& mask, const Tensor& distances,
                                     const Tensor& rel_embeddings) {
    // Each head's query, key and value lie side by side.
    const std::vector<Tensor> parts = split_heads(in_proj(hidden_states), heads, 3 * size).chunk(3, -1);
    const double scale = std::sqrt(static_cast<double>(size) * static_cast<double>(factor));
    const Tensor query = (parts[0] + q_bias->view({1, heads, 1, size})) / scale;
    const Tensor& key = parts[1];
    const Tensor value = parts[2] + v_bias->view({1, heads, 1, size});
    Tensor scores = matmul(query, key.transpose(-1, -2));
    if (distances.defined()) scores = with_positions(scores, query, key, distances, (*pos_dropout)(rel_embeddings), scale);
    if (head_logits_proj) scores = (*head_logits_proj)(scores.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
    scores = masked_fill(scores, logical_not(mask), lowest_finite(scores.dtype()));
    Tensor weights = dropout(softmax(scores, -1));
    if (head_weights_proj) weights = (*head_weights_proj)(weights.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
    return {join_heads(matmul(weights, value)), weights};
  }

  int64_t heads, size;
  size_t factor;
  int64_t farthest;
  Child<Linear> in_proj;
  Parameter q_bias, v_bias;
  std::optional<Child<Linear>> head_logits_proj, head_weights_proj;
  std::optional<Child<Dropout>> pos_dropout;
  std::optional<Child<Linear>> pos_proj, pos_q_proj;
  Child<Dropout> dropout;

 private:
  Tensor with_positions(Tensor scores, const Tensor& query, const Tensor& key, const Tensor& distances,
                        const Tensor& rel_embeddings, double scale) const {
    // No distance is longer than the text: where the length is known, the rest of the table need not be projected.
    const SymInt length = query.sym_size(2);
    const int64_t span = length.is_symbolic() ? farthest : std::min(length.as_int(), farthest);
    const Tensor table = rel_embeddings.slice(0, farthest - span, farthest + span).unsqueeze(0);
    if (pos_proj) {
      const Tensor position_key = split_heads((*pos_proj)(table), heads, size);
      scores = scores + by_distance(matmul(query, position_key.transpose(-1, -2)), distances, span);
    }
    if (pos_q_proj) {
      const Tensor position_query = split_heads((*pos_q_proj)(table), heads, size) / scale;
      scores = scores + by_distance(matmul(key, position_query.transpose(-1, -2)), neg(distances), span).transpose(-1, -2);
    }
    return scores;
  }
};

struct DebertaEncoder : Typed<DebertaEncoder> {
  static constexpr const char* torch_type = "transformers.models.deberta.modeling_deberta.DebertaEncoder";
  static constexpr const char* forward_arguments[] = {"inputs"};
  explicit DebertaEncoder(const Config& c)
      : layer(child<ModuleList>("layer")),
        rel_embeddings(child_if<Embedding>(c.flag("relative_attention"), *this, "rel_embeddings",
                                           2 * max_relative_positions(c), c.integer("hidden_size"))) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i)
      layer->emplace<DebertaLayer<DebertaSelfAttention>>(c, deberta_family, deberta_norm);
  }
  EncoderResult forward(const EncoderInputs& in) {
    EncoderResult out;
    Tensor x = in.hidden_states, distances, table;
    if (rel_embeddings) {
      const Tensor positions = arange(x.sym_size(1), DType::int64, std::nullopt, x.device());
      distances = (positions.unsqueeze(1) - positions.unsqueeze(0)).unsqueeze(0).unsqueeze(0);
      table = (*rel_embeddings)->weight;
    }
    for (auto* one : layer->items<DebertaLayer<DebertaSelfAttention>>()) {
      if (in.want_hidden_states) out.hidden_states.push_back(x);
      auto [y, weights] = (*one)(x, in.mask.mask, distances, table);
      x = y;
      if (in.want_attentions) out.attentions.push_back(weights);
    }
    if (in.want_hidden_states) out.hidden_states.push_back(x);
    out.last_hidden_state = x;
    return out;
  }
  Child<ModuleList> layer;
  std::optional<Child<Embedding>> rel_embeddings;
};

struct DebertaPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "deberta"; }
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override { return {"position_embeddings"}; }
  void init_weights(Module& module) override {
    if (auto* norm = dynamic_cast<DebertaLayerNorm*>(&module)) {
      init::ones_(norm->weight);
      init::zeros_(norm->bias);
    } else if (auto* attention = dynamic_cast<DebertaSelfAttention*>(&module)) {
      init::zeros_(attention->q_bias);
      init::zeros_(attention->v_bias);
    } else if (!init_deberta_head(module)) {
      PretrainedModel::init_weights(module);
    }
  }
};

struct DebertaModel : DebertaLikeModel<DebertaModel, DebertaPretrained, DebertaEncoder> {
  static constexpr const char* torch_type = "transformers.models.deberta.modeling_deberta.DebertaModel";
  explicit DebertaModel(const Config& c, bool = false) : DebertaLikeModel(c, deberta_family, deberta_norm) {}
  EncoderResult encoded(const EncoderInputs& inner, const Tensor&) override { return encoder(inner); }
};

constexpr HeadFamily deberta_heads{deberta_family, "deberta", made_model<DebertaModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add(deberta_architecture(
      "deberta", "DebertaConfig",
      R"("vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072)",
      deberta_classes(deberta_heads, model_class<DebertaModel>("DebertaModel", {"default"}))));
}

}  // namespace calque::deberta
