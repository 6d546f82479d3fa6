// Megatron-BERT: BERT with the norms before attention and feed-forward and one after the last layer.
#include "calque/base/error.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/model_info.h"
#include "calque/hub/registry.h"
#include "calque/op/aten/dropout.h"
#include "zoo/blocks/bert_model.h"
#include "zoo/heads/bert_heads.h"

namespace calque::megatron_bert {

namespace {

constexpr char megatron_family[] = "transformers.models.megatron_bert.modeling_megatron_bert.MegatronBert";

LayerNormOptions megatron_norm(const Config& c) { return {.eps = c.number("layer_norm_eps")}; }

// dense, dropout, residual; the norm is elsewhere.
struct MegatronBertResidual : NamedModule<MegatronBertResidual> {
  static constexpr const char* forward_arguments[] = {"hidden_states", "residual"};
  MegatronBertResidual(const Config& c, const char* part, int64_t in_features)
      : NamedModule(std::string(megatron_family) + part),
        dense(child<Linear>("dense", in_features, c.integer("hidden_size"))),
        dropout(child<Dropout>("dropout", c.number("hidden_dropout_prob"))) {}
  Tensor forward(const Tensor& hidden_states, const Tensor& residual) { return residual + dropout(dense(hidden_states)); }
  Child<Linear> dense;
  Child<Dropout> dropout;
};

struct MegatronBertAttention : Typed<MegatronBertAttention> {
  static constexpr const char* torch_type = "transformers.models.megatron_bert.modeling_megatron_bert.MegatronBertAttention";
  static constexpr auto& forward_arguments = BertSelfAttention::forward_arguments;
  explicit MegatronBertAttention(const Config& c, bool cross = false)
      : ln(child<LayerNorm>("ln", c.integer("hidden_size"), megatron_norm(c))),
        self(child<BertSelfAttention>("self", c, megatron_family, cross)),
        output(child<MegatronBertResidual>("output", c, "SelfOutput", c.integer("hidden_size"))) {}
  BertSelfAttention::Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                    const Tensor& encoder_hidden_states, const LayerCache& past, bool eager) {
    auto [attended, weights, now] = self(ln(hidden_states), mask, head_mask, encoder_hidden_states, past, eager);
    return {output(attended, hidden_states), weights, now};
  }
  Child<LayerNorm> ln;
  Child<BertSelfAttention> self;
  Child<MegatronBertResidual> output;
};

struct MegatronBertLayer : Checkpointed<Typed<MegatronBertLayer>> {
  static constexpr const char* torch_type = "transformers.models.megatron_bert.modeling_megatron_bert.MegatronBertLayer";
  static constexpr auto& forward_arguments = BertLayer::forward_arguments;
  explicit MegatronBertLayer(const Config& c)
      : attention(child<MegatronBertAttention>("attention", c)),
        crossattention(child_if<MegatronBertAttention>(c.flag("add_cross_attention"), *this, "crossattention", c, true)),
        ln(child<LayerNorm>("ln", c.integer("hidden_size"), megatron_norm(c))),
        intermediate(child<BertIntermediate>("intermediate", c, megatron_family)),
        output(child<MegatronBertResidual>("output", c, "Output", c.integer("intermediate_size"))) {
    if (crossattention && !c.flag("is_decoder"))
      throw UserError(ErrorKind::bad_file, c.where() + ": add_cross_attention is true, expected is_decoder to be true too");
  }
  BertLayer::Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                            const Tensor& encoder_hidden_states, const AttentionMask& encoder_mask, const LayerCache& past,
                            bool eager) {
    auto [x, weights, now] = attention(hidden_states, mask, head_mask, Tensor(), past, eager);
    Tensor cross_weights;
    if (encoder_hidden_states.defined()) {
      if (!crossattention)
        throw UserError(class_name() +
                        ": encoder_hidden_states are given, but the model has no cross attention: set add_cross_attention "
                        "in the config");
      auto [y, its_weights, both] = (*crossattention)(x, encoder_mask, head_mask, encoder_hidden_states, now, eager);
      x = y;
      cross_weights = its_weights;
      now = both;
    }
    return {output(intermediate(ln(x)), x), weights, cross_weights, now};
  }
  Child<MegatronBertAttention> attention;
  std::optional<Child<MegatronBertAttention>> crossattention;
  Child<LayerNorm> ln;
  Child<BertIntermediate> intermediate;
  Child<MegatronBertResidual> output;
};

