// generate: greedy search, sampling and beams over anything that gives the logits of the next token, with candidates where
// there are any (assisted.h). The loop owns nothing of the model: a callback maps new ids to logits and keeps its own cache.
// Groups of beams and contrastive search are a UserError.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "calque/generate/generation_config.h"
#include "calque/generate/logits_process.h"
#include "calque/generate/stopping_criteria.h"
#include "calque/op/tensor.h"
#include "calque/tensor/generator.h"
#include "calque/text/tokenizer.h"

namespace calque {

class CandidateGenerator;
class PretrainedModel;

// What the callback is asked: the ids that it has not seen [batch, n], how many it has, and which positions count. Of a prompt that
// is the callback's own (prompt_positions) the ids are [batch, 0], and n is what the mask has beyond cache_position.
struct GenerationStep {
  Tensor input_ids;
  int64_t cache_position = 0;  // 0: it starts anew; fewer than it has seen: the others are to be forgotten
  Tensor attention_mask;       // int64 [batch, cache_position + n]
  Tensor rows = {};            // int64 [batch]: the rows of the step before that these continue; undefined: the same ones
  int64_t logits_to_keep = 1;  // positions, from the last, whose logits are looked at; more than one with candidates
  Tensor position_ids = {};    // int64 [batch, n]; undefined: counted from the first position that counts
  bool best_alone = false;     // of a row's logits only the place of the largest will be looked at
};
// Logits [batch, vocab], or [batch, n, vocab] of which the last positions are taken.
using NextLogits = std::function<Tensor(const GenerationStep&)>;

// Told of the prompt, then of each step's ids [batch].
class Streamer {
 public:
  virtual ~Streamer() = default;
  virtual void put(const Tensor& ids) = 0;
  virtual void end() = 0;
  virtual bool takes_beams() const { return false; }  // put() is told of every beam's tokens
};

// Gives text out as soon as it is certain, of a batch of one. The tokenizer must outlive it.
class TextStreamer final : public Streamer {
 public:
  using Sink = std::function<void(std::string_view)>;
  TextStreamer(const Tokenizer& tokenizer, Sink sink, bool skip_prompt = false, bool skip_special_tokens = true);
  void put(const Tensor& ids) override;
  void end() override;

 private:
  StreamDecoder decoder_;
  Sink sink_;
  bool skip_prompt_;
  bool prompt_ = true;  // the next ids are the prompt
};

struct GenerateOptions {
  Tensor attention_mask = {};           // [batch, length]; made from the padding when there is none
  LogitsProcessorList processors = {};  // after those that the config asks for, before the warpers
  StoppingCriteriaList criteria = {};
  PrefixAllowedTokens prefix_allowed_tokens = {};
  Tensor encoder_input_ids = {};         // of an encoder-decoder: what its penalties look at
  const Tokenizer* tokenizer = nullptr;  // for stop strings
  Streamer* streamer = nullptr;
  Generator* generator = nullptr;       // for sampling; the default one when null
  int64_t max_position_embeddings = 0;  // of the model; 0: not known
  int64_t vocab_size = 0;               // of the model; 0: not known
  int64_t cache_position = 0;           // how many of the prompt's positions the callback has seen already
  // The prompt is the callback's own, of so many positions (embeddings, say): attention_mask is that long, and input_ids, [batch, 0]
  // or more, are what the text begins with and what processors and criteria look at.
  std::optional<int64_t> prompt_positions = {};
  CandidateGenerator* candidates = nullptr;  // who proposes ids, beside the config's prompt_lookup_num_tokens
  // For generate with a model: a smaller one with the same vocabulary that proposes ids, and its own settings.
  PretrainedModel* assistant = nullptr;
  GenerationConfig assistant_config = {};
  // Likewise: after so many steps of one token each, a plan takes the others where it can, with a cache of fixed capacity
  // (docs/generation.md). Negative: never. None: after the first where `cache_implementation` is "static", else never.
  std::optional<int64_t> compile_after = {};
};

struct GenerateOutput {
  Tensor sequences;            // [batch * num_return_sequences, length]
  std::vector<Tensor> scores;  // with output_scores: after the processors, one a step
  std::vector<Tensor> logits;  // with output_logits: before them
  // Of beams, by sequence and step: the row of `scores` that the token was chosen from.
  std::vector<std::vector<int64_t>> beam_rows = {};
};

// `input_ids` is int64 [batch, length]; undefined or empty it is the config's bos token. UserError for settings that
// contradict each other or the prompt; a warning for those that have no effect.
GenerateOutput generate(const NextLogits& next_logits, const Tensor& input_ids, const GenerationConfig& config,
                        const GenerateOptions& options = {});

// ---- its parts ----------------------------------------------------------------------------------------------------

// In transformers' order. `config` has max_length; a processor of the user's that the config asks for too is a UserError.
LogitsProcessorList logits_processors_of(const GenerationConfig& config, int64_t prompt_length,
                                         const GenerateOptions& options);
StoppingCriteriaList stopping_criteria_of(const GenerationConfig& config, const GenerateOptions& options);
// Zero at padding, if there is any in the ids and the padding is no end of text; otherwise ones.
Tensor attention_mask_of(const Tensor& input_ids, std::optional<int64_t> pad_token_id, const TokenIds& eos_token_id);

Tensor greedy_tokens(const Tensor& scores);                                   // [batch, vocab] to [batch]
Tensor sampled_tokens(const Tensor& scores, Generator* generator = nullptr);  // PyTorch's stream of random numbers

}  // namespace calque
