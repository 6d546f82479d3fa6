// MPNet: an encoder without token types whose scores have a bias by the distance of two tokens, shared by all layers; RoBERTa's
// positions and heads.
#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/norms.h"
#include "zoo/blocks/bert_embeddings.h"
#include "zoo/blocks/t5_layers.h"
#include "zoo/heads/roberta_heads.h"

namespace calque::mpnet {

namespace {

constexpr char mpnet_family[] = "transformers.models.mpnet.modeling_mpnet.MPNet";
constexpr int64_t mpnet_padding = 1;  // whatever the configuration says

struct MPNetEmbeddings : Typed<MPNetEmbeddings> {
  static constexpr const char* torch_type = "transformers.models.mpnet.modeling_mpnet.MPNetEmbeddings";
  static constexpr const char* forward_arguments[] = {"input_ids", "position_ids", "inputs_embeds"};
  explicit MPNetEmbeddings(const Config& c)
      : word_embeddings(child<Embedding>("word_embeddings", c.integer("vocab_size"), c.integer("hidden_size"),
                                         EmbeddingOptions{.padding_idx = mpnet_padding})),
        position_embeddings(child<Embedding>("position_embeddings", c.integer("max_position_embeddings"),
                                             c.integer("hidden_size"), EmbeddingOptions{.padding_idx = mpnet_padding})),
        norm(child<LayerNorm>("LayerNorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))),
        position_ids(register_buffer("position_ids", arange(c.integer("max_position_embeddings")).unsqueeze(0), false)) {}
  Tensor forward(const Tensor& input_ids, const Tensor& positions, const Tensor& inputs_embeds) {
    const Tensor words = inputs_embeds.defined() ? inputs_embeds : word_embeddings(input_ids);
    return dropout(norm(words + position_embeddings(positions)));
  }
  Child<Embedding> word_embeddings, position_embeddings;
  Child<LayerNorm> norm;
  Child<Dropout> dropout;
  Buffer position_ids;  // 0, 1, 2, ...
};

struct MPNetSelfAttention : Typed<MPNetSelfAttention> {
  static constexpr const char* torch_type = "transformers.models.mpnet.modeling_mpnet.MPNetSelfAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "head_mask", "position_bias"};
  using Result = std::tuple<Tensor, Tensor>;  // output, weights
  explicit MPNetSelfAttention(const Config& c)
      : heads(c.integer("num_attention_heads")),
        size(c.integer("hidden_size") / heads),
        q(child<Linear>("q", c.integer("hidden_size"), heads * size)),
        k(child<Linear>("k", c.integer("hidden_size"), heads * size)),
        v(child<Linear>("v", c.integer("hidden_size"), heads * size)),
        o(child<Linear>("o", heads * size, c.integer("hidden_size"))),
        dropout(child<Dropout>("dropout", c.number("attention_probs_dropout_prob"))) {}
  Result forward(const Tensor& x, const AttentionMask& mask, const Tensor& head_mask, const Tensor& position_bias) {
    const AttentionResult attended = attend(
        split_heads(q(x), heads, size), split_heads(k(x), heads, size), split_heads(v(x), heads, size), mask,
        {.dropout = training() ? dropout->p : 0, .eager = true, .head_mask = head_mask, .position_bias = position_bias});
    return {o(attended.output), attended.weights};
  }
  int64_t heads, size;
  Child<Linear> q, k, v, o;
  Child<Dropout> dropout;
};

struct MPNetAttention : Typed<MPNetAttention>, PrunableAttention {
  static constexpr const char* torch_type = "transformers.models.mpnet.modeling_mpnet.MPNetAttention";
  static constexpr auto& forward_arguments = MPNetSelfAttention::forward_arguments;
  explicit MPNetAttention(const Config& c)
      : attn(child<MPNetSelfAttention>("attn", c)),
        norm(child<LayerNorm>("LayerNorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}
  MPNetSelfAttention::Result forward(const Tensor& x, const AttentionMask& mask, const Tensor& head_mask,
                                     const Tensor& position_bias) {
    const auto [attended, weights] = attn(x, mask, head_mask, position_bias);
    return {norm(dropout(attended) + x), weights};
  }
  void prune_heads(const std::vector<int64_t>& gone) override {
    prune_attention(gone, attn->heads, attn->size, pruned_heads, {&*attn->q, &*attn->k, &*attn->v}, *attn->o);
  }
  Child<MPNetSelfAttention> attn;
  Child<LayerNorm> norm;
  Child<Dropout> dropout;
  std::set<int64_t> pruned_heads;
};

struct MPNetLayer : Typed<MPNetLayer> {
  static constexpr const char* torch_type = "transformers.models.mpnet.modeling_mpnet.MPNetLayer";
  static constexpr auto& forward_arguments = MPNetSelfAttention::forward_arguments;
  explicit MPNetLayer(const Config& c)
      : attention(child<MPNetAttention>("attention", c)),
        intermediate(child<BertIntermediate>("intermediate", c, mpnet_family)),
        output(child<BertResidual>("output", c, std::string(mpnet_family) + "Output", c.integer("intermediate_size"))) {}
  MPNetSelfAttention::Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                     const Tensor& position_bias) {
    const auto [x, weights] = attention(hidden_states, mask, head_mask, position_bias);
    return {output(intermediate(x), x), weights};
  }
  Child<MPNetAttention> attention;
  Child<BertIntermediate> intermediate;
  Child<BertResidual> output;
};

struct MPNetEncoder : Typed<MPNetEncoder> {
  static constexpr const char* torch_type = "transformers.models.mpnet.modeling_mpnet.MPNetEncoder";
  static constexpr const char* forward_arguments[] = {"inputs"};
  explicit MPNetEncoder(const Config& c)
      : layer(child<ModuleList>("layer")),
        relative_attention_bias(child<Embedding>("relative_attention_bias", c.integer("relative_attention_num_buckets"),
                                                 c.integer("num_attention_heads"))) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layer->emplace<MPNetLayer>(c);
  }
  EncoderResult forward(const EncoderInputs& in) {
    EncoderResult out;
    Tensor x = in.hidden_states;
    const Tensor bias = position_bias(x);
    size_t i = 0;
    for (MPNetLayer* one : layer->items<MPNetLayer>()) {
      if (in.want_hidden_states) out.hidden_states.push_back(x);
      auto [y, weights] = (*one)(x, in.mask, i < in.head_mask.size() ? in.head_mask[i] : Tensor(), bias);
      x = y;
      if (in.want_attentions) out.attentions.push_back(weights);
      ++i;
    }
    out.last_hidden_state = x;
    if (in.want_hidden_states) out.hidden_states.push_back(x);
    return out;
  }
  Tensor position_bias(const Tensor& x) const {
    const Tensor places = arange(x.sym_size(1), DType::int64, std::nullopt, x.device());
    // The buckets are 32, however many rows the table has.
    const Tensor bucket = relative_position_bucket(places.unsqueeze(0) - places.unsqueeze(1), true, 32, 128);
    return relative_attention_bias(bucket).permute({2, 0, 1}).unsqueeze(0);
  }
  Child<ModuleList> layer;
  Child<Embedding> relative_attention_bias;
};

constexpr ModelArgument mpnet_arguments[] = {arg::input_ids,           arg::attention_mask, arg::position_ids,
                                             arg::inputs_embeds,       arg::head_mask,      arg::output_attentions,
                                             arg::output_hidden_states};
constexpr auto mpnet_labelled_arguments = with_arguments(names_of(mpnet_arguments), arg::inputs_embeds, {arg::labels});
constexpr auto mpnet_span_arguments =
    with_arguments(names_of(mpnet_arguments), arg::inputs_embeds, {arg::start_positions, arg::end_positions});

struct MPNetPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "mpnet"; }
  bool supports_sdpa() const override { return false; }
  bool supports_gradient_checkpointing() const override { return false; }
  void init_weights(Module& module) override {
    PretrainedModel::init_weights(module);
    if (auto* head = dynamic_cast<RobertaLMHead*>(&module)) init::zeros_(head->bias);
  }
};

struct MPNetModel : ModelOf<MPNetModel, MPNetPretrained> {
  static constexpr const char* torch_type = "transformers.models.mpnet.modeling_mpnet.MPNetModel";
  static constexpr auto& forward_arguments = mpnet_arguments;
  explicit MPNetModel(const Config& c, bool pools = true)
      : ModelOf(c),
        embeddings(child<MPNetEmbeddings>("embeddings", c)),
        encoder(child<MPNetEncoder>("encoder", c)),
        pooler(child_if<BertPooler>(pools, *this, "pooler", c, mpnet_family)) {}
  ModelOutput forward(const ModelInputs& in) override {
    check_one_input(in);
    const Tensor given = in[arg::position_ids];
    const Tensor embedded = embeddings(
        in[arg::input_ids], given.defined() ? given : positions_behind_padding(in, mpnet_padding), in[arg::inputs_embeds]);
    const EncoderResult result = encoder(encoder_inputs(*this, in, embedded));
    return encoder_output(result, pooler ? (*pooler)(result.last_hidden_state) : Tensor());
  }
  Child<Embedding>* input_embeddings() override { return &embeddings->word_embeddings; }
  Child<MPNetEmbeddings> embeddings;
  Child<MPNetEncoder> encoder;
  std::optional<Child<BertPooler>> pooler;
};

constexpr HeadFamily mpnet_heads{mpnet_family, "mpnet", made_model<MPNetModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  const std::span<const ModelArgument> labelled = mpnet_labelled_arguments, spans = mpnet_span_arguments;
  const auto head = [&](const char* part, double (*dropout)(const Config&) = nullptr) {
    return HeadClass{.family = &mpnet_heads, .part = part, .dropout = dropout, .arguments = labelled};
  };
  registry.add({
      .model_type = "mpnet",
      .config_class = "MPNetConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 30527, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
        "relative_attention_num_buckets": 32, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
        "tie_word_embeddings": true})",
      .schema = bert_schema({{"relative_attention_num_buckets", KeyKind::size}}),
      .classes = {model_class<MPNetModel>("MPNetModel", {"default"}),
                  head_class<RobertaMaskedLM>({"pretraining", "masked-lm"}, head("ForMaskedLM")),
                  head_class<MultipleChoice>({"multiple-choice"}, head("ForMultipleChoice", hidden_dropout)),
                  head_class<SpanClassification>(
                      {"question-answering"}, {.family = &mpnet_heads, .part = "ForQuestionAnswering", .arguments = spans}),
                  head_class<RobertaSequenceClassification>({"sequence-classification"}, head("ForSequenceClassification")),
                  head_class<TokenClassification>({"token-classification"}, head("ForTokenClassification", hidden_dropout))},
  });
}

}  // namespace calque::mpnet
