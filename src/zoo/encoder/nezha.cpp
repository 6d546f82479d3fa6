// NEZHA: BERT with fixed (sinusoidal) encodings of the distances between tokens, in the scores and in the values, instead of
// positions in the embeddings.
#include <cmath>

#include "calque/base/error.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/model_info.h"
#include "calque/hub/registry.h"
#include "calque/nn/functional.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/einsum.h"
#include "calque/op/aten/embedding.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/shaping.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "zoo/blocks/bert_model.h"
#include "zoo/blocks/query_key_value.h"
#include "zoo/heads/bert_heads.h"

namespace calque::nezha {

namespace {

constexpr char nezha_family[] = "transformers.models.nezha.modeling_nezha.Nezha";

struct NezhaRelativePositionsEncoding : Typed<NezhaRelativePositionsEncoding> {
  static constexpr const char* torch_type = "transformers.models.nezha.modeling_nezha.NezhaRelativePositionsEncoding";
  static constexpr const char* forward_arguments[] = {"past", "length"};
  NezhaRelativePositionsEncoding(int64_t length, int64_t depth, int64_t farthest)
      : positions_encoding(register_buffer("positions_encoding", table(length, depth, farthest), false)) {}
  // [length - past, length, depth]: queries after the past, keys from the start.
  Tensor forward(const SymInt& past, const SymInt& length) {
    return positions_encoding->slice(0, past, length).slice(1, 0, length);
  }
  static Tensor table(int64_t length, int64_t depth, int64_t farthest) {
    const Tensor position = arange(2 * farthest + 1, DType::float32).unsqueeze(1);
    const Tensor steps =
        exp(arange((depth + 1) / 2, DType::float32) * 2 * (-std::log(10000.0) / static_cast<double>(depth)));
    const Tensor angles = position * steps;
    const Tensor by_distance = stack({sin(angles), cos(angles)}, -1).flatten(1).slice(1, 0, depth);
    const Tensor at = arange(length);
    const Tensor distance = clamp(at.unsqueeze(0) - at.unsqueeze(1), -farthest, farthest) + farthest;
    return embedding(by_distance, distance);
  }
  Buffer positions_encoding;
};

struct NezhaSelfAttention : Typed<NezhaSelfAttention, QueryKeyValue> {
  static constexpr const char* torch_type = "transformers.models.nezha.modeling_nezha.NezhaSelfAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "head_mask", "past_key_value"};
  using Result = BertSelfAttention::Result;
  explicit NezhaSelfAttention(const Config& c)
      : Typed(c),
        relative_positions_encoding(child<NezhaRelativePositionsEncoding>(
            "relative_positions_encoding", c.integer("max_position_embeddings"), size, c.integer("max_relative_position"))) {
  }
  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask, const LayerCache& past) {
    const Tensor query_layer = split_heads(query(hidden_states), heads, size);
    const Tensor key_layer = split_heads(key(hidden_states), heads, size);
    const LayerCache now = past.updated(key_layer, split_heads(value(hidden_states), heads, size));
    const SymInt total = now.key.sym_size(2);
    const Tensor relations = relative_positions_encoding(past.length(), total);
    Tensor scores = matmul(query_layer, now.key.transpose(-1, -2)) + einsum("bhld,lrd->bhlr", {query_layer, relations});
    scores = scores / std::sqrt(static_cast<double>(size));
    Tensor may = mask.mask;
    if (mask.is_causal) may = tril(ones({total, total}, DType::bool_, std::nullopt, scores.device()));
    if (may.defined()) scores = scores + additive_mask(may, scores.dtype());
    Tensor weights = dropout(softmax(scores, -1));
    if (head_mask.defined()) weights = weights * head_mask;
    const Tensor context = matmul(weights, now.value) + einsum("bhlr,lrd->bhld", {weights, relations});
    return {join_heads(context), weights, now};
  }
  Child<NezhaRelativePositionsEncoding> relative_positions_encoding;
};

struct NezhaAttention : Typed<NezhaAttention> {
  static constexpr const char* torch_type = "transformers.models.nezha.modeling_nezha.NezhaAttention";
  static constexpr auto& forward_arguments = NezhaSelfAttention::forward_arguments;
  explicit NezhaAttention(const Config& c)
      : self(child<NezhaSelfAttention>("self", c)),
        output(child<BertResidual>("output", c, std::string(nezha_family) + "SelfOutput", c.integer("hidden_size"))) {}
  NezhaSelfAttention::Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask,
                                     const LayerCache& past) {
    auto [attended, weights, now] = self(hidden_states, mask, head_mask, past);
    return {output(attended, hidden_states), weights, now};
  }
  Child<NezhaSelfAttention> self;
  Child<BertResidual> output;
};

