// Which modules of a model an adapter's configuration names, as PEFT matches them: names and ends of names, or one regular expression.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/hub/adapter_config.h"
#include "calque/hub/pretrained_model.h"
#include "text/regex.h"

namespace calque::adapter {

// A regular expression of a configuration, which matches whole names. UserError names the setting when it cannot be read.
class NamePattern {
 public:
  NamePattern(const std::string& expression, const AdapterConfig& config, const char* setting);
  bool matches(const std::string& name) const;

 private:
  std::string where_;
  TextRegex regex_;
};

enum class Answer : uint8_t { no, yes, excluded };

class Targets {
 public:
  explicit Targets(const AdapterConfig& config);
  Answer answer(const std::string& name) const;

 private:
  bool in_chosen_layer(const std::string& name) const;

  AdapterConfig::Names targets_, exclude_;
  std::optional<NamePattern> target_pattern_, exclude_pattern_;
  std::vector<NamePattern> to_save_, layers_;
  std::vector<int64_t> layer_indices_;
  bool chooses_layers_ = false;
};

// What `patterns` ("rank_pattern") says of a name: the value of the first key that matches its end; null when none does.
const Value* of_pattern(const AdapterConfig& config, const char* patterns, const std::string& name);

// The names of all linear layers but the head.
std::vector<std::string> all_linear_names(PretrainedModel& model, const AdapterConfig& config);
// The fewest ends of names that tell these from the others.
std::vector<std::string> shortest_names(const std::vector<std::string>& names, const std::vector<std::string>& others);
// PEFT's choice where a configuration names none; none for an architecture that it has no choice for.
std::optional<std::vector<std::string>> usual_targets(AdapterType type, const std::string& model_type, bool feedforward);

}  // namespace calque::adapter
