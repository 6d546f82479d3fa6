// BLOOM: no position embeddings; scores sink with the distance of the key, by another slope for each head (ALiBi).
#include "calque/grad/autograd.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/container.h"
#include "calque/nn/dropout.h"
#include "calque/nn/functional.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/unary.h"
#include "zoo/blocks/alibi.h"
#include "zoo/blocks/attention.h"
#include "zoo/heads/decoder_heads.h"

namespace calque::bloom {

namespace {

// A Linear over slices of its input that are summed, without its bias: how BLOOM was trained on several devices.
Tensor sliced_linear(const Tensor& x, const Tensor& weight, int64_t slices) {
  const double step = static_cast<double>(weight.size(1)) / static_cast<double>(slices);
  const auto edge = [&](int64_t i) { return static_cast<int64_t>(static_cast<double>(i) * step); };
  Tensor sum;
  for (int64_t i = 0; i < slices; ++i) {
    const Tensor part = linear(x.slice(2, edge(i), edge(i + 1)), weight.slice(1, edge(i), edge(i + 1)));
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

struct BloomAttention : Typed<BloomAttention> {
  static constexpr const char* torch_type = "transformers.models.bloom.modeling_bloom.BloomAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "residual",  "alibi", "attention_mask",
                                                      "layer_past",    "head_mask", "eager"};
  using Result = std::tuple<Tensor, Tensor, LayerCache>;  // output, weights, keys and values

  explicit BloomAttention(const Config& c)
      : heads(c.integer("num_attention_heads")),
        size(c.integer("hidden_size") / heads),
        slices(c.flag("slow_but_exact") ? c.integer("pretraining_tp") : 1),
        hidden_dropout(c.number("hidden_dropout")),
        query_key_value(child<Linear>("query_key_value", c.integer("hidden_size"), 3 * c.integer("hidden_size"))),
        dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"))),
        attention_dropout(child<Dropout>("attention_dropout", c.number("attention_dropout"))) {}

  Result forward(const Tensor& x, const Tensor& residual, const Tensor& alibi, const AttentionMask& mask,
                 const LayerCache& past, const Tensor& head_mask, bool eager) {
    const Tensor fused = query_key_value(x);
    const Tensor all = fused.view({fused.sym_size(0), fused.sym_size(1), heads, 3, size});
    const auto part = [&](int64_t i) { return all.select(3, i).transpose(1, 2); };
    const LayerCache now = past.updated(part(1), part(2));
    const AttentionResult attended = attend(part(0), now.key, now.value, mask,
                                            {.dropout = training() ? attention_dropout->p : 0,
                                             .dropout_layer = &*attention_dropout,
                                             .eager = eager,
                                             .head_mask = head_mask,
                                             .position_bias = alibi,
                                             .softmax_in_float32 = true});
    const Tensor out = slices > 1 ? sliced_linear(attended.output, dense->weight, slices) : dense(attended.output);
    return {residual + functional::dropout(out, hidden_dropout, training()), attended.weights, now};
  }

  int64_t heads, size, slices;
  double hidden_dropout;
  Child<Linear> query_key_value, dense;
  Child<Dropout> attention_dropout;
};

Tensor tanh_of_gelu(const Tensor& x) { return tanh(0.79788456 * x * (1 + 0.044715 * x * x)); }

// The gradient has the rounded factors with which BLOOM was trained: 0.1070322243 is sqrt(2 / pi) * 3 * 0.044715.
struct GeLUFunction final : GradFunction {
  std::string name() const override { return "GeLUFunction"; }
  TensorVector forward(const TensorVector& inputs) override {
    const Tensor& x = inputs[0];
    save_for_backward({x});
    return {x * 0.5 * (1.0 + tanh_of_gelu(x))};
  }
  TensorVector backward(const TensorVector& grads) override {
    const Tensor x = saved_tensors()[0];
    const Tensor inner = tanh_of_gelu(x);
    const Tensor slope = 0.5 * x * ((1 - inner * inner) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1 + inner);
    return {slope * grads[0]};
  }
};

struct BloomGelu : Typed<BloomGelu> {
  static constexpr const char* torch_type = "transformers.models.bloom.modeling_bloom.BloomGelu";
  static constexpr const char* forward_arguments[] = {"x"};
  Tensor forward(const Tensor& x) { return apply_function(std::make_shared<GeLUFunction>(), {x})[0]; }
};

struct BloomMLP : Typed<BloomMLP> {
  static constexpr const char* torch_type = "transformers.models.bloom.modeling_bloom.BloomMLP";
  static constexpr const char* forward_arguments[] = {"hidden_states", "residual"};
  explicit BloomMLP(const Config& c)
      : slices(c.flag("slow_but_exact") ? c.integer("pretraining_tp") : 1),
        hidden_dropout(c.number("hidden_dropout")),
        dense_h_to_4h(child<Linear>("dense_h_to_4h", c.integer("hidden_size"), 4 * c.integer("hidden_size"))),
        gelu_impl(child<BloomGelu>("gelu_impl")),
        dense_4h_to_h(child<Linear>("dense_4h_to_h", 4 * c.integer("hidden_size"), c.integer("hidden_size"))) {}
  Tensor forward(const Tensor& x, const Tensor& residual) {
    const Tensor inner = gelu_impl(dense_h_to_4h(x));
    const Tensor out = slices > 1 ? sliced_linear(inner, dense_4h_to_h->weight, slices) : dense_4h_to_h(inner);
    return residual + functional::dropout(out, hidden_dropout, training());
  }
  int64_t slices;
  double hidden_dropout;
  Child<Linear> dense_h_to_4h;
  Child<BloomGelu> gelu_impl;
  Child<Linear> dense_4h_to_h;
};

struct BloomBlock : Checkpointed<Typed<BloomBlock>> {
  static constexpr const char* torch_type = "transformers.models.bloom.modeling_bloom.BloomBlock";
  static constexpr const char* forward_arguments[] = {"hidden_states", "alibi",     "attention_mask",
                                                      "layer_past",    "head_mask", "eager"};
  explicit BloomBlock(const Config& c)
      : residual_after_norm(c.flag("apply_residual_connection_post_layernorm")),
        input_layernorm(child<LayerNorm>("input_layernorm", c.integer("hidden_size"),
                                         LayerNormOptions{.eps = c.number("layer_norm_epsilon")})),
        self_attention(child<BloomAttention>("self_attention", c)),
        post_attention_layernorm(child<LayerNorm>("post_attention_layernorm", c.integer("hidden_size"),
                                                  LayerNormOptions{.eps = c.number("layer_norm_epsilon")})),
        mlp(child<BloomMLP>("mlp", c)) {}
  BloomAttention::Result forward(const Tensor& x, const Tensor& alibi, const AttentionMask& mask, const LayerCache& past,
                                 const Tensor& head_mask, bool eager) {
    const Tensor before = input_layernorm(x);
    auto [attended, weights, now] =
        self_attention(before, residual_after_norm ? before : x, alibi, mask, past, head_mask, eager);
    const Tensor after = post_attention_layernorm(attended);
    return {mlp(after, residual_after_norm ? after : attended), weights, now};
  }
  bool residual_after_norm;
  Child<LayerNorm> input_layernorm;
  Child<BloomAttention> self_attention;
  Child<LayerNorm> post_attention_layernorm;
  Child<BloomMLP> mlp;
};

struct BloomPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "transformer"; }
  std::vector<std::string> no_split_modules() const override { return {"BloomBlock"}; }
};

struct BloomModel : ModelOf<BloomModel, BloomPretrained> {
  static constexpr const char* torch_type = "transformers.models.bloom.modeling_bloom.BloomModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids, arg::past_key_values,   arg::attention_mask,       arg::inputs_embeds,
      arg::use_cache, arg::output_attentions, arg::output_hidden_states, arg::head_mask};
  explicit BloomModel(const Config& c)
      : ModelOf(c),
        word_embeddings(child<Embedding>("word_embeddings", c.integer("vocab_size"), c.integer("hidden_size"))),
        word_embeddings_layernorm(child<LayerNorm>("word_embeddings_layernorm", c.integer("hidden_size"),
                                                   LayerNormOptions{.eps = c.number("layer_norm_epsilon")})),
        h(child<ModuleList>("h")),
        ln_f(child<LayerNorm>("ln_f", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_epsilon")})),
        slopes(register_constant("alibi_slopes", alibi_slopes(c.integer("num_attention_heads")))) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) h->emplace<BloomBlock>(c);
  }