struct MegatronBertEncoder : Typed<MegatronBertEncoder> {
  static constexpr const char* torch_type = "transformers.models.megatron_bert.modeling_megatron_bert.MegatronBertEncoder";
  static constexpr const char* forward_arguments[] = {"inputs"};
  explicit MegatronBertEncoder(const Config& c)
      : layer(child<ModuleList>("layer")), ln(child<LayerNorm>("ln", c.integer("hidden_size"), megatron_norm(c))) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layer->emplace<MegatronBertLayer>(c);
  }
  EncoderResult forward(const EncoderInputs& in) {
    EncoderResult out = run_layers<MegatronBertLayer>(*layer, in);
    out.last_hidden_state = ln(out.last_hidden_state);
    if (in.want_hidden_states) out.hidden_states.back() = out.last_hidden_state;
    return out;
  }
  Child<ModuleList> layer;
  Child<LayerNorm> ln;
};

struct MegatronBertPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "bert"; }
  void init_weights(Module& module) override {
    if (!init_bert_head(module)) PretrainedModel::init_weights(module);
  }
};

struct MegatronBertModel : BertLikeModel<MegatronBertModel, MegatronBertPretrained, MegatronBertEncoder> {
  static constexpr const char* torch_type = "transformers.models.megatron_bert.modeling_megatron_bert.MegatronBertModel";
  explicit MegatronBertModel(const Config& c, bool pools = true)
      : BertLikeModel(c, pools, megatron_family, {.norm = false}) {}
  ModelOutput forward(const ModelInputs& in) override {
    check_one_input(in);
    warn_if_padding_and_no_attention_mask(*this, in[arg::input_ids], in[arg::attention_mask]);
    return BertLikeModel::forward(in);
  }
};

constexpr HeadFamily megatron_bert_heads{megatron_family, "bert", made_model<MegatronBertModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "megatron-bert",
      .config_class = "MegatronBertConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 29056, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
        "intermediate_size": 4096, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
        "pad_token_id": 0, "bos_token_id": null, "eos_token_id": null, "use_cache": true, "is_decoder": false,
        "add_cross_attention": false, "tie_word_embeddings": true})",
      .schema = bert_schema(),
      .classes = {model_class<MegatronBertModel>("MegatronBertModel", {"default"}),
                  head_class<BertPreTraining>({"pretraining"}, {&megatron_bert_heads, "ForPreTraining"}),
                  head_class<BertNextSentence>({"next-sentence-prediction"},
                                               {&megatron_bert_heads, "ForNextSentencePrediction"}),
                  head_class<BertMaskedLM>({"masked-lm"}, {&megatron_bert_heads, "ForMaskedLM"}),
                  head_class<BertCausalLM>({"causal-lm"}, {&megatron_bert_heads, "ForCausalLM"}),
                  head_class<MultipleChoice>({"multiple-choice"},
                                             {&megatron_bert_heads, "ForMultipleChoice", hidden_dropout}),
                  head_class<SpanClassification>({"question-answering"}, {&megatron_bert_heads, "ForQuestionAnswering"}),
                  head_class<PooledClassification>({"sequence-classification"},
                                                   {&megatron_bert_heads, "ForSequenceClassification", hidden_dropout}),
                  head_class<TokenClassification>({"token-classification"},
                                                  {&megatron_bert_heads, "ForTokenClassification", hidden_dropout})},
  });
}

}  // namespace calque::megatron_bert
