#include "experts.h"

#include <limits>

#include "calque/base/error.h"
#include "calque/nn/init.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/grouped.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/scatter.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/sorting.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/zeros.h"
#include "zoo/blocks/child_if.h"

namespace calque {

namespace {

void check_choice(const ExpertsDesign& design) {
  if (design.chosen > design.count)
    throw UserError(ErrorKind::bad_file, "each token is to go to " + std::to_string(design.chosen) +
                                             " experts, but there are " + std::to_string(design.count));
  if (design.scores != ExpertsDesign::Scores::sigmoid) return;
  if (design.count % design.groups != 0 || design.count / design.groups < 2)
    throw UserError(ErrorKind::bad_file, std::to_string(design.count) + " experts do not make " +
                                             std::to_string(design.groups) + " equal groups of two or more");
  if (design.chosen_groups > design.groups || design.chosen > design.chosen_groups * (design.count / design.groups))
    throw UserError(ErrorKind::bad_file, std::to_string(design.chosen) + " experts cannot be chosen from " +
                                             std::to_string(design.chosen_groups) + " of " + std::to_string(design.groups) +
                                             " groups");
}

}  // namespace

Router::Router(std::string type, int64_t hidden_size, const ExpertsDesign& given)
    : NamedModule(std::move(type)),
      design((check_choice(given), given)),
      weight(register_parameter("weight", zeros({design.count, hidden_size}))) {
  if (design.scores == ExpertsDesign::Scores::softmax_of_best)
    bias.emplace(register_parameter("bias", zeros({design.count})));
  if (design.scores == ExpertsDesign::Scores::sigmoid)
    correction.emplace(register_buffer("e_score_correction_bias", zeros({design.count}, DType::float32)));
}

void Router::reset(double range) {
  init::normal_(weight, 0, range);
  if (bias) init::normal_(*bias, 0, range);
  if (correction) init::zeros_(**correction);
}

// Which experts: the best of the groups whose best two have the largest sums.
Tensor Router::chosen_of_groups(const Tensor& scores) const {
  const int64_t groups = design.groups, each = design.count / groups;
  const Tensor choice = scores + **correction;
  const Tensor of_groups = std::get<0>(choice.view({-1, groups, each}).topk(2, -1)).sum({-1});
  const Tensor best = std::get<1>(topk(of_groups, design.chosen_groups, -1, true, false));
  const Tensor among = scatter(zeros_like(of_groups), 1, best, 1).unsqueeze(-1).expand({-1, groups, each});
  const Tensor open = choice.masked_fill(eq(among.reshape({-1, design.count}), 0), -std::numeric_limits<double>::infinity());
  return std::get<1>(topk(open, design.chosen, -1, true, false));
}

std::tuple<Tensor, Tensor, Tensor> Router::forward(const Tensor& hidden_states) {
  if (design.scores == ExpertsDesign::Scores::sigmoid) {
    const Tensor logits = linear(hidden_states.to(DType::float32), weight->to(DType::float32));
    const Tensor scores = sigmoid(logits);
    const Tensor chosen = chosen_of_groups(scores);
    Tensor weights = scores.gather(1, chosen);
    if (design.normalised) weights = weights / (weights.sum({-1}, true) + 1e-20);
    return {logits, weights * design.scale, chosen};
  }
  const Tensor logits = linear(hidden_states, weight, bias ? Tensor(**bias) : Tensor());
  if (design.scores == ExpertsDesign::Scores::softmax_of_best) {
    const auto [best, chosen] = logits.topk(design.chosen, -1);
    return {logits, softmax(best, 1), chosen};
  }
  auto [weights, chosen] = softmax(logits, -1, DType::float32).topk(design.chosen, -1);
  if (design.normalised) weights = weights / weights.sum({-1}, true);
  return {logits, design.wide_weights ? weights : weights.to(logits.dtype()), chosen};
}

ExpertWeights::ExpertWeights(std::string type, int64_t hidden_size, const ExpertsDesign& given,
                             const std::string& activation_name)
    : NamedModule(std::move(type)),
      design(given),
      activation(activation_named(activation_name)),
      gate_up_proj(register_parameter("gate_up_proj", design.transposed
                                                          ? empty({design.count, hidden_size, 2 * design.size})
                                                          : empty({design.count, 2 * design.size, hidden_size}))),
      gate_up_proj_bias(design.transposed ? std::optional<Parameter>(register_parameter(
                                                "gate_up_proj_bias", zeros({design.count, 2 * design.size})))
                                          : std::nullopt),
      down_proj(register_parameter("down_proj", design.transposed ? empty({design.count, design.size, hidden_size})
                                                                  : empty({design.count, hidden_size, design.size}))) {
  if (design.transposed) down_proj_bias.emplace(register_parameter("down_proj_bias", zeros({design.count, hidden_size})));
}

void ExpertWeights::reset(double range) {
  init::normal_(gate_up_proj, 0, range);
  init::normal_(down_proj, 0, range);
  if (gate_up_proj_bias) init::zeros_(*gate_up_proj_bias);
  if (down_proj_bias) init::zeros_(*down_proj_bias);
}

Tensor ExpertWeights::gated(const Tensor& both) const {
  if (!design.transposed) {
    const std::vector<Tensor> halves = both.chunk(2, -1);
    return activation(halves[0]) * halves[1];
  }
  const Tensor gate = clamp_max(both.slice(-1, 0, std::nullopt, 2), design.gate_limit);
  const Tensor up = clamp(both.slice(-1, 1, std::nullopt, 2), -design.gate_limit, design.gate_limit);
  return (up + 1) * (gate * sigmoid(gate * design.gate_alpha));
}

// The rows of all tokens, as often as they have experts, sorted by expert: each product is one of groups of rows.
Tensor ExpertWeights::forward(const Tensor& hidden_states, const Tensor& chosen, const Tensor& weights) {
  const int64_t times = design.chosen;
  const auto [experts, order] = sort(chosen.reshape({-1}));
  const Tensor rows = index(hidden_states, {floor_divide(order, times)});
  const Tensor ends = searchsorted(experts, arange(design.count, DType::int64, std::nullopt, experts.device()), true, true);
  const auto product = [&](const Tensor& x, const Tensor& matrices, const std::optional<Parameter>& bias) {
    const Tensor each = design.transposed ? matrices : matrices.transpose(-2, -1);
    const bool wide = x.dtype() == DType::float64;  // which _grouped_mm does not know
    const Tensor out = wide ? bmm(x.unsqueeze(1), index(each, {experts})).squeeze(1) : _grouped_mm(x, each, ends);
    return bias ? out + index(**bias, {experts}) : out;
  };
  const Tensor out = product(gated(product(rows, gate_up_proj, gate_up_proj_bias)), down_proj, down_proj_bias);
  const Tensor weighted = out * index(weights.reshape({-1}), {order}).unsqueeze(-1);
  const Tensor back = index(weighted, {argsort(order)});
  return back.view({hidden_states.sym_size(0), times, hidden_states.sym_size(1)}).sum({1}).to(hidden_states.dtype());
}

Experts::Experts(int64_t hidden_size, const DecoderDesign& design)
    : NamedModule(design.names + design.experts.block),
      router(child<Router>(design.experts.router, design.names + design.router_class, hidden_size, design.experts)),
      experts(child<ExpertWeights>("experts", design.names + "Experts", hidden_size, design.experts,
                                   design.feed_forward.activation)) {
  if (!design.experts.shared) return;
  FeedForwardDesign one = design.feed_forward;
  one.size = design.experts.shared_size;
  shared.emplace(child<DecoderFeedForward>(design.experts.shared, design.names + "MLP", hidden_size, one));
  if (design.experts.shared_gate) shared_gate.emplace(child<Linear>("shared_expert_gate", hidden_size, 1, false));
}

std::tuple<Tensor, Tensor> Experts::forward(const Tensor& hidden_states) {
  const Tensor tokens = hidden_states.reshape({-1, hidden_states.size(-1)});
  const auto [logits, weights, chosen] = router(tokens);
  Tensor out = experts(tokens, chosen, weights);
  if (shared) {
    const Tensor beside = (*shared)(tokens);
    out = out + (shared_gate ? sigmoid((*shared_gate)(tokens)) * beside : beside);
  }
  return {out.view(hidden_states.sym_sizes()), logits};
}

Tensor balancing_loss(const std::vector<Tensor>& logits, const ExpertsDesign& design, const Tensor& attention_mask) {
  Tensor counts = zeros({design.count}, DType::float32), probabilities = counts, rows;
  for (const Tensor& one : logits) {
    const Tensor weights = softmax(one, -1);
    const Tensor chosen = std::get<1>(weights.topk(design.chosen, -1));
    const Tensor kept = attention_mask.defined() ? attention_mask.reshape({-1}).to(DType::float32)
                                                 : ones({one.sym_size(0)}, DType::float32, std::nullopt, one.device());
    const Tensor of_choices = kept.unsqueeze(-1).expand({-1, design.chosen}).reshape({-1});
    counts = counts + scatter_add(zeros({design.count}, DType::float32), 0, chosen.reshape({-1}), of_choices);
    probabilities = probabilities + (weights.to(DType::float32) * kept.unsqueeze(-1)).sum({0});
    rows = rows.defined() ? rows + kept.sum() : kept.sum();
  }
  return (counts / rows * (probabilities / rows)).sum() * design.count;
}

}  // namespace calque
