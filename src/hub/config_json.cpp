#include "hub/config_json.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calque/base/error.h"
#include "file/json_value.h"

namespace calque {

static constexpr std::string_view float_tag = "__float__";

// A number that JSON has no word for.
static std::optional<Value> tagged_float(const Json& object) {
  if (object.members().size() != 1 || object.members()[0].key != float_tag) return std::nullopt;
  const Json& tag = object.members()[0].value;
  if (!tag.is_string()) return std::nullopt;
  const std::string_view text = tag.to_string();
  if (text != "Infinity" && text != "-Infinity" && text != "NaN") return std::nullopt;
  return tag.to_float();
}

Config::Items items_of(const Value& dict) {
  Config::Items items;
  for (const auto& [key, value] : dict.to_dict().items) items.emplace_back(key.to_string(), value);
  return items;
}

Config::Items parse_config_items(std::string_view json, const std::string& where) {
  try {
    const JsonDocument document(json, where);
    if (!document.root().is_object()) document.root().fail("a configuration is an object");
    return items_of(value_of_json(document.root(), tagged_float));
  } catch (UserError& error) {
    error.prepend("it looks like the config file at '" + where + "' is not a valid JSON file: ");
    throw;
  }
}

namespace {

std::string key_text(const Value& key) { return key.kind() == Value::Kind::string ? key.to_string() : key.str(); }

bool key_before(const Value& a, const Value& b) {
  if (a.kind() == Value::Kind::integer && b.kind() == Value::Kind::integer) return a.to_int() < b.to_int();
  return key_text(a) < key_text(b);
}

class ConfigWriter {
 public:
  void write(const Value& value, size_t depth) {
    switch (value.kind()) {
      case Value::Kind::none: out_ += "null"; return;
      case Value::Kind::boolean: out_ += value.to_bool() ? "true" : "false"; return;
      case Value::Kind::integer: out_ += std::to_string(value.to_int()); return;
      case Value::Kind::string: out_ += json_quoted(value.to_string()); return;
      case Value::Kind::dtype: out_ += json_quoted(name(value.to_dtype())); return;
      case Value::Kind::floating: {
        const double number = value.to_float();
        if (std::isfinite(number)) {
          JsonWriter text;
          text.value(number);
          out_ += text.text();
          return;
        }
        write_members({{float_tag, std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity"}}, depth);
        return;
      }
      case Value::Kind::list:
      case Value::Kind::tuple: {
        if (value.to_items().empty()) {
          out_ += "[]";
          return;
        }
        out_ += '[';
        for (size_t i = 0; i < value.to_items().size(); ++i) {
          line(depth + 1, i == 0);
          write(value.to_items()[i], depth + 1);
        }
        line(depth, true);
        out_ += ']';
        return;
      }
      case Value::Kind::dict: write_members(value.to_dict().items, depth); return;
      case Value::Kind::complex:
      case Value::Kind::slice:
      case Value::Kind::tensor:
      case Value::Kind::device:
      case Value::Kind::layout:
      case Value::Kind::memory_format:
      case Value::Kind::generator:
      case Value::Kind::node:
      case Value::Kind::structure: break;
    }
    throw UserError("a configuration cannot hold " + std::string(Value::kind_name(value.kind())) + " " + value.str());
  }
  void write_members(std::vector<std::pair<Value, Value>> members, size_t depth) {
    if (members.empty()) {
      out_ += "{}";
      return;
    }
    std::stable_sort(members.begin(), members.end(),
                     [](const auto& a, const auto& b) { return key_before(a.first, b.first); });
    out_ += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      line(depth + 1, i == 0);
      out_ += json_quoted(key_text(members[i].first)) + ": ";
      write(members[i].second, depth + 1);
    }
    line(depth, true);
    out_ += '}';
  }
  std::string take() { return std::move(out_); }

 private:
  void line(size_t depth, bool first) {
    if (!first) out_ += ',';
    out_ += '\n';
    out_.append(2 * depth, ' ');
  }
  std::string out_;
};

Value two_labels(bool id_first) {
  std::vector<std::pair<Value, Value>> items;
  for (int64_t i = 0; i < 2; ++i) {
    const Value label = "LABEL_" + std::to_string(i);
    items.emplace_back(id_first ? Value(i) : label, id_first ? label : Value(i));
  }
  return dict(std::move(items));
}

}  // namespace

std::string config_json(const Config::Items& items) {
  ConfigWriter writer;
  writer.write_members({items.begin(), items.end()}, 0);
  return writer.take() + "\n";
}

const CommonKeys& common_keys() {
  static const CommonKeys keys{
      .current = {{"architectures", {}},
                  {"output_hidden_states", false},
                  {"output_attentions", false},
                  {"return_dict", true},
                  {"dtype", {}},
                  {"chunk_size_feed_forward", 0},
                  {"is_encoder_decoder", false},
                  {"id2label", two_labels(true)},
                  {"label2id", two_labels(false)},
                  {"problem_type", {}},
                  {"_name_or_path", ""}},
      .older = {{"torchscript", false},
                {"use_bfloat16", false},
                {"pruned_heads", dict({})},
                {"is_decoder", false},
                {"cross_attention_hidden_size", {}},
                {"add_cross_attention", false},
                {"tie_encoder_decoder", false},
                {"finetuning_task", {}},
                {"tokenizer_class", {}},
                {"prefix", {}},
                {"bos_token_id", {}},
                {"pad_token_id", {}},
                {"eos_token_id", {}},
                {"sep_token_id", {}},
                {"decoder_start_token_id", {}},
                {"task_specific_params", {}}},
  };
  return keys;
}

const Config::Items& generation_defaults() {
  static const Config::Items defaults{{"max_length", 20},
                                      {"min_length", 0},
                                      {"do_sample", false},
                                      {"early_stopping", false},
                                      {"num_beams", 1},
                                      {"num_beam_groups", 1},
                                      {"diversity_penalty", 0.0},
                                      {"temperature", 1.0},
                                      {"top_k", 50},
                                      {"top_p", 1.0},
                                      {"typical_p", 1.0},
                                      {"repetition_penalty", 1.0},
                                      {"length_penalty", 1.0},
                                      {"no_repeat_ngram_size", 0},
                                      {"encoder_no_repeat_ngram_size", 0},
                                      {"bad_words_ids", {}},
                                      {"num_return_sequences", 1},
                                      {"output_scores", false},
                                      {"return_dict_in_generate", false},
                                      {"forced_bos_token_id", {}},
                                      {"forced_eos_token_id", {}},
                                      {"remove_invalid_values", false},
                                      {"exponential_decay_length_penalty", {}},
                                      {"suppress_tokens", {}},
                                      {"begin_suppress_tokens", {}}};
  return defaults;
}

bool same_value(const Value& a, const Value& b) {
  const auto is_number = [](const Value& v) {
    return v.kind() == Value::Kind::integer || v.kind() == Value::Kind::floating || v.kind() == Value::Kind::boolean;
  };
  const auto number = [](const Value& v) {
    return v.kind() == Value::Kind::floating ? v.to_float() : static_cast<double>(v.to_int());
  };
  if (is_number(a) && is_number(b)) return number(a) == number(b);
  if (a.kind() != b.kind()) return false;
  if (a.kind() == Value::Kind::list || a.kind() == Value::Kind::tuple)
    return std::equal(a.to_items().begin(), a.to_items().end(), b.to_items().begin(), b.to_items().end(), same_value);
  if (a.kind() != Value::Kind::dict) return a.equals(b);
  const auto& left = a.to_dict().items;
  const auto& right = b.to_dict().items;
  return left.size() == right.size() && std::all_of(left.begin(), left.end(), [&](const auto& item) {
           return std::any_of(right.begin(), right.end(), [&](const auto& other) {
             return same_value(item.first, other.first) && same_value(item.second, other.second);
           });
         });
}

const Value* find_item(const Config::Items& items, std::string_view key) {
  for (const auto& [name, value] : items)
    if (name == key) return &value;
  return nullptr;
}

}  // namespace calque
