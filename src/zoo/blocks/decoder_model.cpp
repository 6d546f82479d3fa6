#include "decoder_model.h"

#include <algorithm>
#include <cmath>

#include "calque/base/error.h"
#include "calque/nn/init.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/scans.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/finfo.h"
#include "zoo/blocks/alibi.h"
#include "zoo/blocks/child_if.h"

namespace calque {

DecoderLayer::DecoderLayer(const Config& c, const DecoderDesign& design, size_t layer)
    : Checkpointed(design.names + design.layer),
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

std::tuple<Tensor, Tensor> DecoderLayer::fed_forward(const Tensor& x) const {
  const auto [fed, logits] = feed_forward_ ? std::tuple((*feed_forward_)(x), Tensor()) : (*experts_)(x);
  const Tensor out = after_feed_forward_(fed);
  const std::optional<Child<Dropout>>& dropout = one_dropout_ ? attention_dropout_ : feed_forward_dropout_;
  return {dropout ? (*dropout)(out) : out, logits};
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
    const auto [fed, logits] = fed_forward(before_feed_forward_ ? before_feed_forward_(x) : read);
    if (adds_parts_first_)
      return {x + functional::dropout(fed + attended, residual_dropout_, training()), weights, now, logits};
    return {x + attended + fed, weights, now, logits};
  }
  const Tensor y = added(x, attended);
  const auto [fed, logits] = fed_forward(before_feed_forward_(y));
  return {added(y, fed), weights, now, logits};
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
  arguments_.assign(std::begin(forward_arguments), std::end(forward_arguments));
  if (std::ranges::any_of(design.layers, &LayerDesign::experts)) arguments_.push_back(arg::output_router_logits);
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

// Of token types those that are 1 beside each other have one number, from 0 on; the others -1.
static Tensor blocks_of(const Tensor& token_type_ids) {
  const Tensor is = eq(token_type_ids, 1).to(DType::int64);
  const Tensor before = cat({zeros_like(is.slice(1, 0, 1)), is.slice(1, 0, -1)}, 1);
  return where(is.to(DType::bool_), cumsum(is * (1 - before), 1) - 1, -1);
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
                                    const Tensor& embeds, const ModelInputs& in) const {
  const Tensor& types = in[arg::token_type_ids];
  if (types.defined() && !cache.empty())
    throw UserError(
        "token_type_ids say which tokens of a text from its start are pictures: leave them out beside past_key_values");
  return causal_mask(embeds, in[arg::attention_mask],
                     {.past = past,
                      .first = layer.window && !cache.empty() ? past - cache.kept() : SymInt(0),
                      .window = layer.window,
                      .blocks = types.defined() ? blocks_of(types) : Tensor(),
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
    if (!mask) mask = mask_of(design.layers[i], before.layer(i), past, embeds, in);
  }
  if (slopes) whole = with_distances(*whole, past, embeds, in[arg::attention_mask], eager);
  if (dropout) embeds = (*dropout)(embeds);
  std::vector<std::tuple<Tensor, Tensor>> angles;
  for (const Child<RotaryEmbedding>& one : rotary) angles.push_back(one(embeds, positions));

  LayerOutputs outputs(*this, in);
  std::vector<Tensor> router_logits;
  const Tensor x = outputs.run<DecoderLayer>(*layers, embeds, [&](DecoderLayer& layer, const Tensor& state, size_t i) {
    const LayerDesign& how = design.layers[i];
    const auto [cosine, sine] = how.rotary < 0 ? std::tuple<Tensor, Tensor>() : angles[static_cast<size_t>(how.rotary)];
    auto [y, weights, now, logits] = layer(state, cosine, sine, how.window ? *windowed : *whole, before.layer(i), eager);
    if (logits.defined()) router_logits.push_back(logits);
    return std::tuple(y, weights, now);
  });
  KeyValueCache& cache = outputs.cache;
  cache.keeps_all = before.keeps_all;
  if (!cache.layers.empty()) cache.ends_at(past + embeds.sym_size(1));
  for (size_t i = 0; i < cache.layers.size(); ++i)
    if (design.layers[i].window && !cache.keeps_all) cache.layers[i] = cache.layers[i].within(*design.layers[i].window);
  ModelOutput out = outputs.with_last(norm(x));
  if (wants_router_logits(in)) out.set("router_logits", router_logits);
  return out;
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

void DecoderCausalLM::finish(const ModelInputs& in, const ModelOutput& base, ModelOutput& out) {
  if (!base.has("router_logits")) return;
  out.take(base, {"router_logits"});
  const std::optional<double> share = config().optional_number("router_aux_loss_coef");
  if (!share) return;
  Tensor mask = in[arg::attention_mask];
  if (mask.defined() && mask.dim() != 2)
    throw UserError("output_router_logits: attention_mask is " + calque::str(mask.sizes()) +
                    ", expected [batch, length]: it says which tokens count in aux_loss");
  if (mask.defined() && !in[arg::past_key_values].empty())
    mask = mask.slice(1, mask.sym_size(1) - base["last_hidden_state"].sym_size(1));
  const ExpertsDesign& experts = dynamic_cast<const DecoderModel&>(*model).design.experts;
  const Tensor more = balancing_loss(base.tensors("router_logits"), experts, mask);
  out.set("aux_loss", more);
  if (out.has("loss")) out.set("loss", out.loss() + more * *share);
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
