// GPT-J: attention and feed-forward side by side after one norm; the first numbers of each head turn with the position,
// neighbours together.
#include "calque/base/error.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/container.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/dropout.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/attention.h"
#include "zoo/blocks/gpt_attention.h"
#include "zoo/blocks/rotary.h"
#include "zoo/heads/decoder_heads.h"

namespace calque::gptj {

namespace {

int64_t rotary_size(const Config& c) { return c.optional_integer("rotary_dim").value_or(c.integer("hidden_size")); }

struct GPTJAttention : Typed<GPTJAttention, GptAttention> {
  static constexpr const char* torch_type = "transformers.models.gptj.modeling_gptj.GPTJAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "cosine",    "sine", "attention_mask",
                                                      "layer_past",    "head_mask", "eager"};

  explicit GPTJAttention(const Config& c)
      : Typed(c, Options{.attention_dropout = "attn_pdrop", .residual_dropout = "resid_pdrop"}), turning(rotary_size(c)) {
    if (turning > size)
      throw UserError(ErrorKind::bad_file, c.where() + ": rotary_dim is " + std::to_string(turning) +
                                               ", expected at most the head size (" + std::to_string(size) + ")");
  }

  Result forward(const Tensor& x, const Tensor& cosine, const Tensor& sine, const AttentionMask& mask,
                 const LayerCache& past, const Tensor& head_mask, bool eager) {
    const Tensor query = turned(split_heads(q_proj(x), heads, size), cosine, sine);
    const Tensor key = turned(split_heads(k_proj(x), heads, size), cosine, sine);
    return attended(x, query, key, mask, past, head_mask, eager);
  }
  Tensor turned(const Tensor& x, const Tensor& cosine, const Tensor& sine) const {
    if (turning == size) return apply_interleaved_rotary(x, cosine, sine);
    return cat({apply_interleaved_rotary(x.slice(-1, 0, turning), cosine, sine), x.slice(-1, turning)}, -1);
  }

  int64_t turning;
};

struct GPTJMLP : Typed<GPTJMLP> {
  static constexpr const char* torch_type = "transformers.models.gptj.modeling_gptj.GPTJMLP";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit GPTJMLP(const Config& c)
      : fc_in(child<Linear>("fc_in", c.integer("hidden_size"), inner_size(c))),
        fc_out(child<Linear>("fc_out", inner_size(c), c.integer("hidden_size"))),
        act(activation_named(c.text("activation_function"))),
        dropout(child<Dropout>("dropout", c.number("resid_pdrop"))) {}
  static int64_t inner_size(const Config& c) { return c.optional_integer("n_inner").value_or(4 * c.integer("hidden_size")); }
  Tensor forward(const Tensor& x) { return dropout(fc_out(act(fc_in(x)))); }
  Child<Linear> fc_in, fc_out;
  Activation act;
  Child<Dropout> dropout;
};

struct GPTJBlock : Checkpointed<Typed<GPTJBlock>> {
  static constexpr const char* torch_type = "transformers.models.gptj.modeling_gptj.GPTJBlock";
  static constexpr auto& forward_arguments = GPTJAttention::forward_arguments;
  explicit GPTJBlock(const Config& c)
      : ln_1(child<LayerNorm>("ln_1", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_epsilon")})),
        attn(child<GPTJAttention>("attn", c)),
        mlp(child<GPTJMLP>("mlp", c)) {}
  GPTJAttention::Result forward(const Tensor& x, const Tensor& cosine, const Tensor& sine, const AttentionMask& mask,
                                const LayerCache& past, const Tensor& head_mask, bool eager) {
    const Tensor y = ln_1(x);
    auto [attended, weights, now] = attn(y, cosine, sine, mask, past, head_mask, eager);
    return {attended + mlp(y) + x, weights, now};
  }
  Child<LayerNorm> ln_1;
  Child<GPTJAttention> attn;
  Child<GPTJMLP> mlp;
};

struct GPTJPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "transformer"; }
  std::vector<std::string> no_split_modules() const override { return {"GPTJBlock"}; }
  // Causal masks that old versions stored.
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override {
    return {R"(attn\.bias)", R"(attn\.masked_bias)"};
  }
};

struct GPTJModel : ModelOf<GPTJModel, GPTJPretrained> {
  static constexpr const char* torch_type = "transformers.models.gptj.modeling_gptj.GPTJModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,     arg::past_key_values, arg::attention_mask,    arg::token_type_ids,       arg::position_ids,
      arg::inputs_embeds, arg::use_cache,       arg::output_attentions, arg::output_hidden_states, arg::head_mask};
  explicit GPTJModel(const Config& c)
      : ModelOf(c),
        wte(child<Embedding>("wte", c.integer("vocab_size"), c.integer("hidden_size"))),
        drop(child<Dropout>("drop", c.number("embd_pdrop"))),
        h(child<ModuleList>("h")),
        ln_f(child<LayerNorm>("ln_f", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_epsilon")})),
        rotary_emb(child<RotaryEmbedding>("rotary_emb", 10000.0, rotary_size(c), true)) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) h->emplace<GPTJBlock>(c);
  }

