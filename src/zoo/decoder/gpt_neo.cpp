// GPT-Neo: GPT-2's layout with Linear weights; layers that look at everything before them alternate with layers that look
// back only so far. Scores are not scaled.
#include "calque/base/error.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/pretrained_model.h"
#include "calque/hub/registry.h"
#include "calque/nn/container.h"
#include "calque/nn/dropout.h"
#include "calque/nn/linear.h"
#include "calque/nn/normalization.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/where.h"
#include "calque/tensor/finfo.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/attention.h"
#include "zoo/blocks/gpt_attention.h"
#include "zoo/heads/decoder_heads.h"

namespace calque::gpt_neo {

namespace {

struct GPTNeoSelfAttention : Typed<GPTNeoSelfAttention, GptAttention> {
  static constexpr const char* torch_type = "transformers.models.gpt_neo.modeling_gpt_neo.GPTNeoSelfAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "attention_mask", "layer_past", "head_mask", "eager"};

  explicit GPTNeoSelfAttention(const Config& c)
      : Typed(c, Options{.attention_dropout = "attention_dropout",
                         .residual_dropout = "resid_dropout",
                         .output_bias = true,
                         .scale = 1}) {}

  Result forward(const Tensor& x, const AttentionMask& mask, const LayerCache& past, const Tensor& head_mask, bool eager) {
    const Tensor query = split_heads(q_proj(x), heads, size);
    const Tensor key = split_heads(k_proj(x), heads, size);
    return attended(x, query, key, mask, past, head_mask, eager);
  }
};

struct GPTNeoAttention : Typed<GPTNeoAttention> {
  static constexpr const char* torch_type = "transformers.models.gpt_neo.modeling_gpt_neo.GPTNeoAttention";
  static constexpr auto& forward_arguments = GPTNeoSelfAttention::forward_arguments;
  explicit GPTNeoAttention(const Config& c) : attention(child<GPTNeoSelfAttention>("attention", c)) {}
  GPTNeoSelfAttention::Result forward(const Tensor& x, const AttentionMask& mask, const LayerCache& past,
                                      const Tensor& head_mask, bool eager) {
    return attention(x, mask, past, head_mask, eager);
  }
  Child<GPTNeoSelfAttention> attention;
};

struct GPTNeoMLP : Typed<GPTNeoMLP> {
  static constexpr const char* torch_type = "transformers.models.gpt_neo.modeling_gpt_neo.GPTNeoMLP";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit GPTNeoMLP(const Config& c)
      : c_fc(child<Linear>("c_fc", c.integer("hidden_size"), inner_size(c))),
        c_proj(child<Linear>("c_proj", inner_size(c), c.integer("hidden_size"))),
        act(activation_named(c.text("activation_function"))),
        dropout(child<Dropout>("dropout", c.number("resid_dropout"))) {}
  static int64_t inner_size(const Config& c) {
    return c.optional_integer("intermediate_size").value_or(4 * c.integer("hidden_size"));
  }
  Tensor forward(const Tensor& x) { return dropout(c_proj(act(c_fc(x)))); }
  Child<Linear> c_fc, c_proj;
  Activation act;
  Child<Dropout> dropout;
};

struct GPTNeoBlock : Checkpointed<Typed<GPTNeoBlock>> {
  static constexpr const char* torch_type = "transformers.models.gpt_neo.modeling_gpt_neo.GPTNeoBlock";
  static constexpr auto& forward_arguments = GPTNeoSelfAttention::forward_arguments;
  explicit GPTNeoBlock(const Config& c)
      : ln_1(child<LayerNorm>("ln_1", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_epsilon")})),
        attn(child<GPTNeoAttention>("attn", c)),
        ln_2(child<LayerNorm>("ln_2", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_epsilon")})),
        mlp(child<GPTNeoMLP>("mlp", c)) {}
  GPTNeoSelfAttention::Result forward(const Tensor& x, const AttentionMask& mask, const LayerCache& past,
                                      const Tensor& head_mask, bool eager) {
    auto [attended, weights, now] = attn(ln_1(x), mask, past, head_mask, eager);
    const Tensor y = attended + x;
    return {y + mlp(ln_2(y)), weights, now};
  }
  Child<LayerNorm> ln_1;
  Child<GPTNeoAttention> attn;
  Child<LayerNorm> ln_2;
  Child<GPTNeoMLP> mlp;
};

struct GPTNeoPretrained : PretrainedModel {
  using PretrainedModel::PretrainedModel;
  std::string base_model_prefix() const override { return "transformer"; }
  std::vector<std::string> no_split_modules() const override { return {"GPTNeoBlock"}; }
  // Causal masks that old versions stored.
  std::vector<std::string> keys_to_ignore_on_load_unexpected() const override {
    return {R"(attn\.attention\.bias)", R"(attn\.attention\.masked_bias)"};
  }
};

struct GPTNeoModel : ModelOf<GPTNeoModel, GPTNeoPretrained> {
  static constexpr const char* torch_type = "transformers.models.gpt_neo.modeling_gpt_neo.GPTNeoModel";
  static constexpr ModelArgument forward_arguments[] = {
      arg::input_ids,     arg::past_key_values, arg::attention_mask,    arg::token_type_ids,       arg::position_ids,
      arg::inputs_embeds, arg::use_cache,       arg::output_attentions, arg::output_hidden_states, arg::head_mask};
  explicit GPTNeoModel(const Config& c)
      : ModelOf(c),
        wte(child<Embedding>("wte", c.integer("vocab_size"), c.integer("hidden_size"))),
        wpe(child<Embedding>("wpe", c.integer("max_position_embeddings"), c.integer("hidden_size"))),
        drop(child<Dropout>("drop", c.number("embed_dropout"))),
        h(child<ModuleList>("h")),
        ln_f(child<LayerNorm>("ln_f", c.integer("hidden_size"), LayerNormOptions{.eps = c.number("layer_norm_epsilon")})) {
    for (const Value& type : c.find("attention_layers")->to_items()) {
      h->emplace<GPTNeoBlock>(c);
      local_.push_back(type.to_string() == "local");
    }
  }

  ModelOutput forward(const ModelInputs& in) override {
    const Tensor embeds = embedded(in, wte);
    const SymInt past = in[arg::past_key_values].length();
    const Tensor positions = in[arg::position_ids].defined() ? in[arg::position_ids] : positions_after(past, embeds);
    const bool eager = eager_attention(config(), wants_attentions(in), in[arg::head_mask]);
    const bool any_local = std::find(local_.begin(), local_.end(), true) != local_.end();
    const AttentionMask whole = mask_of(embeds, in[arg::attention_mask], {.past = past});
    const AttentionMask window =
        any_local ? mask_of(embeds, in[arg::attention_mask], {.past = past, .window = config().integer("window_size")})
                  : whole;

    Tensor x = drop(with_token_types(embeds + wpe(positions), in[arg::token_type_ids], wte));
    LayerOutputs outputs(*this, in);
    x = outputs.run<GPTNeoBlock>(*h, x, [&](GPTNeoBlock& block, const Tensor& state, size_t i) {
      return block(state, local_[i] ? window : whole, in[arg::past_key_values].layer(i),
                   head_mask_of_layer(in[arg::head_mask], i), eager);
    });
    return outputs.with_last(ln_f(x));
  }
  // A mask of four dimensions comes on top of what the layers may look at.
  static AttentionMask mask_of(const Tensor& embeds, const Tensor& attention_mask, CausalMaskOptions options) {
    if (!attention_mask.defined() || attention_mask.dim() < 4) return causal_mask(embeds, attention_mask, options);
    options.explicit_mask = true;
    const Tensor may = causal_mask(embeds, {}, options).mask;
    if (attention_mask.dtype() == DType::bool_) return {bitwise_and(may, attention_mask), false};
    return {where(may, attention_mask, lowest_finite(attention_mask.dtype())), false};
  }

  Child<Embedding>* input_embeddings() override { return &wte; }

  Child<Embedding> wte, wpe;
  Child<Dropout> drop;
  Child<ModuleList> h;
  Child<LayerNorm> ln_f;

 private:
  std::vector<bool> local_;
};

// attention_types [[["global", "local"], 12]] says "these, so many times"; attention_layers is one name a layer.
void complete(Config& config) {
  const auto is_list = [](const Value& value) { return value.kind() == Value::Kind::list; };
  const Value& all = *config.find("attention_types");
  const auto wrong = [&] {
    return UserError(ErrorKind::bad_file, config.where() + ": \"attention_types\" is " + all.str() +
                                              ", expected lists of types and how often they come, as [[[\"global\", "
                                              "\"local\"], 12]]");
  };
  if (!is_list(all)) throw wrong();
  int64_t count = 0;
  for (const Value& item : all.to_items()) {
    if (!is_list(item) || item.to_items().size() != 2 || !is_list(item.to_items()[0])) throw wrong();
    const Values& types = item.to_items()[0].to_items();
    const Value& times = item.to_items()[1];
    int64_t these = 0;
    if (times.kind() != Value::Kind::integer || times.to_int() < 0 || types.empty() ||
        __builtin_mul_overflow(times.to_int(), std::ssize(types), &these) || __builtin_add_overflow(count, these, &count))
      throw wrong();
    for (const Value& type : types) {
      if (type.kind() != Value::Kind::string) throw wrong();
      if (type.to_string() != "global" && type.to_string() != "local")
        throw UserError(ErrorKind::bad_file, config.where() + ": \"attention_types\" names \"" + type.to_string() +
                                                 "\", expected global or local");
    }
  }
  if (count != config.integer("num_layers"))
    throw UserError(ErrorKind::bad_file, config.where() + ": \"attention_types\" gives " + std::to_string(count) +
                                             " layers, but \"num_layers\" is " +
                                             std::to_string(config.integer("num_layers")));
  Values layers;
  for (const Value& item : all.to_items())
    for (int64_t i = 0; i < item.to_items()[1].to_int(); ++i)
      layers.insert(layers.end(), item.to_items()[0].to_items().begin(), item.to_items()[0].to_items().end());
  config.set("attention_layers", list(std::move(layers)));
}

constexpr HeadFamily gpt_neo_heads{"transformers.models.gpt_neo.modeling_gpt_neo.GPTNeo", "transformer",
                                   made_model<GPTNeoModel>};

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "gpt_neo",
      .config_class = "GPTNeoConfig",
      .attribute_map = {{"num_attention_heads", "num_heads"}, {"num_hidden_layers", "num_layers"}},
      .defaults = R"({"vocab_size": 50257, "max_position_embeddings": 2048, "hidden_size": 2048, "num_layers": 24,
        "attention_types": [[["global", "local"], 12]], "num_heads": 16, "intermediate_size": null, "window_size": 256,
        "activation_function": "gelu_new", "resid_dropout": 0.0, "embed_dropout": 0.0, "attention_dropout": 0.0,
        "classifier_dropout": 0.1, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02, "use_cache": true,
        "bos_token_id": 50256, "eos_token_id": 50256, "pad_token_id": null, "tie_word_embeddings": true})",
      .schema = {.relations = {multiple("hidden_size", "num_heads")}},
      .complete = complete,
      .classes = {model_class<GPTNeoModel>("GPTNeoModel", {"default"}),
                  head_class<CausalLM>({"causal-lm"}, {.family = &gpt_neo_heads, .part = "ForCausalLM", .embedding = "wte"}),
                  head_class<LastTokenClassification>({"sequence-classification"},
                                                      {&gpt_neo_heads, "ForSequenceClassification"}),
                  head_class<DecoderTokenClassification>({"token-classification"},
                                                         {&gpt_neo_heads, "ForTokenClassification"}),
                  head_class<QuestionAnswering>({"question-answering"}, {&gpt_neo_heads, "ForQuestionAnswering"})},
  });
}

}  // namespace calque::gpt_neo
