// ALBERT: BERT with small embeddings and layers that share their weights in groups.
#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/zeros.h"
#include "zoo/blocks/bert_embeddings.h"
#include "zoo/blocks/bert_encoder.h"
#include "zoo/heads/bert_heads.h"

namespace calque::albert {

namespace {

constexpr char albert_family[] = "transformers.models.albert.modeling_albert.Albert";

LayerNormOptions albert_norm(const Config& c) { return {.eps = c.number("layer_norm_eps")}; }

struct AlbertAttention : Typed<AlbertAttention>, PrunableAttention {
  static constexpr const char* torch_type = "transformers.models.albert.modeling_albert.AlbertAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "head_mask", "eager"};
  explicit AlbertAttention(const Config& c)
      : heads(c.integer("num_attention_heads")),
        size(c.integer("hidden_size") / heads),
        attention_dropout(child<Dropout>("attention_dropout", c.number("attention_probs_dropout_prob"))),
        output_dropout(child<Dropout>("output_dropout", c.number("hidden_dropout_prob"))),
        query(child<Linear>("query", c.integer("hidden_size"), heads * size)),
        key(child<Linear>("key", c.integer("hidden_size"), heads * size)),
        value(child<Linear>("value", c.integer("hidden_size"), heads * size)),
        dense(child<Linear>("dense", heads * size, c.integer("hidden_size"))),
        norm(child<LayerNorm>("LayerNorm", c.integer("hidden_size"), albert_norm(c))) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const AttentionMask& mask, const Tensor& head_mask, bool eager) {
    AttentionOptions options{
        .dropout = training() ? attention_dropout->p : 0, .dropout_layer = &*attention_dropout, .eager = eager};
    options.head_mask = head_mask;
    const Tensor queries = split_heads(query(x), heads, size);
    const Tensor keys = split_heads(key(x), heads, size);
    const AttentionResult attended = attend(queries, keys, split_heads(value(x), heads, size), mask, options);
    return {norm(x + output_dropout(dense(attended.output))), attended.weights};
  }
  void prune_heads(const std::vector<int64_t>& asked) override {
    prune_attention(asked, heads, size, pruned_heads, {&*query, &*key, &*value}, *dense);
  }
  std::set<int64_t> pruned_heads;
  int64_t heads, size;
  Child<Dropout> attention_dropout, output_dropout;
  Child<Linear> query, key, value, dense;
  Child<LayerNorm> norm;
};

struct AlbertLayer : Typed<AlbertLayer> {
  static constexpr const char* torch_type = "transformers.models.albert.modeling_albert.AlbertLayer";
  static constexpr auto& forward_arguments = AlbertAttention::forward_arguments;
  explicit AlbertLayer(const Config& c)
      : full_layer_layer_norm(child<LayerNorm>("full_layer_layer_norm", c.integer("hidden_size"), albert_norm(c))),
        attention(child<AlbertAttention>("attention", c)),
        ffn(child<Linear>("ffn", c.integer("hidden_size"), c.integer("intermediate_size"))),
        ffn_output(child<Linear>("ffn_output", c.integer("intermediate_size"), c.integer("hidden_size"))),
        activation(activation_named(c.text("hidden_act"))),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                     bool eager) {
    auto [x, weights] = attention(hidden_states, mask, head_mask, eager);
    return {full_layer_layer_norm(ffn_output(activation(ffn(x))) + x), weights};
  }
  Child<LayerNorm> full_layer_layer_norm;
  Child<AlbertAttention> attention;
  Child<Linear> ffn, ffn_output;
  Activation activation;
  Child<Dropout> dropout;
};

struct AlbertLayerGroup : Typed<AlbertLayerGroup> {
  static constexpr const char* torch_type = "transformers.models.albert.modeling_albert.AlbertLayerGroup";
  static constexpr const char* forward_arguments[] = {"inputs"};
  explicit AlbertLayerGroup(const Config& c) : albert_layers(child<ModuleList>("albert_layers")) {
    for (int64_t i = 0; i < c.integer("inner_group_num"); ++i) albert_layers->emplace<AlbertLayer>(c);
  }
  EncoderResult forward(const EncoderInputs& in) { return run_encoder_layers<AlbertLayer>(*albert_layers, in); }
  Child<ModuleList> albert_layers;
};

