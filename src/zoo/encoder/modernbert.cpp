// ModernBERT: an encoder with rotary positions, norms in front, gated feed-forward, and layers that look at everything or at a window
// around each token; heads behind a dense layer of their own.
#include <cmath>

#include "calque/base/error.h"
#include "calque/hub/checkpointing.h"
#include "calque/hub/registry.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "zoo/blocks/activations.h"
#include "zoo/blocks/bert_encoder.h"
#include "zoo/blocks/rotary.h"
#include "zoo/heads/encoder_heads.h"

namespace calque::modernbert {

namespace {

constexpr char modernbert_family[] = "transformers.models.modernbert.modeling_modernbert.ModernBert";

LayerNormOptions modernbert_norm(const Config& c) { return {.eps = c.number("norm_eps"), .bias = c.flag("norm_bias")}; }

std::vector<std::string> layer_types_of(const Config& c) {
  std::vector<std::string> out;
  for (const Value& one : c.find("layer_types")->to_items()) out.push_back(one.to_string());
  return out;
}

struct ModernBertEmbeddings : Typed<ModernBertEmbeddings> {
  static constexpr const char* torch_type = "transformers.models.modernbert.modeling_modernbert.ModernBertEmbeddings";
  static constexpr const char* forward_arguments[] = {"input_ids", "inputs_embeds"};
  explicit ModernBertEmbeddings(const Config& c)
      : tok_embeddings(child<Embedding>("tok_embeddings", c.integer("vocab_size"), c.integer("hidden_size"),
                                        EmbeddingOptions{.padding_idx = c.optional_integer("pad_token_id")})),
        norm(child<LayerNorm>("norm", c.integer("hidden_size"), modernbert_norm(c))),
        drop(child<Dropout>("drop", c.number("embedding_dropout"))) {}
  Tensor forward(const Tensor& input_ids, const Tensor& inputs_embeds) {
    return drop(norm(inputs_embeds.defined() ? inputs_embeds : tok_embeddings(input_ids)));
  }
  Child<Embedding> tok_embeddings;
  Child<LayerNorm> norm;
  Child<Dropout> drop;
};

struct ModernBertMLP : Typed<ModernBertMLP> {
  static constexpr const char* torch_type = "transformers.models.modernbert.modeling_modernbert.ModernBertMLP";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit ModernBertMLP(const Config& c)
      : Wi(child<Linear>("Wi", c.integer("hidden_size"), 2 * c.integer("intermediate_size"), c.flag("mlp_bias"))),
        act(activation_named(c.text("hidden_activation"))),
        drop(child<Dropout>("drop", c.number("mlp_dropout"))),
        Wo(child<Linear>("Wo", c.integer("intermediate_size"), c.integer("hidden_size"), c.flag("mlp_bias"))) {}
  Tensor forward(const Tensor& hidden_states) {
    const std::vector<Tensor> both = Wi(hidden_states).chunk(2, -1);
    return Wo(drop(act(both[0]) * both[1]));
  }
  Child<Linear> Wi;
  Activation act;
  Child<Dropout> drop;
  Child<Linear> Wo;
};

// The angles of layers that look at everything, and of those with a window.
struct ModernBertRotaryEmbedding : Typed<ModernBertRotaryEmbedding> {
  static constexpr const char* torch_type = "transformers.models.modernbert.modeling_modernbert.ModernBertRotaryEmbedding";
  static constexpr const char* forward_arguments[] = {"x", "position_ids", "sliding"};
  explicit ModernBertRotaryEmbedding(const Config& c)
      : full(child<RotaryEmbedding>("full_attention", c, head_size(c), RotaryOptions{.among = "full_attention"})),
        window(child<RotaryEmbedding>("sliding_attention", c, head_size(c), RotaryOptions{.among = "sliding_attention"})) {}
  static int64_t head_size(const Config& c) { return c.integer("hidden_size") / c.integer("num_attention_heads"); }
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& position_ids, bool sliding) {
    return sliding ? window(x, position_ids) : full(x, position_ids);
  }
  Child<RotaryEmbedding> full, window;
};

struct ModernBertAttention : Typed<ModernBertAttention> {
  static constexpr const char* torch_type = "transformers.models.modernbert.modeling_modernbert.ModernBertAttention";
  static constexpr const char* forward_arguments[] = {"hidden_states", "cosine", "sine", "attention_mask", "eager"};
  using Result = std::tuple<Tensor, Tensor>;  // output, weights
  explicit ModernBertAttention(const Config& c)
      : heads(c.integer("num_attention_heads")),
        size(c.integer("hidden_size") / heads),
        dropout(c.number("attention_dropout")),
        Wqkv(child<Linear>("Wqkv", c.integer("hidden_size"), 3 * heads * size, c.flag("attention_bias"))),
        Wo(child<Linear>("Wo", c.integer("hidden_size"), c.integer("hidden_size"), c.flag("attention_bias"))) {}
  Result forward(const Tensor& x, const Tensor& cosine, const Tensor& sine, const AttentionMask& mask, bool eager) {
    const Tensor all = Wqkv(x).view({x.sym_size(0), x.sym_size(1), 3, heads, size});
    const auto part = [&](int64_t i) { return all.select(2, i).transpose(1, 2); };
    const auto turned = [&](const Tensor& y) { return apply_rotary(y.to(DType::float32), cosine, sine).to(y.dtype()); };
    const AttentionResult attended =
        attend(turned(part(0)), turned(part(1)), part(2), mask,
               {.dropout = training() ? dropout : 0, .eager = eager, .softmax_in_float32 = true});
    return {functional::dropout(Wo(attended.output), dropout, training()), attended.weights};
  }
  int64_t heads, size;
  double dropout;
  Child<Linear> Wqkv, Wo;
};

struct ModernBertEncoderLayer : Checkpointed<Typed<ModernBertEncoderLayer>> {
  static constexpr const char* torch_type = "transformers.models.modernbert.modeling_modernbert.ModernBertEncoderLayer";
  static constexpr const char* forward_arguments[] = {"hidden_states", "cosine", "sine", "attention_mask", "eager"};
  ModernBertEncoderLayer(const Config& c, bool first, bool sliding)
      : sliding(sliding),
        attn_norm(child_if<LayerNorm>(!first, *this, "attn_norm", c.integer("hidden_size"), modernbert_norm(c))),
        attn(child<ModernBertAttention>("attn", c)),
        mlp_norm(child<LayerNorm>("mlp_norm", c.integer("hidden_size"), modernbert_norm(c))),
        mlp(child<ModernBertMLP>("mlp", c)) {}
  ModernBertAttention::Result forward(const Tensor& hidden_states, const Tensor& cosine, const Tensor& sine,
                                      const AttentionMask& mask, bool eager) {
    const auto [attended, weights] =
        attn(attn_norm ? (*attn_norm)(hidden_states) : hidden_states, cosine, sine, mask, eager);
    const Tensor x = hidden_states + attended;
    return {x + mlp(mlp_norm(x)), weights};
  }
  bool sliding;
  std::optional<Child<LayerNorm>> attn_norm;  // the first layer's input is normal already
  Child<ModernBertAttention> attn;
  Child<LayerNorm> mlp_norm;
  Child<ModernBertMLP> mlp;
};

struct ModernBertPredictionHead : Typed<ModernBertPredictionHead> {
  static constexpr const char* torch_type = "transformers.models.modernbert.modeling_modernbert.ModernBertPredictionHead";
  static constexpr const char* forward_arguments[] = {"hidden_states"};
  explicit ModernBertPredictionHead(const Config& c)
      : dense(child<Linear>("dense", c.integer("hidden_size"), c.integer("hidden_size"), c.flag("classifier_bias"))),
        act(activation_named(c.text("classifier_activation"))),
        norm(child<LayerNorm>("norm", c.integer("hidden_size"), modernbert_norm(c))) {}
  Tensor forward(const Tensor& hidden_states) { return norm(act(dense(hidden_states))); }
  Child<Linear> dense;
  Activation act;
  Child<LayerNorm> norm;
};

constexpr ModelArgument modernbert_arguments[] = {arg::input_ids,     arg::attention_mask,    arg::position_ids,
                                                  arg::inputs_embeds, arg::output_attentions, arg::output_hidden_states};
constexpr auto modernbert_labelled = with_arguments(names_of(modernbert_arguments), arg::inputs_embeds, {arg::labels});
constexpr auto modernbert_spans =
    with_arguments(names_of(modernbert_arguments), arg::inputs_embeds, {arg::start_positions, arg::end_positions});

struct ModernBertModel : ModelOf<ModernBertModel> {
  static constexpr const char* torch_type = "transformers.models.modernbert.modeling_modernbert.ModernBertModel";
  static constexpr auto& forward_arguments = modernbert_arguments;
  explicit ModernBertModel(const Config& c)
      : ModelOf(c),
        embeddings(child<ModernBertEmbeddings>("embeddings", c)),
        layers(child<ModuleList>("layers")),
        final_norm(child<LayerNorm>("final_norm", c.integer("hidden_size"), modernbert_norm(c))),
        rotary_emb(child<ModernBertRotaryEmbedding>("rotary_emb", c)) {
    const std::vector<std::string> types = layer_types_of(c);
    for (size_t i = 0; i < types.size(); ++i)
      layers->emplace<ModernBertEncoderLayer>(c, i == 0, types[i] == "sliding_attention");
  }
  std::string base_model_prefix() const override { return "model"; }
  std::vector<std::string> no_split_modules() const override { return {"ModernBertEmbeddings", "ModernBertEncoderLayer"}; }

