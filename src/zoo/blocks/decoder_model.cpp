#include "decoder_model.h"

#include <cmath>

#include "calque/nn/init.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/aten/unary.h"
#include "calque/tensor/finfo.h"
#include "zoo/blocks/alibi.h"
#include "zoo/blocks/child_if.h"

namespace calque {

DecoderLayer::DecoderLayer(const Config& c, const DecoderDesign& design, size_t layer)
    : NamedModule(design.names + design.layer),
      parallel_(design.parallel),
      adds_parts_first_(design.adds_parts_first),
      one_dropout_(design.attention_dropout && design.attention_dropout == design.feed_forward_dropout),
      residual_scale_(design.residual_scale),
      residual_dropout_(design.residual_dropout),
      attention_(child_if<DecoderAttention>(!design.latent, *this, design.attention.name, c, design, layer)),
      latent_(child_if<LatentAttention>(design.latent.has_value(), *this, design.attention.name, c, design)),
      feed_forward_(child_if<DecoderFeedForward>(!design.layers[layer].experts, *this, "mlp", design.names + "MLP",
                                                 c.integer("hidden_size"), design.feed_forward)),
      experts_(child_if<Experts>(design.layers[layer].experts, *this, "mlp", c.integer("hidden_size"), design)),
      before_attention_(*this, design.before_attention, design, c.integer("hidden_size")),
      after_attention_(*this, design.after_attention, design, c.integer("hidden_size")),
      before_feed_forward_(*this, design.before_feed_forward, design, c.integer("hidden_size")),
      after_feed_forward_(*this, design.after_feed_forward, design, c.integer("hidden_size")) {
  if (design.attention_dropout)
    attention_dropout_.emplace(child<Dropout>(design.attention_dropout, design.residual_dropout));
  if (design.feed_forward_dropout && !one_dropout_)
    feed_forward_dropout_.emplace(child<Dropout>(design.feed_forward_dropout, design.residual_dropout));
}

Tensor DecoderLayer::fed_forward(const Tensor& x) const {
  const Tensor out = after_feed_forward_(feed_forward_ ? (*feed_forward_)(x) : (*experts_)(x));
  const std::optional<Child<Dropout>>& dropout = one_dropout_ ? attention_dropout_ : feed_forward_dropout_;
  return dropout ? (*dropout)(out) : out;
}

Tensor DecoderLayer::added(const Tensor& x, const Tensor& more) const {
  return x + (residual_scale_ == 1 ? more : more * residual_scale_);
}

DecoderLayer::Result DecoderLayer::forward(const Tensor& x, const Tensor& cosine, const Tensor& sine,
                                           const AttentionMask& mask, const LayerCache& past, bool eager) {
  const Tensor read = before_attention_(x);
  auto [attended, weights, now] =
      attention_ ? (*attention_)(read, cosine, sine, mask, past, eager) : (*latent_)(read, cosine, sine, mask, past, eager);
  attended = after_attention_(attended);
  if (attention_dropout_) attended = (*attention_dropout_)(attended);
  if (parallel_) {
    const Tensor fed = fed_forward(before_feed_forward_ ? before_feed_forward_(x) : read);
    if (adds_parts_first_) return {x + functional::dropout(fed + attended, residual_dropout_, training()), weights, now};
    return {x + attended + fed, weights, now};
  }
  const Tensor y = added(x, attended);
  return {added(y, fed_forward(before_feed_forward_(y))), weights, now};
}

ScaledEmbedding::ScaledEmbedding(std::string type, int64_t count, int64_t size, EmbeddingOptions options, double scale)
    : NamedModule(std::move(type), count, size, std::move(options)),
      embed_scale(register_buffer("embed_scale", full({}, scale, DType::float32), false)) {}

Tensor ScaledEmbedding::forward(const Tensor& input) { return Embedding::forward(input) * embed_scale->to(weight->dtype()); }

namespace {

Child<Embedding> embeddings_of(DecoderModel& model, const Config& c, const DecoderDesign& design) {
  EmbeddingOptions options;
  if (design.padding_row) options.padding_idx = c.optional_integer("pad_token_id");
  const int64_t count = c.integer("vocab_size"), size = c.integer("hidden_size");
  if (!design.scaled_embeddings) return model.child<Embedding>(design.embeddings, count, size, options);
  return model.child_module<Embedding>(
      design.embeddings, std::make_shared<ScaledEmbedding>(design.names + "TextScaledWordEmbedding", count, size, options,
                                                           std::sqrt(static_cast<double>(size))));
}

}  // namespace

DecoderModel::DecoderModel(const Config& c, const DecoderDesign& given)
    : PretrainedModel(c),
      design(given),
      embeddings(embeddings_of(*this, c, design)),
      layers(child<ModuleList>(design.blocks)),
      norm(*this, design.last_norm, design, c.integer("hidden_size")),
      dropout(child_if<Dropout>(design.embeddings_dropout != nullptr, *this, design.embeddings_dropout,
                                design.embeddings_dropout_rate)) {
  if (!design.fused_attention) config().attention_implementation = "eager";
  for (size_t i = 0; i < design.rotary.size(); ++i) {
    const std::string name = i == 0 ? "rotary_emb" : "rotary_emb_" + std::to_string(i);
    const int64_t size = design.latent ? design.latent->turned_size : design.attention.head_size;
    rotary.push_back(child<RotaryEmbedding>(name, c, size, design.rotary[i]));
  }
  if (design.alibi)
    slopes.emplace(register_constant("alibi_slopes", alibi_slopes(design.attention.heads).to(DType::bfloat16)));
  for (size_t i = 0; i < design.layers.size(); ++i) layers->emplace<DecoderLayer>(c, design, i);
}

std::shared_ptr<Module> DecoderModel::copy_self() const {
  return nn_detail::shared_module(std::make_unique<DecoderModel>(*this));
}

std::vector<std::string> DecoderModel::no_split_modules() const {
  const std::string name = design.names + design.layer;
  return {name.substr(name.rfind('.') + 1)};
}

void DecoderModel::init_weights(Module& module) {
  const double range = config().optional_number("initializer_range").value_or(0.02);
  if (auto* norm_module = dynamic_cast<DecoderNorm*>(&module))
    norm_module->reset();
  else if (auto* attention = dynamic_cast<DecoderAttention*>(&module); attention && attention->sinks)
    init::normal_(*attention->sinks, 0, range);
  else if (auto* weights = dynamic_cast<ExpertWeights*>(&module))
    weights->reset(range);
  else if (auto* router = dynamic_cast<Router*>(&module))
    router->reset(range);
  else
    PretrainedModel::init_weights(module);
}

// How many tokens of the text came before these. Layers with windows do not know it of a cache that came from outside: a mask
// over all of the text says it.
SymInt DecoderModel::tokens_before(const ModelInputs& in, const Tensor& embeds) const {
  const KeyValueCache& cache = in[arg::past_key_values];
  const Tensor& mask = in[arg::attention_mask];
  if (cache.empty()) return 0;
  for (size_t i = 0; i < design.layers.size(); ++i)
    if (!design.layers[i].window) return cache.layer(i).length();
  return mask.defined() && mask.dim() == 2 ? mask.sym_size(1) - embeds.sym_size(1) : cache.length();
}

AttentionMask DecoderModel::mask_of(const LayerDesign& layer, const LayerCache& cache, const SymInt& past,
                                    const Tensor& embeds, const Tensor& attention_mask) const {
  return causal_mask(embeds, attention_mask,
                     {.past = past,
                      .first = layer.window && !cache.empty() ? past - cache.kept() : SymInt(0),
                      .window = layer.window,
                      .explicit_mask = slopes.has_value()});
}

// The distances as numbers of 16 bits, which is how they are trained with. Eager attention adds them twice, to the scores and with the
// mask, since transformers 5 does.
AttentionMask DecoderModel::with_distances(const AttentionMask& mask, const SymInt& past, const Tensor& embeds,
                                           const Tensor& attention_mask, bool eager) const {
  const Tensor wide = (*slopes)->to(DType::bfloat16).view({1, -1, 1, 1}) * alibi_positions(embeds, attention_mask, past);
  const Tensor scaled = wide.to(embeds.dtype()) / std::sqrt(static_cast<double>(design.attention.head_size));
  return {where(mask.mask, eager ? scaled * 2 : scaled, lowest_finite(embeds.dtype())), false};
}

ModelOutput DecoderModel::forward(const ModelInputs& in) {
  Tensor embeds = embedded(in, embeddings);
  if (design.embeddings_scale != 1) embeds = embeds * design.embeddings_scale;
  const KeyValueCache& before = in[arg::past_key_values];
  const SymInt past = tokens_before(in, embeds);
  const Tensor positions = in[arg::position_ids].defined() ? in[arg::position_ids] : positions_after(past, embeds);
  const bool eager = eager_attention(config(), wants_attentions(in));
  std::optional<AttentionMask> whole, windowed;  // all windows of a model are alike
  for (size_t i = 0; i < design.layers.size(); ++i) {
    std::optional<AttentionMask>& mask = design.layers[i].window ? windowed : whole;
    if (!mask) mask = mask_of(design.layers[i], before.layer(i), past, embeds, in[arg::attention_mask]);
  }
  if (slopes) whole = with_distances(*whole, past, embeds, in[arg::attention_mask], eager);
  if (dropout) embeds = (*dropout)(embeds);
  std::vector<std::tuple<Tensor, Tensor>> angles;
  for (const Child<RotaryEmbedding>& one : rotary) angles.push_back(one(embeds, positions));

  LayerOutputs outputs(*this, in);
  const Tensor x = outputs.run<DecoderLayer>(*layers, embeds, [&](DecoderLayer& layer, const Tensor& state, size_t i) {
    const LayerDesign& how = design.layers[i];
    const auto [cosine, sine] = how.rotary < 0 ? std::tuple<Tensor, Tensor>() : angles[static_cast<size_t>(how.rotary)];
    return layer(state, cosine, sine, how.window ? *windowed : *whole, before.layer(i), eager);
  });
  KeyValueCache& cache = outputs.cache;
  cache.keeps_all = before.keeps_all;
  if (!cache.layers.empty()) cache.ends_at(past + embeds.sym_size(1));
  for (size_t i = 0; i < cache.layers.size(); ++i)
    if (design.layers[i].window && !cache.keeps_all) cache.layers[i] = cache.layers[i].within(*design.layers[i].window);
  return outputs.with_last(norm(x));
}

std::unique_ptr<PretrainedModel> decoder_model(const Config& config, const DecoderDesign& design) {
  return std::make_unique<DecoderModel>(config, design);
}

DecoderCausalLM::DecoderCausalLM(const HeadClass& head, const Config& c) : CopiedAs(head, c) {
  const DecoderDesign& design = dynamic_cast<const DecoderModel&>(*model).design;
  scale_ = design.logits_scale;
  divisor_ = design.logits_divisor;
  cap_ = design.logits_cap;
}

Tensor DecoderCausalLM::head_logits(const Tensor& logits) {
  if (cap_) return tanh(logits / *cap_) * *cap_;
  if (divisor_ != 1) return logits / divisor_;
  return scale_ == 1 ? logits : logits * scale_;
}

// A cap makes large logits equal.
bool DecoderCausalLM::head_keeps_order() const { return !cap_ && scale_ > 0 && divisor_ > 0; }

ModelClass decoder_base(const HeadFamily& family, const char* part) {
  const std::string name = std::string(family.name) + part;
  return {name.substr(name.rfind('.') + 1), {"default"}, [&family](const Config& config) {
            return finished_model(family.make_model(config, false));
          }};
}

ModelClass decoder_class(DecoderHeadKind kind, const HeadClass& head) {
  switch (kind) {
    case DecoderHeadKind::causal_lm: return head_class<DecoderCausalLM>({"causal-lm"}, head);
    case DecoderHeadKind::sequence_classification:
      return head_class<LastTokenClassification>({"sequence-classification"}, head);
    case DecoderHeadKind::token_classification:
      return head_class<DecoderTokenClassification>({"token-classification"}, head);
    case DecoderHeadKind::question_answering: break;
  }
  return head_class<QuestionAnswering>({"question-answering"}, head);
}

std::vector<ModelClass> decoder_classes(const HeadFamily& family, int heads, const char* base_of_answering) {
  const std::pair<DecoderHeadKind, HeadClass> all[] = {
      {DecoderHeadKind::causal_lm, {.family = &family, .part = "ForCausalLM", .embedding = "embed_tokens"}},
      {DecoderHeadKind::sequence_classification, {&family, "ForSequenceClassification"}},
      {DecoderHeadKind::token_classification, {.family = &family, .part = "ForTokenClassification", .classifier = "score"}},
      {DecoderHeadKind::question_answering, {.family = &family, .part = "ForQuestionAnswering", .base = base_of_answering}},
  };
  std::vector<ModelClass> out{decoder_base(family)};
  for (int i = 0; i < heads; ++i) out.push_back(decoder_class(all[i].first, all[i].second));
  return out;
}

}  // namespace calque
