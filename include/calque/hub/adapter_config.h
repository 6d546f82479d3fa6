// AdapterConfig: what an adapter_config.json of PEFT says: the kind of adapter (LoRA, IA3, prompt or prefix tuning) and its settings, under
// PEFT's names and with its defaults. Every name is checked against the kind's own list, and every value against what PEFT takes.
//
//   AdapterConfig config(AdapterType::lora, {{"r", 16}, {"lora_alpha", 32}, {"target_modules", list({"q_proj", "v_proj"})}});
//
// Settings that change what an adapter computes and that Calque lacks (QA-LoRA, aLoRA, layer_replication, ...) are a UserError. A name
// that is not known in a file is left out with a warning, as PEFT does: a later release wrote it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/hub/config.h"

namespace calque {

enum class AdapterType : uint8_t { lora, ia3, prompt_tuning, prefix_tuning };
std::string_view peft_type(AdapterType type);  // "LORA"

class AdapterConfig {
 public:
  explicit AdapterConfig(AdapterType type, const Config::Items& items = {},
                         std::string where = "the adapter's configuration");
  static AdapterConfig from_json(std::string_view json, const std::string& where = "adapter_config.json");
  static AdapterConfig from_file(const std::filesystem::path& file);

  AdapterType type() const { return type_; }
  bool is_prompt_learning() const { return type_ == AdapterType::prompt_tuning || type_ == AdapterType::prefix_tuning; }
  const std::string& where() const { return where_; }  // what to call it in errors

  const Value& operator[](std::string_view name) const;  // UserError for a name that the kind does not have
  bool has(std::string_view name) const;                 // the kind has it, and it is not None
  bool flag(std::string_view name) const { return has(name) && (*this)[name].to_bool(); }
  std::string text(std::string_view name) const;  // "" for None
  // Names of modules: a list of them, or one regular expression. None gives nothing.
  struct Names {
    std::vector<std::string> list;
    std::optional<std::string> pattern;
    bool given = false;
  };
  Names names(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name) const;  // a number is a list of one; None gives none

  void set(std::string_view name, Value value);
  const Config::Items& items() const { return items_; }
  std::string to_json() const;  // as PEFT writes it

 private:
  [[noreturn]] void wrong(std::string_view name, const std::string& expected, const Value& found) const;
  void check(std::string_view name, const Value& value) const;
  void check_together() const;

  AdapterType type_;
  Config::Items items_;  // every name of the kind
  std::string where_;
};

}  // namespace calque