struct NezhaLayer : Checkpointed<Typed<NezhaLayer>> {
  static constexpr const char* torch_type = "transformers.models.nezha.modeling_nezha.NezhaLayer";
  static constexpr auto& forward_arguments = BertLayer::forward_arguments;
  explicit NezhaLayer(const Config& c)
      : attention(child<NezhaAttention>("attention", c)),
        intermediate(child<BertIntermediate>("intermediate", c, nezha_family)),
        output(child<BertResidual>("output", c, std::string(nezha_family) + "Output", c.integer("intermediate_size"))) {
    if (c.flag("add_cross_attention"))
      throw UserError(ErrorKind::bad_file,
                      c.where() + ": add_cross_attention is true; distances to an encoder's tokens are not defined");
  }
  BertLayer::Result forward(const Tensor& hidden_states, const AttentionMask& mask, const Tensor& head_mask, const Tensor&,
                            const AttentionMask&, const LayerCache& past, bool) {
    auto [x, weights, now] = attention(hidden_states, mask, head_mask, past);
    return {output(intermediate(x), x), weights, Tensor(), now};
  }
  Child<NezhaAttention> attention;
  Child<BertIntermediate> intermediate;
  Child<BertResidual> output;
};

struct NezhaEncoder : Typed<NezhaEncoder> {
  static constexpr const char* torch_type = "transformers.models.nezha.modeling_nezha.NezhaEncoder";
  static constexpr const char* forward_arguments[] = {"inputs"};
  explicit NezhaEncoder(const Config& c) : layer(child<ModuleList>("layer")) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) layer->emplace<NezhaLayer>(c);
  }
  EncoderResult forward(const EncoderInputs& in) { return run_layers<NezhaLayer>(*layer, in); }
  Child<ModuleList> layer;
};

struct NezhaPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "nezha"; }
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override { return {"positions_encoding"}; }
  void init_weights(Module& module) override {
    if (!init_bert_head(module)) PretrainedModel::init_weights(module);
  }
};

struct NezhaModel : BertLikeModel<NezhaModel, NezhaPretrained, NezhaEncoder> {
  static constexpr const char* torch_type = "transformers.models.nezha.modeling_nezha.NezhaModel";
  static constexpr ModelArgument forward_arguments[] = {arg::input_ids, arg::attention_mask,    arg::token_type_ids,
                                                        arg::head_mask, arg::inputs_embeds,     arg::past_key_values,
                                                        arg::use_cache, arg::output_attentions, arg::output_hidden_states};
  explicit NezhaModel(const Config& c, bool pools = true) : BertLikeModel(c, pools, nezha_family, {.positions = false}) {}
  ModelOutput forward(const ModelInputs& in) override {
    check_one_input(in);
    warn_if_padding_and_no_attention_mask(*this, in[arg::input_ids], in[arg::attention_mask]);
    return BertLikeModel::forward(in);
  }
};

constexpr HeadFamily nezha_heads{nezha_family, "nezha", made_model<NezhaModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "nezha",
      .config_class = "NezhaConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 21128, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512, "max_relative_position": 64, "type_vocab_size": 2, "initializer_range": 0.02,
        "layer_norm_eps": 1e-12, "classifier_dropout": 0.1, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3,
        "use_cache": true, "tie_word_embeddings": true})",
      .schema = {.keys = {{"max_relative_position", KeyKind::size}},
                 .relations = {multiple("hidden_size", "num_attention_heads")},
                 .tables = {{"max_position_embeddings", "max_position_embeddings", "hidden_size"}}},
      .classes = {model_class<NezhaModel>("NezhaModel", {"default"}),
                  head_class<BertPreTraining>({"pretraining"}, {&nezha_heads, "ForPreTraining"}),
                  head_class<BertNextSentence>({"next-sentence-prediction"}, {&nezha_heads, "ForNextSentencePrediction"}),
                  head_class<BertMaskedLM>({"masked-lm"}, {&nezha_heads, "ForMaskedLM"}),
                  head_class<MultipleChoice>({"multiple-choice"}, {&nezha_heads, "ForMultipleChoice", classifier_dropout}),
                  head_class<SpanClassification>({"question-answering"}, {&nezha_heads, "ForQuestionAnswering"}),
                  head_class<PooledClassification>({"sequence-classification"},
                                                   {&nezha_heads, "ForSequenceClassification", classifier_dropout}),
                  head_class<TokenClassification>({"token-classification"},
                                                  {&nezha_heads, "ForTokenClassification", classifier_dropout})},
  });
}

}  // namespace calque::nezha