  ModelOutput forward(const ModelInputs& in) override {
    if (in[arg::input_ids].defined() == in[arg::inputs_embeds].defined())
      throw UserError("You must specify exactly one of input_ids or inputs_embeds");
    Tensor x = embeddings(in[arg::input_ids], in[arg::inputs_embeds]);
    Tensor positions = in[arg::position_ids];
    if (!positions.defined()) positions = arange(x.sym_size(1), DType::int64, std::nullopt, x.device()).unsqueeze(0);
    const AttentionMask all = bidirectional_mask(in[arg::attention_mask]);
    const AttentionMask near = window_mask(x, in[arg::attention_mask], all);
    const auto [cosine, sine] = rotary_emb(x, positions, false);
    const auto [near_cosine, near_sine] = rotary_emb(x, positions, true);
    const bool eager = eager_attention(config(), wants_attentions(in)), shows = wants_hidden_states(in);
    std::vector<Tensor> states, weights;
    for (ModernBertEncoderLayer* layer : layers->items<ModernBertEncoderLayer>()) {
      if (shows) states.push_back(x);
      auto [y, its] =
          layer->sliding ? (*layer)(x, near_cosine, near_sine, near, eager) : (*layer)(x, cosine, sine, all, eager);
      x = y;
      if (wants_attentions(in)) weights.push_back(its);
    }
    x = final_norm(x);
    if (shows) states.push_back(x);
    ModelOutput out;
    out.set("last_hidden_state", x);
    out.set("hidden_states", states);
    out.set("attentions", weights);
    return out;
  }
  // Tokens at most half of local_attention away, and no padding; a mask of four dimensions is taken as it is.
  AttentionMask window_mask(const Tensor& x, const Tensor& given, const AttentionMask& all) const {
    if (given.defined() && given.dim() == 4) return all;
    const Tensor places = arange(x.sym_size(1), DType::int64, std::nullopt, x.device());
    const Tensor apart = abs(places.unsqueeze(1) - places.unsqueeze(0));
    const Tensor near = le(apart, config().integer("local_attention") / 2).unsqueeze(0).unsqueeze(0);
    return {all.mask.defined() ? bitwise_and(near, all.mask) : near, false};
  }
  void init_weights(Module& module) override {
    PretrainedModel::init_weights(module);
    const double range = config().number("initializer_range");
    const double out = range / std::sqrt(2 * config().number("num_hidden_layers"));
    if (auto* embedded = dynamic_cast<ModernBertEmbeddings*>(&module)) {
      start(embedded->tok_embeddings->weight, range);
    } else if (auto* mlp = dynamic_cast<ModernBertMLP*>(&module)) {
      start(mlp->Wi->weight, range);
      start(mlp->Wo->weight, out);
    } else if (auto* attention = dynamic_cast<ModernBertAttention*>(&module)) {
      start(attention->Wqkv->weight, range);
      start(attention->Wo->weight, out);
    } else if (auto* head = dynamic_cast<ModernBertPredictionHead*>(&module)) {
      start(head->dense->weight, out);
    }
  }
  void start(const Tensor& weight, double deviation) const {
    const double cut = config().optional_number("initializer_cutoff_factor").value_or(3) * deviation;
    init::trunc_normal_(weight, 0, deviation, -cut, cut);
  }
  Child<Embedding>* input_embeddings() override { return &embeddings->tok_embeddings; }

