// GenerationConfig: what generation_config.json says, under the names it has there. A field that is not set is what
// transformers' default for it is, applied only when generating, so that a file reads back as it was. Keys that Calque
// does not know are kept as they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "calque/generate/logits_process.h"

namespace calque {

class Json;

// One id or a list of them, as the file has it.
struct TokenIdOrList {
  TokenIds ids;
  bool is_list = false;
  TokenIdOrList(int64_t id) : ids{id} {}
  TokenIdOrList(TokenIds list) : ids(std::move(list)), is_list(true) {}
};

enum class GenerationMode {
  greedy_search,
  sample,
  beam_search,
  beam_sample,
  group_beam_search,
  contrastive_search,
  constrained_beam_search,
  assisted_generation,
};
std::string_view name_of(GenerationMode mode);

struct GenerationConfig {
  // Length.
  std::optional<int64_t> max_length, max_new_tokens, min_length, min_new_tokens;
  std::optional<std::variant<bool, std::string>> early_stopping;  // or "never"
  std::optional<double> max_time;                                 // seconds
  std::optional<std::vector<std::string>> stop_strings;
  // Strategy.
  std::optional<bool> do_sample, use_cache;
  std::optional<std::string> cache_implementation;  // "dynamic", "static", ...: one cache serves all (docs/generation.md)
  std::optional<int64_t> num_beams, num_beam_groups;
  std::optional<double> penalty_alpha, length_penalty, diversity_penalty;
  std::optional<int64_t> prompt_lookup_num_tokens, max_matching_ngram_size;
  // Of a model that assists another.
  std::optional<int64_t> num_assistant_tokens;
  std::optional<std::string> num_assistant_tokens_schedule;
  std::optional<double> assistant_confidence_threshold;
  // Scores.
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p, min_p, top_h, typical_p, epsilon_cutoff, eta_cutoff;
  std::optional<double> repetition_penalty, encoder_repetition_penalty;
  std::optional<int64_t> no_repeat_ngram_size, encoder_no_repeat_ngram_size;
  std::optional<std::vector<TokenIds>> bad_words_ids;
  std::optional<SequenceBias> sequence_bias;
  std::optional<bool> renormalize_logits, remove_invalid_values;
  std::optional<int64_t> forced_bos_token_id;
  std::optional<TokenIdOrList> forced_eos_token_id;
  std::optional<std::pair<int64_t, double>> exponential_decay_length_penalty;
  std::optional<TokenIds> suppress_tokens, begin_suppress_tokens;
  std::optional<double> guidance_scale;
  // What generate gives back.
  std::optional<int64_t> num_return_sequences;
  std::optional<bool> output_attentions, output_hidden_states, output_scores, output_logits, return_dict_in_generate;
  // Tokens.
  std::optional<int64_t> pad_token_id, bos_token_id, decoder_start_token_id;
  std::optional<TokenIdOrList> eos_token_id;

  bool derived_from_model_config = false;
  std::vector<std::pair<std::string, std::string>> other = {};  // keys that Calque does not know, and their JSON

  // A generation_config.json, or a folder that has one. UserError (bad_file) names the file and the key.
  static GenerationConfig from_file(const std::filesystem::path& path);
  static GenerationConfig from_json(std::string_view json, const std::string& name = "generation_config.json");
  // The generation settings in a config.json, which older models keep there; those of a decoder fill what is unset.
  static GenerationConfig from_model_config(std::string_view json, const std::string& name = "config.json");

  static std::vector<std::string> names();  // of the fields

  // Sets one field from JSON, as a command line does. UserError names a key that there is not.
  void set(std::string_view key, std::string_view json);

  std::string to_json() const;  // what is set, keys sorted, as transformers writes it
  // UserError, and nothing is written, when validate() has anything to say.
  void save(const std::filesystem::path& folder) const;

  // UserError for settings that are wrong; a list of those that have no effect or will do harm.
  std::vector<std::string> validate() const;

  GenerationMode mode(bool assistant = false) const;
};

}  // namespace calque
