// Config: what a config.json says of a model, under the names it has there, with the defaults of its architecture filled in.
// Files of transformers 4 and 5 read the same (torch_dtype is dtype, num_labels is id2label and label2id). Keys that Calque
// does not know are kept. An architecture's other names for a key (GPT-2's hidden_size for n_embd) find and set the
// same value. A Config is a value: copying copies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/base/error.h"
#include "calque/op/value.h"

namespace calque {

struct Architecture;

// The transformers whose form of files Calque writes.
inline constexpr std::string_view transformers_version = "5.22.2";

class Config {
 public:
  using Items = std::vector<std::pair<std::string, Value>>;

  Config() = default;
  explicit Config(Items items, std::string where = "config");  // with the defaults of its "model_type"
  static Config from_json(std::string_view json, const std::string& where = "config.json");
  // A config.json, or a folder that has one (or, where that says so, a config.VERSION.json for this version).
  static Config from_file(const std::filesystem::path& path);

  std::string model_type() const;
  std::vector<std::string> architectures() const;  // class names; empty when the file names none
  std::optional<DType> dtype() const;              // UserError names a dtype that there is not
  int64_t num_labels() const;                      // of id2label; 2 where there is none
  bool use_return_dict() const;                    // return_dict, unless torchscript asks for tuples

  // Null when there is no such key; a key whose value is None is there. Keys that every configuration has (return_dict,
  // is_decoder, problem_type, ...) are there with transformers' default.
  const Value* find(std::string_view key) const;
  bool has(std::string_view key) const;  // there, and not None
  // Setting num_labels makes new labels where their number changes.
  void set(std::string_view key, Value value);
  bool erase(std::string_view key);
  // Sets what has a name that this configuration knows; gives back the rest, and the dtype.
  Items update(const Items& items);
  // "n_embd=10,resid_pdrop=0.2,scale_attn_weights=false": each value of the kind that is there. UserError for a key that is
  // not there, a value that does not fit, and kinds that have no such text.
  void update_from_string(std::string_view text);

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

  // UserError for a number that the architecture's schema refuses (config_schema.h). Reading a file and making a model both ask.
  void check_values() const;
  // Calls f; a UserError that does not name this configuration yet then does.
  template <class F>
  auto naming_errors(F&& f) const {
    try {
      return f();
    } catch (UserError& error) {
      if (std::string_view(error.what()).find(where_) == std::string_view::npos) error.prepend(where_ + ": ");
      throw;
    }
  }

  // As transformers writes it: sorted, indented by two. With `use_diff` without what every configuration has by default.
  std::string to_json_string(bool use_diff = true) const;
  Items to_diff() const;
  // config.json in a folder that there is. Warns of generation settings, which belong in generation_config.json.
  void save(const std::filesystem::path& folder) const;
  // Generation settings that are here and not at their default.
  Items non_default_generation_parameters() const;

  // "eager" or "sdpa": how attention is computed. Not written to files.
  std::string attention_implementation = "sdpa";

  const Items& items() const { return items_; }
  const std::string& where() const { return where_; }  // what to call it in errors
  bool operator==(const Config& other) const;          // the same keys and values, the version aside

 private:
  std::string_view name_of(std::string_view key) const;  // through the architecture's other names
  void put(std::string_view name, Value value);
  void set_labels(Value id2label);
  void gather_rope();
  void check() const;
  [[noreturn]] void wrong(std::string_view key, const char* expected, const Value* found) const;

  Items items_;
  std::map<std::string, size_t, std::less<>> position_;  // of each key in items_
  Value num_labels_;
  const Architecture* architecture_ = nullptr;  // null when the registry has none of this model_type
  std::string where_ = "config";
};

}  // namespace calque