  Child<ModernBertEmbeddings> embeddings;
  Child<ModuleList> layers;
  Child<LayerNorm> final_norm;
  Child<ModernBertRotaryEmbedding> rotary_emb;
};

struct ModernBertMaskedLM : CopiedAs<ModernBertMaskedLM, HeadModel> {
  ModernBertMaskedLM(const HeadClass& which, const Config& c)
      : CopiedAs(which, c, false, modernbert_labelled),
        head(child<ModernBertPredictionHead>("head", c)),
        decoder(child<Linear>("decoder", c.integer("hidden_size"), c.integer("vocab_size"), c.flag("decoder_bias"))) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    Tensor states = base["last_hidden_state"], labels = in[arg::labels];
    const int64_t ignored = config().integer("sparse_pred_ignore_index");
    if (config().flag("sparse_prediction") && labels.defined()) {  // only what is to be predicted is
      labels = labels.view({-1});
      const Tensor wanted = ne(labels, ignored);
      states = index(states.view({labels.sym_size(0), states.sym_size(2)}), {wanted});
      labels = index(labels, {wanted});
    }
    return masked_lm_output(base, decoder(head(states)), labels);
  }
  TiedWeights tied_weights() const override {
    if (!config().flag("tie_word_embeddings")) return {};
    return {{"decoder.weight", "model.embeddings.tok_embeddings.weight"}};
  }
  void init_weights(Module& module) override {
    HeadModel::init_weights(module);
    if (&module == this)
      dynamic_cast<ModernBertModel&>(*model).start(
          decoder->weight, config().number("initializer_range") / std::sqrt(2 * config().number("num_hidden_layers")));
  }
  Child<Linear>* output_embeddings() override { return &decoder; }
  Child<ModernBertPredictionHead> head;
  Child<Linear> decoder;
};

