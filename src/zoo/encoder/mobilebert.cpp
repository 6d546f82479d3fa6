// MobileBERT: narrow layers between bottlenecks, several small feed-forwards in a row, trigrams of narrow embeddings.
#include "calque/base/error.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/registry.h"
#include "calque/hub/resize.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/bert_embeddings.h"
#include "zoo/blocks/bert_encoder.h"
#include "zoo/heads/bert_heads.h"

namespace calque::mobilebert {

namespace {

constexpr char mobilebert_family[] = "transformers.models.mobilebert.modeling_mobilebert.MobileBert";
std::string mobilebert_name(const char* part) {
  return std::string("transformers.models.mobilebert.modeling_mobilebert.") + part;
}

struct MobileBertNoNorm : Typed<MobileBertNoNorm> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.NoNorm";
  static constexpr const char* forward_arguments[] = {"input_tensor"};
  explicit MobileBertNoNorm(int64_t size)
      : bias(register_parameter("bias", zeros({size}))), weight(register_parameter("weight", ones({size}))) {}
  Tensor forward(const Tensor& input) { return input * *weight + *bias; }
  Parameter bias, weight;
};

// By normalization_type.
std::shared_ptr<Module> mobilebert_norm(const Config& c, int64_t size, double eps) {
  const std::string type = c.text("normalization_type");
  if (type == "no_norm") return std::make_shared<MobileBertNoNorm>(size);
  if (type == "layer_norm") return std::make_shared<LayerNorm>(size, LayerNormOptions{.eps = eps});
  throw UserError(ErrorKind::bad_file,
                  c.where() + ": \"normalization_type\" is \"" + type + "\", expected no_norm or layer_norm");
}
double mobilebert_eps(const Config& c) { return c.number("layer_norm_eps"); }

struct MobileBertEmbeddings : Typed<MobileBertEmbeddings> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertEmbeddings";
  static constexpr const char* forward_arguments[] = {"input_ids", "token_type_ids", "position_ids", "inputs_embeds"};
  explicit MobileBertEmbeddings(const Config& c)
      : trigram_input(c.flag("trigram_input")),
        transforms(trigram_input || c.integer("embedding_size") != c.integer("hidden_size")),
        word_embeddings(child<Embedding>("word_embeddings", c.integer("vocab_size"), c.integer("embedding_size"),
                                         EmbeddingOptions{.padding_idx = c.optional_integer("pad_token_id")})),
        position_embeddings(
            child<Embedding>("position_embeddings", c.integer("max_position_embeddings"), c.integer("hidden_size"))),
        token_type_embeddings(
            child<Embedding>("token_type_embeddings", c.integer("type_vocab_size"), c.integer("hidden_size"))),
        embedding_transformation(child<Linear>(
            "embedding_transformation", c.integer("embedding_size") * (trigram_input ? 3 : 1), c.integer("hidden_size"))),
        norm(child_module<Module>("LayerNorm", mobilebert_norm(c, c.integer("hidden_size"), 1e-5))),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))),
        position_ids(register_buffer("position_ids", arange(c.integer("max_position_embeddings")).unsqueeze(0), false)) {}
  Tensor forward(const Tensor& input_ids, const Tensor& given_types, const Tensor& given_positions,
                 const Tensor& inputs_embeds) {
    Tensor x = inputs_embeds.defined() ? inputs_embeds : word_embeddings(input_ids);
    const SymInt batch = x.sym_size(0), length = x.sym_size(1);
    if (trigram_input) {
      const Tensor next = constant_pad_nd(x.slice(1, 1), {0, 0, 0, 1, 0, 0}, 0.0);
      const Tensor previous = constant_pad_nd(x.slice(1, 0, -1), {0, 0, 1, 0, 0, 0}, 0.0);
      x = cat({next, x, previous}, 2);
    }
    if (transforms) x = embedding_transformation(x);
    const Tensor positions = given_positions.defined() ? given_positions : position_ids->slice(1, 0, length);
    const Tensor types =
        given_types.defined() ? given_types : zeros({batch, length}, DType::int64, std::nullopt, x.device());
    x = x + position_embeddings(positions);
    x = x + token_type_embeddings(types);
    return dropout(norm(x).to_tensor());
  }
  bool trigram_input, transforms;
  Child<Embedding> word_embeddings, position_embeddings, token_type_embeddings;
  Child<Linear> embedding_transformation;
  Child<Module> norm;
  Child<Dropout> dropout;
  Buffer position_ids;
};

