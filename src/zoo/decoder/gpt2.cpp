// GPT-2: learned positions, norms before attention and feed-forward, Conv1D weights, cross attention where asked for.
#include <cmath>
#include <set>

#include "calque/base/error.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/model_info.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/prune.h"
#include "calque/hub/registry.h"
#include "calque/nn/container.h"
#include "calque/nn/dropout.h"
#include "calque/nn/init.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/zeros.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/attention.h"
#include "zoo/blocks/child_if.h"
#include "zoo/blocks/conv1d.h"
#include "zoo/heads/decoder_heads.h"
#include "zoo/heads/sequence_summary.h"

namespace calque::gpt2 {

namespace {

struct GPT2Attention : Typed<GPT2Attention>, PrunableAttention {
  static constexpr const char* torch_type = "transformers.models.gpt2.modeling_gpt2.GPT2Attention";
  static constexpr const char* forward_arguments[] = {"hidden_states",         "attention_mask", "past_key_values",
                                                      "encoder_hidden_states", "head_mask",      "eager"};
  using Result = std::tuple<Tensor, Tensor, LayerCache>;  // output, weights, keys and values

  GPT2Attention(const Config& c, int64_t layer, bool cross)
      : width(c.integer("hidden_size")),
        heads(c.integer("num_attention_heads")),
        size(width / heads),
        cross(cross),
        upcast(c.flag("reorder_and_upcast_attn")),
        scale(c.flag("scale_attn_weights") ? 1 / std::sqrt(static_cast<double>(size)) : 1),
        c_attn(child<Conv1D>("c_attn", (cross ? 2 : 3) * width, width)),
        q_attn(child_if<Conv1D>(cross, *this, "q_attn", width, width)),
        c_proj(child<Conv1D>("c_proj", width, width)),
        attn_dropout(child<Dropout>("attn_dropout", c.number("attn_pdrop"))),
        resid_dropout(child<Dropout>("resid_dropout", c.number("resid_pdrop"))) {
    if (size * heads != width)
      throw UserError(ErrorKind::bad_file, c.where() + ": n_embd (" + std::to_string(width) +
                                               ") must be divisible by n_head (" + std::to_string(heads) + ")");
    if (c.flag("scale_attn_by_inverse_layer_idx")) scale /= static_cast<double>(layer + 1);
  }

  Result forward(const Tensor& x, const AttentionMask& mask, const LayerCache& past, const Tensor& encoder,
                 const Tensor& head_mask, bool eager) {
    Tensor query;
    LayerCache now = past;
    if (cross) {
      query = (*q_attn)(x);
      if (!past.cross_key.defined()) {
        const std::vector<Tensor> parts = c_attn(encoder).split(size * heads, 2);
        now.cross_key = split_heads(parts[0], heads, size);
        now.cross_value = split_heads(parts[1], heads, size);
      }
    } else {
      const std::vector<Tensor> parts = c_attn(x).split(size * heads, 2);
      query = parts[0];
      now = past.updated(split_heads(parts[1], heads, size), split_heads(parts[2], heads, size));
    }
    const AttentionResult attended =
        attend(split_heads(query, heads, size), cross ? now.cross_key : now.key, cross ? now.cross_value : now.value, mask,
               {.scale = scale,
                .dropout = training() ? attn_dropout->p : 0,
                .dropout_layer = &*attn_dropout,
                .eager = eager,
                .head_mask = head_mask,
                .scores_in_float32 = upcast});
    return {resid_dropout(c_proj(attended.output)), attended.weights, now};
  }

  void prune_heads(const std::vector<int64_t>& asked) override {
    const PruneableHeads found = find_pruneable_heads_and_indices(asked, heads, size, pruned_heads);
    if (found.heads.empty()) return;
    std::vector<int64_t> of_all;  // queries, keys and values side by side
    for (int64_t part = 0; part < 3; ++part)
      for (const int64_t i : found.index) of_all.push_back(i + part * heads * size);
    prune_layer(*c_attn, of_all, 1);
    prune_layer(*c_proj, found.index, 0);
    c_attn->out_features = static_cast<int64_t>(of_all.size());
    c_proj->in_features = static_cast<int64_t>(found.index.size());
    heads -= static_cast<int64_t>(found.heads.size());
    pruned_heads.insert(found.heads.begin(), found.heads.end());
  }
  bool is_self_attention() const override { return !cross; }

