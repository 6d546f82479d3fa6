#include "calque/hub/adapter_config.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <span>
#include <sstream>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "hub/config_json.h"
#include "hub/near_names.h"

namespace calque {
namespace {

// The release whose files are written.
constexpr const char* peft_version = "0.21.2";

// What a value may be; several together.
enum Takes : uint32_t {
  takes_none = 1,
  takes_flag = 2,
  takes_count = 4,  // an integer from 1 on
  takes_number = 8,
  takes_text = 16,
  takes_names = 32,        // a list of texts
  takes_indices = 64,      // a list of integers from 0 on
  takes_index = 128,       // one of them
  takes_counts_by = 256,   // an object of counts
  takes_numbers_by = 512,  // an object of numbers
  takes_indices_by = 1024,
  takes_anything = 2048,
  takes_chance = 4096,  // a number from 0 on and below 1
  takes_length = 8192,  // a count of positions
};
struct Setting {
  const char* name;
  uint32_t takes;
  const char* usual;                  // as JSON
  const char* unsupported = nullptr;  // what it asks for when it is set to something else than None, false or {}
};

constexpr Setting common[] = {
    {"auto_mapping", takes_none | takes_anything, "null"},
    {"base_model_name_or_path", takes_none | takes_text, "null"},
    {"inference_mode", takes_flag, "false"},
    {"modules_to_save", takes_none | takes_names, "null"},
    {"peft_version", takes_none | takes_text, nullptr},
    {"revision", takes_none | takes_text, "null"},
    {"task_type", takes_none | takes_text, "null"},
};
constexpr Setting lora_settings[] = {
    {"alora_invocation_tokens", takes_none | takes_indices, "null", "activated LoRA"},
    {"alpha_pattern", takes_none | takes_numbers_by, "{}"},
    {"arrow_config", takes_none | takes_anything, "null", "Arrow routing"},
    {"bias", takes_text, "\"none\""},
    {"corda_config", takes_none | takes_anything, "null"},
    {"ensure_weight_tying", takes_flag, "false", "adapters of tied weights that are tied themselves"},
    {"eva_config", takes_none | takes_anything, "null"},
    {"exclude_modules", takes_none | takes_text | takes_names, "null"},
    {"fan_in_fan_out", takes_flag, "false"},
    {"init_lora_weights", takes_flag | takes_text, "true"},
    {"kasa_config", takes_none | takes_anything, "null", "KaSA"},
    {"layer_replication", takes_none | takes_anything, "null", "layers that stand in the model several times"},
    {"layers_pattern", takes_none | takes_text | takes_names, "null"},
    {"layers_to_transform", takes_none | takes_index | takes_indices, "null"},
    {"loftq_config", takes_none | takes_anything, "{}"},
    {"lora_alpha", takes_number, "8"},
    {"lora_bias", takes_flag, "false"},
    {"lora_dropout", takes_chance, "0.0"},
    {"lora_ga_config", takes_none | takes_anything, "null"},
    {"megatron_config", takes_none | takes_anything, "null", "Megatron's layers"},
    {"megatron_core", takes_none | takes_text, "\"megatron.core\""},
    {"monteclora_config", takes_none | takes_anything, "null", "MonteCLoRA"},
    {"qalora_group_size", takes_count, "16"},
    {"r", takes_count, "8"},
    {"rank_pattern", takes_none | takes_counts_by, "{}"},
    {"target_modules", takes_none | takes_text | takes_names, "null"},
    {"target_parameters", takes_none | takes_names, "null"},
    {"trainable_token_indices", takes_none | takes_indices | takes_indices_by, "null"},
    {"use_bdlora", takes_none | takes_anything, "null", "block-diagonal LoRA"},
    {"use_dora", takes_flag, "false"},
    {"use_qalora", takes_flag, "false", "QA-LoRA"},
    {"use_rslora", takes_flag, "false"},
    {"velora_config", takes_none | takes_anything, "null", "VeLoRA"},
};
constexpr Setting ia3_settings[] = {
    {"exclude_modules", takes_none | takes_text | takes_names, "null"},     {"fan_in_fan_out", takes_flag, "false"},
    {"feedforward_modules", takes_none | takes_text | takes_names, "null"}, {"init_ia3_weights", takes_flag, "true"},
    {"target_modules", takes_none | takes_text | takes_names, "null"},
};
constexpr Setting prompt_settings[] = {
    {"num_attention_heads", takes_none | takes_count, "null"},
    {"num_layers", takes_none | takes_count, "null"},
    {"num_transformer_submodules", takes_none | takes_count, "null"},
    {"num_virtual_tokens", takes_none | takes_length, "null"},
    {"token_dim", takes_none | takes_count, "null"},
};
constexpr Setting prompt_tuning_settings[] = {
    {"prompt_tuning_init", takes_text, "\"RANDOM\""},
    {"prompt_tuning_init_text", takes_none | takes_text, "null"},
    {"tokenizer_kwargs", takes_none | takes_anything, "null"},
    {"tokenizer_name_or_path", takes_none | takes_text, "null"},
};
constexpr Setting prefix_settings[] = {
    {"encoder_hidden_size", takes_none | takes_count, "null"},
    {"init_weights", takes_none | takes_text, "null"},
    {"prefix_projection", takes_flag, "false"},
};

struct AdapterKind {
  AdapterType type;
  const char* name;
  std::span<const Setting> parts[3];
};
constexpr AdapterKind kinds[] = {
    {AdapterType::lora, "LORA", {common, lora_settings, {}}},
    {AdapterType::ia3, "IA3", {common, ia3_settings, {}}},
    {AdapterType::prompt_tuning, "PROMPT_TUNING", {common, prompt_settings, prompt_tuning_settings}},
    {AdapterType::prefix_tuning, "PREFIX_TUNING", {common, prompt_settings, prefix_settings}},
};

const AdapterKind& kind_of(AdapterType type) {
  return *std::ranges::find_if(kinds, [&](const AdapterKind& kind) { return kind.type == type; });
}

const Setting* find_setting(const AdapterKind& kind, std::string_view name) {
  for (const std::span<const Setting>& part : kind.parts)
    for (const Setting& setting : part)
      if (setting.name == name) return &setting;
  return nullptr;
}

std::vector<std::string> setting_names(const AdapterKind& kind) {
  std::vector<std::string> out;
  for (const std::span<const Setting>& part : kind.parts)
    for (const Setting& setting : part) out.emplace_back(setting.name);
  return out;
}

constexpr int64_t most = int64_t{1} << 24;  // of ranks and tokens

bool is_index_value(const Value& v) {
  return v.kind() == Value::Kind::integer && v.to_int() >= 0 && v.to_int() < std::numeric_limits<int32_t>::max();
}
bool is_count(const Value& v) { return is_index_value(v) && v.to_int() >= 1 && v.to_int() <= most; }
bool is_length(const Value& v) { return is_count(v) && v.to_int() <= 16384; }
bool is_number(const Value& v) {
  return v.kind() == Value::Kind::integer || (v.kind() == Value::Kind::floating && std::isfinite(v.to_float()));
}
template <class F>
bool all_in_list(const Value& v, F&& fits) {
  return v.kind() == Value::Kind::list && std::ranges::all_of(v.to_items(), fits);
}
template <class F>
bool all_in_dict(const Value& v, F&& fits) {
  return v.kind() == Value::Kind::dict && std::ranges::all_of(v.to_dict().items, [&](const auto& item) {
           return item.first.kind() == Value::Kind::string && fits(item.second);
         });
}
bool is_text_value(const Value& v) { return v.kind() == Value::Kind::string; }
bool is_indices(const Value& v) { return all_in_list(v, is_index_value); }

bool takes(uint32_t what, const Value& v) {
  if (what & takes_anything) return true;
  return ((what & takes_none) && v.is_none()) || ((what & takes_flag) && v.kind() == Value::Kind::boolean) ||
         ((what & takes_count) && is_count(v)) || ((what & takes_length) && is_length(v)) ||
         ((what & takes_number) && is_number(v)) ||
         ((what & takes_chance) && is_number(v) && v.to_float() >= 0 && v.to_float() < 1) ||
         ((what & takes_text) && is_text_value(v)) || ((what & takes_names) && all_in_list(v, is_text_value)) ||
         ((what & takes_indices) && is_indices(v)) || ((what & takes_index) && is_index_value(v)) ||
         ((what & takes_counts_by) && all_in_dict(v, is_count)) ||
         ((what & takes_numbers_by) && all_in_dict(v, is_number)) ||
         ((what & takes_indices_by) && all_in_dict(v, is_indices));
}

std::string expected_of(uint32_t what) {
  static constexpr std::pair<Takes, const char*> words[] = {
      {takes_flag, "true or false"},
      {takes_count, "an integer from 1 to 16777216"},
      {takes_length, "an integer from 1 to 16384"},
      {takes_number, "a number"},
      {takes_chance, "a number from 0 on and below 1"},
      {takes_text, "a text"},
      {takes_names, "a list of names"},
      {takes_index, "an integer from 0 on"},
      {takes_indices, "a list of integers from 0 on"},
      {takes_counts_by, "an object whose values are integers from 1 to 16777216"},
      {takes_numbers_by, "an object whose values are numbers"},
      {takes_indices_by, "an object whose values are lists of integers from 0 on"},
      {takes_none, "null"},
  };
  std::string out;
  for (const auto& [bit, word] : words)
    if (what & bit) out += (out.empty() ? "" : " or ") + std::string(word);
  return out;
}

// None, false and what holds nothing.
bool asks_nothing(const Value& v) {
  return v.is_none() || (v.kind() == Value::Kind::boolean && !v.to_bool()) ||
         (v.kind() == Value::Kind::dict && v.to_dict().items.empty()) ||
         (v.kind() == Value::Kind::list && v.to_items().empty());
}

Config::Items usual_items(const AdapterKind& kind) {
  std::string json = "{";
  for (const std::span<const Setting>& part : kind.parts)
    for (const Setting& setting : part)
      json += (json.size() > 1 ? ", \"" : "\"") + std::string(setting.name) +
              "\": " + (setting.usual ? setting.usual : "\"" + std::string(peft_version) + "\"");
  return parse_config_items(json + "}", "defaults");
}

}  // namespace

std::string_view peft_type(AdapterType type) { return kind_of(type).name; }

AdapterConfig::AdapterConfig(AdapterType type, const Config::Items& items, std::string where)
    : type_(type), items_(usual_items(kind_of(type))), where_(std::move(where)) {
  for (const auto& [name, value] : items) {
    check(name, value);
    std::ranges::find_if(items_, [&, &name = name](const auto& item) { return item.first == name; })->second = value;
  }
  check_together();
}

AdapterConfig AdapterConfig::from_json(std::string_view json, const std::string& where) {
  Config::Items items = parse_config_items(json, where);
  const Value* type = find_item(items, "peft_type");
  const auto types = [] { return join(kinds, ", ", [](const AdapterKind& kind) { return std::string(kind.name); }); };
  if (!type || type->kind() != Value::Kind::string)
    throw UserError(ErrorKind::bad_file, where + ": \"peft_type\", which says what kind of adapter it is, is " +
                                             (type ? type->str() : "missing") + ", expected one of " + types() +
                                             "; is it an adapter_config.json of PEFT?");
  const auto* kind = std::ranges::find_if(kinds, [&](const AdapterKind& one) { return one.name == type->to_string(); });
  if (kind == std::end(kinds))
    throw UserError(ErrorKind::bad_file, where + ": there is no adapter of \"peft_type\" \"" + type->to_string() +
                                             "\" in Calque, which has " + types() +
                                             "; peft's merge_and_unload() makes a model of it that opens");
  std::vector<std::string> unknown;
  std::erase_if(items, [&](const auto& item) {
    const bool known = find_setting(*kind, item.first);
    if (!known && item.first != "peft_type" && item.first != "runtime_config") unknown.push_back(item.first);
    return !known;
  });
  if (!unknown.empty())
    warn(where + ": these settings of the adapter are not known and are left out: " + join(unknown, ", ") +
         "; a later release of PEFT than " + peft_version + " may have written them");
  return AdapterConfig(kind->type, items, where);
}

AdapterConfig AdapterConfig::from_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    throw UserError(ErrorKind::bad_file, file.string() + ": cannot be read; expected the adapter_config.json of an adapter");
  return from_json(text.str(), file.string());
}

