// DistilBERT: BERT's encoder without token types and pooling, under names of its own.
#include <cmath>

#include "calque/hub/checkpointing.h"
#include "calque/hub/registry.h"
#include "calque/hub/resize.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/unary.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/bert_embeddings.h"
#include "zoo/blocks/bert_encoder.h"
#include "zoo/heads/encoder_heads.h"

namespace calque::distilbert {

namespace {

constexpr LayerNormOptions distilbert_norm{.eps = 1e-12};

// [positions, size]: sines and cosines take turns.
Tensor alternating_sinusoids(int64_t positions, int64_t size) {
  const Tensor steps = pow(10000.0, arange((size + 1) / 2, DType::float64) * 2 / static_cast<double>(size));
  const Tensor angles = arange(positions, DType::float64).unsqueeze(1) / steps;
  return stack({sin(angles), cos(angles)}, -1).flatten(1).slice(1, 0, size).to(DType::float32);
}

struct DistilBertEmbeddings : Typed<DistilBertEmbeddings>, ResizablePositions {
  static constexpr const char* torch_type = "transformers.models.distilbert.modeling_distilbert.Embeddings";
  static constexpr const char* forward_arguments[] = {"input_ids", "inputs_embeds", "position_ids"};
  explicit DistilBertEmbeddings(const Config& c)
      : sinusoidal(c.flag("sinusoidal_pos_embds")),
        word_embeddings(child<Embedding>("word_embeddings", c.integer("vocab_size"), c.integer("dim"),
                                         EmbeddingOptions{.padding_idx = c.optional_integer("pad_token_id")})),
        position_embeddings(child<Embedding>("position_embeddings", c.integer("max_position_embeddings"), c.integer("dim"))),
        norm(child<LayerNorm>("LayerNorm", c.integer("dim"), distilbert_norm)),
        dropout(child<Dropout>("dropout", c.number("dropout"))),
        position_ids(register_buffer("position_ids", arange(c.integer("max_position_embeddings")).unsqueeze(0), false)) {}
  Tensor forward(const Tensor& input_ids, const Tensor& inputs_embeds, const Tensor& given_positions) {
    const Tensor words = inputs_embeds.defined() ? inputs_embeds : word_embeddings(input_ids);
    const Tensor positions = given_positions.defined() ? given_positions : position_ids->slice(1, 0, words.sym_size(1));
    return dropout(norm(words + position_embeddings(positions)));
  }
  void resize_positions(int64_t count) override {
    Embedding& table = *position_embeddings;
    const Tensor old = table.weight->detach();
    Tensor now = sinusoidal ? alternating_sinusoids(count, old.size(1)) : randn({count, old.size(1)});
    if (const int64_t kept = std::min(count, old.size(0)); !sinusoidal) now.slice(0, 0, kept).copy_(old.slice(0, 0, kept));
    now = now.to(old.dtype());
    now.set_requires_grad(table.weight->requires_grad());
    table.weight = now;
    table.num_embeddings = count;
    position_ids = arange(count).unsqueeze(0);
  }
  bool sinusoidal;
  Child<Embedding> word_embeddings, position_embeddings;
  Child<LayerNorm> norm;
  Child<Dropout> dropout;
  Buffer position_ids;
};

struct DistilBertSelfAttention : Typed<DistilBertSelfAttention>, PrunableAttention {
  static constexpr const char* torch_type = "transformers.models.distilbert.modeling_distilbert.DistilBertSelfAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "head_mask", "eager"};
  explicit DistilBertSelfAttention(const Config& c)
      : heads(c.integer("n_heads")),
        size(c.integer("dim") / heads),
        q_lin(child<Linear>("q_lin", c.integer("dim"), c.integer("dim"))),
        k_lin(child<Linear>("k_lin", c.integer("dim"), c.integer("dim"))),
        v_lin(child<Linear>("v_lin", c.integer("dim"), c.integer("dim"))),
        out_lin(child<Linear>("out_lin", c.integer("dim"), c.integer("dim"))),
        dropout(child<Dropout>("dropout", c.number("attention_dropout"))) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const AttentionMask& mask, const Tensor& head_mask, bool eager) {
    AttentionOptions options{.dropout = training() ? dropout->p : 0, .dropout_layer = &*dropout, .eager = eager};
    options.head_mask = head_mask;
    const Tensor query = split_heads(q_lin(x), heads, size);
    const Tensor key = split_heads(k_lin(x), heads, size);
    const AttentionResult attended = attend(query, key, split_heads(v_lin(x), heads, size), mask, options);
    return {out_lin(attended.output), attended.weights};
  }
  void prune_heads(const std::vector<int64_t>& asked) override {
    prune_attention(asked, heads, size, pruned_heads, {&*q_lin, &*k_lin, &*v_lin}, *out_lin);
  }
  std::set<int64_t> pruned_heads;
  int64_t heads, size;
  Child<Linear> q_lin, k_lin, v_lin, out_lin;
  Child<Dropout> dropout;
};

struct DistilBertFFN : Typed<DistilBertFFN> {
  static constexpr const char* torch_type = "transformers.models.distilbert.modeling_distilbert.FFN";
  explicit DistilBertFFN(const Config& c)
      : dropout(child<Dropout>("dropout", c.number("dropout"))),
        lin1(child<Linear>("lin1", c.integer("dim"), c.integer("hidden_dim"))),
        lin2(child<Linear>("lin2", c.integer("hidden_dim"), c.integer("dim"))),
        activation(activation_named(c.text("activation"))) {}
  Tensor forward(const Tensor& input) { return dropout(lin2(activation(lin1(input)))); }
  Child<Dropout> dropout;
  Child<Linear> lin1, lin2;
  Activation activation;
};

struct DistilBertBlock : Checkpointed<Typed<DistilBertBlock>> {
  static constexpr const char* torch_type = "transformers.models.distilbert.modeling_distilbert.TransformerBlock";
  static constexpr auto& forward_arguments = DistilBertSelfAttention::forward_arguments;
  explicit DistilBertBlock(const Config& c)
      : attention(child<DistilBertSelfAttention>("attention", c)),
        sa_layer_norm(child<LayerNorm>("sa_layer_norm", c.integer("dim"), distilbert_norm)),
        ffn(child<DistilBertFFN>("ffn", c)),
        output_layer_norm(child<LayerNorm>("output_layer_norm", c.integer("dim"), distilbert_norm)) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                     bool eager) {
    auto [attended, weights] = attention(hidden_states, mask, head_mask, eager);
    const Tensor x = sa_layer_norm(attended + hidden_states);
    return {output_layer_norm(ffn(x) + x), weights};
  }
  Child<DistilBertSelfAttention> attention;
  Child<LayerNorm> sa_layer_norm;
  Child<DistilBertFFN> ffn;
  Child<LayerNorm> output_layer_norm;
};

