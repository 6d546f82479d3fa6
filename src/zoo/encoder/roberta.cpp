// RoBERTa: BERT's encoder with positions that start behind the padding's, and heads of its own.
#include "calque/hub/registry.h"
#include "calque/nn/init.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/scans.h"
#include "calque/op/aten/unary.h"
#include "zoo/blocks/bert_model.h"
#include "zoo/heads/encoder_heads.h"

namespace calque::roberta {

namespace {

constexpr char roberta_family[] = "transformers.models.roberta.modeling_roberta.Roberta";

struct RobertaLMHead : Typed<RobertaLMHead> {
  static constexpr const char* torch_type = "transformers.models.roberta.modeling_roberta.RobertaLMHead";
  static constexpr const char* forward_arguments[] = {"features"};
  explicit RobertaLMHead(const Config& c)
      : dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"))),
        layer_norm(
            child<LayerNorm>("layer_norm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        decoder(child<Linear>("decoder", c.integer("hidden_size"), c.integer("vocab_size"))),
        bias(register_parameter("bias", zeros({c.integer("vocab_size")}))) {}
  Tensor forward(const Tensor& features) { return decoder(layer_norm(gelu(dense(features)))); }
  Child<Linear> dense;
  Child<LayerNorm> layer_norm;
  Child<Linear> decoder;
  Parameter bias;  // the decoder's, where word embeddings are tied
};

// Of the first token.
struct RobertaClassificationHead : Typed<RobertaClassificationHead> {
  static constexpr const char* torch_type = "transformers.models.roberta.modeling_roberta.RobertaClassificationHead";
  static constexpr const char* forward_arguments[] = {"features"};
  explicit RobertaClassificationHead(const Config& c)
      : dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"))),
        dropout(child<Dropout>("dropout", classifier_dropout(c))),
        out_proj(child<Linear>("out_proj", c.integer("hidden_size"), num_labels(c))) {}
  Tensor forward(const Tensor& features) {
    const Tensor x = tanh(dense(dropout(features.select(1, 0))));
    return out_proj(dropout(x));
  }
  Child<Linear> dense;
  Child<Dropout> dropout;
  Child<Linear> out_proj;
};

struct RobertaPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "roberta"; }
  std::vector<std::string> no_split_modules() const override { return {"RobertaEmbeddings", "RobertaLayer"}; }
  void init_weights(Module& module) override {
    PretrainedModel::init_weights(module);
    if (auto* head = dynamic_cast<RobertaLMHead*>(&module)) init::zeros_(head->bias);
  }
};

struct RobertaModel : BertLikeModel<RobertaModel, RobertaPretrained, BertEncoder> {
  static constexpr const char* torch_type = "transformers.models.roberta.modeling_roberta.RobertaModel";
  explicit RobertaModel(const Config& c, bool pools = true)
      : BertLikeModel(c, pools, roberta_family, {.position_padding = c.optional_integer("pad_token_id")}) {}

  ModelOutput forward(const ModelInputs& given) override {
    ModelInputs in = given;
    check_one_input(in);
    if (!in[arg::position_ids].defined()) in.set(arg::position_ids, positions(in));
    return BertLikeModel::forward(in);
  }

 private:
  // Padding has the position of its own id; the other tokens count on from there.
  Tensor positions(const ModelInputs& in) const {
    const int64_t padding = config().integer("pad_token_id");
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
};

PretrainedModel::TiedWeights tied_lm_head(const Config& config) {
  if (!config.flag("tie_word_embeddings")) return {};
  return {{"lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"}, {"lm_head.decoder.bias", "lm_head.bias"}};
}

struct RobertaForMaskedLM : CopiedAs<RobertaForMaskedLM, EncoderHead> {
  RobertaForMaskedLM(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false, bert_masked_lm_arguments), lm_head(child<RobertaLMHead>("lm_head", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return masked_lm_output(base, lm_head(base["last_hidden_state"]), in[arg::labels]);
  }
  TiedWeights tied_weights() const override { return tied_lm_head(config()); }
  Child<Linear>* output_embeddings() override { return &lm_head->decoder; }
  Child<RobertaLMHead> lm_head;
};

struct RobertaForCausalLM : CopiedAs<RobertaForCausalLM, EncoderHead> {
  RobertaForCausalLM(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false, bert_causal_lm_arguments), lm_head(child<RobertaLMHead>("lm_head", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    return causal_lm_output(in, model, [&](const Tensor& x) { return lm_head(x); });
  }
  TiedWeights tied_weights() const override { return tied_lm_head(config()); }
  bool can_generate() const override { return true; }
  Child<Linear>* output_embeddings() override { return &lm_head->decoder; }
  Child<RobertaLMHead> lm_head;
};

struct RobertaForSequenceClassification : CopiedAs<RobertaForSequenceClassification, EncoderHead> {
  RobertaForSequenceClassification(const HeadClass& head, const Config& c)
      : CopiedAs(head, c, false), classifier(child<RobertaClassificationHead>("classifier", c)) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return sequence_classification_output(config(), base, classifier(base["last_hidden_state"]), in[arg::labels]);
  }
  Child<RobertaClassificationHead> classifier;
};

constexpr HeadFamily roberta_heads{roberta_family, "roberta", made_model<RobertaModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "roberta",
      .config_class = "RobertaConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
        "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "use_cache": true, "classifier_dropout": null,
        "is_decoder": false, "add_cross_attention": false, "tie_word_embeddings": true})",
      .schema = bert_schema(),
      .classes = {model_class<RobertaModel>("RobertaModel", {"default"}),
                  head_class<RobertaForMaskedLM>({"pretraining", "masked-lm"}, {&roberta_heads, "ForMaskedLM"}),
                  head_class<RobertaForCausalLM>({"causal-lm"}, {&roberta_heads, "ForCausalLM"}),
                  head_class<MultipleChoice>({"multiple-choice"}, {&roberta_heads, "ForMultipleChoice", hidden_dropout}),
                  head_class<SpanClassification>({"question-answering"}, {&roberta_heads, "ForQuestionAnswering"}),
                  head_class<RobertaForSequenceClassification>({"sequence-classification"},
                                                               {&roberta_heads, "ForSequenceClassification"}),
                  head_class<TokenClassification>({"token-classification"},
                                                  {&roberta_heads, "ForTokenClassification", classifier_dropout})},
  });
}

}  // namespace calque::roberta
