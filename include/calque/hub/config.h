// Config: what a config.json says of a model, under the names it has there, with the defaults of its architecture filled in.
// Keys that Calque does not know are kept. An architecture's other names for a key (GPT-2's n_embd for hidden_size) find
// the same value. A Config is a value: copying copies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/tensor/value.h"

namespace calque {

class Config {
 public:
  using Items = std::vector<std::pair<std::string, Value>>;

  Config() = default;
  explicit Config(Items items, std::string where = "config");  // with the defaults of its "model_type"
  static Config from_json(std::string_view json, const std::string& where = "config.json");
  static Config from_file(const std::filesystem::path& path);  // a config.json, or a folder that has one

  std::string model_type() const;
  std::vector<std::string> architectures() const;  // class names; empty when the file names none

  // Null when there is no such key; a key whose value is None is there.
  const Value* find(std::string_view key) const;
  bool has(std::string_view key) const;  // there, and not None
  void set(std::string_view key, Value value);

  // UserErrors (bad_file) name the key, what was expected and what was found. The optional ones are empty for a key that is
  // absent or None.
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool flag(std::string_view key) const;  // false when absent or None
  std::string text(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;
  std::optional<int64_t> optional_integer(std::string_view key) const;
  std::optional<double> optional_number(std::string_view key) const;
  std::optional<std::string> optional_text(std::string_view key) const;
  // A configuration inside this one ("text_config", "rope_parameters"); empty when absent or None.
  Config nested(std::string_view key) const;

  // "eager" or "sdpa": how attention is computed. Not written to files.
  std::string attention_implementation = "sdpa";

  const Items& items() const { return items_; }
  const std::string& where() const { return where_; }  // what to call it in errors

 private:
  std::string_view name_of(std::string_view key) const;  // through the architecture's other names
  [[noreturn]] void wrong(std::string_view key, const char* expected, const Value* found) const;

  Items items_;
  std::string where_ = "config";
};

}  // namespace calque
