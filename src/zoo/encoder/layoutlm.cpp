// LayoutLM: BERT whose embeddings also say where on the page a token stands (bbox: left, top, right, bottom).
#include "calque/hub/model_info.h"
#include "calque/hub/registry.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/zeros.h"
#include "zoo/blocks/bert_embeddings.h"
#include "zoo/blocks/bert_encoder.h"
#include "zoo/heads/bert_heads.h"

namespace calque::layoutlm {

namespace {

constexpr const char* layoutlm_family = "transformers.models.layoutlm.modeling_layoutlm.LayoutLM";

struct LayoutLMEmbeddings : Typed<LayoutLMEmbeddings> {
  static constexpr const char* torch_type = "transformers.models.layoutlm.modeling_layoutlm.LayoutLMEmbeddings";
  static constexpr const char* forward_arguments[] = {"input_ids", "bbox", "token_type_ids", "position_ids",
                                                      "inputs_embeds"};
  explicit LayoutLMEmbeddings(const Config& c)
      : word_embeddings(child<Embedding>("word_embeddings", c.integer("vocab_size"), c.integer("hidden_size"),
                                         EmbeddingOptions{.padding_idx = c.optional_integer("pad_token_id")})),
        position_embeddings(
            child<Embedding>("position_embeddings", c.integer("max_position_embeddings"), c.integer("hidden_size"))),
        x_position_embeddings(
            child<Embedding>("x_position_embeddings", c.integer("max_2d_position_embeddings"), c.integer("hidden_size"))),
        y_position_embeddings(
            child<Embedding>("y_position_embeddings", c.integer("max_2d_position_embeddings"), c.integer("hidden_size"))),
        h_position_embeddings(
            child<Embedding>("h_position_embeddings", c.integer("max_2d_position_embeddings"), c.integer("hidden_size"))),
        w_position_embeddings(
            child<Embedding>("w_position_embeddings", c.integer("max_2d_position_embeddings"), c.integer("hidden_size"))),
        token_type_embeddings(
            child<Embedding>("token_type_embeddings", c.integer("type_vocab_size"), c.integer("hidden_size"))),
        norm(child<LayerNorm>("LayerNorm", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_eps")})),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))),
        position_ids(register_buffer("position_ids", arange(c.integer("max_position_embeddings")).unsqueeze(0), false)) {}

  Tensor forward(const Tensor& input_ids, const Tensor& bbox, const Tensor& given_types, const Tensor& given_positions,
                 const Tensor& inputs_embeds) {
    const Tensor words = inputs_embeds.defined() ? inputs_embeds : word_embeddings(input_ids);
    const SymInt batch = words.sym_size(0), length = words.sym_size(1);
    const Tensor positions = given_positions.defined() ? given_positions : position_ids->slice(1, 0, length);
    const Tensor types =
        given_types.defined() ? given_types : zeros({batch, length}, DType::int64, std::nullopt, words.device());
    const Tensor box = bbox.defined() ? bbox : zeros({batch, length, 4}, DType::int64, std::nullopt, words.device());
    const Tensor left = box.select(-1, 0), top = box.select(-1, 1), right = box.select(-1, 2), bottom = box.select(-1, 3);
    Tensor x = words + position_embeddings(positions);
    x = x + x_position_embeddings(left);
    x = x + y_position_embeddings(top);
    x = x + x_position_embeddings(right);
    x = x + y_position_embeddings(bottom);
    x = x + h_position_embeddings(bottom - top);
    x = x + w_position_embeddings(right - left);
    x = x + token_type_embeddings(types);
    return dropout(norm(x));
  }

  Child<Embedding> word_embeddings, position_embeddings;
  Child<Embedding> x_position_embeddings, y_position_embeddings, h_position_embeddings, w_position_embeddings;
  Child<Embedding> token_type_embeddings;
  Child<LayerNorm> norm;
  Child<Dropout> dropout;
  Buffer position_ids;
};

struct LayoutLMPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "layoutlm"; }
  void init_weights(Module& module) override {
    if (!init_bert_head(module)) PretrainedModel::init_weights(module);
  }
};

struct LayoutLMModel : ModelOf<LayoutLMModel, LayoutLMPretrained> {
  static constexpr const char* torch_type = "transformers.models.layoutlm.modeling_layoutlm.LayoutLMModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,     arg::bbox,      arg::attention_mask,    arg::token_type_ids,      arg::position_ids,
      arg::inputs_embeds, arg::head_mask, arg::output_attentions, arg::output_hidden_states};
  explicit LayoutLMModel(const Config& c, bool = true)
      : ModelOf(c),
        embeddings(child<LayoutLMEmbeddings>("embeddings", c)),
        encoder(child<BertEncoder>("encoder", c, layoutlm_family)),
        pooler(child<BertPooler>("pooler", c, layoutlm_family)) {}
  ModelOutput forward(const ModelInputs& in) override {
    check_one_input(in);
    warn_if_padding_and_no_attention_mask(*this, in[arg::input_ids], in[arg::attention_mask]);
    const Tensor embedded = embeddings(in[arg::input_ids], in[arg::bbox], in[arg::token_type_ids], in[arg::position_ids],
                                       in[arg::inputs_embeds]);
    const EncoderResult result = encoder(encoder_inputs(*this, in, embedded));
    return encoder_output(result, pooler(result.last_hidden_state));
  }
  Child<Embedding>* input_embeddings() override { return &embeddings->word_embeddings; }
  Child<LayoutLMEmbeddings> embeddings;
  Child<BertEncoder> encoder;
  Child<BertPooler> pooler;
};

constexpr ModelArgument layoutlm_arguments[] = {
    arg::input_ids,     arg::bbox,   arg::attention_mask, arg::token_type_ids,    arg::position_ids,
    arg::inputs_embeds, arg::labels, arg::head_mask,      arg::output_attentions, arg::output_hidden_states};

constexpr ModelArgument layoutlm_span_arguments[] = {arg::input_ids,           arg::bbox,
                                                     arg::attention_mask,      arg::token_type_ids,
                                                     arg::position_ids,        arg::inputs_embeds,
                                                     arg::start_positions,     arg::end_positions,
                                                     arg::head_mask,           arg::output_attentions,
                                                     arg::output_hidden_states};

constexpr HeadFamily layoutlm_heads{layoutlm_family, "layoutlm", made_model<LayoutLMModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "layoutlm",
      .config_class = "LayoutLMConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
        "pad_token_id": 0, "eos_token_id": null, "bos_token_id": null, "use_cache": true, "max_2d_position_embeddings": 1024,
        "tie_word_embeddings": true})",
      .schema = bert_schema({{"max_2d_position_embeddings", KeyKind::size}}),
      .classes = {model_class<LayoutLMModel>("LayoutLMModel", {"default"}),
                  head_class<BertMaskedLM>(
                      {"pretraining", "masked-lm"},
                      {.family = &layoutlm_heads, .part = "ForMaskedLM", .arguments = layoutlm_arguments}),
                  head_class<SpanClassification>(
                      {"document-question-answering"},
                      {.family = &layoutlm_heads, .part = "ForQuestionAnswering", .arguments = layoutlm_span_arguments}),
                  head_class<PooledClassification>({"sequence-classification"}, {.family = &layoutlm_heads,
                                                                                 .part = "ForSequenceClassification",
                                                                                 .dropout = hidden_dropout,
                                                                                 .arguments = layoutlm_arguments}),
                  head_class<TokenClassification>({"token-classification"}, {.family = &layoutlm_heads,
                                                                             .part = "ForTokenClassification",
                                                                             .dropout = hidden_dropout,
                                                                             .arguments = layoutlm_arguments})},
  });
}

}  // namespace calque::layoutlm
