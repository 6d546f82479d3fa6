// ELECTRA: BERT's encoder with embeddings of their own size; a generator of words and a discriminator of replaced ones.
#include "calque/base/error.h"
#include "calque/hub/registry.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/losses.h"
#include "calque/op/aten/norms.h"
#include "zoo/blocks/bert_embeddings.h"
#include "zoo/blocks/bert_encoder.h"
#include "zoo/heads/encoder_heads.h"

namespace calque::electra {

namespace {

constexpr char electra_family[] = "transformers.models.electra.modeling_electra.Electra";

struct ElectraPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "electra"; }
};

struct ElectraModel : ModelOf<ElectraModel, ElectraPretrained> {
  static constexpr const char* torch_type = "transformers.models.electra.modeling_electra.ElectraModel";
  static constexpr auto& forward_arguments = bert_arguments;
  explicit ElectraModel(const Config& c, bool = false)
      : ModelOf(c),
        embeddings(child<BertEmbeddings>("embeddings", c, electra_family,
                                         BertEmbeddingsOptions{.size = c.integer("embedding_size")})),
        embeddings_project(child_if<Linear>(c.integer("embedding_size") != c.integer("hidden_size"), *this,
                                            "embeddings_project", c.integer("embedding_size"), c.integer("hidden_size"))),
        encoder(child<BertEncoder>("encoder", c, electra_family)) {}

  ModelOutput forward(const ModelInputs& in) override {
    const Tensor embedded = embed(embeddings, in);
    return encoder_output(
        encoder(encoder_inputs(*this, in, embeddings_project ? (*embeddings_project)(embedded) : embedded)));
  }
  Child<Embedding>* input_embeddings() override { return &embeddings->word_embeddings; }

  Child<BertEmbeddings> embeddings;
  std::optional<Child<Linear>> embeddings_project;
  Child<BertEncoder> encoder;
};

struct ElectraDiscriminatorPredictions : Typed<ElectraDiscriminatorPredictions> {
  static constexpr const char* torch_type = "transformers.models.electra.modeling_electra.ElectraDiscriminatorPredictions";
  static constexpr const char* forward_arguments[] = {"discriminator_hidden_states"};
  explicit ElectraDiscriminatorPredictions(const Config& c)
      : dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"))),
        activation(activation_named(c.text("hidden_act"))),
        dense_prediction(child<Linear>("dense_prediction", c.integer("hidden_size"), 1)) {}
  Tensor forward(const Tensor& hidden_states) { return dense_prediction(activation(dense(hidden_states))).squeeze(-1); }
  Child<Linear> dense;
  Activation activation;
  Child<Linear> dense_prediction;
};

