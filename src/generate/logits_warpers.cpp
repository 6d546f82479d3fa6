#include <algorithm>
#include <cmath>
#include <limits>

#include "calque/base/error.h"
#include "calque/generate/logits_process.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/like.h"
#include "calque/tensor/number_text.h"
#include "generate/checks.h"

namespace calque {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

void check_kept(int64_t min_tokens_to_keep) {
  if (min_tokens_to_keep < 1)
    throw UserError("`min_tokens_to_keep` has to be a positive integer, but is " + std::to_string(min_tokens_to_keep));
}

// The `k` highest scores of each row are not below this, [batch, 1].
Tensor kth_score(const Tensor& scores, int64_t k) {
  const int64_t n = std::min(k, scores.size(-1));
  return std::get<0>(scores.topk(n)).narrow(-1, n - 1, 1);
}

// Sorted columns back where they came from.
Tensor unsorted(const Tensor& sorted, const Tensor& indices) { return sorted.scatter(1, indices, sorted); }

}  // namespace

LogitsProcessor temperature_logits_warper(double temperature) {
  if (!(temperature > 0))
    throw UserError("`temperature` (=" + python_repr(temperature) +
                    ") has to be a strictly positive float, otherwise your next token scores will be invalid." +
                    (temperature == 0 ? " For greedy decoding set `do_sample` to false." : ""));
  return {"TemperatureLogitsWarper", [=](const Tensor&, const Tensor& scores) { return scores.div(temperature); }};
}

LogitsProcessor top_k_logits_warper(int64_t top_k, int64_t min_tokens_to_keep) {
  if (top_k <= 0) throw UserError("`top_k` has to be a strictly positive integer, but is " + std::to_string(top_k));
  const int64_t k = std::max(top_k, min_tokens_to_keep);
  return {"TopKLogitsWarper",
          [=](const Tensor&, const Tensor& scores) { return scores.masked_fill(scores.lt(kth_score(scores, k)), -never); }};
}

LogitsProcessor top_p_logits_warper(double top_p, int64_t min_tokens_to_keep) {
  if (!(top_p >= 0 && top_p <= 1)) throw UserError("`top_p` has to be a float > 0 and < 1, but is " + python_repr(top_p));
  check_kept(min_tokens_to_keep);
  return {"TopPLogitsWarper", [=](const Tensor&, const Tensor& scores) {
            const auto [sorted, indices] = scores.sort(-1, false);
            Tensor remove = sorted.softmax(-1).cumsum(-1).le(1 - top_p);
            const int64_t kept = std::min(min_tokens_to_keep, scores.size(-1));
            remove.narrow(-1, scores.size(-1) - kept, kept).fill_(false);
            return scores.masked_fill(unsorted(remove, indices), -never);
          }};
}

LogitsProcessor min_p_logits_warper(double min_p, int64_t min_tokens_to_keep) {
  if (!(min_p >= 0 && min_p <= 1))
    throw UserError("`min_p` has to be a float in the [0, 1] interval, but is " + python_repr(min_p));
  check_kept(min_tokens_to_keep);
  return {"MinPLogitsWarper", [=](const Tensor&, const Tensor& scores) {
            const Tensor p = scores.softmax(-1);
            const Tensor remove = p.lt(p.amax({-1}, true).mul(min_p));
            const Tensor best = std::get<1>(p.topk(std::min(min_tokens_to_keep, scores.size(-1))));
            return scores.masked_fill(remove.scatter(-1, best, Scalar(false)), -never);
          }};
}

LogitsProcessor top_h_logits_warper(double top_h) {
  if (!(top_h > 0 && top_h <= 1)) throw UserError("`top_h` must be in the range (0, 1], but is " + python_repr(top_h));
  return {"TopHLogitsWarper", [=](const Tensor&, const Tensor& scores) {
            constexpr int64_t considered = 100;
            const auto [top, indices] = scores.topk(std::min(considered, scores.size(-1)));
            const Tensor p = top.sub(top.logsumexp({-1}, true)).softmax(-1);
            const Tensor limit = entropy(top).mul(top_h).unsqueeze(-1);
            const Tensor within = p.neg().mul(p.log()).cumsum(-1).le(limit);
            within.select(1, 0).fill_(true);
            const Tensor keep = zeros_like(scores, DType::bool_).scatter(1, indices, within);
            return scores.masked_fill(keep.logical_not(), -never);
          }};
}

LogitsProcessor typical_logits_warper(double mass, int64_t min_tokens_to_keep) {
  if (!(mass > 0 && mass < 1)) throw UserError("`typical_p` has to be a float > 0 and < 1, but is " + python_repr(mass));
  check_kept(min_tokens_to_keep);
  return {"TypicalLogitsWarper", [=](const Tensor&, const Tensor& scores) {
            const Tensor normalized = scores.log_softmax(-1);
            const Tensor entropy = normalized.mul(normalized.exp()).nansum({-1}, true).neg();
            const auto [sorted, indices] = normalized.neg().sub(entropy).abs().sort(-1, false);
            const Tensor cumulative = scores.gather(-1, indices).softmax(-1).cumsum(-1);
            const Tensor last = cumulative.lt(mass).sum({1}).clamp(std::nullopt, Scalar(scores.size(-1) - 1)).unsqueeze(-1);
            Tensor remove = sorted.gt(sorted.gather(1, last));
            remove.narrow(-1, 0, std::min(min_tokens_to_keep, scores.size(-1))).fill_(false);
            return scores.masked_fill(unsorted(remove, indices), -never);
          }};
}

LogitsProcessor epsilon_logits_warper(double epsilon, int64_t min_tokens_to_keep) {
  if (!(epsilon > 0 && epsilon < 1))
    throw UserError("`epsilon_cutoff` has to be a float > 0 and < 1, but is " + python_repr(epsilon));
  check_kept(min_tokens_to_keep);
  return {"EpsilonLogitsWarper", [=](const Tensor&, const Tensor& scores) {
            const Tensor remove =
                scores.softmax(-1).lt(epsilon).logical_and(scores.lt(kth_score(scores, min_tokens_to_keep)));
            return scores.masked_fill(remove, -never);
          }};
}

LogitsProcessor eta_logits_warper(double epsilon, int64_t min_tokens_to_keep) {
  if (!(epsilon > 0 && epsilon < 1))
    throw UserError("`eta_cutoff` has to be a float > 0 and < 1, but is " + python_repr(epsilon));
  check_kept(min_tokens_to_keep);
  return {"EtaLogitsWarper", [=](const Tensor&, const Tensor& scores) {
            const Tensor limit = scalar_tensor(epsilon, DType::float32);
            const Tensor eta = limit.minimum(limit.sqrt().mul(entropy(scores).neg().exp())).unsqueeze(-1);
            const Tensor remove = scores.softmax(-1).lt(eta).logical_and(scores.lt(kth_score(scores, min_tokens_to_keep)));
            return scores.masked_fill(remove, -never);
          }};
}

}  // namespace calque