struct AlbertTransformer : Typed<AlbertTransformer> {
  static constexpr const char* torch_type = "transformers.models.albert.modeling_albert.AlbertTransformer";
  static constexpr const char* forward_arguments[] = {"inputs"};
  explicit AlbertTransformer(const Config& c)
      : layers(c.integer("num_hidden_layers")),
        groups(c.integer("num_hidden_groups")),
        embedding_hidden_mapping_in(
            child<Linear>("embedding_hidden_mapping_in", c.integer("embedding_size"), c.integer("hidden_size"))),
        albert_layer_groups(child<ModuleList>("albert_layer_groups")) {
    for (int64_t i = 0; i < groups; ++i) albert_layer_groups->emplace<AlbertLayerGroup>(c);
  }
  EncoderResult forward(const EncoderInputs& in) {
    EncoderResult out;
    EncoderInputs inner = in;
    inner.hidden_states = embedding_hidden_mapping_in(in.hidden_states);
    if (in.want_hidden_states) out.hidden_states.push_back(inner.hidden_states);
    for (int64_t i = 0; i < layers; ++i) {
      const int64_t group = i * groups / layers;
      // A group's head masks start at its first layer, whichever of its layers this is.
      if (!in.head_mask.empty())
        inner.head_mask.assign(in.head_mask.begin() + group * (layers / groups), in.head_mask.end());
      EncoderResult made = albert_layer_groups->at<AlbertLayerGroup>(group)(inner);
      inner.hidden_states = made.last_hidden_state;
      if (in.want_hidden_states)
        out.hidden_states.insert(out.hidden_states.end(), made.hidden_states.begin() + 1, made.hidden_states.end());
      out.attentions.insert(out.attentions.end(), made.attentions.begin(), made.attentions.end());
    }
    out.last_hidden_state = inner.hidden_states;
    return out;
  }
  int64_t layers, groups;
  Child<Linear> embedding_hidden_mapping_in;
  Child<ModuleList> albert_layer_groups;
};

struct AlbertMLMHead : Typed<AlbertMLMHead> {
  static constexpr const char* torch_type = "transformers.models.albert.modeling_albert.AlbertMLMHead";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit AlbertMLMHead(const Config& c)
      : norm(child<LayerNorm>("LayerNorm", c.integer("embedding_size"), albert_norm(c))),
        bias(register_parameter("bias", zeros({c.integer("vocab_size")}))),
        dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("embedding_size"))),
        decoder(child<Linear>("decoder", c.integer("embedding_size"), c.integer("vocab_size"))),
        activation(activation_named(c.text("hidden_act"))) {}
  Tensor forward(const Tensor& hidden_states) { return decoder(norm(activation(dense(hidden_states)))); }
  Child<LayerNorm> norm;
  Parameter bias;  // the decoder's, where word embeddings are tied
  Child<Linear> dense, decoder;
  Activation activation;
};

struct AlbertSOPHead : Typed<AlbertSOPHead> {
  static constexpr const char* torch_type = "transformers.models.albert.modeling_albert.AlbertSOPHead";
  static constexpr const char* forward_arguments[] = {"pooled_output"};
  explicit AlbertSOPHead(const Config& c)
      : dropout(child<Dropout>("dropout", c.number("classifier_dropout_prob"))),
        classifier(child<Linear>("classifier", c.integer("hidden_size"), num_labels(c))) {}
  Tensor forward(const Tensor& pooled_output) { return classifier(dropout(pooled_output)); }
  Child<Dropout> dropout;
  Child<Linear> classifier;
};

struct AlbertPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  bool supports_gradient_checkpointing() const override { return false; }
  std::string base_model_prefix() const override { return "albert"; }
  void init_weights(Module& module) override {
    PretrainedModel::init_weights(module);
    if (auto* head = dynamic_cast<AlbertMLMHead*>(&module)) init::zeros_(head->bias);
  }
};

struct AlbertModel : ModelOf<AlbertModel, AlbertPretrained> {
  static constexpr const char* torch_type = "transformers.models.albert.modeling_albert.AlbertModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,     arg::attention_mask, arg::token_type_ids,    arg::position_ids,
      arg::inputs_embeds, arg::head_mask,      arg::output_attentions, arg::output_hidden_states};
  explicit AlbertModel(const Config& c, bool pools = true)
      : ModelOf(c),
        embeddings(child<BertEmbeddings>("embeddings", c, albert_family,
                                         BertEmbeddingsOptions{.size = c.integer("embedding_size")})),
        encoder(child<AlbertTransformer>("encoder", c)),
        pooler(child_if<Linear>(pools, *this, "pooler", c.integer("hidden_size"), c.integer("hidden_size"))),
        pooler_activation(child_if<Tanh>(pools, *this, "pooler_activation")) {}
  ModelOutput forward(const ModelInputs& in) override {
    const EncoderResult result = encoder(encoder_inputs(*this, in, embed(embeddings, in)));
    return encoder_output(result,
                          pooler ? (*pooler_activation)((*pooler)(result.last_hidden_state.select(1, 0))) : Tensor());
  }
  Child<Embedding>* input_embeddings() override { return &embeddings->word_embeddings; }
  Child<BertEmbeddings> embeddings;
  Child<AlbertTransformer> encoder;
  std::optional<Child<Linear>> pooler;
  std::optional<Child<Tanh>> pooler_activation;
};