struct DistilBertTransformer : Typed<DistilBertTransformer> {
  static constexpr const char* torch_type = "transformers.models.distilbert.modeling_distilbert.Transformer";
  static constexpr const char* forward_arguments[] = {"inputs"};
  explicit DistilBertTransformer(const Config& c) : layer(child<ModuleList>("layer")) {
    for (int64_t i = 0; i < c.integer("n_layers"); ++i) layer->emplace<DistilBertBlock>(c);
  }
  EncoderResult forward(const EncoderInputs& in) { return run_encoder_layers<DistilBertBlock>(*layer, in); }
  Child<ModuleList> layer;
};

struct DistilBertPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "distilbert"; }
  void init_weights(Module& module) override {
    PretrainedModel::init_weights(module);
    auto* embeddings = dynamic_cast<DistilBertEmbeddings*>(&module);
    if (!embeddings || !embeddings->sinusoidal) return;
    const GradModeScope no_grad(false);
    const Tensor& table = *embeddings->position_embeddings->weight;
    table.copy_(alternating_sinusoids(table.size(0), table.size(1)));
  }
};

struct DistilBertModel : ModelOf<DistilBertModel, DistilBertPretrained> {
  static constexpr const char* torch_type = "transformers.models.distilbert.modeling_distilbert.DistilBertModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids, arg::attention_mask,    arg::inputs_embeds,       arg::position_ids,
      arg::head_mask, arg::output_attentions, arg::output_hidden_states};
  explicit DistilBertModel(const Config& c, bool = false)
      : ModelOf(c),
        embeddings(child<DistilBertEmbeddings>("embeddings", c)),
        transformer(child<DistilBertTransformer>("transformer", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    check_one_input(in);
    const Tensor embedded = embeddings(in[arg::input_ids], in[arg::inputs_embeds], in[arg::position_ids]);
    return encoder_output(transformer(encoder_inputs(*this, in, embedded)));
  }
  Child<Embedding>* input_embeddings() override { return &embeddings->word_embeddings; }
  Child<DistilBertEmbeddings> embeddings;
  Child<DistilBertTransformer> transformer;
};

constexpr HeadFamily distilbert_heads{"transformers.models.distilbert.modeling_distilbert.DistilBert", "distilbert",
                                      made_model<DistilBertModel>};

constexpr ModelArgument distilbert_arguments[] = {
    arg::input_ids,    arg::attention_mask, arg::inputs_embeds,     arg::labels,
    arg::position_ids, arg::head_mask,      arg::output_attentions, arg::output_hidden_states};

