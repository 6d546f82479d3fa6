// Assisted generation: something cheap proposes the next ids, the model looks at all of them in one step and keeps those that
// it would have chosen itself, and one more. Greedy search finds what it finds without; sampling follows the same
// distribution (speculative sampling). One prompt at a time, with a cache. The loop is in generate().
#pragma once

#include <cstdint>

#include "calque/generate/generate.h"

namespace calque {

struct Candidates {
  TokenIds ids;
  Tensor scores = {};  // [ids, vocab] that they were drawn from; undefined when they were not
};

struct CandidateRequest {
  Tensor input_ids, attention_mask;  // [1, length]
  int64_t most;                      // how many ids may follow
  const GenerationConfig& config;
  const LogitsProcessorList& processors;
  Generator* generator;  // for sampling; the default one when null
};

class CandidateGenerator {
 public:
  virtual ~CandidateGenerator() = default;
  virtual Candidates propose(const CandidateRequest& request) = 0;
  virtual void verified(int64_t proposed, int64_t accepted) = 0;
};

// What a smaller model with the same vocabulary would say. Of `settings`, which are the assistant's, num_assistant_tokens (20),
// assistant_confidence_threshold (0.4: the first token that is less likely is the last) and num_assistant_tokens_schedule count.
class AssistantCandidates final : public CandidateGenerator {
 public:
  // What the assistant is shown besides the text. It proposes nothing better for it, but transformers 5 shows it too, and the
  // text that is sampled from a seed depends on it. Greedy search finds the same text either way.
  struct Shown {
    bool padding = true;       // a text that began without padding is padded wherever it holds the padding token
    int64_t again_within = 0;  // the whole text again behind what the cache holds of it, up to so many positions
  };
  explicit AssistantCandidates(NextLogits next_logits, const GenerationConfig& settings = {})
      : AssistantCandidates(std::move(next_logits), settings, Shown()) {}
  AssistantCandidates(NextLogits next_logits, const GenerationConfig& settings, Shown shown);
  Candidates propose(const CandidateRequest& request) override;
  void verified(int64_t proposed, int64_t accepted) override;

 private:
  NextLogits next_logits_;
  int64_t count_;
  double threshold_;
  bool heuristic_;  // two more when all were right, one fewer when not
  Shown shown_;
  int64_t seen_ = 0;  // ids in the assistant's cache
};

// What followed the last ids where they occurred before; the longest n-gram that did counts, its first occurrence.
class PromptLookupCandidates final : public CandidateGenerator {
 public:
  // With `vocab_size`, ids that the processors forbid are not proposed; with `max_position_embeddings`, nor are ids behind
  // the last position that the model has. Proposals may go beyond max_length, as transformers' do.
  explicit PromptLookupCandidates(int64_t num_output_tokens, int64_t max_matching_ngram_size = 2, int64_t vocab_size = 0,
                                  int64_t max_position_embeddings = 0);
  Candidates propose(const CandidateRequest& request) override;
  void verified(int64_t, int64_t) override {}

 private:
  int64_t allowed(const TokenIds& ids, const CandidateRequest& request) const;  // how many of them, from the first
  int64_t num_output_tokens_, max_matching_ngram_size_, vocab_size_, max_position_embeddings_;
};

struct VerifiedCandidates {
  TokenIds ids;  // the accepted ones and one more
  int64_t accepted;
};
// `scores` [candidates + 1, vocab] are the model's, after the processors. With do_sample, candidates that were drawn are accepted
// as speculative sampling does; others where the model draws or, without do_sample, finds likeliest the same.
VerifiedCandidates verify_candidates(const Candidates& candidates, const Tensor& scores, bool do_sample,
                                     Generator* generator = nullptr);

}  // namespace calque