struct MobileBertSelfAttention : Typed<MobileBertSelfAttention> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertSelfAttention";
  static constexpr const char* forward_arguments[] = {"query_tensor",   "key_tensor", "value_tensor",
                                                      "attention_mask", "head_mask",  "eager"};
  explicit MobileBertSelfAttention(const Config& c)
      : heads(c.integer("num_attention_heads")),
        size(c.integer("true_hidden_size") / heads),
        query(child<Linear>("query", c.integer("true_hidden_size"), heads * size)),
        key(child<Linear>("key", c.integer("true_hidden_size"), heads * size)),
        value(child<Linear>("value", c.integer(c.flag("use_bottleneck_attention") ? "true_hidden_size" : "hidden_size"),
                            heads * size)),
        dropout(child<Dropout>("dropout", c.number("attention_probs_dropout_prob"))) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& query_tensor, const Tensor& key_tensor, const Tensor& value_tensor,
                                     const AttentionMask& mask, const Tensor& head_mask, bool eager) {
    AttentionOptions options{.dropout = training() ? dropout->p : 0, .dropout_layer = &*dropout, .eager = eager};
    options.head_mask = head_mask;
    const Tensor queries = split_heads(query(query_tensor), heads, size);
    const Tensor keys = split_heads(key(key_tensor), heads, size);
    const AttentionResult attended = attend(queries, keys, split_heads(value(value_tensor), heads, size), mask, options);
    return {attended.output, attended.weights};
  }
  int64_t heads, size;
  Child<Linear> query, key, value;
  Child<Dropout> dropout;
};

// dense, with or without dropout, residual, norm.
struct MobileBertResidual : NamedModule<MobileBertResidual> {
  static constexpr const char* forward_arguments[] = {"hidden_states", "residual_tensor"};
  MobileBertResidual(const Config& c, std::string name, int64_t in_features, int64_t out_features, bool drops)
      : NamedModule(std::move(name)),
        dense(child<Linear>("dense", in_features, out_features)),
        norm(child_module<Module>("LayerNorm", mobilebert_norm(c, out_features, mobilebert_eps(c)))),
        dropout(child_if<Dropout>(drops, *this, "dropout", c.number("hidden_dropout_prob"))) {}
  Tensor forward(const Tensor& hidden_states, const Tensor& residual) {
    const Tensor x = dense(hidden_states);
    return norm((dropout ? (*dropout)(x) : x) + residual).to_tensor();
  }
  Child<Linear> dense;
  Child<Module> norm;
  std::optional<Child<Dropout>> dropout;
};

struct MobileBertAttention : Typed<MobileBertAttention> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertAttention";
  static constexpr const char* forward_arguments[] = {"query_tensor",   "key_tensor", "value_tensor", "layer_input",
                                                      "attention_mask", "head_mask",  "eager"};
  explicit MobileBertAttention(const Config& c)
      : self(child<MobileBertSelfAttention>("self", c)),
        output(child<MobileBertResidual>("output", c, mobilebert_name("MobileBertSelfOutput"), c.integer("true_hidden_size"),
                                         c.integer("true_hidden_size"), !c.flag("use_bottleneck"))) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& layer_input,
                                     const AttentionMask& mask, const Tensor& head_mask, bool eager) {
    auto [attended, weights] = self(query, key, value, mask, head_mask, eager);
    return {output(attended, layer_input), weights};
  }
  Child<MobileBertSelfAttention> self;
  Child<MobileBertResidual> output;
};

struct MobileBertIntermediate : Typed<MobileBertIntermediate> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertIntermediate";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit MobileBertIntermediate(const Config& c)
      : dense(child<Linear>("dense", c.integer("true_hidden_size"), c.integer("intermediate_size"))),
        act_fn(activation_named(c.text("hidden_act"))) {}
  Tensor forward(const Tensor& hidden_states) { return act_fn(dense(hidden_states)); }
  Child<Linear> dense;
  Activation act_fn;
};

