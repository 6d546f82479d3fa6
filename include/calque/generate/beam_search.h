// What beam search keeps: the best finished hypotheses of each prompt, and which beams go on. The loop over a model is
// generate()'s; these are its parts, as transformers' BeamHypotheses and BeamSearchScorer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "calque/generate/logits_process.h"
#include "calque/op/tensor.h"

namespace calque {

// When the search of a prompt ends: as soon as there are enough hypotheses; when a better one is unlikely; when none can be.
enum class EarlyStopping : uint8_t { when_full, when_unlikely, never };

struct BeamSettings {
  int64_t num_beams = 1;
  double length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::when_unlikely;
  std::optional<int64_t> max_length = {};  // with the prompt; `never` needs it
};

struct Hypothesis {
  TokenIds ids;                     // with the prompt, without the end of text
  std::optional<int64_t> end = {};  // the end of text that finished it
  float score = 0;                  // its log-probability over its length to the power of the penalty
  std::vector<int64_t> rows = {};   // by step: the row that its token was chosen from
};

// The best `num_beams` of one prompt.
class BeamHypotheses {
 public:
  explicit BeamHypotheses(const BeamSettings& settings);  // UserError: `never` without max_length
  void add(TokenIds ids, std::optional<int64_t> end, float sum_logprobs, int64_t generated_length,
           std::vector<int64_t> rows = {});
  // Whether nothing better will come, given the best that is still running.
  bool is_done(float best_sum_logprobs, int64_t length, int64_t prompt_length) const;
  const std::vector<Hypothesis>& items() const { return items_; }

 private:
  BeamSettings settings_;
  std::vector<Hypothesis> items_;
  float worst_ = 1e9F;
};

// The beams that go on, [batch * num_beams]: their scores, the tokens that come next, and which beam each continues.
struct NextBeams {
  std::vector<float> scores;
  std::vector<int64_t> tokens, rows;
};

class BeamSearchScorer {
 public:
  BeamSearchScorer(int64_t batch, const BeamSettings& settings, std::optional<int64_t> pad_token_id, TokenIds eos_token_id,
                   int64_t prompt_length);
  // Candidates of each prompt, best first: [batch, k] scores, tokens, and beams within the prompt. `input_ids` are the beams so far.
  // UserError if fewer than num_beams of a prompt are no end of text.
  NextBeams process(const Tensor& input_ids, const Tensor& scores, const Tensor& tokens, const Tensor& beams);
  bool is_done() const;
  // The best of each prompt, with what is still running: [batch * count, length], padded, with the ends of text.
  Tensor finalize(const Tensor& input_ids, std::span<const float> scores, int64_t count);
  const BeamHypotheses& hypotheses(size_t prompt) const { return hypotheses_[prompt]; }
  // Of what finalize() gave: Hypothesis::rows.
  const std::vector<std::vector<int64_t>>& finished_rows() const { return finished_rows_; }

 private:
  BeamSettings settings_;
  std::optional<int64_t> pad_;
  TokenIds eos_;
  int64_t prompt_length_;
  std::vector<BeamHypotheses> hypotheses_;
  std::vector<bool> done_;
  std::vector<std::vector<int64_t>> rows_, finished_rows_;  // rows_: of the beams that go on
};

}  // namespace calque