// What the other heads share: the dense layer, dropout, a classifier.
struct ModernBertClassifier : HeadModel {
  ModernBertClassifier(const HeadClass& which, const Config& c, int64_t labels, std::span<const ModelArgument> own)
      : HeadModel(which, c, false, own),
        head(child<ModernBertPredictionHead>("head", c)),
        drop(child<Dropout>("drop", c.number("classifier_dropout"))),
        classifier(child<Linear>("classifier", c.integer("hidden_size"), labels)) {
    const std::string pooling = c.text("classifier_pooling");
    if (pooling != "cls" && pooling != "mean")
      throw UserError(ErrorKind::bad_file,
                      c.where() + ": \"classifier_pooling\" is \"" + pooling + "\", expected cls or mean");
  }
  Tensor logits_of(const Tensor& states) { return classifier(drop(head(states))); }
  Tensor mean_of(const Tensor& states, const Tensor& attention_mask) const {
    if (!attention_mask.defined()) return states.mean({1});
    return (states * attention_mask.unsqueeze(-1)).sum({1}) / attention_mask.sum({1}, true);
  }
  bool takes_mean() const { return config().text("classifier_pooling") == "mean"; }
  void init_weights(Module& module) override {
    HeadModel::init_weights(module);
    if (&module == this)
      dynamic_cast<ModernBertModel&>(*model).start(classifier->weight, 1 / std::sqrt(config().number("hidden_size")));
  }
  Child<ModernBertPredictionHead> head;
  Child<Dropout> drop;
  Child<Linear> classifier;