struct ElectraGeneratorPredictions : Typed<ElectraGeneratorPredictions> {
  static constexpr const char* torch_type = "transformers.models.electra.modeling_electra.ElectraGeneratorPredictions";
  static constexpr const char* forward_arguments[] = {"generator_hidden_states"};
  explicit ElectraGeneratorPredictions(const Config& c)
      : norm(
            child<LayerNorm>("LayerNorm", c.integer("embedding_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("embedding_size"))) {}
  Tensor forward(const Tensor& hidden_states) { return norm(gelu(dense(hidden_states))); }
  Child<LayerNorm> norm;
  Child<Linear> dense;
};

// Of the first token.
struct ElectraClassificationHead : Typed<ElectraClassificationHead> {
  static constexpr const char* torch_type = "transformers.models.electra.modeling_electra.ElectraClassificationHead";
  static constexpr const char* forward_arguments[] = {"features"};
  explicit ElectraClassificationHead(const Config& c)
      : dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"))),
        dropout(child<Dropout>("dropout", classifier_dropout(c))),
        out_proj(child<Linear>("out_proj", c.integer("hidden_size"), num_labels(c))) {}
  Tensor forward(const Tensor& features) {
    const Tensor x = gelu(dense(dropout(features.select(1, 0))));
    return out_proj(dropout(x));
  }
  Child<Linear> dense;
  Child<Dropout> dropout;
  Child<Linear> out_proj;
};

// One vector of a sequence, by summary_type.
struct ElectraSequenceSummary : Typed<ElectraSequenceSummary> {
  static constexpr const char* torch_type = "transformers.models.electra.modeling_electra.ElectraSequenceSummary";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit ElectraSequenceSummary(const Config& c)
      : summary_type(c.optional_text("summary_type").value_or("last")),
        summary(child_if<Linear>(c.flag("summary_use_proj"), *this, "summary", c.integer("hidden_size"),
                                 c.flag("summary_proj_to_labels") ? num_labels(c) : c.integer("hidden_size"))),
        activation(c.has("summary_activation") ? activation_named(c.text("summary_activation")) : nullptr),
        first_dropout(child<Dropout>("first_dropout", c.optional_number("summary_first_dropout").value_or(0))),
        last_dropout(child<Dropout>("last_dropout", c.optional_number("summary_last_dropout").value_or(0))) {
    if (summary_type != "last" && summary_type != "first" && summary_type != "mean" && summary_type != "cls_index")
      throw UserError(ErrorKind::bad_file,
                      c.where() + ": \"summary_type\" is \"" + summary_type + "\", expected last, first, mean or cls_index");
  }
  Tensor forward(const Tensor& hidden_states) {
    Tensor x = summary_type == "first"  ? hidden_states.select(1, 0)
               : summary_type == "mean" ? hidden_states.mean({1})
                                        : hidden_states.select(1, -1);
    x = first_dropout(x);
    if (summary) x = (*summary)(x);
    if (activation) x = activation(x);
    return last_dropout(x);
  }
  std::string summary_type;
  std::optional<Child<Linear>> summary;
  Activation activation;
  Child<Dropout> first_dropout, last_dropout;
};

// Words from the generator's predictions, tied to the embeddings.
struct ElectraWords : EncoderHead {
  ElectraWords(const HeadClass& head, const Config& c, std::span<const ModelArgument> own)
      : EncoderHead(head, c, false, own),
        generator_predictions(child<ElectraGeneratorPredictions>("generator_predictions", c)),
        generator_lm_head(child<Linear>("generator_lm_head", c.integer("embedding_size"), c.integer("vocab_size"))) {}
  TiedWeights tied_weights() const override {
    if (!config().flag("tie_word_embeddings")) return {};
    return {{"generator_lm_head.weight", "electra.embeddings.word_embeddings.weight"}};
  }
  Child<Linear>* output_embeddings() override { return &generator_lm_head; }
  Child<ElectraGeneratorPredictions> generator_predictions;
  Child<Linear> generator_lm_head;
};

struct ElectraForMaskedLM : CopiedAs<ElectraForMaskedLM, ElectraWords> {
  ElectraForMaskedLM(const HeadClass& head, const Config& c) : CopiedAs(head, c, forward_arguments) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return masked_lm_output(base, generator_lm_head(generator_predictions(base["last_hidden_state"])), in[arg::labels]);
  }
};

struct ElectraForCausalLM : CopiedAs<ElectraForCausalLM, ElectraWords> {
  ElectraForCausalLM(const HeadClass& head, const Config& c) : CopiedAs(head, c, bert_causal_lm_arguments) {}
  ModelOutput forward(const ModelInputs& in) override {
    return causal_lm_output(in, model, [&](const Tensor& x) { return generator_lm_head(generator_predictions(x)); });
  }
  bool can_generate() const override { return true; }
};

struct ElectraForPreTraining : CopiedAs<ElectraForPreTraining, EncoderHead> {
  ElectraForPreTraining(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false),
        discriminator_predictions(child<ElectraDiscriminatorPredictions>("discriminator_predictions", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const Tensor logits = discriminator_predictions(base["last_hidden_state"]);
    return labelled_output(base, in[arg::labels].defined() ? loss(logits, in) : Tensor(), logits);
  }
  Child<ElectraDiscriminatorPredictions> discriminator_predictions;

 private:
  // The mean over tokens that are no padding, without picking them out: their number would be data.
  static Tensor loss(const Tensor& logits, const ModelInputs& in) {
    const Tensor labels = in[arg::labels].to(DType::float32);
    if (!in[arg::attention_mask].defined()) return binary_loss(logits, labels);
    const Tensor kept = eq(in[arg::attention_mask], 1).to(logits.dtype());
    const Tensor each = binary_cross_entropy_with_logits(logits, labels, {}, {}, 0);
    return (each * kept).sum() / kept.sum();
  }
};

struct ElectraForSequenceClassification : CopiedAs<ElectraForSequenceClassification, EncoderHead> {
  ElectraForSequenceClassification(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false), classifier(child<ElectraClassificationHead>("classifier", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return sequence_classification_output(config(), base, classifier(base["last_hidden_state"]), in[arg::labels]);
  }
  Child<ElectraClassificationHead> classifier;
};

struct ElectraForMultipleChoice : CopiedAs<ElectraForMultipleChoice, EncoderHead> {
  ElectraForMultipleChoice(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false),
        sequence_summary(child<ElectraSequenceSummary>("sequence_summary", c)),
        classifier(child<Linear>("classifier", c.integer("hidden_size"), 1)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(choices_as_rows(in));
    return multiple_choice_output(base, classifier(sequence_summary(base["last_hidden_state"])), in);
  }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return example_choices(*this, sizes); }
  Child<ElectraSequenceSummary> sequence_summary;
  Child<Linear> classifier;
};

constexpr HeadFamily electra_heads{electra_family, "electra", made_model<ElectraModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "electra",
      .config_class = "ElectraConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 30522, "embedding_size": 128, "hidden_size": 256, "num_hidden_layers": 12,
        "num_attention_heads": 4, "intermediate_size": 1024, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02,
        "layer_norm_eps": 1e-12, "summary_type": "first", "summary_use_proj": true, "summary_activation": "gelu",
        "summary_last_dropout": 0.1, "pad_token_id": 0, "use_cache": true, "classifier_dropout": null, "is_decoder": false,
        "add_cross_attention": false, "bos_token_id": null, "eos_token_id": null, "tie_word_embeddings": true})",
      .schema = bert_schema(),
      .classes = {model_class<ElectraModel>("ElectraModel", {"default"}),
                  head_class<ElectraForPreTraining>({"pretraining"}, {&electra_heads, "ForPreTraining"}),
                  head_class<ElectraForMaskedLM>({"masked-lm"}, {&electra_heads, "ForMaskedLM"}),
                  head_class<ElectraForCausalLM>({"causal-lm"}, {&electra_heads, "ForCausalLM"}),
                  head_class<ElectraForMultipleChoice>({"multiple-choice"}, {&electra_heads, "ForMultipleChoice"}),
                  head_class<SpanClassification>({"question-answering"}, {&electra_heads, "ForQuestionAnswering"}),
                  head_class<ElectraForSequenceClassification>({"sequence-classification"},
                                                               {&electra_heads, "ForSequenceClassification"}),
                  head_class<TokenClassification>({"token-classification"},
                                                  {&electra_heads, "ForTokenClassification", classifier_dropout})},
  });
}

}  // namespace calque::electra
