// calque generate MODEL -p TEXT: text that goes on from a prompt, shown as it comes.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/generate/model_generate.h"
#include "calque/hub/adapters.h"
#include "calque/hub/pretrained_model.h"
#include "calque/task/text_inputs.h"
#include "cli/command.h"
#include "cli/models.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace calque::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Counts tokens, and passes them on.
class CountingStreamer final : public Streamer {
 public:
  explicit CountingStreamer(Streamer* next) : next_(next) {}
  void put(const Tensor& ids) override {
    const Clock::time_point now = Clock::now();
    if (steps_ == 1) first_ = now;
    last_ = now;
    ++steps_;
    if (progress_) progress_->update(static_cast<uint64_t>(tokens()), most_);
    if (next_) next_->put(ids);
  }
  void end() override {
    if (next_) next_->end();
  }
  bool takes_beams() const override { return true; }
  void tell(Progress& progress, int64_t most) {
    progress_ = &progress;
    most_ = static_cast<uint64_t>(std::max<int64_t>(most, 0));
  }
  int64_t tokens() const { return steps_ - 1; }  // the prompt is the first call
  double first_token_seconds(Clock::time_point start) const { return std::chrono::duration<double>(first_ - start).count(); }
  double tokens_per_second() const {
    const double seconds = std::chrono::duration<double>(last_ - first_).count();
    return steps_ > 2 && seconds > 0 ? static_cast<double>(steps_ - 2) / seconds : 0;
  }

 private:
  Streamer* next_;
  int64_t steps_ = 0;
  Progress* progress_ = nullptr;
  uint64_t most_ = 0;
  Clock::time_point first_, last_;
};

GenerationConfig settings_of(const GenerateCommandOptions& o, const std::string& folder) {
  GenerationConfig config = generation_config_of(folder);
  if (o.repetition_penalty) config.repetition_penalty = o.repetition_penalty;
  if (o.prompt_lookup) config.prompt_lookup_num_tokens = o.prompt_lookup;
  if (!o.stop.empty()) config.stop_strings = o.stop;
  apply(o.writing, config, "generate");
  if (config.max_new_tokens)
    config.max_length = std::nullopt;
  else if (!config.max_length)
    config.max_new_tokens = 128;
  if (!config.pad_token_id && config.eos_token_id && !config.eos_token_id->ids.empty())
    config.pad_token_id = config.eos_token_id->ids[0];  // of one row nothing is padded
  return config;
}

bool is_end_of_text(const GenerationConfig& config, int64_t id) {
  return config.eos_token_id && std::ranges::find(config.eos_token_id->ids, id) != config.eos_token_id->ids.end();
}

// Without -p, what is piped in; at a terminal nobody waits for somebody to type.
std::string prompt_of(const GenerateCommandOptions& o) {
  if (!o.prompt && ::isatty(STDIN_FILENO) != 0) return "";
  if (o.prompt && o.prompt != "-") return *o.prompt;
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

void print_json(const GenerateCommandOptions& o, const std::string& prompt, const std::vector<std::string>& texts,
                const std::vector<std::vector<int64_t>>& ids, int64_t prompt_ids, const CountingStreamer& counted,
                double seconds) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["model"] = o.model;
  out["prompt"] = prompt;
  out["prompt_tokens"] = prompt_ids;
  out["new_tokens"] = counted.tokens();
  out["seconds"] = seconds;
  out["tokens_per_second"] = counted.tokens_per_second();
  out["sequences"] = Json::array();
  for (size_t i = 0; i < texts.size(); ++i) out["sequences"].push_back({{"text", texts[i]}, {"ids", ids[i]}});
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

void run_generate(const GenerateCommandOptions& o) {
  check(o.writing, "generate");
  const std::string folder = model_folder(o.model);
  const std::shared_ptr<PretrainedModel> model = load_model({o.model, o.model_class, o.dtype, ""});
  const Tokenizer tokenizer = Tokenizer::from_file(tokenizer_folder(folder));
  const GenerationConfig config = settings_of(o, folder);
  const std::string prompt = prompt_of(o);
  const std::vector<int64_t> ids = tokenizer.encode_ids(prompt);
  if (const std::optional<size_t> most = longest_input(*model, tokenizer); most && ids.size() > *most)
    say(fmt::format(
        "warning: the prompt has {} tokens, but the model reads at most {} at once; what it writes may make no sense",
        ids.size(), *most));
  const bool encoder_decoder = model->is_encoder_decoder();

  ModelInputs inputs;
  if (!ids.empty()) inputs.set(arg::input_ids, tensor_of<int64_t>(ids, {1, std::ssize(ids)}));
  const bool one = config.num_return_sequences.value_or(1) == 1 && config.num_beams.value_or(1) == 1;
  const auto show = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    flush_output();
  };
  TextStreamer text(tokenizer, show, o.no_prompt || encoder_decoder);
  CountingStreamer counted(one && !o.json ? &text : nullptr);
  Generator generator(o.writing.seed ? static_cast<uint64_t>(*o.writing.seed) : Generator::default_seed);
  if (!o.writing.seed) generator.seed();
  GenerateOptions options;
  options.tokenizer = &tokenizer;
  options.streamer = &counted;
  options.generator = &generator;
  std::shared_ptr<PretrainedModel> assistant;
  if (!o.assistant.empty()) {
    assistant = load_model({o.assistant, "", o.dtype, ""});
    options.assistant = assistant.get();
    options.assistant_config = generation_config_of(model_folder(o.assistant));
  }
  Progress progress("generating", "", Progress::Unit::tokens, Progress::Drawn::never);  // the text shows how far it is
  counted.tell(progress, config.max_new_tokens.value_or(0));
  const Clock::time_point start = Clock::now();
  const ModelGenerateOutput out = generate(*model, inputs, config, options);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();

  const Tensor sequences = out.sequences.contiguous();
  const int64_t skipped = o.no_prompt && !encoder_decoder ? std::ssize(ids) : 0;
  std::vector<std::string> texts;
  std::vector<std::vector<int64_t>> rows;
  for (int64_t r = 0; r < sequences.size(0); ++r) {
    const int64_t* row = sequences.data_as<int64_t>() + r * sequences.size(1);
    rows.emplace_back(row, row + sequences.size(1));
    texts.push_back(tokenizer.decode({row + skipped, row + sequences.size(1)}));
  }
  if (o.json)
    print_json(o, prompt, texts, rows, std::ssize(ids), counted, seconds);
  else if (one)
    fmt::print("\n");
  else
    for (const std::string& t : texts) fmt::print("{}\n", t);
  flush_output();
  if (!o.json && one && counted.tokens() == 1 && is_end_of_text(config, rows[0].back()))
    write_error_text(fmt::format(
        "The model ended the text at once{}; --set min_new_tokens=N makes it go on.\n",
        ids.empty() && !encoder_decoder
            ? ", there being no prompt but the token that texts begin with (-p TEXT gives one, or standard input)"
            : ""));
  if (o.stats)
    write_error_text(fmt::format("{} tokens in {:.2f} s: the first after {:.0f} ms, then {:.1f} a second\n",
                                 counted.tokens(), seconds, 1000 * counted.first_token_seconds(start),
                                 counted.tokens_per_second()));
}

}  // namespace calque::cli