double albert_dropout(const Config& c) { return c.number("classifier_dropout_prob"); }
double albert_token_dropout(const Config& c) {
  return c.optional_number("classifier_dropout_prob").value_or(c.number("hidden_dropout_prob"));
}

PretrainedModel::TiedWeights albert_tied_weights(const Config& config) {
  if (!config.flag("tie_word_embeddings")) return {};
  return {{"predictions.decoder.weight", "albert.embeddings.word_embeddings.weight"},
          {"predictions.decoder.bias", "predictions.bias"}};
}

struct AlbertForPreTraining : CopiedAs<AlbertForPreTraining, EncoderHead> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids, arg::attention_mask,       arg::token_type_ids, arg::position_ids,      arg::inputs_embeds,
      arg::labels,    arg::sentence_order_label, arg::head_mask,      arg::output_attentions, arg::output_hidden_states};
  AlbertForPreTraining(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, true, forward_arguments),
        predictions(child<AlbertMLMHead>("predictions", c)),
        sop_classifier(child<AlbertSOPHead>("sop_classifier", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const Tensor words = predictions(base["last_hidden_state"]);
    return pretraining_output(base, words, sop_classifier(base["pooler_output"]), in[arg::labels],
                              in[arg::sentence_order_label], "sop_logits");
  }
  TiedWeights tied_weights() const override { return albert_tied_weights(config()); }
  Child<Linear>* output_embeddings() override { return &predictions->decoder; }
  Child<AlbertMLMHead> predictions;
  Child<AlbertSOPHead> sop_classifier;
};

struct AlbertForMaskedLM : CopiedAs<AlbertForMaskedLM, EncoderHead> {
  AlbertForMaskedLM(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false), predictions(child<AlbertMLMHead>("predictions", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return masked_lm_output(base, predictions(base["last_hidden_state"]), in[arg::labels]);
  }
  TiedWeights tied_weights() const override { return albert_tied_weights(config()); }
  Child<Linear>* output_embeddings() override { return &predictions->decoder; }
  Child<AlbertMLMHead> predictions;
};

constexpr HeadFamily albert_heads{albert_family, "albert", made_model<AlbertModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "albert",
      .config_class = "AlbertConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 30000, "embedding_size": 128, "hidden_size": 4096, "num_hidden_layers": 12,
        "num_hidden_groups": 1, "num_attention_heads": 64, "intermediate_size": 16384, "inner_group_num": 1,
        "hidden_act": "gelu_new", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
        "classifier_dropout_prob": 0.1, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "tie_word_embeddings": true})",
      .schema = {.keys = {{"num_hidden_layers", KeyKind::repeats},
                          {"num_hidden_groups", KeyKind::groups},
                          {"inner_group_num", KeyKind::groups}},
                 .relations = {at_least("hidden_size", "num_attention_heads")}},
      .classes = {model_class<AlbertModel>("AlbertModel", {"default"}),
                  head_class<AlbertForPreTraining>({"pretraining"}, {&albert_heads, "ForPreTraining"}),
                  head_class<AlbertForMaskedLM>({"masked-lm"}, {&albert_heads, "ForMaskedLM"}),
                  head_class<MultipleChoice>({"multiple-choice"}, {&albert_heads, "ForMultipleChoice", albert_dropout}),
                  head_class<SpanClassification>({"question-answering"}, {&albert_heads, "ForQuestionAnswering"}),
                  head_class<PooledClassification>({"sequence-classification"},
                                                   {&albert_heads, "ForSequenceClassification", albert_dropout}),
                  head_class<TokenClassification>(
                      {"token-classification"},
                      {.family = &albert_heads, .part = "ForTokenClassification", .dropout = albert_token_dropout})},
  });
}

}  // namespace calque::albert