  std::set<int64_t> pruned_heads;
  int64_t width, heads, size;
  bool cross, upcast;
  double scale;
  Child<Conv1D> c_attn;
  std::optional<Child<Conv1D>> q_attn;
  Child<Conv1D> c_proj;
  Child<Dropout> attn_dropout, resid_dropout;
};

struct GPT2MLP : Typed<GPT2MLP> {
  static constexpr const char* torch_type = "transformers.models.gpt2.modeling_gpt2.GPT2MLP";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit GPT2MLP(const Config& c)
      : c_fc(child<Conv1D>("c_fc", inner_size(c), c.integer("hidden_size"))),
        c_proj(child<Conv1D>("c_proj", c.integer("hidden_size"), inner_size(c))),
        act(activation_named(c.text("activation_function"))),
        dropout(child<Dropout>("dropout", c.number("resid_pdrop"))) {}
  static int64_t inner_size(const Config& c) { return c.optional_integer("n_inner").value_or(4 * c.integer("hidden_size")); }
  Tensor forward(const Tensor& x) { return dropout(c_proj(act(c_fc(x)))); }
  Child<Conv1D> c_fc, c_proj;
  Activation act;
  Child<Dropout> dropout;
};

struct GPT2Block : Checkpointed<Typed<GPT2Block>> {
  static constexpr const char* torch_type = "transformers.models.gpt2.modeling_gpt2.GPT2Block";
  static constexpr const char* forward_arguments[] = {
      "hidden_states", "attention_mask", "past_key_values", "encoder_hidden_states", "encoder_attention_mask",
      "head_mask",     "eager"};
  using Result = std::tuple<Tensor, Tensor, Tensor, LayerCache>;  // hidden states, weights, cross weights, keys and values