  ModelOutput forward(const ModelInputs& in) override {
    const Tensor embeds = embedded(in, word_embeddings);
    const SymInt past = in[arg::past_key_values].length();
    const bool eager = eager_attention(config(), wants_attentions(in), in[arg::head_mask]);
    const Tensor distances = alibi_positions(embeds, in[arg::attention_mask], past);
    const AttentionMask mask = causal_mask(embeds, in[arg::attention_mask], {.past = past});

    Tensor x = word_embeddings_layernorm(embeds);
    const Tensor alibi = (slopes->view({1, -1, 1, 1}) * distances).to(x.dtype());
    LayerOutputs outputs(*this, in);
    x = outputs.run<BloomBlock>(*h, x, [&](BloomBlock& block, const Tensor& state, size_t i) {
      return block(state, alibi, mask, in[arg::past_key_values].layer(i), head_mask_of_layer(in[arg::head_mask], i), eager);
    });
    return outputs.with_last(ln_f(x));
  }

  Child<Embedding>* input_embeddings() override { return &word_embeddings; }

  Child<Embedding> word_embeddings;
  Child<LayerNorm> word_embeddings_layernorm;
  Child<ModuleList> h;
  Child<LayerNorm> ln_f;
  Constant slopes;
};

void complete(Config& config) {
  if (config.has("n_embed")) config.set("hidden_size", config.integer("n_embed"));
}

constexpr HeadFamily bloom_heads{"transformers.models.bloom.modeling_bloom.Bloom", "transformer", made_model<BloomModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "bloom",
      .config_class = "BloomConfig",
      .attribute_map = {{"num_hidden_layers", "n_layer"}, {"num_attention_heads", "n_head"}},
      .defaults = R"({"vocab_size": 250880, "hidden_size": 64, "n_layer": 2, "n_head": 8, "layer_norm_epsilon": 1e-05,
        "initializer_range": 0.02, "use_cache": true, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": null,
        "apply_residual_connection_post_layernorm": false, "hidden_dropout": 0.0, "attention_dropout": 0.0, "pretraining_tp": 1,
        "slow_but_exact": false, "tie_word_embeddings": true})",
      .schema = {.keys = {{"n_embed", KeyKind::size}}, .relations = {multiple("hidden_size", "n_head")}},
      .complete = complete,
      .classes = {model_class<BloomModel>("BloomModel", {"default"}),
                  head_class<CausalLM>({"causal-lm", "pretraining"},
                                       {.family = &bloom_heads, .part = "ForCausalLM", .embedding = "word_embeddings"}),
                  head_class<LastTokenClassification>({"sequence-classification"},
                                                      {&bloom_heads, "ForSequenceClassification"}),
                  head_class<DecoderTokenClassification>({"token-classification"}, {&bloom_heads, "ForTokenClassification"}),
                  head_class<QuestionAnswering>({"question-answering"}, {&bloom_heads, "ForQuestionAnswering"})},
  });
}

}  // namespace calque::bloom
