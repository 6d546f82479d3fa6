// DeBERTa-v2 (and v3): distances in buckets that grow with them, position projections that may be the contents', a convolution
// beside the first layer.
#include <cmath>

#include "calque/hub/registry.h"
#include "calque/nn/convolution.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/finfo.h"
#include "zoo/blocks/bert_embeddings.h"
#include "zoo/blocks/deberta_parts.h"
#include "zoo/heads/deberta_heads.h"

namespace calque::deberta_v2 {

namespace {

constexpr char deberta_v2_family[] = "transformers.models.deberta_v2.modeling_deberta_v2.DebertaV2";

std::shared_ptr<Module> deberta_v2_norm(int64_t size, double eps) {
  return std::make_shared<LayerNorm>(size, LayerNormOptions{.eps = eps});
}

// Distances below half of the buckets as they are, longer ones by their logarithm.
Tensor bucketed(const Tensor& distances, int64_t buckets, int64_t farthest) {
  const int64_t middle = buckets / 2;
  const Tensor near = bitwise_and(lt(distances, middle), gt(distances, -middle));
  const Tensor length = where(near, middle - 1, distances.abs());
  const double longest = static_cast<double>(farthest - 1) / static_cast<double>(middle);
  const Tensor scale = log(full({}, longest, DType::float32, std::nullopt, distances.device()));
  const Tensor logarithm = ceil(log(length / middle) / scale * (middle - 1)) + middle;
  return where(le(length, middle), distances.to(DType::float32), logarithm * sign(distances)).to(DType::int64);
}

struct DebertaV2SelfAttention : Typed<DebertaV2SelfAttention> {
  static constexpr const char* torch_type = "transformers.models.deberta_v2.modeling_deberta_v2.DisentangledSelfAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "relative_pos", "rel_embeddings"};
  explicit DebertaV2SelfAttention(const Config& c)
      : heads(c.integer("num_attention_heads")),
        size(c.optional_integer("attention_head_size").value_or(c.integer("hidden_size") / heads)),
        span(positive_integer(c, "position_buckets").value_or(max_relative_positions(c))),
        content_to_position(attends_positions(c, "c2p")),
        position_to_content(attends_positions(c, "p2c")),
        query_proj(child<Linear>("query_proj", c.integer("hidden_size"), heads * size)),
        key_proj(child<Linear>("key_proj", c.integer("hidden_size"), heads * size)),
        value_proj(child<Linear>("value_proj", c.integer("hidden_size"), heads * size)),
        pos_dropout(child_if<Dropout>(c.flag("relative_attention"), *this, "pos_dropout", c.number("hidden_dropout_prob"))),
        pos_key_proj(child_if<Linear>(pos_dropout && content_to_position && !c.flag("share_att_key"), *this, "pos_key_proj",
                                      c.integer("hidden_size"), heads * size)),
        pos_query_proj(child_if<Linear>(pos_dropout && position_to_content && !c.flag("share_att_key"), *this,
                                        "pos_query_proj", c.integer("hidden_size"), heads * size)),
        dropout(child<Dropout>("dropout", c.number("attention_probs_dropout_prob"))) {}

  std::tuple<Tensor, Tensor> forward(const Tensor& hidden_states, const Tensor& mask, const Tensor& distances,
                                     const Tensor& rel_embeddings) {
    const Tensor query = split_heads(query_proj(hidden_states), heads, size);
    const Tensor key = split_heads(key_proj(hidden_states), heads, size);
    const Tensor value = split_heads(value_proj(hidden_states), heads, size);
    const double scale = std::sqrt(static_cast<double>(size * (1 + content_to_position + position_to_content)));
    Tensor scores = matmul(query, key.transpose(-1, -2) / scale);
    if (distances.defined()) {
      const Tensor table = (*pos_dropout)(rel_embeddings).slice(0, 0, 2 * span).unsqueeze(0);
      if (content_to_position) {
        const Tensor position_key = split_heads((pos_key_proj ? *pos_key_proj : key_proj)(table), heads, size);
        scores = scores + by_distance(matmul(query, position_key.transpose(-1, -2)), distances, span) / scale;
      }
      if (position_to_content) {
        const Tensor position_query = split_heads((pos_query_proj ? *pos_query_proj : query_proj)(table), heads, size);
        const Tensor found = by_distance(matmul(key, position_query.transpose(-1, -2)), neg(distances), span);
        scores = scores + found.transpose(-1, -2) / scale;
      }
    }
    scores = masked_fill(scores, logical_not(mask), lowest_finite(scores.dtype()));
    const Tensor weights = dropout(softmax(scores, -1));
    return {join_heads(matmul(weights, value)), weights};
  }