void AdapterConfig::wrong(std::string_view name, const std::string& expected, const Value& found) const {
  throw UserError(ErrorKind::bad_file,
                  where_ + ": \"" + std::string(name) + "\" has to be " + expected + ", found " + found.str());
}

void AdapterConfig::check(std::string_view name, const Value& value) const {
  const AdapterKind& kind = kind_of(type_);
  const Setting* setting = find_setting(kind, name);
  if (!setting)
    throw UserError(where_ + ": an adapter of kind " + kind.name + " has no setting \"" + std::string(name) + "\"" +
                    did_you_mean(std::string(name), setting_names(kind)));
  if (!takes(setting->takes, value)) wrong(name, expected_of(setting->takes), value);
  if (setting->unsupported && !asks_nothing(value))
    throw UserError(ErrorKind::bad_file, where_ + ": \"" + std::string(name) + "\" is " + value.str() + ", which asks for " +
                                             setting->unsupported + "; Calque does not have that. In Python peft's " +
                                             "merge_and_unload() makes a model of the adapter that opens");
}

void AdapterConfig::check_together() const {
  if (type_ == AdapterType::lora) {
    if (const std::string bias = text("bias"); bias != "none" && bias != "all" && bias != "lora_only")
      wrong("bias", "\"none\", \"all\" or \"lora_only\"", (*this)["bias"]);
    const Names targets = names("target_modules");
    if ((has("layers_to_transform") || has("layers_pattern")) && targets.pattern)
      throw UserError(where_ +
                      ": \"layers_to_transform\" and \"layers_pattern\" go with a list of \"target_modules\", found the "
                      "expression \"" +
                      *targets.pattern + "\"; name the layers in the expression");
    if (has("layers_pattern") && !has("layers_to_transform"))
      throw UserError(where_ +
                      ": \"layers_pattern\" says where the layers of \"layers_to_transform\" are, which is missing");
  }
  if (type_ == AdapterType::ia3) {
    const Names feedforward = names("feedforward_modules"), targets = names("target_modules");
    if (feedforward.given && !feedforward.pattern && targets.given && !targets.pattern)
      for (const std::string& name : feedforward.list)
        if (std::ranges::find(targets.list, name) == targets.list.end())
          throw UserError(ErrorKind::bad_file,
                          where_ + ": \"feedforward_modules\" have to be among \"target_modules\", and " + name + " is not");
  }
  if (is_prompt_learning() && has("num_transformer_submodules") && (*this)["num_transformer_submodules"].to_int() > 2)
    wrong("num_transformer_submodules", "1, or 2 of an encoder-decoder", (*this)["num_transformer_submodules"]);
  if (type_ == AdapterType::prefix_tuning && has("init_weights") && text("init_weights") != "zero")
    wrong("init_weights", "\"zero\" or null", (*this)["init_weights"]);
  if (type_ == AdapterType::prompt_tuning) {
    const std::string init = text("prompt_tuning_init");
    if (init != "RANDOM" && init != "TEXT" && init != "SAMPLE_VOCAB")
      wrong("prompt_tuning_init", "\"RANDOM\", \"TEXT\" or \"SAMPLE_VOCAB\"", (*this)["prompt_tuning_init"]);
  }
}

