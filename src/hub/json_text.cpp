#include "hub/json_text.h"

#include <algorithm>
#include <vector>

#include "calque/base/error.h"
#include "calque/file/json.h"

namespace calque {

static std::string key_text(const Value& key) {
  switch (key.kind()) {
    case Value::Kind::string: return std::string(key.to_string());
    case Value::Kind::integer: return std::to_string(key.to_int());
    default: throw UserError("JSON: a key of kind " + std::string(Value::kind_name(key.kind())) + "; expected a string");
  }
}

static void write(std::string& out, const Value& value, size_t depth) {
  const std::string indent(2 * (depth + 1), ' ');
  switch (value.kind()) {
    case Value::Kind::none: out += "null"; return;
    case Value::Kind::boolean: out += value.to_bool() ? "true" : "false"; return;
    case Value::Kind::integer: out += std::to_string(value.to_int()); return;
    case Value::Kind::floating: {
      JsonWriter writer;
      writer.value(value.to_float());
      out += writer.text();
      return;
    }
    case Value::Kind::string: out += json_quoted(value.to_string()); return;
    case Value::Kind::list:
    case Value::Kind::tuple: {
      if (value.to_items().empty()) {
        out += "[]";
        return;
      }
      const char* before = "[\n";
      for (const Value& item : value.to_items()) {
        out += before + indent;
        write(out, item, depth + 1);
        before = ",\n";
      }
      out += "\n" + indent.substr(2) + "]";
      return;
    }
    case Value::Kind::dict: {
      std::vector<std::pair<std::string, const Value*>> items;
      for (const auto& [key, item] : value.to_dict().items)
        items.emplace_back(key_text(key), &item);
      if (items.empty()) {
        out += "{}";
        return;
      }
      std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      const char* before = "{\n";
      for (const auto& [key, item] : items) {
        out += before + indent + json_quoted(key) + ": ";
        write(out, *item, depth + 1);
        before = ",\n";
      }
      out += "\n" + indent.substr(2) + "}";
      return;
    }
    default: throw UserError("JSON: a value of kind " + std::string(Value::kind_name(value.kind())) + " has no JSON form");
  }
}

std::string json_text(const Value& value) {
  std::string out;
  write(out, value, 0);
  return out;
}

}  // namespace calque
