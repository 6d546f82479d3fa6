#include "calque/generate/logits_process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "calque/base/error.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/finfo.h"
#include "calque/tensor/number_text.h"
#include "generate/checks.h"

namespace calque {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string shown(const TokenIds& ids) { return str(IntList(ids)); }

void check_non_negative(const char* what, int64_t n) {
  if (n < 0) throw UserError("`" + std::string(what) + "` has to be a non-negative integer, but is " + std::to_string(n));
}

void check_token_ids(const char* what, const TokenIds& ids) {
  if (std::any_of(ids.begin(), ids.end(), [](int64_t id) { return id < 0; }))
    throw UserError("`" + std::string(what) + "` has to be a list of positive integers, but is " + shown(ids));
}

void check_penalty(double penalty) {
  if (!(penalty > 0)) throw UserError("`penalty` has to be a strictly positive float, but is " + python_repr(penalty));
}

// [vocab], true at the ids; ids that the vocabulary does not have are in no row.
Tensor vocabulary_mask(const TokenIds& ids, int64_t vocab) {
  Tensor mask = make_tensor({vocab}, DType::bool_);
  bool* out = mask.mutable_data_as<bool>();
  std::fill_n(out, vocab, false);
  for (const int64_t id : ids)
    if (id >= 0 && id < vocab) out[id] = true;
  return mask;
}

Tensor without(const Tensor& scores, const TokenIds& ids) {
  return scores.masked_fill(vocabulary_mask(ids, scores.size(-1)), -infinity);
}

// All of a row but the ids, which become certain.
Tensor only(const Tensor& scores, const TokenIds& ids, const char* what) {
  for (const int64_t id : ids)
    if (id < 0 || id >= scores.size(-1))
      throw UserError("`" + std::string(what) + "` " + std::to_string(id) + " is not in the vocabulary of " +
                      std::to_string(scores.size(-1)));
  return full_like(scores, -infinity).masked_fill(vocabulary_mask(ids, scores.size(-1)), 0.0);
}

// Tokens to ban, by row.
class Bans {
 public:
  explicit Bans(const Tensor& scores)
      : vocab_(scores.size(-1)),
        mask_(make_tensor({scores.size(0), vocab_}, DType::bool_)),
        data_(mask_.mutable_data_as<bool>()) {
    std::fill_n(data_, mask_.numel(), false);
  }
  void add(size_t row, int64_t id) {
    if (id >= 0 && id < vocab_) data_[static_cast<int64_t>(row) * vocab_ + id] = true;
  }
  Tensor apply(const Tensor& scores) const { return scores.masked_fill(mask_, -infinity); }

 private:
  int64_t vocab_;
  Tensor mask_;
  bool* data_;
};

// The scores of the ids in each row, times `penalty` where negative, else divided by it.
Tensor penalized(const Tensor& scores, const Tensor& ids, double penalty) {
  const Tensor seen = scores.gather(1, ids);
  return scores.scatter(1, ids, where(seen.lt(0), seen.mul(penalty), seen.div(penalty)));
}

}  // namespace

// ---- shared -------------------------------------------------------------------------------------------------------

Tensor entropy(const Tensor& logits) {
  const double lowest = lowest_finite(logits.dtype());
  const Tensor normalized = logits.sub(logits.logsumexp({-1}, true));
  return normalized.clamp(Scalar(lowest)).mul(normalized.softmax(-1)).sum({-1}).neg();
}

IdRows::IdRows(const Tensor& ids) {
  if (!ids.defined() || ids.dim() != 2 || ids.dtype() != DType::int64)
    throw UserError("ids of tokens have to be a tensor of int64 [batch, length]" +
                    (ids.defined() ? ", but are " + str(ids.sizes()) : std::string(", but there are none")));
  ids_ = ids.contiguous();
  data_ = ids_.data_as<int64_t>();
  rows_ = static_cast<size_t>(ids_.size(0));
  length_ = static_cast<size_t>(ids_.size(1));
}

Tensor process_scores(const LogitsProcessorList& processors, const Tensor& input_ids, const Tensor& scores) {
  Tensor out = scores;
  for (const LogitsProcessor& processor : processors) out = processor(input_ids, out);
  return out;
}

