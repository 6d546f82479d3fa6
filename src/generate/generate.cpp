#include "calque/generate/generate.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "calque/base/error.h"
#include "calque/base/memory.h"
#include "calque/base/warning.h"
#include "calque/generate/assisted.h"
#include "calque/generate/beam_search.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/sorting.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/number_text.h"
#include "generate/checks.h"
#include "generate/search.h"

namespace calque {
namespace {

constexpr int64_t default_new_tokens = 20;

TokenIds ids_of(const std::optional<TokenIdOrList>& ids) { return ids ? ids->ids : TokenIds{}; }

int64_t longer_by(int64_t length, int64_t more) {
  int64_t sum = 0;
  return __builtin_add_overflow(length, more, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// max_length and min_length as they are to be for this prompt. What the callback's own prompt has instead of ids counts in lengths
// that the user set, but is not in the text.
void settle_lengths(GenerationConfig& config, int64_t prompt, const GenerateOptions& options) {
  const int64_t instead =
      options.prompt_positions && *options.prompt_positions != prompt ? *options.prompt_positions : int64_t{0};
  const bool untouched = !config.max_length;
  if (config.max_new_tokens) {
    if (config.max_length)
      warn("Both `max_new_tokens` (=" + std::to_string(*config.max_new_tokens) +
           ") and `max_length` (=" + std::to_string(*config.max_length) + ") are set; `max_new_tokens` takes precedence.");
    config.max_length = longer_by(*config.max_new_tokens, prompt);
  } else if (untouched) {
    warn("Using the model-agnostic default of " + std::to_string(default_new_tokens) +
         " new tokens (`max_length` = 20); set `max_new_tokens` to control the length of the generation.");
    config.max_length = default_new_tokens + prompt;
    if (options.max_position_embeddings > 0)
      config.max_length = std::min(*config.max_length, options.max_position_embeddings);
  } else if (instead > 0) {
    if (instead >= *config.max_length)
      throw UserError("Input length of inputs_embeds is " + std::to_string(instead) + ", but `max_length` is set to " +
                      std::to_string(*config.max_length) + ". Increase `max_length` or, better, set `max_new_tokens`.");
    *config.max_length -= instead;
  }
  if (config.min_new_tokens) {
    if (config.min_length)
      warn("Both `min_new_tokens` (=" + std::to_string(*config.min_new_tokens) +
           ") and `min_length` (=" + std::to_string(*config.min_length) + ") are set; `min_new_tokens` takes precedence.");
    config.min_length = longer_by(*config.min_new_tokens, prompt);
  } else if (config.min_length && instead > 0) {
    config.min_length = std::max<int64_t>(0, *config.min_length - instead);
  }
  if (prompt >= *config.max_length)
    throw UserError("Input length of input_ids is " + std::to_string(prompt) + ", but `max_length` is set to " +
                    std::to_string(*config.max_length) + ". Increase `max_length` or, better, set `max_new_tokens`.");
  if (config.min_length.value_or(0) > *config.max_length)
    warn("Unfeasible length constraints: `min_length` (" + std::to_string(*config.min_length) +
         ") is larger than the maximum possible length (" + std::to_string(*config.max_length) +
         "). Generation will stop at the maximum length.");
}

Tensor prompt_of(const Tensor& input_ids, const GenerationConfig& config, const GenerateOptions& options) {
  if (!options.prompt_positions && (!input_ids.defined() || input_ids.numel() == 0)) {
    if (!config.bos_token_id)
      throw UserError("generate: there are no input_ids, and `bos_token_id` is not set: nothing to begin with");
    const int64_t rows = input_ids.defined() && input_ids.dim() == 2 && input_ids.size(0) > 0 ? input_ids.size(0) : 1;
    return full({rows, 1}, *config.bos_token_id, DType::int64);
  }
  if (!input_ids.defined() || input_ids.dim() != 2 || input_ids.dtype() != DType::int64)
    throw UserError("generate: input_ids have to be int64 [batch, length], but are " +
                    (input_ids.defined() ? str(input_ids.sizes()) : std::string("missing")));
  return input_ids;
}

// Beams and sequences are rows: what one step makes of all of them has to fit in memory.
void check_rows(int64_t copies, const Tensor& mask, int64_t vocab) {
  const double row =
      static_cast<double>(std::max<int64_t>(vocab, 1)) * sizeof(float) + static_cast<double>(mask.size(1)) * sizeof(int64_t);
  const double needed = row * static_cast<double>(copies) * static_cast<double>(mask.size(0));
  if (memory_limit() != 0 && needed > static_cast<double>(memory_limit()))
    throw UserError("generate: `num_beams` or `num_return_sequences` asks for " + std::to_string(copies) +
                    " texts of a prompt at once, which needs more memory than there is; ask for fewer");
}

template <class T>
void check_not_made_already(const std::vector<T>& made, const std::vector<T>& own, const char* what) {
  for (const T& mine : own)
    for (const T& other : made)
      if (mine.name == other.name)
        throw UserError("generate: a custom " + std::string(what) + " of type " + mine.name +
                        " was passed, but the settings ask for one too; unset the setting or leave yours out");
}

// The scorer of beams looks after ends of text itself.
StoppingCriteriaList without_ends(const StoppingCriteriaList& criteria) {
  StoppingCriteriaList out;
  for (const StoppingCriterion& one : criteria)
    if (one.name != "EosTokenCriteria") out.push_back(one);
  return out;
}

BeamSettings beam_settings_of(const GenerationConfig& config) {
  BeamSettings out{config.num_beams.value_or(1), config.length_penalty.value_or(1), EarlyStopping::when_unlikely,
                   config.max_length};
  if (config.early_stopping) {
    const bool* flag = std::get_if<bool>(&*config.early_stopping);
    out.early_stopping = !flag ? EarlyStopping::never : *flag ? EarlyStopping::when_full : EarlyStopping::when_unlikely;
  }
  return out;
}

GenerateOutput beam_search(const NextLogits& next_logits, const Search& search) {
  const GenerationConfig& config = search.config;
  const BeamSettings settings = beam_settings_of(config);
  const TokenIds eos = ids_of(config.eos_token_id);
  Tensor ids = search.ids, mask = search.mask;
  const int64_t rows = ids.size(0), width = settings.num_beams, batch = rows / width, prompt = ids.size(1);
  const int64_t count = config.num_return_sequences.value_or(1);
  const int64_t candidates = std::max<int64_t>(2, 1 + std::ssize(eos)) * width;
  const bool details = config.return_dict_in_generate.value_or(false);
  // What texts shorter than the longest are filled with. transformers 5 takes the padding 0 for none.
  const std::optional<int64_t> fill = config.pad_token_id.value_or(0) == 0 && !eos.empty() ? eos[0] : config.pad_token_id;
  BeamSearchScorer scorer(batch, settings, fill, eos, prompt);
  // The beams of a prompt begin as copies: only the first may go on.
  std::vector<float> running(static_cast<size_t>(rows), -1e9F);
  for (int64_t b = 0; b < batch; ++b) running[static_cast<size_t>(b * width)] = 0;

  GenerateOutput out;
  Tensor chosen;
  int64_t seen = search.options.cache_position;
  for (;;) {
    const Tensor logits = last_scores(next_logits({search.unseen(ids, seen), seen, mask, chosen}), rows);
    if (config.use_cache.value_or(true)) seen = mask.size(1);
    const Tensor processed = process_scores(search.processors, ids, logits.log_softmax(-1));
    if (details && config.output_scores.value_or(false)) out.scores.push_back(processed);
    if (details && config.output_logits.value_or(false)) out.logits.push_back(logits);
    const int64_t vocab = processed.size(1);
    const Tensor sums = (processed + tensor_of<float>(running, {rows, 1})).view({batch, width * vocab});
    Tensor best, places;
    if (config.do_sample.value_or(false)) {
      places = sums.softmax(-1).multinomial(candidates, false, search.options.generator);
      const auto [sorted, order] = sums.gather(1, places).sort(-1, true);
      best = sorted;
      places = places.gather(1, order);
    } else {
      std::tie(best, places) = topk(sums, candidates);
    }
    const NextBeams next = scorer.process(ids, best, places.remainder(vocab), places.floor_divide(vocab));
    chosen = tensor_of<int64_t>(next.rows, {rows});
    running = next.scores;
    ids = cat({ids.index_select(0, chosen), tensor_of<int64_t>(next.tokens, {rows, 1})}, 1);
    mask = cat({mask.index_select(0, chosen), ones({rows, 1}, DType::int64)}, 1);
    if (search.options.streamer) search.options.streamer->put(tensor_of<int64_t>(next.tokens, {rows}));
    const std::vector<bool> stop = rows_done(without_ends(search.criteria), ids);
    if (scorer.is_done() || std::all_of(stop.begin(), stop.end(), [](bool d) { return d; })) break;
  }
  if (search.options.streamer) search.options.streamer->end();
  out.sequences = scorer.finalize(ids, running, count);
  out.beam_rows = scorer.finished_rows();
  return out;
}

}  // namespace

Tensor Search::unseen(const Tensor& so_far, int64_t seen) const {
  if (options.prompt_positions) {
    if (seen < *options.prompt_positions) return so_far.narrow(1, 0, 0);
    seen += ids.size(1) - *options.prompt_positions;
  }
  return so_far.narrow(1, seen, so_far.size(1) - seen);
}

Tensor last_scores(const Tensor& logits, int64_t rows) {
  if (!logits.defined() || (logits.dim() != 2 && logits.dim() != 3) || logits.size(0) != rows || !logits.is_floating_point())
    throw UserError("generate: expected logits [" + std::to_string(rows) + ", vocab] or [" + std::to_string(rows) +
                    ", length, vocab], found " + (logits.defined() ? str(logits.sizes()) : std::string("none")));
  const Tensor last = logits.dim() == 3 ? logits.select(1, logits.size(1) - 1) : logits;
  return last.to(DType::float32, false, true);
}

LogitsProcessorList logits_processors_of(const GenerationConfig& config, int64_t prompt_length,
                                         const GenerateOptions& options) {
  LogitsProcessorList out;
  const TokenIds eos = ids_of(config.eos_token_id);
  const Tensor& source = options.encoder_input_ids;
  const auto on = [](const std::optional<double>& v, double off) { return v && *v != off; };
  const auto without_source = [](const char* what) {
    warn("`" + std::string(what) + "` needs the ids of the encoder's input, and is ignored.");
  };
  const auto without_prompt = [&](const char* what) {
    if (prompt_length == 0)
      warn("`" + std::string(what) + "` looks at ids, and the prompt has none: it counts for new tokens only.");
  };
  if (on(config.guidance_scale, 1)) throw UserError("generate: `guidance_scale` is not supported");
  if (config.sequence_bias) out.push_back(sequence_bias_logits_processor(*config.sequence_bias));
  if (on(config.encoder_repetition_penalty, 1)) {
    if (source.defined())
      out.push_back(encoder_repetition_penalty_logits_processor(*config.encoder_repetition_penalty, source));
    else
      without_source("encoder_repetition_penalty");
  }
  if (on(config.repetition_penalty, 1)) {
    out.push_back(repetition_penalty_logits_processor(*config.repetition_penalty));
    without_prompt("repetition_penalty");
  }
  if (config.no_repeat_ngram_size.value_or(0) > 0) {
    out.push_back(no_repeat_ngram_logits_processor(*config.no_repeat_ngram_size));
    without_prompt("no_repeat_ngram_size");
  }
  if (config.encoder_no_repeat_ngram_size.value_or(0) > 0) {
    if (source.defined())
      out.push_back(encoder_no_repeat_ngram_logits_processor(*config.encoder_no_repeat_ngram_size, source));
    else
      without_source("encoder_no_repeat_ngram_size");
  }
  if (config.bad_words_ids) out.push_back(no_bad_words_logits_processor(*config.bad_words_ids, eos));
  if (config.min_length.value_or(0) > 0 && !eos.empty()) out.push_back(min_length_logits_processor(*config.min_length, eos));
  if (config.min_new_tokens.value_or(0) > 0 && !eos.empty())
    out.push_back(min_new_tokens_length_logits_processor(prompt_length, *config.min_new_tokens, eos));
  if (options.prefix_allowed_tokens)
    out.push_back(prefix_constrained_logits_processor(options.prefix_allowed_tokens, config.num_beams.value_or(1)));
  if (config.forced_bos_token_id) out.push_back(forced_bos_token_logits_processor(*config.forced_bos_token_id));
  if (config.forced_eos_token_id)
    out.push_back(forced_eos_token_logits_processor(config.max_length.value_or(0), config.forced_eos_token_id->ids));
  if (config.remove_invalid_values.value_or(false)) out.push_back(inf_nan_remove_logits_processor());
  if (config.exponential_decay_length_penalty)
    out.push_back(exponential_decay_length_penalty(config.exponential_decay_length_penalty->first,
                                                   config.exponential_decay_length_penalty->second, eos, prompt_length));
  if (config.suppress_tokens) out.push_back(suppress_tokens_logits_processor(*config.suppress_tokens));
  if (config.begin_suppress_tokens) {
    const int64_t begin = prompt_length > 1 || !config.forced_bos_token_id ? prompt_length : prompt_length + 1;
    out.push_back(suppress_tokens_at_begin_logits_processor(*config.begin_suppress_tokens, begin));
  }
  check_not_made_already(out, options.processors, "logits processor");
  out.insert(out.end(), options.processors.begin(), options.processors.end());

  if (config.do_sample.value_or(false)) {
    // Beams need one token besides the ends of text to go on with.
    const int64_t kept = config.num_beams.value_or(1) == 1 ? 1 : eos.empty() ? 2 : static_cast<int64_t>(eos.size()) + 1;
    const auto cutoff = [](const std::optional<double>& v) { return v && *v > 0 && *v < 1; };
    if (on(config.temperature, 1)) out.push_back(temperature_logits_warper(*config.temperature));
    if (config.top_h) out.push_back(top_h_logits_warper(*config.top_h));
    if (const int64_t k = config.top_k.value_or(50); k != 0) out.push_back(top_k_logits_warper(k, kept));
    if (config.top_p && *config.top_p < 1) out.push_back(top_p_logits_warper(*config.top_p, kept));
    if (config.min_p) out.push_back(min_p_logits_warper(*config.min_p, kept));
    if (config.typical_p && *config.typical_p < 1) out.push_back(typical_logits_warper(*config.typical_p, kept));
    if (cutoff(config.epsilon_cutoff)) out.push_back(epsilon_logits_warper(*config.epsilon_cutoff, kept));
    if (cutoff(config.eta_cutoff)) out.push_back(eta_logits_warper(*config.eta_cutoff, kept));
  }
  if (config.renormalize_logits.value_or(false)) out.push_back(logit_normalization());
  return out;
}

StoppingCriteriaList stopping_criteria_of(const GenerationConfig& config, const GenerateOptions& options) {
  StoppingCriteriaList out;
  if (config.max_length) out.push_back(max_length_criteria(*config.max_length, options.max_position_embeddings));
  if (config.max_time) out.push_back(max_time_criteria(*config.max_time));
  if (config.stop_strings) {
    if (!options.tokenizer)
      throw UserError("generate: there are `stop_strings`, but no tokenizer was passed to find them with");
    out.push_back(stop_string_criteria(*config.stop_strings, *options.tokenizer));
  }
  if (config.eos_token_id) out.push_back(eos_token_criteria(config.eos_token_id->ids));
  check_not_made_already(out, options.criteria, "stopping criterion");
  out.insert(out.end(), options.criteria.begin(), options.criteria.end());
  return out;
}

Tensor attention_mask_of(const Tensor& input_ids, std::optional<int64_t> pad_token_id, const TokenIds& eos_token_id) {
  const bool ids = input_ids.dim() == 2 && (input_ids.dtype() == DType::int64 || input_ids.dtype() == DType::int32);
  if (pad_token_id && ids && std::find(eos_token_id.begin(), eos_token_id.end(), *pad_token_id) == eos_token_id.end())
    return input_ids.ne(*pad_token_id).to(DType::int64);
  return ones({input_ids.size(0), input_ids.size(1)}, DType::int64);
}

Tensor greedy_tokens(const Tensor& scores) { return scores.argmax(-1); }

Tensor sampled_tokens(const Tensor& scores, Generator* generator) {
  return scores.softmax(-1).multinomial(1, false, generator).squeeze(1);
}

namespace {

// Greedy and sampled text: each row goes on by one token a step, and with padding once it has ended.
GenerateOutput token_by_token(const NextLogits& next_logits, const Search& search, const TokenIds& eos) {
  const auto& [input_ids, input_mask, config, processors, criteria, options] = search;
  const bool samples = config.mode(false) == GenerationMode::sample;
  const bool details = config.return_dict_in_generate.value_or(false);
  const bool keep_scores = details && config.output_scores.value_or(false);
  const bool keep_logits = details && config.output_logits.value_or(false);
  const bool best_alone = !samples && processors.empty() && !keep_scores && !keep_logits;
  Tensor ids = input_ids, mask = input_mask;
  const int64_t rows = ids.size(0);
  GenerateOutput out;
  std::vector<bool> done(static_cast<size_t>(rows), false);
  int64_t seen = options.cache_position;
  for (;;) {
    GenerationStep step{search.unseen(ids, seen), seen, mask};
    step.best_alone = best_alone;
    const Tensor logits = last_scores(next_logits(step), rows);
    if (config.use_cache.value_or(true)) seen = mask.size(1);
    const Tensor scores = process_scores(processors, ids, logits);
    if (keep_scores) out.scores.push_back(scores);
    if (keep_logits) out.logits.push_back(logits);
    Tensor tokens = samples ? sampled_tokens(scores, options.generator) : greedy_tokens(scores);
    if (!eos.empty()) {
      tokens = tokens.clone();
      int64_t* token = tokens.mutable_data_as<int64_t>();
      for (size_t r = 0; r < done.size(); ++r)
        if (done[r]) token[r] = *config.pad_token_id;
    }
    ids = cat({ids, tokens.unsqueeze(1)}, 1);
    mask = cat({mask, ones({rows, 1}, DType::int64)}, 1);
    if (options.streamer) options.streamer->put(tokens);
    const std::vector<bool> stop = rows_done(criteria, ids);
    for (size_t r = 0; r < done.size(); ++r) done[r] = done[r] || stop[r];
    if (std::all_of(done.begin(), done.end(), [](bool d) { return d; })) break;
  }
  if (options.streamer) options.streamer->end();
  out.sequences = ids;
  return out;
}

}  // namespace

GenerateOutput generate(const NextLogits& next_logits, const Tensor& input_ids, const GenerationConfig& given,
                        const GenerateOptions& options) {
  GenerationConfig config = given;
  for (const std::string& issue : config.validate()) warn("generate: " + issue);
  const GenerationMode mode = config.mode(options.candidates != nullptr);
  const bool assisted = mode == GenerationMode::assisted_generation;
  const bool beams = mode == GenerationMode::beam_search || mode == GenerationMode::beam_sample;
  if (!beams && !assisted && mode != GenerationMode::greedy_search && mode != GenerationMode::sample)
    throw UserError("generate: the settings ask for " + std::string(name_of(mode)) +
                    "; supported are greedy_search, sample, beam_search, beam_sample and assisted_generation");
  if (options.candidates && !assisted)
    warn("generate: " + std::string(name_of(mode)) + " does not take candidates; they are ignored.");
  if (assisted && config.num_return_sequences.value_or(1) > 1)
    throw UserError("num_return_sequences has to be 1 when doing assisted generate, but is " +
                    std::to_string(*config.num_return_sequences));
  if (beams && options.streamer && config.num_beams.value_or(1) > 1 && !options.streamer->takes_beams())
    throw UserError(
        "generate: a streamer shows tokens as they come, which beams do not allow; leave it out or set num_beams to 1");

  if (options.prompt_positions) config.use_cache = true;  // the ids alone do not give the prompt again
  Tensor ids = prompt_of(input_ids, config, options);
  const TokenIds eos = ids_of(config.eos_token_id);
  if (!config.pad_token_id && !eos.empty()) {
    warn("Setting `pad_token_id` to `eos_token_id`:" + std::to_string(eos[0]) + " for open-end generation.");
    config.pad_token_id = eos[0];
  }
  const int64_t positions = options.prompt_positions.value_or(ids.size(1));
  Tensor mask = options.attention_mask.defined() ? options.attention_mask.to(DType::int64)
                : positions == ids.size(1)       ? attention_mask_of(ids, given.pad_token_id, eos)
                                                 : ones({ids.size(0), positions}, DType::int64);
  if (mask.dim() != 2 || mask.size(0) != ids.size(0) || mask.size(1) != positions)
    throw UserError("generate: attention_mask has to be as large as " +
                    std::string(options.prompt_positions ? "the prompt" : "input_ids") + ", [" +
                    std::to_string(ids.size(0)) + ", " + std::to_string(positions) + "], but is " + str(mask.sizes()));
  if (const int64_t copies = std::max(config.num_return_sequences.value_or(1), beams ? config.num_beams.value_or(1) : 1);
      copies > 1) {
    check_rows(copies, mask, options.vocab_size);
    ids = ids.repeat_interleave(copies, 0);
    mask = mask.repeat_interleave(copies, 0);
  }
  const int64_t prompt = ids.size(1);
  settle_lengths(config, prompt, options);
  const LogitsProcessorList processors = logits_processors_of(config, prompt, options);
  const StoppingCriteriaList criteria = stopping_criteria_of(config, options);

  if (options.cache_position < 0 || options.cache_position >= positions)
    throw UserError("generate: " + std::to_string(options.cache_position) +
                    " ids are in the cache already, of a prompt of " + std::to_string(positions) +
                    "; at least one has to be new");
  if (options.streamer) options.streamer->put(ids);
  const Search search{ids, mask, config, processors, criteria, options};
  if (beams) return beam_search(next_logits, search);
  if (assisted) {
    if (options.candidates) return assisted_search(next_logits, search, *options.candidates);
    PromptLookupCandidates lookup(*config.prompt_lookup_num_tokens, config.max_matching_ngram_size.value_or(2),
                                  options.vocab_size, options.max_position_embeddings);
    return assisted_search(next_logits, search, lookup);
  }
  return token_by_token(next_logits, search, eos);
}

// ---- streaming ----------------------------------------------------------------------------------------------------

TextStreamer::TextStreamer(const Tokenizer& tokenizer, Sink sink, bool skip_prompt, bool skip_special_tokens)
    : decoder_(tokenizer, skip_special_tokens), sink_(std::move(sink)), skip_prompt_(skip_prompt) {}

void TextStreamer::put(const Tensor& ids) {
  if (ids.dim() == 2 && ids.size(0) > 1)
    throw UserError("TextStreamer streams a batch of one, found " + std::to_string(ids.size(0)));
  const bool skip = prompt_ && skip_prompt_;
  prompt_ = false;
  if (skip) return;
  const IdRows row(ids.dim() == 2 ? ids : ids.unsqueeze(0));
  for (const int64_t id : row[0])
    if (const std::string text = decoder_.push(id); !text.empty()) sink_(text);
}

void TextStreamer::end() {
  if (const std::string text = decoder_.finish(); !text.empty()) sink_(text);
  prompt_ = true;
}

}  // namespace calque