const Value& AdapterConfig::operator[](std::string_view name) const {
  if (const Value* found = find_item(items_, name)) return *found;
  throw UserError(where_ + ": an adapter of kind " + kind_of(type_).name + " has no setting \"" + std::string(name) + "\"");
}

bool AdapterConfig::has(std::string_view name) const {
  const Value* found = find_item(items_, name);
  return found && !found->is_none();
}

std::string AdapterConfig::text(std::string_view name) const { return has(name) ? (*this)[name].to_string() : ""; }

AdapterConfig::Names AdapterConfig::names(std::string_view name) const {
  Names out;
  out.given = has(name);
  if (!out.given) return out;
  const Value& value = (*this)[name];
  if (value.kind() == Value::Kind::string)
    out.pattern = value.to_string();
  else
    for (const Value& item : value.to_items()) out.list.push_back(item.to_string());
  return out;
}

std::vector<int64_t> AdapterConfig::integers(std::string_view name) const {
  std::vector<int64_t> out;
  if (!has(name)) return out;
  const Value& value = (*this)[name];
  if (value.kind() == Value::Kind::integer) return {value.to_int()};
  for (const Value& item : value.to_items()) out.push_back(item.to_int());
  return out;
}

void AdapterConfig::set(std::string_view name, Value value) {
  check(name, value);
  AdapterConfig changed = *this;
  std::ranges::find_if(changed.items_, [&](const auto& item) { return item.first == name; })->second = std::move(value);
  changed.check_together();
  *this = std::move(changed);
}

std::string AdapterConfig::to_json() const {
  Config::Items items = items_;
  items.emplace_back("peft_type", std::string(peft_type(type_)));
  std::string json = config_json(items);
  while (json.ends_with('\n')) json.pop_back();
  return json;
}

}  // namespace calque
