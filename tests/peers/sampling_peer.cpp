// sampling_peer CASES TENSORS TOKENIZER OUT: runs logits processors and generate on cases made by tests/peers/sampling.py.
// CASES has one JSON object a line: {"processor": class name, settings...} or {"generate": settings}; TENSORS holds ids.N and
// scores.N, or prompt.N and table.N (the logits that follow each token). OUT gets out.N, and steps.N when asked for.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "calque/generate/generate.h"
#include "calque/op/aten/joining.h"
#include "calque/op/aten/ternary.h"

using namespace calque;
using Nlohmann = nlohmann::json;

namespace {

LogitsProcessor processor_of(const Nlohmann& c, const Tensor& source) {
  const std::string name = c.at("processor");
  const auto number = [&](const char* key) { return c.at(key).get<double>(); };
  const auto integer = [&](const char* key) { return c.at(key).get<int64_t>(); };
  const auto ids = [&](const char* key) { return c.at(key).get<TokenIds>(); };
  const int64_t kept = c.value("min_tokens_to_keep", int64_t{1});
  if (name == "MinLengthLogitsProcessor") return min_length_logits_processor(integer("min_length"), ids("eos_token_id"));
  if (name == "MinNewTokensLengthLogitsProcessor")
    return min_new_tokens_length_logits_processor(integer("prompt_length_to_skip"), integer("min_new_tokens"),
                                                  ids("eos_token_id"));
  if (name == "TemperatureLogitsWarper") return temperature_logits_warper(number("temperature"));
  if (name == "RepetitionPenaltyLogitsProcessor") {
    std::optional<int64_t> ignored;
    if (c.contains("prompt_ignore_length")) ignored = integer("prompt_ignore_length");
    return repetition_penalty_logits_processor(number("penalty"), ignored);
  }
  if (name == "EncoderRepetitionPenaltyLogitsProcessor")
    return encoder_repetition_penalty_logits_processor(number("penalty"), source);
  if (name == "TopPLogitsWarper") return top_p_logits_warper(number("top_p"), kept);
  if (name == "TopKLogitsWarper") return top_k_logits_warper(integer("top_k"), kept);
  if (name == "TopHLogitsWarper") return top_h_logits_warper(number("top_h"));
  if (name == "MinPLogitsWarper") return min_p_logits_warper(number("min_p"), kept);
  if (name == "TypicalLogitsWarper") return typical_logits_warper(number("mass"), kept);
  if (name == "EpsilonLogitsWarper") return epsilon_logits_warper(number("epsilon"), kept);
  if (name == "EtaLogitsWarper") return eta_logits_warper(number("epsilon"), kept);
  if (name == "NoRepeatNGramLogitsProcessor") return no_repeat_ngram_logits_processor(integer("ngram_size"));
  if (name == "EncoderNoRepeatNGramLogitsProcessor")
    return encoder_no_repeat_ngram_logits_processor(integer("encoder_ngram_size"), source);
  if (name == "SequenceBiasLogitsProcessor")
    return sequence_bias_logits_processor(c.at("sequence_bias").get<SequenceBias>());
  if (name == "NoBadWordsLogitsProcessor")
    return no_bad_words_logits_processor(c.at("bad_words_ids").get<std::vector<TokenIds>>(), ids("eos_token_id"));
  if (name == "PrefixConstrainedLogitsProcessor") {
    const auto allowed = c.at("allowed").get<std::vector<TokenIds>>();  // by the last id
    return prefix_constrained_logits_processor(
        [=](int64_t, std::span<const int64_t> row) { return allowed.at(static_cast<size_t>(row.back()) % allowed.size()); },
        integer("num_beams"));
  }
  if (name == "ForcedBOSTokenLogitsProcessor") return forced_bos_token_logits_processor(integer("bos_token_id"));
  if (name == "ForcedEOSTokenLogitsProcessor")
    return forced_eos_token_logits_processor(integer("max_length"), ids("eos_token_id"));
  if (name == "InfNanRemoveLogitsProcessor") return inf_nan_remove_logits_processor();
  if (name == "ExponentialDecayLengthPenalty")
    return exponential_decay_length_penalty(integer("start"), number("factor"), ids("eos_token_id"),
                                            integer("input_ids_seq_length"));
  if (name == "LogitNormalization") return logit_normalization();
  if (name == "SuppressTokensLogitsProcessor") return suppress_tokens_logits_processor(ids("suppress_tokens"));
  if (name == "SuppressTokensAtBeginLogitsProcessor")
    return suppress_tokens_at_begin_logits_processor(ids("begin_suppress_tokens"), integer("begin_index"));
  throw UserError("no processor " + name);
}

void run_generate(const Nlohmann& c, const std::string& n, const SafetensorsFile& tensors, const Tokenizer& tokenizer,
                  NamedTensors& out) {
  const GenerationConfig config = GenerationConfig::from_json(c.at("generate").dump());
  const Tensor table = tensors.tensor("table." + n), prompt = tensors.tensor("prompt." + n);
  Generator generator(c.value("seed", uint64_t{0}));
  GenerateOptions options;
  options.generator = &generator;
  options.tokenizer = &tokenizer;
  const auto next = [&](const GenerationStep& step) {
    const Tensor last = step.input_ids.select(1, step.input_ids.size(1) - 1);
    return table.index_select(0, last.contiguous());
  };
  const GenerateOutput made = generate(next, prompt, config, options);
  out.emplace_back("out." + n, made.sequences);
  if (!made.scores.empty()) out.emplace_back("steps." + n, stack(made.scores, 1));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: sampling_peer CASES TENSORS TOKENIZER OUT\n";
    return 2;
  }
  std::string line;
  try {
    std::ifstream cases(argv[1]);
    const auto tensors = SafetensorsFile::open(argv[2]);
    const Tokenizer tokenizer = Tokenizer::from_file(argv[3]);
    NamedTensors out;
    for (int i = 0; std::getline(cases, line); ++i) {
      const Nlohmann c = Nlohmann::parse(line);
      const std::string n = std::to_string(i);
      if (c.contains("generate")) {
        run_generate(c, n, tensors, tokenizer, out);
        continue;
      }
      const Tensor scores = tensors.tensor("scores." + n);
      const Tensor before = scores.clone();
      const Tensor source = c.contains("source") ? tensors.tensor("source." + n) : Tensor();
      out.emplace_back("out." + n, processor_of(c, source)(tensors.tensor("ids." + n), scores).contiguous());
      if (!equal(before.nan_to_num(), scores.nan_to_num())) throw UserError("the scores were changed in place");
    }
    save_safetensors(argv[4], out, std::nullopt, true, SharedTensors::written_each);
  } catch (const std::exception& e) {
    std::cerr << "sampling_peer: " << e.what() << "\n  in " << line.substr(0, 500) << '\n';
    return 1;
  }
  return 0;
}
