#include "calque/generate/beam_search.h"

#include <algorithm>
#include <cmath>

#include "calque/base/error.h"
#include "calque/op/aten/factories.h"
#include "generate/checks.h"

namespace calque {
namespace {

float penalised(float sum_logprobs, int64_t length, double penalty) {
  return sum_logprobs / static_cast<float>(std::pow(static_cast<double>(length), penalty));
}

}  // namespace

BeamHypotheses::BeamHypotheses(const BeamSettings& settings) : settings_(settings) {
  if (settings.early_stopping == EarlyStopping::never && !settings.max_length)
    throw UserError("beam search: early_stopping is \"never\", which needs a max_length");
}

void BeamHypotheses::add(TokenIds ids, std::optional<int64_t> end, float sum_logprobs, int64_t generated_length,
                         std::vector<int64_t> rows) {
  const float score = penalised(sum_logprobs, generated_length, settings_.length_penalty);
  if (std::ssize(items_) >= settings_.num_beams && !(score > worst_)) return;
  items_.push_back({std::move(ids), end, score, std::move(rows)});
  const auto by_score = [](const Hypothesis& a, const Hypothesis& b) { return a.score < b.score; };
  if (std::ssize(items_) > settings_.num_beams) {
    items_.erase(std::min_element(items_.begin(), items_.end(), by_score));
    worst_ = std::min_element(items_.begin(), items_.end(), by_score)->score;
  } else {
    worst_ = std::min(score, worst_);
  }
}

bool BeamHypotheses::is_done(float best_sum_logprobs, int64_t length, int64_t prompt_length) const {
  if (std::ssize(items_) < settings_.num_beams) return false;
  if (settings_.early_stopping == EarlyStopping::when_full) return true;
  // With a reward for length the best that may come is as long as can be.
  const bool longest = settings_.early_stopping == EarlyStopping::never && settings_.length_penalty > 0;
  return worst_ >=
         penalised(best_sum_logprobs, (longest ? *settings_.max_length : length) - prompt_length, settings_.length_penalty);
}

BeamSearchScorer::BeamSearchScorer(int64_t batch, const BeamSettings& settings, std::optional<int64_t> pad_token_id,
                                   TokenIds eos_token_id, int64_t prompt_length)
    : settings_(settings),
      pad_(pad_token_id),
      eos_(std::move(eos_token_id)),
      prompt_length_(prompt_length),
      hypotheses_(static_cast<size_t>(batch), BeamHypotheses(settings)),
      done_(static_cast<size_t>(batch), false),
      rows_(static_cast<size_t>(batch * settings.num_beams)) {
  if (settings.num_beams < 2)
    throw UserError("beam search: num_beams has to be at least 2, found " + std::to_string(settings.num_beams));
}

NextBeams BeamSearchScorer::process(const Tensor& input_ids, const Tensor& scores, const Tensor& tokens,
                                    const Tensor& beams) {
  const IdRows ids(input_ids), token_rows(tokens), beam_rows(beams);
  const Tensor values = scores.contiguous();
  const int64_t length = input_ids.size(1) + 1, width = settings_.num_beams;
  const auto candidates = static_cast<size_t>(values.size(1));
  const bool last = settings_.max_length && length >= *settings_.max_length;  // every text ends here
  NextBeams next;
  for (size_t b = 0; b < done_.size(); ++b) {
    const auto first = static_cast<int64_t>(b) * width;
    const auto fill = [&](int64_t count) {
      next.scores.insert(next.scores.end(), static_cast<size_t>(count), 0.0F);
      next.tokens.insert(next.tokens.end(), static_cast<size_t>(count), pad_.value_or(0));
      next.rows.insert(next.rows.end(), static_cast<size_t>(count), first);
    };
    if (done_[b]) {
      fill(width);
      continue;
    }
    const float* row = values.data_as<float>() + b * candidates;
    int64_t kept = 0;
    for (size_t rank = 0; rank < candidates && kept < width; ++rank) {
      const int64_t token = token_rows[b][rank], beam = first + beam_rows[b][rank];
      if (last || std::find(eos_.begin(), eos_.end(), token) != eos_.end()) {
        // An end of text that is not among the best counts for nothing.
        if (static_cast<int64_t>(rank) >= width) continue;
        const std::span<const int64_t> so_far = ids[static_cast<size_t>(beam)];
        std::vector<int64_t> rows = rows_[static_cast<size_t>(beam)];
        rows.push_back(beam);
        hypotheses_[b].add({so_far.begin(), so_far.end()}, token, row[rank], length - prompt_length_, std::move(rows));
        continue;
      }
      next.scores.push_back(row[rank]);
      next.tokens.push_back(token);
      next.rows.push_back(beam);
      ++kept;
    }
    if (last) {
      fill(width);
      done_[b] = true;
      continue;
    }
    if (kept < width)
      throw UserError("beam search: at most " + std::to_string(width) + " of the candidates of prompt " + std::to_string(b) +
                      " may be ends of text, found " + std::to_string(static_cast<int64_t>(candidates) - kept) + " of " +
                      std::to_string(candidates));
    done_[b] =
        hypotheses_[b].is_done(*std::max_element(next.scores.end() - width, next.scores.end()), length, prompt_length_);
  }
  std::vector<std::vector<int64_t>> rows;
  for (const int64_t from : next.rows) rows.emplace_back(rows_[static_cast<size_t>(from)]).push_back(from);
  rows_ = std::move(rows);
  return next;
}

bool BeamSearchScorer::is_done() const {
  return std::all_of(done_.begin(), done_.end(), [](bool d) { return d; });
}

Tensor BeamSearchScorer::finalize(const Tensor& input_ids, std::span<const float> scores, int64_t count) {
  const IdRows ids(input_ids);
  const auto width = static_cast<size_t>(settings_.num_beams);
  std::vector<Hypothesis> best;
  for (size_t b = 0; b < done_.size(); ++b) {
    if (!done_[b])
      for (size_t i = b * width; i < (b + 1) * width; ++i)
        hypotheses_[b].add({ids[i].begin(), ids[i].end()}, std::nullopt, scores[i],
                           static_cast<int64_t>(ids[i].size()) - prompt_length_, rows_[i]);
    std::vector<Hypothesis> sorted = hypotheses_[b].items();
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Hypothesis& x, const Hypothesis& y) { return x.score > y.score; });
    best.insert(best.end(), sorted.begin(), sorted.begin() + count);
  }
  finished_rows_.clear();
  for (const Hypothesis& one : best) finished_rows_.push_back(one.rows);
  size_t longest = 0;
  for (const Hypothesis& one : best) longest = std::max(longest, one.ids.size() + (one.end ? 1 : 0));
  std::vector<int64_t> out;
  for (const Hypothesis& one : best) {
    out.insert(out.end(), one.ids.begin(), one.ids.end());
    size_t filled = one.ids.size();
    if (one.end) out.push_back(*one.end), ++filled;
    out.insert(out.end(), longest - filled, pad_.value_or(0));
  }
  return tensor_of<int64_t>(out, {std::ssize(best), static_cast<int64_t>(longest)});
}

}  // namespace calque