struct MobileBertOutput : Typed<MobileBertOutput> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertOutput";
  static constexpr const char* forward_arguments[] = {"intermediate_states", "residual_tensor_1", "residual_tensor_2"};
  explicit MobileBertOutput(const Config& c)
      : dense(child<Linear>("dense", c.integer("intermediate_size"), c.integer("true_hidden_size"))),
        norm(child_module<Module>("LayerNorm", mobilebert_norm(c, c.integer("true_hidden_size"), 1e-5))),
        dropout(child_if<Dropout>(!c.flag("use_bottleneck"), *this, "dropout", c.number("hidden_dropout_prob"))),
        bottleneck(child_if<MobileBertResidual>(c.flag("use_bottleneck"), *this, "bottleneck", c,
                                                mobilebert_name("OutputBottleneck"), c.integer("true_hidden_size"),
                                                c.integer("hidden_size"), true)) {}
  Tensor forward(const Tensor& intermediate_states, const Tensor& inner, const Tensor& outer) {
    const Tensor x = dense(intermediate_states);
    const Tensor y = norm((dropout ? (*dropout)(x) : x) + inner).to_tensor();
    return bottleneck ? (*bottleneck)(y, outer) : y;
  }
  Child<Linear> dense;
  Child<Module> norm;
  std::optional<Child<Dropout>> dropout;
  std::optional<Child<MobileBertResidual>> bottleneck;
};

struct MobileBertBottleneckLayer : Typed<MobileBertBottleneckLayer> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.BottleneckLayer";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit MobileBertBottleneckLayer(const Config& c)
      : dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("intra_bottleneck_size"))),
        norm(child_module<Module>("LayerNorm", mobilebert_norm(c, c.integer("intra_bottleneck_size"), mobilebert_eps(c)))) {}
  Tensor forward(const Tensor& hidden_states) { return norm(dense(hidden_states)).to_tensor(); }
  Child<Linear> dense;
  Child<Module> norm;
};

// What query, key, value and residual are made of.
struct MobileBertBottleneck : Typed<MobileBertBottleneck> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.Bottleneck";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit MobileBertBottleneck(const Config& c)
      : use_bottleneck_attention(c.flag("use_bottleneck_attention")),
        input(child<MobileBertBottleneckLayer>("input", c)),
        attention(child_if<MobileBertBottleneckLayer>(c.flag("key_query_shared_bottleneck"), *this, "attention", c)) {}
  std::tuple<Tensor, Tensor, Tensor, Tensor> forward(const Tensor& x) {
    const Tensor narrow = input(x);
    if (use_bottleneck_attention) return {narrow, narrow, narrow, narrow};
    if (!attention) return {x, x, x, narrow};
    const Tensor shared = (*attention)(x);
    return {shared, shared, x, narrow};
  }
  bool use_bottleneck_attention;
  Child<MobileBertBottleneckLayer> input;
  std::optional<Child<MobileBertBottleneckLayer>> attention;
};

struct MobileBertFFNLayer : Typed<MobileBertFFNLayer> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.FFNLayer";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit MobileBertFFNLayer(const Config& c)
      : intermediate(child<MobileBertIntermediate>("intermediate", c)),
        output(child<MobileBertResidual>("output", c, mobilebert_name("FFNOutput"), c.integer("intermediate_size"),
                                         c.integer("true_hidden_size"), false)) {}
  Tensor forward(const Tensor& hidden_states) { return output(intermediate(hidden_states), hidden_states); }
  Child<MobileBertIntermediate> intermediate;
  Child<MobileBertResidual> output;
};

struct MobileBertLayer : Checkpointed<Typed<MobileBertLayer>> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertLayer";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "head_mask", "eager"};
  explicit MobileBertLayer(const Config& c)
      : attention(child<MobileBertAttention>("attention", c)),
        intermediate(child<MobileBertIntermediate>("intermediate", c)),
        output(child<MobileBertOutput>("output", c)),
        bottleneck(child_if<MobileBertBottleneck>(c.flag("use_bottleneck"), *this, "bottleneck", c)),
        ffn(child_if<ModuleList>(c.integer("num_feedforward_networks") > 1, *this, "ffn")) {
    for (int64_t i = 1; i < c.integer("num_feedforward_networks"); ++i) (*ffn)->emplace<MobileBertFFNLayer>(c);
  }
  std::tuple<Tensor, Tensor> forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                     bool eager) {
    auto [query, key, value, layer_input] =
        bottleneck ? (*bottleneck)(hidden_states) : std::tuple(hidden_states, hidden_states, hidden_states, hidden_states);
    auto [x, weights] = attention(query, key, value, layer_input, mask, head_mask, eager);
    if (ffn)
      for (MobileBertFFNLayer* one : (*ffn)->items<MobileBertFFNLayer>()) x = (*one)(x);
    return {output(intermediate(x), x, hidden_states), weights};
  }
  Child<MobileBertAttention> attention;
  Child<MobileBertIntermediate> intermediate;
  Child<MobileBertOutput> output;
  std::optional<Child<MobileBertBottleneck>> bottleneck;
  std::optional<Child<ModuleList>> ffn;
};

