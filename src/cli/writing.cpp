#include "cli/writing.h"

#include "calque/base/error.h"
#include "calque/generate/generation_config.h"

namespace calque::cli {

void check(const WritingOptions& o, const std::string& command) {
  if (o.temperature == 0.0)
    throw UserError(command + ": --temperature 0 divides by zero; --greedy takes the likeliest token always");
}

void apply(const WritingOptions& o, GenerationConfig& config, const std::string& command) {
  const auto take = [](auto& to, const auto& from) {
    if (from) to = *from;
  };
  take(config.temperature, o.temperature);
  take(config.top_k, o.top_k);
  take(config.top_p, o.top_p);
  take(config.min_p, o.min_p);
  take(config.num_beams, o.num_beams);
  // Whoever shapes the distribution means to draw from it.
  if (o.temperature || o.top_k || o.top_p || o.min_p || o.seed) config.do_sample = true;
  if (o.greedy) {
    config.do_sample = false;
    config.temperature = std::nullopt, config.top_k = std::nullopt, config.top_p = std::nullopt, config.min_p = std::nullopt;
  }
  for (const std::string& setting : o.set) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) throw UserError(command + ": --set takes KEY=VALUE, found '" + setting + "'");
    config.set(setting.substr(0, equals), setting.substr(equals + 1));
  }
  take(config.max_new_tokens, o.max_new_tokens);
}

}  // namespace calque::cli
