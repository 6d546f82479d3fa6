#include "hub/adapter/targets.h"

#include <algorithm>
#include <set>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/hub/resize.h"
#include "hub/adapter/tuner_layer.h"

namespace calque::adapter {
namespace {

std::vector<std::string> split_name(const std::string& name) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    out.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool is_digits(const std::string& text) {
  return !text.empty() && text.size() < 10 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool named(const std::vector<std::string>& list, const std::string& name) {
  return std::ranges::any_of(list, [&](const std::string& one) { return name == one || name.ends_with("." + one); });
}

TextRegex compiled(const std::string& expression, const std::string& where) {
  try {
    ExpressionBudget budget;
    return TextRegex("\\A(?:" + expression + ")\\z", budget);
  } catch (UserError& error) {
    error.prepend(where + ": ");
    throw;
  }
}

}  // namespace

NamePattern::NamePattern(const std::string& expression, const AdapterConfig& config, const char* setting)
    : where_(config.where() + ": \"" + setting + "\""), regex_(compiled(expression, where_)) {}

bool NamePattern::matches(const std::string& name) const {
  TextBudget budget(TextLimits{.steps = 1'000'000}, where_, TextBudget::Of::text, name.size());
  size_t begin = 0, end = 0;
  return regex_.find(name, 0, budget, begin, end);
}

Targets::Targets(const AdapterConfig& config)
    : targets_(config.names("target_modules")), exclude_(config.names("exclude_modules")) {
  if (targets_.pattern) target_pattern_.emplace(*targets_.pattern, config, "target_modules");
  if (exclude_.pattern && exclude_.pattern->empty()) exclude_.pattern.reset();
  if (exclude_.pattern) exclude_pattern_.emplace(*exclude_.pattern, config, "exclude_modules");
  for (const std::string& name : config.names("modules_to_save").list)
    to_save_.emplace_back("(^|.*\\.)" + name + "($|\\..*)", config, "modules_to_save");
  if (config.type() != AdapterType::lora) return;
  layer_indices_ = config.integers("layers_to_transform");
  chooses_layers_ = !layer_indices_.empty();
  const AdapterConfig::Names layers = config.names("layers_pattern");
  std::vector<std::string> patterns = layers.list;
  if (layers.pattern && !layers.pattern->empty()) patterns.push_back(*layers.pattern);
  for (const std::string& pattern : patterns) layers_.emplace_back("(?:.*\\.)?" + pattern, config, "layers_pattern");
}

// The first number in the name that has a name before it and one behind it is the layer's.
bool Targets::in_chosen_layer(const std::string& name) const {
  const std::vector<std::string> parts = split_name(name);
  const auto chosen = [&](const std::string& number) {
    return std::ranges::find(layer_indices_, std::stoll(number)) != layer_indices_.end();
  };
  if (layers_.empty()) {
    for (size_t i = 2; i + 1 < parts.size(); ++i)
      if (is_digits(parts[i])) return chosen(parts[i]);
    return false;
  }
  for (const NamePattern& pattern : layers_) {
    std::string before = parts[0];
    for (size_t i = 1; i + 1 < parts.size(); before += "." + parts[i++])
      if (is_digits(parts[i]) && pattern.matches(before)) return chosen(parts[i]);
  }
  return false;
}

Answer Targets::answer(const std::string& name) const {
  if (exclude_pattern_ ? exclude_pattern_->matches(name) : named(exclude_.list, name)) return Answer::excluded;
  for (const NamePattern& saved : to_save_)
    if (saved.matches(name)) return Answer::excluded;
  if (target_pattern_) return target_pattern_->matches(name) ? Answer::yes : Answer::no;
  if (std::ranges::find(targets_.list, name) != targets_.list.end()) return Answer::yes;
  if (!named(targets_.list, name)) return Answer::no;
  return !chooses_layers_ || in_chosen_layer(name) ? Answer::yes : Answer::no;
}

const Value* of_pattern(const AdapterConfig& config, const char* patterns, const std::string& name) {
  if (!config.has(patterns)) return nullptr;
  for (const auto& [key, value] : config[patterns].to_dict().items)
    if (NamePattern("(?:.*\\.)?(?:" + key.to_string() + ")", config, patterns).matches(name)) return &value;
  return nullptr;
}

std::vector<std::string> all_linear_names(PretrainedModel& model, const AdapterConfig& config) {
  std::set<const Module*> left_out;
  if (const Linear* head = get_output_embeddings(model)) {
    left_out.insert(head);
  } else if (config.text("task_type") == "SEQ_CLS") {
    for (const char* name : {"score", "classifier"})
      if (const Module* found = model.find_submodule(name)) {
        left_out.insert(found);
        break;
      }
  }
  std::vector<std::string> out;
  for (const auto& [name, module] : model.named_modules()) {
    if (left_out.contains(module)) continue;
    if (auto* tuner = dynamic_cast<TunerLayer*>(module)) {  // what it holds is no layer of the model
      for (Module* inner : tuner->modules()) left_out.insert(inner);
      const Module& base = tuner->innermost();
      if ((dynamic_cast<const Linear*>(&base) && get_output_embeddings(model) != &base) || is_conv1d(base))
        out.push_back(name);
    } else if (dynamic_cast<const Linear*>(module) || is_conv1d(*module)) {
      out.push_back(name);
    }
  }
  return out;
}

std::vector<std::string> shortest_names(const std::vector<std::string>& names, const std::vector<std::string>& others) {
  const auto ends = [](const std::string& name) {  // shortest first
    std::vector<std::string> out;
    const std::vector<std::string> parts = split_name(name);
    for (size_t i = parts.size(); i-- > 0;) out.push_back(out.empty() ? parts[i] : parts[i] + "." + out.back());
    return out;
  };
  std::set<std::string> taken;
  for (const std::string& name : others)
    for (std::string& end : ends(name)) taken.insert(std::move(end));
  std::vector<std::vector<std::string>> all;
  for (const std::string& name : names) all.push_back(ends(name));
  std::ranges::sort(all);
  std::vector<std::string> out;
  for (const std::vector<std::string>& one : all)
    for (const std::string& end : one) {
      if (std::ranges::find(out, end) != out.end() || taken.contains(end)) continue;
      if (std::ranges::any_of(out, [&](const std::string& done) { return one.back().ends_with("." + done); })) continue;
      out.push_back(end);
      break;
    }
  return out.empty() ? names : out;
}

// ---- PEFT's choices -----------------------------------------------------------------------------------------------------

namespace {

struct UsualTargets {
  const char* model_type;
  const char *lora, *ia3, *feedforward;  // names with spaces between; null: PEFT has no choice
};
constexpr UsualTargets usual[] = {
    {"t5", "q v", "k v wo", "wo"},
    {"mt5", "q v", "k v wi_1", ""},
    {"bart", "q_proj v_proj", "q_proj v_proj fc2", "fc2"},
    {"gpt2", "c_attn", "c_attn mlp.c_proj", "mlp.c_proj"},
    {"bloom", "query_key_value", "query_key_value mlp.dense_4h_to_h", "mlp.dense_4h_to_h"},
    {"blip-2", "q v q_proj v_proj", nullptr, nullptr},
    {"opt", "q_proj v_proj", "q_proj k_proj fc2", "fc2"},
    {"gptj", "q_proj v_proj", "q_proj v_proj fc_out", "fc_out"},
    {"gpt_neox", "query_key_value", "query_key_value dense_4h_to_h", "dense_4h_to_h"},
    {"gpt_neo", "q_proj v_proj", "q_proj v_proj c_proj", "c_proj"},
    {"bert", "query value", "key value output.dense", "output.dense"},
    {"roberta", "query value", "key value output.dense", "output.dense"},
    {"xlm-roberta", "query value", nullptr, nullptr},
    {"electra", "query value", nullptr, nullptr},
    {"deberta-v2", "query_proj value_proj", "key_proj value_proj output.dense", "output.dense"},
    {"deberta", "in_proj", "in_proj output.dense", "output.dense"},
    {"layoutlm", "query value", nullptr, nullptr},
    {"llama", "q_proj v_proj", "k_proj v_proj down_proj", "down_proj"},
    {"gpt_bigcode", "c_attn", "c_attn mlp.c_proj", "mlp.c_proj"},
    {"falcon", "query_key_value", "query_key_value dense_4h_to_h", "dense_4h_to_h"},
    {"codegen", "qkv_proj", nullptr, nullptr},
    {"mistral", "q_proj v_proj", "k_proj v_proj down_proj", "down_proj"},
    {"mixtral", "q_proj v_proj", "k_proj v_proj w2", "w2"},
    {"stablelm", "q_proj v_proj", nullptr, nullptr},
    {"phi", "q_proj v_proj fc1 fc2", "q_proj v_proj fc2", "fc2"},
    {"gemma", "q_proj v_proj", "q_proj v_proj down_proj", "down_proj"},
    {"gemma2", "q_proj v_proj", "q_proj v_proj down_proj", "down_proj"},
    {"gemma3_text", "q_proj v_proj", "q_proj v_proj down_proj", "down_proj"},
    {"qwen2", "q_proj v_proj", "q_proj v_proj down_proj", "down_proj"},
    {"qwen3", "q_proj v_proj", "q_proj v_proj down_proj", "down_proj"},
};

}  // namespace

std::optional<std::vector<std::string>> usual_targets(AdapterType type, const std::string& model_type, bool feedforward) {
  for (const UsualTargets& one : usual) {
    if (one.model_type != model_type) continue;
    const char* names = type == AdapterType::lora ? one.lora : feedforward ? one.feedforward : one.ia3;
    if (!names) return std::nullopt;
    std::vector<std::string> out;
    const std::string text = names;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(' ', at), text.size());
      out.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return out;
  }
  return std::nullopt;
}

}  // namespace calque::adapter
