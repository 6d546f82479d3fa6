// What shapes a text that a command writes: the flags that generate, summarize, translate and chat share, and their meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace calque {
struct GenerationConfig;
}

namespace calque::cli {

struct WritingOptions {
  std::optional<int64_t> max_new_tokens, num_beams, top_k, seed;
  std::optional<double> temperature, top_p, min_p;
  bool greedy = false;
  std::vector<std::string> set;  // KEY=VALUE of any other setting, the value as JSON
};

// Refuses what no model could write with, before one is loaded. `command` names the command in messages.
void check(const WritingOptions& options, const std::string& command);
// Changes the settings that the model came with.
void apply(const WritingOptions& options, GenerationConfig& config, const std::string& command);

}  // namespace calque::cli