struct DistilBertForMaskedLM : CopiedAs<DistilBertForMaskedLM, EncoderHead> {
  DistilBertForMaskedLM(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false, distilbert_arguments),
        activation(activation_named(c.text("activation"))),
        vocab_transform(child<Linear>("vocab_transform", c.integer("dim"), c.integer("dim"))),
        vocab_layer_norm(child<LayerNorm>("vocab_layer_norm", c.integer("dim"), distilbert_norm)),
        vocab_projector(child<Linear>("vocab_projector", c.integer("dim"), c.integer("vocab_size"))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const Tensor x = vocab_layer_norm(activation(vocab_transform(base["last_hidden_state"])));
    return masked_lm_output(base, vocab_projector(x), in[arg::labels]);
  }
  TiedWeights tied_weights() const override {
    if (!config().flag("tie_word_embeddings")) return {};
    return {{"vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"}};
  }
  Child<Linear>* output_embeddings() override { return &vocab_projector; }
  Activation activation;
  Child<Linear> vocab_transform;
  Child<LayerNorm> vocab_layer_norm;
  Child<Linear> vocab_projector;
};

// A layer and a relu on the first token, then the classifier.
struct DistilBertClassifier : EncoderHead {
  DistilBertClassifier(const HeadClass& head, const Config& c, int64_t outputs)
      : EncoderHead(head, c, false, distilbert_arguments),
        pre_classifier(child<Linear>("pre_classifier", c.integer("dim"), c.integer("dim"))),
        classifier(child<Linear>("classifier", c.integer("dim"), outputs)),
        dropout(child<Dropout>("dropout", c.number("seq_classif_dropout"))) {}
  Tensor classified(const Tensor& hidden_states) {
    return classifier(dropout(relu(pre_classifier(hidden_states.select(1, 0)))));
  }
  Child<Linear> pre_classifier, classifier;
  Child<Dropout> dropout;
};

struct DistilBertForSequenceClassification : CopiedAs<DistilBertForSequenceClassification, DistilBertClassifier> {
  DistilBertForSequenceClassification(const HeadClass& head, const Config& c) : CopiedAs(head, c, num_labels(c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return sequence_classification_output(config(), base, classified(base["last_hidden_state"]), in[arg::labels]);
  }
};

struct DistilBertForMultipleChoice : CopiedAs<DistilBertForMultipleChoice, DistilBertClassifier> {
  DistilBertForMultipleChoice(const HeadClass& head, const Config& c) : CopiedAs(head, c, 1) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(choices_as_rows(in));
    return multiple_choice_output(base, classified(base["last_hidden_state"]), in);
  }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return example_choices(*this, sizes); }
};

struct DistilBertForQuestionAnswering : CopiedAs<DistilBertForQuestionAnswering, EncoderHead> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,    arg::attention_mask, arg::inputs_embeds,     arg::start_positions,     arg::end_positions,
      arg::position_ids, arg::head_mask,      arg::output_attentions, arg::output_hidden_states};
  DistilBertForQuestionAnswering(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false, forward_arguments),
        qa_outputs(child<Linear>("qa_outputs", c.integer("dim"), num_labels(c))),
        dropout(child<Dropout>("dropout", c.number("qa_dropout"))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return span_output(base, qa_outputs(dropout(base["last_hidden_state"])), in);
  }
  Child<Linear> qa_outputs;
  Child<Dropout> dropout;
};

double distilbert_dropout(const Config& c) { return c.number("dropout"); }

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "distilbert",
      .config_class = "DistilBertConfig",
      .attribute_map = {{"hidden_size", "dim"}, {"num_attention_heads", "n_heads"}, {"num_hidden_layers", "n_layers"}},
      .defaults = R"({"vocab_size": 30522, "max_position_embeddings": 512, "sinusoidal_pos_embds": false, "n_layers": 6,
        "n_heads": 12, "dim": 768, "hidden_dim": 3072, "dropout": 0.1, "attention_dropout": 0.1, "activation": "gelu",
        "initializer_range": 0.02, "qa_dropout": 0.1, "seq_classif_dropout": 0.2, "pad_token_id": 0, "eos_token_id": null,
        "bos_token_id": null, "tie_word_embeddings": true})",
      .schema = {.relations = {multiple("dim", "n_heads")}},
      .classes = {model_class<DistilBertModel>("DistilBertModel", {"default"}),
                  head_class<DistilBertForMaskedLM>({"pretraining", "masked-lm"}, {&distilbert_heads, "ForMaskedLM"}),
                  head_class<DistilBertForMultipleChoice>({"multiple-choice"}, {&distilbert_heads, "ForMultipleChoice"}),
                  head_class<DistilBertForQuestionAnswering>({"question-answering"},
                                                             {&distilbert_heads, "ForQuestionAnswering"}),
                  head_class<DistilBertForSequenceClassification>({"sequence-classification"},
                                                                  {&distilbert_heads, "ForSequenceClassification"}),
                  head_class<TokenClassification>({"token-classification"}, {.family = &distilbert_heads,
                                                                             .part = "ForTokenClassification",
                                                                             .dropout = distilbert_dropout,
                                                                             .arguments = distilbert_arguments})},
  });
}

}  // namespace calque::distilbert