// ---- the processors -----------------------------------------------------------------------------------------------

LogitsProcessor min_length_logits_processor(int64_t min_length, TokenIds eos_token_id) {
  check_non_negative("min_length", min_length);
  return {"MinLengthLogitsProcessor", [=, eos = std::move(eos_token_id)](const Tensor& ids, const Tensor& scores) {
            return ids.size(-1) < min_length ? without(scores, eos) : scores;
          }};
}

LogitsProcessor min_new_tokens_length_logits_processor(int64_t prompt_length_to_skip, int64_t min_new_tokens,
                                                       TokenIds eos_token_id) {
  check_non_negative("prompt_length_to_skip", prompt_length_to_skip);
  check_non_negative("min_new_tokens", min_new_tokens);
  return {"MinNewTokensLengthLogitsProcessor", [=, eos = std::move(eos_token_id)](const Tensor& ids, const Tensor& scores) {
            return ids.size(-1) - prompt_length_to_skip < min_new_tokens ? without(scores, eos) : scores;
          }};
}

LogitsProcessor repetition_penalty_logits_processor(double penalty, std::optional<int64_t> prompt_ignore_length) {
  check_penalty(penalty);
  if (prompt_ignore_length) check_non_negative("prompt_ignore_length", *prompt_ignore_length);
  return {"RepetitionPenaltyLogitsProcessor", [=](const Tensor& ids, const Tensor& scores) {
            const int64_t from = std::min(prompt_ignore_length.value_or(0), ids.size(1));
            const Tensor seen = ids.narrow(1, from, ids.size(1) - from);
            // Ids past the scores go to a column that is dropped again.
            const int64_t vocab = scores.size(-1);
            const Tensor padded = cat({scores, zeros({scores.size(0), 1}, scores.dtype())}, 1);
            return penalized(padded, seen.clamp(std::nullopt, Scalar(vocab)), penalty).narrow(1, 0, vocab);
          }};
}

LogitsProcessor encoder_repetition_penalty_logits_processor(double penalty, const Tensor& encoder_input_ids) {
  check_penalty(penalty);
  return {"EncoderRepetitionPenaltyLogitsProcessor", [=](const Tensor&, const Tensor& scores) {
            const int64_t sources = encoder_input_ids.size(0);
            const Tensor ids = scores.size(0) > sources ? encoder_input_ids.repeat_interleave(scores.size(0) / sources, 0)
                                                        : encoder_input_ids;
            return penalized(scores, ids, 1 / penalty);
          }};
}

LogitsProcessor no_repeat_ngram_logits_processor(int64_t ngram_size) {
  if (ngram_size <= 0)
    throw UserError("`ngram_size` has to be a strictly positive integer, but is " + std::to_string(ngram_size));
  return {"NoRepeatNGramLogitsProcessor", [=](const Tensor& input_ids, const Tensor& scores) {
            const auto prefix = static_cast<size_t>(ngram_size - 1);
            if (input_ids.size(-1) < ngram_size) return scores;
            const IdRows rows(input_ids);
            Bans bans(scores);
            for (size_t r = 0; r < rows.size(); ++r) {
              const auto ids = rows[r];
              const auto last = ids.subspan(ids.size() - prefix);
              for (size_t i = 0; i + prefix < ids.size(); ++i)
                if (std::equal(last.begin(), last.end(), ids.begin() + static_cast<std::ptrdiff_t>(i)))
                  bans.add(r, ids[i + prefix]);
            }
            return bans.apply(scores);
          }};
}