struct MobileBertEncoder : Typed<MobileBertEncoder> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertEncoder";
  static constexpr const char* forward_arguments[] = {"inputs"};
  explicit MobileBertEncoder(const Config& c) : layer(child<ModuleList>("layer")) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layer->emplace<MobileBertLayer>(c);
  }
  EncoderResult forward(const EncoderInputs& in) { return run_encoder_layers<MobileBertLayer>(*layer, in); }
  Child<ModuleList> layer;
};

// The first token's state, through a layer and tanh where the config asks for it.
struct MobileBertPooler : Typed<MobileBertPooler> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertPooler";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit MobileBertPooler(const Config& c)
      : dense(child_if<Linear>(c.flag("classifier_activation"), *this, "dense", c.integer("hidden_size"),
                               c.integer("hidden_size"))) {}
  Tensor forward(const Tensor& hidden_states) {
    const Tensor first = hidden_states.select(1, 0);
    return dense ? tanh((*dense)(first)) : first;
  }
  std::optional<Child<Linear>> dense;
};

// The decoder's weight is the embeddings'; the rest of its columns is `dense`.
struct MobileBertLMPredictionHead : Typed<MobileBertLMPredictionHead>, VocabularyColumns {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertLMPredictionHead";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit MobileBertLMPredictionHead(const Config& c)
      : transform(child<BertPredictionHeadTransform>("transform", c, mobilebert_family)),
        dense(
            child<Linear>("dense", c.integer("vocab_size"), c.integer("hidden_size") - c.integer("embedding_size"), false)),
        decoder(child<Linear>("decoder", c.integer("embedding_size"), c.integer("vocab_size"))),
        bias(register_parameter("bias", zeros({c.integer("vocab_size")}))) {}
  Tensor forward(const Tensor& hidden_states) {
    const Tensor weight = cat({decoder->weight->t(), *dense->weight}, 0);
    return matmul(transform(hidden_states), weight) + *decoder->bias;
  }
  Linear& vocabulary_columns() override { return *dense; }
  Child<BertPredictionHeadTransform> transform;
  Child<Linear> dense, decoder;
  Parameter bias;  // the decoder's, where word embeddings are tied
};

struct MobileBertOnlyMLMHead : Typed<MobileBertOnlyMLMHead> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertOnlyMLMHead";
  static constexpr const char* forward_arguments[] = {"sequence_output"};
  explicit MobileBertOnlyMLMHead(const Config& c) : predictions(child<MobileBertLMPredictionHead>("predictions", c)) {}
  Tensor forward(const Tensor& sequence_output) { return predictions(sequence_output); }
  Child<MobileBertLMPredictionHead> predictions;
};

struct MobileBertPreTrainingHeads : Typed<MobileBertPreTrainingHeads> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertPreTrainingHeads";
  static constexpr const char* forward_arguments[] = {"sequence_output", "pooled_output"};
  explicit MobileBertPreTrainingHeads(const Config& c)
      : predictions(child<MobileBertLMPredictionHead>("predictions", c)),
        seq_relationship(child<Linear>("seq_relationship", c.integer("hidden_size"), 2)) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& sequence_output, const Tensor& pooled_output) {
    return {predictions(sequence_output), seq_relationship(pooled_output)};
  }
  Child<MobileBertLMPredictionHead> predictions;
  Child<Linear> seq_relationship;
};

struct MobileBertPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "mobilebert"; }
  void init_weights(Module& module) override {
    PretrainedModel::init_weights(module);
    if (auto* norm = dynamic_cast<MobileBertNoNorm*>(&module)) {
      init::zeros_(norm->bias);
      init::ones_(norm->weight);
    } else if (auto* head = dynamic_cast<MobileBertLMPredictionHead*>(&module)) {
      init::zeros_(head->bias);
    }
  }
};