  GPT2Block(const Config& c, int64_t layer)
      : ln_1(child<LayerNorm>("ln_1", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_epsilon")})),
        attn(child<GPT2Attention>("attn", c, layer, false)),
        ln_2(child<LayerNorm>("ln_2", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_epsilon")})),
        crossattention(child_if<GPT2Attention>(c.flag("add_cross_attention"), *this, "crossattention", c, layer, true)),
        ln_cross_attn(child_if<LayerNorm>(c.flag("add_cross_attention"), *this, "ln_cross_attn", c.integer("hidden_size"),
                                          LayerNormOptions{.eps = c.number("layer_norm_epsilon")})),
        mlp(child<GPT2MLP>("mlp", c)) {}

  Result forward(const Tensor& hidden_states, const AttentionMask& mask, const LayerCache& past, const Tensor& encoder,
                 const AttentionMask& encoder_mask, const Tensor& head_mask, bool eager) {
    auto [attended, weights, now] = attn(ln_1(hidden_states), mask, past, Tensor(), head_mask, eager);
    Tensor x = attended + hidden_states;
    Tensor cross_weights;
    if (encoder.defined()) {
      if (!crossattention)
        throw UserError(
            "encoder_hidden_states are given, but the model has no cross attention: set add_cross_attention in the config");
      auto [looked_up, its_weights, with_cross] =
          (*crossattention)((*ln_cross_attn)(x), encoder_mask, now, encoder, head_mask, eager);
      x = x + looked_up;
      cross_weights = its_weights;
      now = with_cross;
    }
    return {x + mlp(ln_2(x)), weights, cross_weights, now};
  }

  Child<LayerNorm> ln_1;
  Child<GPT2Attention> attn;
  Child<LayerNorm> ln_2;
  std::optional<Child<GPT2Attention>> crossattention;
  std::optional<Child<LayerNorm>> ln_cross_attn;
  Child<GPT2MLP> mlp;
};

struct GPT2Pretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "transformer"; }
  std::vector<std::string> no_split_modules() const override { return {"GPT2Block"}; }
  // Causal masks that old versions stored.
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override {
    return {R"(attn\.bias)", R"(attn\.masked_bias)", R"(crossattention\.bias)", R"(crossattention\.masked_bias)"};
  }
  // What ends a residual path starts smaller, by the number of paths.
  void init_weights(Module& module) override {
    const double range = config().number("initializer_range");
    const double smaller = range / std::sqrt(static_cast<double>(2 * config().integer("num_hidden_layers")));
    if (auto* conv = dynamic_cast<Conv1D*>(&module)) {
      init::normal_(conv->weight, 0, range);
      init::zeros_(conv->bias);
    } else if (auto* attention = dynamic_cast<GPT2Attention*>(&module)) {
      init::normal_(attention->c_proj->weight, 0, smaller);
    } else if (auto* mlp = dynamic_cast<GPT2MLP*>(&module)) {
      init::normal_(mlp->c_proj->weight, 0, smaller);
    } else {
      PretrainedModel::init_weights(module);
    }
  }
};

struct GPT2Model : ModelOf<GPT2Model, GPT2Pretrained> {
  static constexpr const char* torch_type = "transformers.models.gpt2.modeling_gpt2.GPT2Model";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,    arg::past_key_values,   arg::attention_mask,        arg::token_type_ids,
      arg::position_ids, arg::inputs_embeds,     arg::encoder_hidden_states, arg::encoder_attention_mask,
      arg::use_cache,    arg::output_attentions, arg::output_hidden_states,  arg::head_mask};
  explicit GPT2Model(const Config& c)
      : ModelOf(c),
        wte(child<Embedding>("wte", c.integer("vocab_size"), c.integer("hidden_size"))),
        wpe(child<Embedding>("wpe", c.integer("max_position_embeddings"), c.integer("hidden_size"))),
        drop(child<Dropout>("drop", c.number("embd_pdrop"))),
        h(child<ModuleList>("h")),
        ln_f(child<LayerNorm>("ln_f", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_epsilon")})) {
    for (int64_t i = 0; i < c.integer("num_hidden_layers"); ++i) h->emplace<GPT2Block>(c, i);
  }

  ModelOutput forward(const ModelInputs& in) override {
    ModelInputs flat;
    flat.set(arg::input_ids, rows(in[arg::input_ids]));
    flat.set(arg::inputs_embeds, in[arg::inputs_embeds]);
    const Tensor embeds = embedded(flat, wte);
    warn_if_padding_and_no_attention_mask(*this, in[arg::input_ids], in[arg::attention_mask]);
    const SymInt past = in[arg::past_key_values].length();
    const Tensor positions = in[arg::position_ids].defined() ? rows(in[arg::position_ids]) : positions_after(past, embeds);
    const bool eager = eager_attention(config(), wants_attentions(in), in[arg::head_mask]);
    const bool whole = in[arg::attention_mask].defined() && in[arg::attention_mask].dim() == 4;
    const AttentionMask mask =
        causal_mask(embeds, whole ? in[arg::attention_mask] : rows(in[arg::attention_mask]), {.past = past});
    const AttentionMask encoder_mask =
        in[arg::encoder_hidden_states].defined() ? bidirectional_mask(in[arg::encoder_attention_mask]) : AttentionMask{};

    Tensor x = embeds + wpe(positions);
    if (in[arg::token_type_ids].defined()) x = x + wte(rows(in[arg::token_type_ids]));
    x = drop(x);
    LayerOutputs outputs(*this, in);
    x = outputs.run<GPT2Block>(*h, x, [&](GPT2Block& block, const Tensor& state, size_t i) {
      return block(state, mask, in[arg::past_key_values].layer(i), in[arg::encoder_hidden_states], encoder_mask,
                   head_mask_of_layer(in[arg::head_mask], i), eager);
    });
    x = ln_f(x);
    // Ids of several choices [batch, choices, length] come back in that form.
    if (in[arg::input_ids].defined() && in[arg::input_ids].dim() > 2) {
      SymInts sizes(in[arg::input_ids].sym_sizes().begin(), in[arg::input_ids].sym_sizes().end());
      sizes.front() = -1;
      sizes.push_back(config().integer("hidden_size"));
      x = x.view(sizes);
    }
    return outputs.with_last(x);
  }
  static Tensor rows(const Tensor& x) { return !x.defined() || x.dim() == 2 ? x : x.view({-1, x.sym_size(-1)}); }

  Child<Embedding>* input_embeddings() override { return &wte; }

  Child<Embedding> wte, wpe;
  Child<Dropout> drop;
  Child<ModuleList> h;
  Child<LayerNorm> ln_f;
};

constexpr HeadFamily gpt2_heads{"transformers.models.gpt2.modeling_gpt2.GPT2", "transformer", made_model<GPT2Model>};

constexpr ModelArgument gpt2_lm_arguments[] = {
    arg::input_ids,      arg::past_key_values,       arg::attention_mask,         arg::token_type_ids, arg::position_ids,
    arg::inputs_embeds,  arg::encoder_hidden_states, arg::encoder_attention_mask, arg::labels,         arg::use_cache,
    arg::logits_to_keep, arg::output_attentions,     arg::output_hidden_states,   arg::head_mask};
constexpr ModelArgument gpt2_labelled_arguments[] = {
    arg::input_ids,         arg::past_key_values,      arg::attention_mask, arg::token_type_ids,
    arg::position_ids,      arg::inputs_embeds,        arg::labels,         arg::use_cache,
    arg::output_attentions, arg::output_hidden_states, arg::head_mask};
constexpr ModelArgument gpt2_span_arguments[] = {
    arg::input_ids,       arg::attention_mask, arg::token_type_ids,    arg::position_ids,         arg::inputs_embeds,
    arg::start_positions, arg::end_positions,  arg::output_attentions, arg::output_hidden_states, arg::head_mask};

struct GPT2SequenceSummary : Typed<GPT2SequenceSummary, SequenceSummary> {
  static constexpr const char* torch_type = "transformers.models.gpt2.modeling_gpt2.GPT2SequenceSummary";
  using Typed::Typed;
};

// One label, whatever the config says: a choice has one score.
Config with_one_label(Config config) {
  config.set("id2label", dict({{Value("0"), Value("LABEL_0")}}));
  config.set("label2id", dict({{Value("LABEL_0"), Value(0)}}));
  return config;
}

struct GPT2DoubleHeadsModel : CopiedAs<GPT2DoubleHeadsModel, CausalLM> {
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,         arg::past_key_values,      arg::attention_mask, arg::token_type_ids, arg::position_ids,
      arg::inputs_embeds,     arg::mc_token_ids,         arg::labels,         arg::mc_labels,      arg::use_cache,
      arg::output_attentions, arg::output_hidden_states, arg::head_mask};
  GPT2DoubleHeadsModel(const HeadClass& head, const Config& c)
      : CopiedAs(head, with_one_label(c)),
        multiple_choice_head(child<GPT2SequenceSummary>("multiple_choice_head", config())) {}

  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const Tensor& hidden = base["last_hidden_state"];
    const Tensor logits = lm_head(hidden);
    const Tensor mc_logits = multiple_choice_head(hidden, in[arg::mc_token_ids]).squeeze(-1);
    ModelOutput out;
    if (in[arg::labels].defined()) {
      const Tensor predicting = logits.slice(-2, 0, -1).contiguous();
      const Tensor next = in[arg::labels].slice(-1, 1).contiguous();
      out.set("loss", class_loss(predicting.view({-1, predicting.sym_size(-1)}), next.view({-1})));
    }
    if (in[arg::mc_labels].defined())
      out.set("mc_loss", class_loss(mc_logits.view({-1, mc_logits.sym_size(-1)}), in[arg::mc_labels].view({-1})));
    out.set("logits", logits);
    out.set("mc_logits", mc_logits);
    out.take(base, {"past_key_values", "hidden_states", "attentions"});
    return out;
  }
  // Its forward looks at all logits.
  ModelOutput forward_best(const ModelInputs& in, BestLogit&) override { return forward(in); }
  ModelInputs example_inputs(const ExampleSizes& sizes) const override {
    ModelInputs in = example_tokens(*this, {sizes.batch, sizes.choices, sizes.length});
    in.set(arg::mc_token_ids, full({sizes.batch, sizes.choices}, sizes.length - 1, DType::int64));
    return in;
  }
  Child<GPT2SequenceSummary> multiple_choice_head;
};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "gpt2",
      .config_class = "GPT2Config",
      .attribute_map = {{"hidden_size", "n_embd"},
                        {"max_position_embeddings", "n_positions"},
                        {"num_attention_heads", "n_head"},
                        {"num_hidden_layers", "n_layer"}},
      .defaults = R"({"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": null,
        "activation_function": "gelu_new", "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1, "layer_norm_epsilon": 1e-05,
        "initializer_range": 0.02, "summary_type": "cls_index", "summary_use_proj": true, "summary_activation": null,
        "summary_proj_to_labels": true, "summary_first_dropout": 0.1, "scale_attn_weights": true, "use_cache": true,
        "bos_token_id": 50256, "eos_token_id": 50256, "pad_token_id": null, "scale_attn_by_inverse_layer_idx": false,
        "reorder_and_upcast_attn": false, "add_cross_attention": false, "tie_word_embeddings": true})",
      .schema = {.relations = {multiple("n_embd", "n_head")}},
      .classes = {model_class<GPT2Model>("GPT2Model", {"default"}),
                  head_class<CausalLM>(
                      {"causal-lm", "pretraining"},
                      {.family = &gpt2_heads, .part = "LMHeadModel", .arguments = gpt2_lm_arguments, .embedding = "wte"}),
                  head_class<GPT2DoubleHeadsModel>({"special"}, {.family = &gpt2_heads,
                                                                 .part = "DoubleHeadsModel",
                                                                 .arguments = GPT2DoubleHeadsModel::forward_arguments,
                                                                 .embedding = "wte"}),
                  head_class<LastTokenClassification>(
                      {"sequence-classification"},
                      {.family = &gpt2_heads, .part = "ForSequenceClassification", .arguments = gpt2_labelled_arguments}),
                  head_class<DecoderTokenClassification>(
                      {"token-classification"},
                      {.family = &gpt2_heads, .part = "ForTokenClassification", .arguments = gpt2_labelled_arguments}),
                  head_class<QuestionAnswering>(
                      {"question-answering"},
                      {.family = &gpt2_heads, .part = "ForQuestionAnswering", .arguments = gpt2_span_arguments})},
  });
}

}  // namespace calque::gpt2
