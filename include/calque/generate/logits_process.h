// Logits processors, as transformers has them: pure functions of the ids so far [batch, length] and the scores of the next
// token [batch, vocab]. Each maker checks its settings (UserError) and returns a processor under transformers' class name;
// none changes the scores it is given. Which ones a GenerationConfig asks for, and in which order, is in generate.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calque/op/tensor.h"

namespace calque {

struct LogitsProcessor {
  std::string name;
  std::function<Tensor(const Tensor& input_ids, const Tensor& scores)> apply;

  Tensor operator()(const Tensor& input_ids, const Tensor& scores) const { return apply(input_ids, scores); }
};

using LogitsProcessorList = std::vector<LogitsProcessor>;
Tensor process_scores(const LogitsProcessorList& processors, const Tensor& input_ids, const Tensor& scores);

using TokenIds = std::vector<int64_t>;

// ---- what may come next -------------------------------------------------------------------------------------------
LogitsProcessor min_length_logits_processor(int64_t min_length, TokenIds eos_token_id);
LogitsProcessor min_new_tokens_length_logits_processor(int64_t prompt_length_to_skip, int64_t min_new_tokens,
                                                       TokenIds eos_token_id);
LogitsProcessor repetition_penalty_logits_processor(double penalty,
                                                    std::optional<int64_t> prompt_ignore_length = std::nullopt);
// Makes tokens of the source, [batch, length], likelier.
LogitsProcessor encoder_repetition_penalty_logits_processor(double penalty, const Tensor& encoder_input_ids);
LogitsProcessor no_repeat_ngram_logits_processor(int64_t ngram_size);
LogitsProcessor encoder_no_repeat_ngram_logits_processor(int64_t encoder_ngram_size, const Tensor& encoder_input_ids);
// What is added to a token's score when it would complete the sequence.
using SequenceBias = std::vector<std::pair<TokenIds, double>>;
LogitsProcessor sequence_bias_logits_processor(SequenceBias sequence_bias);
LogitsProcessor no_bad_words_logits_processor(std::vector<TokenIds> bad_words_ids, const TokenIds& eos_token_id = {});
// The tokens that may follow the ids of a row; `batch` counts prompts, not beams.
using PrefixAllowedTokens = std::function<TokenIds(int64_t batch, std::span<const int64_t> ids)>;
LogitsProcessor prefix_constrained_logits_processor(PrefixAllowedTokens prefix_allowed_tokens, int64_t num_beams = 1);
LogitsProcessor forced_bos_token_logits_processor(int64_t bos_token_id);
LogitsProcessor forced_eos_token_logits_processor(int64_t max_length, TokenIds eos_token_id);
LogitsProcessor inf_nan_remove_logits_processor();
LogitsProcessor exponential_decay_length_penalty(int64_t start, double factor, TokenIds eos_token_id,
                                                 int64_t input_ids_length);
LogitsProcessor suppress_tokens_logits_processor(TokenIds suppress_tokens);
LogitsProcessor suppress_tokens_at_begin_logits_processor(TokenIds begin_suppress_tokens, int64_t begin_index);
LogitsProcessor logit_normalization();

// ---- warpers: the shape of the distribution that is sampled from ---------------------------------------------------
LogitsProcessor temperature_logits_warper(double temperature);
LogitsProcessor top_k_logits_warper(int64_t top_k, int64_t min_tokens_to_keep = 1);
LogitsProcessor top_p_logits_warper(double top_p, int64_t min_tokens_to_keep = 1);
LogitsProcessor min_p_logits_warper(double min_p, int64_t min_tokens_to_keep = 1);
LogitsProcessor top_h_logits_warper(double top_h);
LogitsProcessor typical_logits_warper(double mass, int64_t min_tokens_to_keep = 1);
LogitsProcessor epsilon_logits_warper(double epsilon, int64_t min_tokens_to_keep = 1);
LogitsProcessor eta_logits_warper(double epsilon, int64_t min_tokens_to_keep = 1);

}  // namespace calque