LogitsProcessor encoder_no_repeat_ngram_logits_processor(int64_t encoder_ngram_size, const Tensor& encoder_input_ids) {
  if (encoder_ngram_size <= 0)
    throw UserError("`encoder_ngram_size` has to be a strictly positive integer, but is " +
                    std::to_string(encoder_ngram_size));
  const IdRows sources(encoder_input_ids.dim() == 1 ? encoder_input_ids.unsqueeze(0) : encoder_input_ids);
  const auto prefix = static_cast<size_t>(encoder_ngram_size - 1);
  using Followers = std::map<TokenIds, TokenIds>;
  auto followers = std::make_shared<std::vector<Followers>>(sources.size());
  for (size_t r = 0; r < sources.size(); ++r)
    for (size_t i = 0; i + prefix < sources[r].size(); ++i) {
      const auto start = sources[r].subspan(i, prefix);
      (*followers)[r][{start.begin(), start.end()}].push_back(sources[r][i + prefix]);
    }
  return {"EncoderNoRepeatNGramLogitsProcessor", [=](const Tensor& input_ids, const Tensor& scores) {
            const IdRows rows(input_ids);
            Bans bans(scores);
            const size_t beams = std::max<size_t>(1, rows.size() / followers->size());
            for (size_t r = 0; r < rows.size(); ++r) {
              if (rows[r].size() < prefix) continue;
              const auto last = rows[r].subspan(rows[r].size() - prefix);
              const Followers& known = followers->at(r / beams);
              if (const auto found = known.find({last.begin(), last.end()}); found != known.end())
                for (const int64_t id : found->second) bans.add(r, id);
            }
            return bans.apply(scores);
          }};
}

LogitsProcessor sequence_bias_logits_processor(SequenceBias sequence_bias) {
  if (sequence_bias.empty()) throw UserError("`sequence_bias` has to be a non-empty list of sequences and biases");
  for (const auto& [ids, bias] : sequence_bias) {
    if (ids.empty())
      throw UserError("each sequence of `sequence_bias` has to be a non-empty list of positive integers, but one is empty");
    check_token_ids("sequence_bias", ids);
  }
  return {"SequenceBiasLogitsProcessor", [biases = std::move(sequence_bias)](const Tensor& input_ids, const Tensor& scores) {
            const int64_t vocab = scores.size(-1);
            TokenIds outside;
            for (const auto& [ids, bias] : biases)
              std::copy_if(ids.begin(), ids.end(), std::back_inserter(outside), [&](int64_t id) { return id >= vocab; });
            if (!outside.empty())
              throw UserError("The model vocabulary size is " + std::to_string(vocab) +
                              ", but the following tokens were being biased: " + shown(outside));
            // Biases are float32 numbers, summed in the scores' dtype.
            const IdRows rows(input_ids);
            Tensor sum = zeros({scores.size(0), vocab}, DType::float64);
            double* out = sum.mutable_data_as<double>();
            const auto rounded = [&](double v) {
              return scores.dtype() == DType::float64 ? v : scalar_tensor(v, scores.dtype()).item_as<double>();
            };
            for (size_t r = 0; r < rows.size(); ++r) {
              double* row = out + static_cast<int64_t>(r) * vocab;
              for (const auto& [ids, bias] : biases)
                if (ids.size() == 1) row[ids[0]] = rounded(static_cast<float>(bias));
              for (const auto& [ids, bias] : biases) {
                const size_t prefix = ids.size() - 1;
                if (prefix == 0 || prefix > rows[r].size()) continue;
                const auto last = rows[r].subspan(rows[r].size() - prefix);
                if (!std::equal(last.begin(), last.end(), ids.begin())) continue;
                double& sum_of_token = row[ids.back()];
                sum_of_token = rounded(sum_of_token + static_cast<double>(static_cast<float>(bias)));
              }
            }
            return scores.add(sum.to(scores.dtype()));
          }};
}

LogitsProcessor no_bad_words_logits_processor(std::vector<TokenIds> bad_words_ids, const TokenIds& eos_token_id) {
  if (bad_words_ids.empty()) throw UserError("`bad_words_ids` has to be a non-empty list");
  SequenceBias biases;
  for (const TokenIds& word : bad_words_ids) {
    check_token_ids("bad_words_ids", word);
    const bool end = word.size() == 1 && std::find(eos_token_id.begin(), eos_token_id.end(), word[0]) != eos_token_id.end();
    if (!end) biases.emplace_back(word, -infinity);
  }
  LogitsProcessor processor = sequence_bias_logits_processor(std::move(biases));
  processor.name = "NoBadWordsLogitsProcessor";
  return processor;
}