  int64_t heads, size, span;
  bool content_to_position, position_to_content;
  Child<Linear> query_proj, key_proj, value_proj;
  std::optional<Child<Dropout>> pos_dropout;
  std::optional<Child<Linear>> pos_key_proj, pos_query_proj;
  Child<Dropout> dropout;
};

struct DebertaV2ConvLayer : Typed<DebertaV2ConvLayer> {
  static constexpr const char* torch_type = "transformers.models.deberta_v2.modeling_deberta_v2.ConvLayer";
  static constexpr const char* forward_arguments[] = {"hidden_states", "residual_states", "input_mask"};
  explicit DebertaV2ConvLayer(const Config& c)
      : act_fn(activation_named(c.optional_text("conv_act").value_or("tanh"))),
        conv(child<Conv1d>("conv", c.integer("hidden_size"), c.integer("hidden_size"), c.integer("conv_kernel_size"),
                           options(c))),
        norm(child<LayerNorm>("LayerNorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}
  static ConvOptions options(const Config& c) {
    ConvOptions out;
    out.padding = Sizes((c.integer("conv_kernel_size") - 1) / 2);
    out.groups = c.optional_integer("conv_groups").value_or(1);
    return out;
  }
  Tensor forward(const Tensor& hidden_states, const Tensor& residual_states, const Tensor& input_mask) {
    Tensor x = conv(hidden_states.permute({0, 2, 1}).contiguous()).permute({0, 2, 1}).contiguous();
    x = masked_fill(x, eq(input_mask, 0).unsqueeze(-1), 0);
    x = act_fn(dropout(x));
    return norm(residual_states + x) * input_mask.unsqueeze(2).to(x.dtype());
  }
  Activation act_fn;
  Child<Conv1d> conv;
  Child<LayerNorm> norm;
  Child<Dropout> dropout;
};

struct DebertaV2Encoder : Typed<DebertaV2Encoder> {
  static constexpr const char* torch_type = "transformers.models.deberta_v2.modeling_deberta_v2.DebertaV2Encoder";
  static constexpr const char* forward_arguments[] = {"inputs", "input_mask"};
  using Layer = DebertaLayer<DebertaV2SelfAttention>;
  explicit DebertaV2Encoder(const Config& c)
      : farthest(max_relative_positions(c)),
        buckets(positive_integer(c, "position_buckets")),
        layer(child<ModuleList>("layer")),
        rel_embeddings(child_if<Embedding>(c.flag("relative_attention"), *this, "rel_embeddings",
                                           2 * buckets.value_or(farthest), c.integer("hidden_size"))),
        norm(child_if<LayerNorm>(c.optional_text("norm_rel_ebd").value_or("none").find("layer_norm") != std::string::npos,
                                 *this, "LayerNorm", c.integer("hidden_size"),
                                 LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        conv(child_if<DebertaV2ConvLayer>(positive_integer(c, "conv_kernel_size").has_value(), *this, "conv", c)) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i)
      layer->emplace<Layer>(c, deberta_v2_family, deberta_v2_norm);
  }
  EncoderResult forward(const EncoderInputs& in, const Tensor& input_mask) {
    EncoderResult out;
    Tensor x = in.hidden_states, distances, table;
    if (rel_embeddings) {
      const Tensor positions = arange(x.sym_size(1), DType::int64, std::nullopt, x.device());
      distances = positions.unsqueeze(1) - positions.unsqueeze(0);
      if (buckets) distances = bucketed(distances, *buckets, farthest);
      distances = distances.unsqueeze(0).unsqueeze(0);
      table = (*rel_embeddings)->weight;
      if (norm) table = (*norm)(table);
    }
    for (Layer* one : layer->items<Layer>()) {
      if (in.want_hidden_states) out.hidden_states.push_back(x);
      auto [y, weights] = (*one)(x, in.mask.mask, distances, table);
      if (conv && one == &layer->at<Layer>(0)) y = (*conv)(x, y, input_mask);
      x = y;
      if (in.want_attentions) out.attentions.push_back(weights);
    }
    if (in.want_hidden_states) out.hidden_states.push_back(x);
    out.last_hidden_state = x;
    return out;
  }
  int64_t farthest;
  std::optional<int64_t> buckets;
  Child<ModuleList> layer;
  std::optional<Child<Embedding>> rel_embeddings;
  std::optional<Child<LayerNorm>> norm;
  std::optional<Child<DebertaV2ConvLayer>> conv;
};

struct DebertaV2Pretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "deberta"; }
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override {
    return {"position_embeddings", "mask_predictions.*"};
  }
  void init_weights(Module& module) override {
    if (init_deberta_head(module)) return;
    PretrainedModel::init_weights(module);
  }
};

struct DebertaV2Model : DebertaLikeModel<DebertaV2Model, DebertaV2Pretrained, DebertaV2Encoder> {
  static constexpr const char* torch_type = "transformers.models.deberta_v2.modeling_deberta_v2.DebertaV2Model";
  explicit DebertaV2Model(const Config& c, bool = false) : DebertaLikeModel(c, deberta_v2_family, deberta_v2_norm) {}
  EncoderResult encoded(const EncoderInputs& inner, const Tensor& mask) override {
    return encoder(inner, mask.dim() == 4 ? mask.squeeze(1).squeeze(1) : mask);
  }
};

constexpr HeadFamily deberta_v2_heads{deberta_v2_family, "deberta", made_model<DebertaV2Model>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  std::vector<ModelClass> classes =
      deberta_classes(deberta_v2_heads, model_class<DebertaV2Model>("DebertaV2Model", {"default"}));
  classes.insert(classes.begin() + 2,
                 head_class<DebertaMultipleChoice>({"multiple-choice"}, {&deberta_v2_heads, "ForMultipleChoice"}));
  registry.add(deberta_architecture(
      "deberta-v2", "DebertaV2Config",
      R"("vocab_size": 128100, "hidden_size": 1536, "num_hidden_layers": 24, "num_attention_heads": 24, "intermediate_size": 6144)",
      std::move(classes)));
}

}  // namespace calque::deberta_v2