struct MobileBertModel : ModelOf<MobileBertModel, MobileBertPretrained> {
  static constexpr const char* torch_type = "transformers.models.mobilebert.modeling_mobilebert.MobileBertModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,     arg::attention_mask, arg::token_type_ids,    arg::position_ids,
      arg::inputs_embeds, arg::head_mask,      arg::output_attentions, arg::output_hidden_states};
  explicit MobileBertModel(const Config& c, bool pools = true)
      : ModelOf(c),
        embeddings(child<MobileBertEmbeddings>("embeddings", c)),
        encoder(child<MobileBertEncoder>("encoder", c)),
        pooler(child_if<MobileBertPooler>(pools, *this, "pooler", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    check_one_input(in);
    const Tensor embedded =
        embeddings(in[arg::input_ids], in[arg::token_type_ids], in[arg::position_ids], in[arg::inputs_embeds]);
    const EncoderResult result = encoder(encoder_inputs(*this, in, embedded));
    return encoder_output(result, pooler ? (*pooler)(result.last_hidden_state) : Tensor());
  }
  Child<Embedding>* input_embeddings() override { return &embeddings->word_embeddings; }
  Child<MobileBertEmbeddings> embeddings;
  Child<MobileBertEncoder> encoder;
  std::optional<Child<MobileBertPooler>> pooler;
};

struct MobileBertForPreTraining : CopiedAs<MobileBertForPreTraining, EncoderHead> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids, arg::attention_mask,      arg::token_type_ids, arg::position_ids,      arg::inputs_embeds,
      arg::labels,    arg::next_sentence_label, arg::head_mask,      arg::output_attentions, arg::output_hidden_states};
  MobileBertForPreTraining(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, true, forward_arguments), cls(child<MobileBertPreTrainingHeads>("cls", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const auto [words, sentences] = cls(base["last_hidden_state"], base["pooler_output"]);
    return pretraining_output(base, words, sentences, in[arg::labels], in[arg::next_sentence_label],
                              "seq_relationship_logits");
  }
  TiedWeights tied_weights() const override { return tied_predictions(config(), "mobilebert"); }
  Child<Linear>* output_embeddings() override { return &cls->predictions->decoder; }
  Child<MobileBertPreTrainingHeads> cls;
};

struct MobileBertForMaskedLM : CopiedAs<MobileBertForMaskedLM, EncoderHead> {
  MobileBertForMaskedLM(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false), cls(child<MobileBertOnlyMLMHead>("cls", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return masked_lm_output(base, cls(base["last_hidden_state"]), in[arg::labels]);
  }
  TiedWeights tied_weights() const override { return tied_predictions(config(), "mobilebert"); }
  Child<Linear>* output_embeddings() override { return &cls->predictions->decoder; }
  Child<MobileBertOnlyMLMHead> cls;
};

void complete_mobilebert(Config& config) {
  config.set("true_hidden_size", config.integer(config.flag("use_bottleneck") ? "intra_bottleneck_size" : "hidden_size"));
}

constexpr HeadFamily mobilebert_heads{mobilebert_family, "mobilebert", made_model<MobileBertModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "mobilebert",
      .config_class = "MobileBertConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 30522, "hidden_size": 512, "num_hidden_layers": 24, "num_attention_heads": 4,
        "intermediate_size": 512, "hidden_act": "relu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
        "pad_token_id": 0, "embedding_size": 128, "trigram_input": true, "use_bottleneck": true, "intra_bottleneck_size": 128,
        "use_bottleneck_attention": false, "key_query_shared_bottleneck": true, "num_feedforward_networks": 4,
        "normalization_type": "no_norm", "classifier_activation": true, "classifier_dropout": null, "tie_word_embeddings": true})",
      .schema = {.keys = {{"intra_bottleneck_size", KeyKind::size},
                          {"true_hidden_size", KeyKind::size},
                          {"num_feedforward_networks", KeyKind::groups}},
                 .relations = {at_least("true_hidden_size", "num_attention_heads")}},
      .complete = complete_mobilebert,
      .classes = {model_class<MobileBertModel>("MobileBertModel", {"default"}),
                  head_class<MobileBertForPreTraining>({"pretraining"}, {&mobilebert_heads, "ForPreTraining"}),
                  head_class<BertNextSentence>({"next-sentence-prediction"},
                                               {&mobilebert_heads, "ForNextSentencePrediction"}),
                  head_class<MobileBertForMaskedLM>({"masked-lm"}, {&mobilebert_heads, "ForMaskedLM"}),
                  head_class<MultipleChoice>({"multiple-choice"},
                                             {&mobilebert_heads, "ForMultipleChoice", classifier_dropout}),
                  head_class<SpanClassification>({"question-answering"}, {&mobilebert_heads, "ForQuestionAnswering"}),
                  head_class<PooledClassification>({"sequence-classification"},
                                                   {&mobilebert_heads, "ForSequenceClassification", classifier_dropout}),
                  head_class<TokenClassification>({"token-classification"},
                                                  {&mobilebert_heads, "ForTokenClassification", classifier_dropout})},
  });
}

}  // namespace calque::mobilebert