LogitsProcessor prefix_constrained_logits_processor(PrefixAllowedTokens prefix_allowed_tokens, int64_t num_beams) {
  return {"PrefixConstrainedLogitsProcessor", [=](const Tensor& input_ids, const Tensor& scores) {
            const IdRows rows(input_ids);
            const int64_t vocab = scores.size(-1);
            Tensor mask = full_like(scores, -infinity, DType::float32);
            float* out = mask.mutable_data_as<float>();
            for (size_t r = 0; r < rows.size(); ++r) {
              const int64_t batch = static_cast<int64_t>(r) / num_beams;
              const TokenIds allowed = prefix_allowed_tokens(batch, rows[r]);
              if (allowed.empty())
                throw UserError("`prefix_allowed_tokens` returned no token for batch " + std::to_string(batch) +
                                ": the constraint cannot be satisfied");
              for (const int64_t id : allowed) {
                if (id < 0 || id >= vocab)
                  throw UserError("`prefix_allowed_tokens` returned token " + std::to_string(id) + ", expected 0 to " +
                                  std::to_string(vocab - 1));
                out[static_cast<int64_t>(r) * vocab + id] = 0;
              }
            }
            mask = mask.to(scores.dtype());
            const Tensor constrained = scores.add(mask);
            // Where every allowed token of a prompt's beams is impossible already, they are forced.
            const Tensor stuck = constrained.amax({-1}).isneginf().view({-1, num_beams}).all(-1, true);
            return where(stuck.repeat_interleave(num_beams, 0), mask, constrained);
          }};
}

LogitsProcessor forced_bos_token_logits_processor(int64_t bos_token_id) {
  return {"ForcedBOSTokenLogitsProcessor", [=](const Tensor& ids, const Tensor& scores) {
            return ids.size(-1) == 1 ? only(scores, {bos_token_id}, "forced_bos_token_id") : scores;
          }};
}

LogitsProcessor forced_eos_token_logits_processor(int64_t max_length, TokenIds eos_token_id) {
  check_token_ids("eos_token_id", eos_token_id);
  return {"ForcedEOSTokenLogitsProcessor", [=, eos = std::move(eos_token_id)](const Tensor& ids, const Tensor& scores) {
            return ids.size(-1) == max_length - 1 ? only(scores, eos, "forced_eos_token_id") : scores;
          }};
}

LogitsProcessor inf_nan_remove_logits_processor() {
  return {"InfNanRemoveLogitsProcessor", [](const Tensor&, const Tensor& scores) { return scores.nan_to_num(0.0); }};
}

LogitsProcessor exponential_decay_length_penalty(int64_t start, double factor, TokenIds eos_token_id,
                                                 int64_t input_ids_length) {
  check_token_ids("eos_token_id", eos_token_id);
  return {"ExponentialDecayLengthPenalty", [=, eos = std::move(eos_token_id)](const Tensor& ids, const Tensor& scores) {
            const int64_t past = ids.size(-1) - start - input_ids_length;
            if (past <= 0) return scores;
            const Tensor columns = tensor_of<int64_t>(eos, {static_cast<int64_t>(eos.size())});
            const Tensor ends = scores.index_select(1, columns);
            const Tensor penalty = ends.abs().mul(std::pow(factor, static_cast<double>(past)) - 1);
            return scores.add(
                zeros_like(scores).index_copy(1, columns, penalty.masked_fill(ends.isfinite().logical_not(), 0.0)));
          }};
}

LogitsProcessor suppress_tokens_logits_processor(TokenIds suppress_tokens) {
  return {"SuppressTokensLogitsProcessor", [suppressed = std::move(suppress_tokens)](const Tensor&, const Tensor& scores) {
            return without(scores, suppressed);
          }};
}

LogitsProcessor suppress_tokens_at_begin_logits_processor(TokenIds begin_suppress_tokens, int64_t begin_index) {
  return {"SuppressTokensAtBeginLogitsProcessor",
          [=, suppressed = std::move(begin_suppress_tokens)](const Tensor& ids, const Tensor& scores) {
            return ids.size(-1) == begin_index ? without(scores, suppressed) : scores;
          }};
}

LogitsProcessor logit_normalization() {
  return {"LogitNormalization", [](const Tensor&, const Tensor& scores) { return scores.log_softmax(-1); }};
}

}  // namespace calque
