#include "calque/generate/assisted.h"

#include <algorithm>
#include <limits>

#include "calque/base/error.h"
#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/zeros.h"
#include "generate/checks.h"
#include "generate/search.h"

namespace calque {
namespace {

Tensor with_ids(const Tensor& ids, const TokenIds& more) {
  return more.empty() ? ids : cat({ids, tensor_of<int64_t>(more, {1, std::ssize(more)})}, 1);
}

Tensor longer_mask(const Tensor& mask, int64_t by) { return by == 0 ? mask : cat({mask, ones({1, by}, DType::int64)}, 1); }

bool among(const TokenIds& ids, int64_t id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

TokenIds ends_of_text(const GenerationConfig& config) { return config.eos_token_id ? config.eos_token_id->ids : TokenIds{}; }

// What the assistant's scores go through. transformers warps them twice, by the settings and by the model's processors; so
// that a seed gives the same tokens, so does this. Speculative sampling is right for whatever distribution they come from.
LogitsProcessorList draft_processors(const LogitsProcessorList& processors) {
  LogitsProcessorList out = processors;
  for (const LogitsProcessor& one : processors)
    if (one.name.ends_with("LogitsWarper")) out.push_back(one);
  return out;
}

// Algorithm 1 of Leviathan, Kalman and Matias, "Fast Inference from Transformers via Speculative Decoding" (2023).
VerifiedCandidates speculative_sampling(const Candidates& candidates, const Tensor& scores, Generator* generator) {
  const int64_t count = std::ssize(candidates.ids);
  const Tensor q = candidates.scores.softmax(-1), p = scores.softmax(-1);
  const Tensor ids = tensor_of<int64_t>(candidates.ids, {count, 1});
  const Tensor ratio = (p.narrow(0, 0, count).gather(1, ids) / q.gather(1, ids)).view({count});
  const Tensor accepted = le(rand({count}, generator), ratio).contiguous();
  const Bool* flags = accepted.data_as<Bool>();
  const int64_t n = std::find(flags, flags + count, false) - flags;
  Tensor next = p.narrow(0, n, 1);
  if (n < count) {
    next = (next - q.narrow(0, n, 1)).clamp_min(0);
    next = next / next.sum();
  }
  VerifiedCandidates out{{candidates.ids.begin(), candidates.ids.begin() + n}, n};
  out.ids.push_back(next.multinomial(1, false, generator).item_as<int64_t>());
  return out;
}

}  // namespace

VerifiedCandidates verify_candidates(const Candidates& candidates, const Tensor& scores, bool do_sample,
                                     Generator* generator) {
  const int64_t count = std::ssize(candidates.ids);
  if (scores.dim() != 2 || scores.size(0) != count + 1)
    throw UserError("verify_candidates: scores have to be [" + std::to_string(count + 1) + ", vocab], but are " +
                    str(scores.sizes()));
  if (do_sample && candidates.scores.defined()) return speculative_sampling(candidates, scores, generator);
  const Tensor tokens = (do_sample ? sampled_tokens(scores, generator) : greedy_tokens(scores)).contiguous();
  const int64_t* token = tokens.data_as<int64_t>();
  const int64_t n = std::mismatch(candidates.ids.begin(), candidates.ids.end(), token).first - candidates.ids.begin();
  return {{token, token + n + 1}, n};
}

// ---- who proposes -------------------------------------------------------------------------------------------------

AssistantCandidates::AssistantCandidates(NextLogits next_logits, const GenerationConfig& settings, Shown shown)
    : next_logits_(std::move(next_logits)),
      count_(settings.num_assistant_tokens.value_or(20)),
      threshold_(settings.assistant_confidence_threshold.value_or(0.4)),
      shown_(shown) {
  const std::string schedule = settings.num_assistant_tokens_schedule.value_or("constant");
  heuristic_ = schedule == "heuristic" || schedule == "heuristic_transient";
  if (!heuristic_ && schedule != "constant")
    throw UserError(
        "generate: `num_assistant_tokens_schedule` is 'constant', 'heuristic' or 'heuristic_transient', found '" + schedule +
        "'");
  constexpr int64_t most = int64_t{1} << 20;  // positions of all of them are made at once
  if (count_ < 1 || count_ > most)
    throw UserError("generate: `num_assistant_tokens` has to be from 1 to " + std::to_string(most) + ", found " +
                    std::to_string(count_));
}

Candidates AssistantCandidates::propose(const CandidateRequest& request) {
  const TokenIds eos = ends_of_text(request.config);
  const bool sample = request.config.do_sample.value_or(false);
  const LogitsProcessorList processors = draft_processors(request.processors);
  Candidates out;
  std::vector<Tensor> all_scores;
  const int64_t length = request.input_ids.size(1), count = std::min(count_, request.most);
  Tensor ids = request.input_ids, mask = request.attention_mask, positions;
  if (sample && shown_.padding && mask.ne(0).all().item_as<bool>()) {
    positions = arange(length + count).unsqueeze(0);
    mask = attention_mask_of(ids, request.config.pad_token_id, eos);
  }
  // The token before the last is read again too: it may count as padding now, and did not when it was proposed.
  seen_ = std::min(seen_, std::max<int64_t>(0, length - 2));
  Tensor unseen = ids.narrow(1, seen_, length - seen_);
  if (sample && seen_ > 0 && seen_ + length + count <= shown_.again_within) {
    unseen = ids;
    mask = longer_mask(mask, seen_);
  }
  for (int64_t left = count; left > 0; --left) {
    GenerationStep step{unseen, seen_, mask};
    if (positions.defined()) step.position_ids = positions.narrow(1, seen_, unseen.size(1));
    const Tensor logits = next_logits_(step);
    seen_ += unseen.size(1);
    const Tensor scores = process_scores(processors, ids, last_scores(logits, 1));
    const Tensor token = sample ? sampled_tokens(scores, request.generator) : greedy_tokens(scores);
    out.ids.push_back(token.item_as<int64_t>());
    all_scores.push_back(scores);
    if (among(eos, out.ids.back())) break;
    if (threshold_ > 0 && scores.softmax(-1).select(1, out.ids.back()).item_as<double>() < threshold_) break;
    unseen = token.unsqueeze(1);
    ids = cat({ids, unseen}, 1);
    mask = longer_mask(mask, 1);
  }
  if (!all_scores.empty()) out.scores = cat(all_scores, 0);
  return out;
}

void AssistantCandidates::verified(int64_t proposed, int64_t accepted) {
  if (heuristic_) count_ = accepted == proposed ? count_ + 2 : std::max<int64_t>(1, count_ - 1);
}

PromptLookupCandidates::PromptLookupCandidates(int64_t num_output_tokens, int64_t max_matching_ngram_size,
                                               int64_t vocab_size, int64_t max_position_embeddings)
    : num_output_tokens_(num_output_tokens),
      max_matching_ngram_size_(max_matching_ngram_size),
      vocab_size_(vocab_size),
      max_position_embeddings_(max_position_embeddings) {
  if (num_output_tokens < 1 || max_matching_ngram_size < 1)
    throw UserError("generate: `prompt_lookup_num_tokens` (" + std::to_string(num_output_tokens) +
                    ") and `max_matching_ngram_size` (" + std::to_string(max_matching_ngram_size) + ") have to be positive");
}

int64_t PromptLookupCandidates::allowed(const TokenIds& ids, const CandidateRequest& request) const {
  if (vocab_size_ == 0 || request.processors.empty()) return std::ssize(ids);
  const Tensor even = ones({1, vocab_size_});
  Tensor sequence = request.input_ids;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto score = process_scores(request.processors, sequence, even).select(1, ids[i]).item_as<float>();
    if (score <= std::numeric_limits<float>::lowest()) return static_cast<int64_t>(i);
    sequence = with_ids(sequence, {ids[i]});
  }
  return std::ssize(ids);
}

Candidates PromptLookupCandidates::propose(const CandidateRequest& request) {
  const IdRows rows(request.input_ids);
  const std::span<const int64_t> ids = rows[0];
  const TokenIds eos = ends_of_text(request.config);
  const int64_t length = std::ssize(ids);
  if (request.most == 0) return {};
  int64_t most = num_output_tokens_;
  if (max_position_embeddings_ > 0) most = std::min(most, std::max(request.most, max_position_embeddings_ - length));
  for (int64_t ngram = std::min(max_matching_ngram_size_, length - 1); ngram > 0; --ngram) {
    const auto last = ids.last(static_cast<size_t>(ngram));
    for (auto at = ids.begin();; ++at) {
      at = std::search(at, ids.end(), last.begin(), last.end());
      const int64_t from = at - ids.begin() + ngram;
      if (from >= length) break;  // the last ids themselves, or none
      TokenIds found(ids.begin() + from, ids.begin() + from + std::min(most, length - from));
      found.resize(static_cast<size_t>(allowed(found, request)));
      if (found.empty()) continue;
      found.erase(std::find_if(found.begin(), found.end(), [&](int64_t id) { return among(eos, id); }), found.end());
      return {std::move(found)};
    }
  }
  return {};
}

// ---- the loop -----------------------------------------------------------------------------------------------------

GenerateOutput assisted_search(const NextLogits& next_logits, const Search& search, CandidateGenerator& generator) {
  const GenerationConfig& config = search.config;
  const bool sample = config.do_sample.value_or(false), details = config.return_dict_in_generate.value_or(false);
  if (search.ids.size(0) != 1)
    throw UserError("assisted generate is only supported for batch_size = 1, found " + std::to_string(search.ids.size(0)));
  if (!config.use_cache.value_or(true)) throw UserError("assisted generate requires `use_cache=True`");

  Tensor ids = search.ids, mask = search.mask;
  GenerateOutput out;
  int64_t seen = search.options.cache_position;
  for (bool done = false; !done;) {
    const int64_t length = ids.size(1);
    // The model adds one of its own. After a prompt that is no ids it reads that first, and no candidates with it.
    const bool own_prompt = seen < search.options.prompt_positions.value_or(0);
    const int64_t most = own_prompt ? 0 : std::max<int64_t>(0, *config.max_length - length - 1);
    const Candidates candidates = generator.propose({ids, mask, most, config, search.processors, search.options.generator});
    const int64_t count = std::ssize(candidates.ids);
    const Tensor all = with_ids(ids, candidates.ids);
    const Tensor logits = next_logits({search.unseen(all, seen), seen, longer_mask(mask, count), Tensor(), count + 1});
    if (!logits.defined() || logits.dim() != 3 || logits.size(1) < count + 1)
      throw UserError("generate: candidates need the logits [1, " + std::to_string(count + 1) +
                      ", vocab] of as many positions, found " + (logits.defined() ? str(logits.sizes()) : "none"));
    std::vector<Tensor> plain, processed;
    for (int64_t i = 0; i <= count; ++i) {
      plain.push_back(last_scores(logits.select(1, logits.size(1) - count - 1 + i), 1));
      processed.push_back(process_scores(search.processors, all.narrow(1, 0, length + i), plain.back()));
    }
    const VerifiedCandidates verified = verify_candidates(candidates, cat(processed, 0), sample, search.options.generator);
    // One by one, so that the text ends where it ends without candidates.
    for (size_t i = 0; i < verified.ids.size() && !done; ++i) {
      if (details && config.output_scores.value_or(false)) out.scores.push_back(processed[i]);
      if (details && config.output_logits.value_or(false)) out.logits.push_back(plain[i]);
      ids = with_ids(ids, {verified.ids[i]});
      mask = longer_mask(mask, 1);
      if (search.options.streamer) search.options.streamer->put(ids.select(1, ids.size(1) - 1));
      done = rows_done(search.criteria, ids).at(0);
    }
    generator.verified(count, verified.accepted);
    seen = mask.size(1) - 1;
  }
  if (search.options.streamer) search.options.streamer->end();
  out.sequences = ids;
  return out;
}

}  // namespace calque
