#include "cli/options.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/join.h"
#include "hub/near_names.h"

namespace calque::cli {
namespace {

constexpr std::pair<const char*, const char*> dtype_names[] = {
    {"fp16", "float16"},      {"half", "float16"},   {"float16", "float16"}, {"bf16", "bfloat16"},
    {"bfloat16", "bfloat16"}, {"fp32", "float32"},   {"float", "float32"},   {"float32", "float32"},
    {"fp64", "float64"},      {"double", "float64"}, {"float64", "float64"}, {"auto", "auto"}};

// A number that satisfies a condition; `expected` says which in words.
template <class Holds>
CLI::Validator number_that(std::string expected, Holds holds) {
  return {[expected = std::move(expected), holds](std::string& text) -> std::string {
            double value = 0;
            const bool read = CLI::detail::lexical_cast(text, value);
            if (read && holds(value)) return {};
            return "expected " + expected + ", found '" + text + "'";
          },
          ""};
}

}  // namespace

CLI::Validator one_of(const std::vector<std::string>& choices) {
  return {[choices](std::string& text) -> std::string {
            for (const std::string& one : choices)
              if (one == text) return {};
            return "expected " + listed(choices, "or") + ", found '" + text + "'" + did_you_mean(text, choices);
          },
          join(choices, "|")};
}

CLI::Validator positive() {
  return number_that("a number above 0", [](double v) { return v > 0 && std::isfinite(v); });
}

CLI::Validator not_negative() {
  return number_that("a number of 0 or more", [](double v) { return v >= 0 && std::isfinite(v); });
}

CLI::Validator between(double least, double most) {
  return number_that(fmt::format("a number from {} to {}", least, most), [=](double v) { return v >= least && v <= most; });
}

CLI::Validator dtype_name() {
  return {[](std::string& text) -> std::string {
            std::vector<std::string> known;
            std::string wanted = text.starts_with("torch.") ? text.substr(6) : text;
            for (char& c : wanted) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
            for (const auto& [name, dtype] : dtype_names) {
              if (wanted == name) {
                text = dtype;
                return {};
              }
              known.emplace_back(name);
            }
            return "expected auto, float32 (fp32), bfloat16 (bf16), float16 (fp16, half) or float64, found '" + text + "'" +
                   did_you_mean(wanted, known);
          },
          "DTYPE"};
}

CLI::Option* add_dtype(CLI::App* command, std::string& dtype, const std::string& what) {
  return command->add_option("--dtype", dtype, what + ": float32 (fp32), bfloat16 (bf16), float16 (fp16) or auto")
      ->transform(dtype_name());
}

CLI::Option* add_json(CLI::App* command, bool& json, const std::string& what) {
  return command->add_flag("--json", json, what);
}

CLI::Option* add_class(CLI::App* command, std::string& model_class) {
  return command->add_option("--class", model_class,
                             "of a model folder: the class; by default the first that config.json names");
}

CLI::Option* add_attention(CLI::App* command, std::string& attention) {
  return command->add_option("--attention", attention, "of a model folder: how attention is computed")
      ->check(one_of({"eager", "sdpa"}));
}

void add_writing(CLI::App* command, WritingOptions& o, const std::string& most) {
  command->add_option("-n,--max-new-tokens", o.max_new_tokens, most)->check(positive());
  command->add_flag("--greedy", o.greedy, "always the likeliest token, whatever generation_config.json says");
  command->add_option("--temperature", o.temperature, "sample, with the scores divided by this");
  command->add_option("--top-k", o.top_k, "sample among this many");
  command->add_option("--top-p", o.top_p, "sample among the likeliest that add up to this");
  command->add_option("--min-p", o.min_p, "sample among those at least this likely, beside the likeliest");
  command->add_option("--seed", o.seed, "sample, the same text each time");
  command->add_option("--num-beams", o.num_beams, "beam search with this many")->check(positive());
  command->add_option("--set", o.set, "KEY=VALUE: any other setting of generation_config.json, the value as JSON")
      ->allow_extra_args(false);
}

void add_common_options(CLI::App& app, CommonOptions& o) {
  app.add_option("--threads", o.threads, "how many threads compute; by default as many as there are cores")
      ->check(positive());
  app.add_option("--memory-limit", o.memory_limit, "the most memory that a command may use for tensors: 8G, 500MB")
      ->envname("CALQUE_MEMORY_LIMIT");
  app.add_option("--time-limit", o.time_limit, "the most seconds that a command may take; 0 is no limit");
  app.add_option("--variant", o.variant, "the variant of a model's weights to read: fp16 for model.fp16.safetensors");
  app.add_option("--operators", o.operators, "a shared library with operators of your own; again for more")
      ->type_name("FILE.so")
      ->allow_extra_args(false);
  app.add_flag("-q,--quiet", o.quiet, "no warnings, no progress, no word of what was written; errors and results only");
}

}  // namespace calque::cli