 protected:
  ModernBertClassifier(const ModernBertClassifier&) = default;
};

struct ModernBertSequences : CopiedAs<ModernBertSequences, ModernBertClassifier> {
  ModernBertSequences(const HeadClass& which, const Config& c) : CopiedAs(which, c, num_labels(c), modernbert_labelled) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    const Tensor& states = base["last_hidden_state"];
    const Tensor pooled = takes_mean() ? mean_of(states, in[arg::attention_mask]) : states.select(1, 0);
    return sequence_classification_output(config(), base, logits_of(pooled), in[arg::labels]);
  }
};

struct ModernBertTokens : CopiedAs<ModernBertTokens, ModernBertClassifier> {
  ModernBertTokens(const HeadClass& which, const Config& c) : CopiedAs(which, c, num_labels(c), modernbert_labelled) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return token_classification_output(base, logits_of(base["last_hidden_state"]), in[arg::labels]);
  }
};

struct ModernBertSpans : CopiedAs<ModernBertSpans, ModernBertClassifier> {
  ModernBertSpans(const HeadClass& which, const Config& c) : CopiedAs(which, c, num_labels(c), modernbert_spans) {}
  ModelOutput forward(const ModelInputs& in) override {
    const ModelOutput base = model(in);
    return span_output(base, logits_of(base["last_hidden_state"]), in);
  }
};

struct ModernBertChoices : CopiedAs<ModernBertChoices, ModernBertClassifier> {
  ModernBertChoices(const HeadClass& which, const Config& c) : CopiedAs(which, c, 1, modernbert_labelled) {}
  ModelInputs example_inputs(const ExampleSizes& sizes) const override { return example_choices(*this, sizes); }
  ModelOutput forward(const ModelInputs& in) override {
    const ModelInputs rows = choices_as_rows(in);
    const ModelOutput base = model(rows);
    const Tensor& states = base["last_hidden_state"];
    const Tensor mask = rows[arg::attention_mask];
    Tensor pooled;
    if (takes_mean()) {
      pooled = mean_of(states, mask);
    } else if (mask.defined()) {  // the first token that is no padding
      const Tensor number = arange(states.sym_size(0), DType::int64, std::nullopt, states.device());
      pooled = index(states, {number, argmax(mask, -1)});
    } else {
      pooled = states.select(1, 0);
    }
    return multiple_choice_output(base, logits_of(pooled), in);
  }
};

constexpr HeadFamily modernbert_heads{modernbert_family, "model", made_model<ModernBertModel>};