  ModelOutput forward(const ModelInputs& in) override {
    const Tensor embeds = embedded(in, wte);
    const SymInt past = in[arg::past_key_values].length();
    const Tensor positions = in[arg::position_ids].defined() ? in[arg::position_ids] : positions_after(past, embeds);
    const bool eager = eager_attention(config(), wants_attentions(in), in[arg::head_mask]);
    const AttentionMask mask = causal_mask(embeds, in[arg::attention_mask], {.past = past});
    const std::tuple<Tensor, Tensor> angles = rotary_emb(embeds, positions);

    Tensor x = drop(with_token_types(embeds, in[arg::token_type_ids], wte));
    LayerOutputs outputs(*this, in);
    x = outputs.run<GPTJBlock>(*h, x, [&](GPTJBlock& block, const Tensor& state, size_t i) {
      return block(state, std::get<0>(angles), std::get<1>(angles), mask, in[arg::past_key_values].layer(i),
                   head_mask_of_layer(in[arg::head_mask], i), eager);
    });
    return outputs.with_last(ln_f(x));
  }

  Child<Embedding>* input_embeddings() override { return &wte; }

  Child<Embedding> wte;
  Child<Dropout> drop;
  Child<ModuleList> h;
  Child<LayerNorm> ln_f;
  Child<RotaryEmbedding> rotary_emb;
};

constexpr HeadFamily gptj_heads{"transformers.models.gptj.modeling_gptj.GPTJ", "transformer", made_model<GPTJModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "gptj",
      .config_class = "GPTJConfig",
      .attribute_map = {{"max_position_embeddings", "n_positions"},
                        {"hidden_size", "n_embd"},
                        {"num_attention_heads", "n_head"},
                        {"num_hidden_layers", "n_layer"}},
      .defaults =
          R"({"vocab_size": 50400, "n_positions": 2048, "n_embd": 4096, "n_layer": 28, "n_head": 16, "rotary_dim": 64,
        "n_inner": null, "activation_function": "gelu_new", "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
        "layer_norm_epsilon": 1e-05, "initializer_range": 0.02, "use_cache": true, "bos_token_id": 50256, "eos_token_id": 50256,
        "pad_token_id": null, "tie_word_embeddings": false})",
      .schema = {.keys = {{"n_positions", KeyKind::length}}, .relations = {multiple("n_embd", "n_head")}},
      .classes = {model_class<GPTJModel>("GPTJModel", {"default"}),
                  head_class<CausalLM>({"causal-lm"},
                                       {.family = &gptj_heads, .part = "ForCausalLM", .embedding = "wte", .bias = true}),
                  head_class<LastTokenClassification>({"sequence-classification"},
                                                      {&gptj_heads, "ForSequenceClassification"}),
                  head_class<QuestionAnswering>({"question-answering"}, {&gptj_heads, "ForQuestionAnswering"})},
  });
}

}  // namespace calque::gptj