// Old files have a number for how often a layer looks at everything, and two thetas.
void complete_modernbert(Config& c) {
  const int64_t count = c.integer("num_hidden_layers");
  if (!c.has("layer_types")) {
    const int64_t every = c.optional_integer("global_attn_every_n_layers").value_or(3);
    Values types;
    for (int64_t i = 0; i < count; ++i) types.emplace_back(i % every == 0 ? "full_attention" : "sliding_attention");
    c.set("layer_types", list(std::move(types)));
  }
  const Value& types = *c.find("layer_types");
  bool fits = types.is_sequence() && std::ssize(types.to_items()) == count;
  if (fits)
    for (const Value& one : types.to_items())
      fits = fits && one.kind() == Value::Kind::string &&
             (one.to_string() == "full_attention" || one.to_string() == "sliding_attention");
  if (!fits)
    throw UserError(ErrorKind::bad_file, c.where() + ": \"layer_types\" is " + types.str() +
                                             ", expected full_attention or sliding_attention for each of " +
                                             std::to_string(count) + " layers");
  std::vector<std::pair<Value, Value>> all;
  for (const auto& [name, old, theta] : {std::tuple("sliding_attention", "local_rope_theta", 10000.0),
                                         std::tuple("full_attention", "global_rope_theta", 160000.0)}) {
    std::vector<std::pair<Value, Value>> rope;
    const Value* given = c.find("rope_parameters");
    const Value* mine = given && given->kind() == Value::Kind::dict ? given->to_dict().find(name) : nullptr;
    if (mine && mine->kind() == Value::Kind::dict) rope = mine->to_dict().items;
    const auto has = [&](const char* key) { return mine && mine->kind() == Value::Kind::dict && mine->to_dict().find(key); };
    if (!has("rope_type")) rope.emplace_back("rope_type", "default");
    if (!has("rope_theta")) rope.emplace_back("rope_theta", c.optional_number(old).value_or(theta));
    all.emplace_back(name, dict(std::move(rope)));
  }
  c.set("rope_parameters", dict(std::move(all)));
}

}  // namespace

void register_models(ModelRegistry& registry);
void register_models(ModelRegistry& registry) {
  registry.add({
      .model_type = "modernbert",
      .config_class = "ModernBertConfig",
      .attribute_map = {},
      .defaults = R"({"vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
        "num_attention_heads": 12, "hidden_activation": "gelu", "max_position_embeddings": 8192, "initializer_range": 0.02,
        "initializer_cutoff_factor": 2.0, "norm_eps": 1e-05, "norm_bias": false, "pad_token_id": 50283, "eos_token_id": 50282,
        "bos_token_id": 50281, "cls_token_id": 50281, "sep_token_id": 50282, "attention_bias": false, "attention_dropout": 0.0,
        "layer_types": null, "rope_parameters": null, "local_attention": 128, "embedding_dropout": 0.0, "mlp_bias": false,
        "mlp_dropout": 0.0, "decoder_bias": true, "classifier_pooling": "cls", "classifier_dropout": 0.0,
        "classifier_bias": false, "classifier_activation": "gelu", "deterministic_flash_attn": false,
        "sparse_prediction": false, "sparse_pred_ignore_index": -100, "tie_word_embeddings": true})",
      .schema = rotary_schema({{"norm_eps", KeyKind::magnitude},
                               {"initializer_cutoff_factor", KeyKind::positive},
                               {"embedding_dropout", KeyKind::probability},
                               {"mlp_dropout", KeyKind::probability},
                               {"local_attention", KeyKind::length},
                               {"global_attn_every_n_layers", KeyKind::length},
                               {"global_rope_theta", KeyKind::positive},
                               {"local_rope_theta", KeyKind::positive},
                               {"sparse_pred_ignore_index", KeyKind::number},
                               {"max_position_embeddings", KeyKind::length}}),
      .complete = complete_modernbert,
      .classes = {model_class<ModernBertModel>("ModernBertModel", {"default"}),
                  head_class<ModernBertMaskedLM>({"pretraining", "masked-lm"}, {&modernbert_heads, "ForMaskedLM"}),
                  head_class<ModernBertChoices>({"multiple-choice"}, {&modernbert_heads, "ForMultipleChoice"}),
                  head_class<ModernBertSpans>({"question-answering"}, {&modernbert_heads, "ForQuestionAnswering"}),
                  head_class<ModernBertSequences>({"sequence-classification"},
                                                  {&modernbert_heads, "ForSequenceClassification"}),
                  head_class<ModernBertTokens>({"token-classification"}, {&modernbert_heads, "ForTokenClassification"})},
  });
}

}  // namespace calque::modernbert
