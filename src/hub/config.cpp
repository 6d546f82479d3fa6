#include "calque/hub/config.h"

#include "calque/base/error.h"
#include "calque/file/json.h"
#include "calque/file/mapped_file.h"
#include "calque/hub/registry.h"

namespace calque {

static Value value_of(const Json& json) {
  switch (json.kind()) {
    case Json::Kind::null: return {};
    case Json::Kind::boolean: return json.to_bool();
    case Json::Kind::integer: return json.to_int();
    case Json::Kind::floating: return json.to_float();
    case Json::Kind::string: return json.to_string();
    case Json::Kind::array: {
      Values items;
      for (const Json& item : json.items())
        items.push_back(value_of(item));
      return list(std::move(items));
    }
    case Json::Kind::object: {
      std::vector<std::pair<Value, Value>> items;
      for (const JsonMember& member : json.members())
        items.emplace_back(member.key, value_of(member.value));
      return dict(std::move(items));
    }
  }
  return {};
}

static Config::Items items_of(const Value& dict) {
  Config::Items items;
  for (const auto& [key, value] : dict.to_dict().items)
    items.emplace_back(key.to_string(), value);
  return items;
}

static Config::Items parse(std::string_view json, const std::string& where) {
  const JsonDocument document(json, where);
  if (!document.root().is_object()) document.root().fail("a configuration is an object");
  return items_of(value_of(document.root()));
}

Config::Config(Items items, std::string where) : items_(std::move(items)), where_(std::move(where)) {
  const Architecture* architecture = model_registry().find(model_type());
  if (!architecture) return;
  for (auto& [key, value] : parse(architecture->defaults, architecture->config_class))
    if (!find(key)) items_.emplace_back(std::move(key), std::move(value));
  if (architecture->complete) architecture->complete(*this);
}

Config Config::from_json(std::string_view json, const std::string& where) { return Config(parse(json, where), where); }

Config Config::from_file(const std::filesystem::path& path) {
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / "config.json" : path;
  const std::shared_ptr<const MappedFile> mapped = MappedFile::open(file.string());
  const std::span<const std::byte> bytes = mapped->bytes();
  return from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string());
}

std::string Config::model_type() const { return optional_text("model_type").value_or(""); }

std::vector<std::string> Config::architectures() const {
  std::vector<std::string> names;
  if (has("architectures"))
    for (const Value& name : find("architectures")->to_items())
      names.push_back(name.to_string());
  return names;
}

std::string_view Config::name_of(std::string_view key) const {
  for (const auto& [name, value] : items_) {
    if (name != "model_type") continue;
    if (value.kind() != Value::Kind::string) break;
    if (const Architecture* architecture = model_registry().find(value.to_string()))
      for (const auto& [other, own] : architecture->attribute_map)
        if (other == key) return own;
  }
  return key;
}

const Value* Config::find(std::string_view key) const {
  for (const auto& [name, value] : items_)
    if (name == key) return &value;
  const std::string_view own = name_of(key);
  if (own == key) return nullptr;
  for (const auto& [name, value] : items_)
    if (name == own) return &value;
  return nullptr;
}

bool Config::has(std::string_view key) const {
  const Value* value = find(key);
  return value && !value->is_none();
}

void Config::set(std::string_view key, Value value) {
  const std::string_view own = name_of(key);
  for (auto& [name, old] : items_) {
    if (name != own) continue;
    old = std::move(value);
    return;
  }
  items_.emplace_back(own, std::move(value));
}

void Config::wrong(std::string_view key, const char* expected, const Value* found) const {
  throw UserError(ErrorKind::bad_file, where_ + ": \"" + std::string(key) + "\" is " + (found ? found->str() : "missing") +
                                           ", expected " + expected);
}

int64_t Config::integer(std::string_view key) const {
  const Value* value = find(key);
  if (value && value->kind() == Value::Kind::integer) return value->to_int();
  wrong(key, "an integer", value);
}

double Config::number(std::string_view key) const {
  const Value* value = find(key);
  if (value && (value->kind() == Value::Kind::integer || value->kind() == Value::Kind::floating)) return value->to_float();
  wrong(key, "a number", value);
}

bool Config::flag(std::string_view key) const {
  const Value* value = find(key);
  if (!value || value->is_none()) return false;
  if (value->kind() == Value::Kind::boolean) return value->to_bool();
  wrong(key, "true or false", value);
}

std::string Config::text(std::string_view key) const {
  const Value* value = find(key);
  if (value && value->kind() == Value::Kind::string) return value->to_string();
  wrong(key, "a string", value);
}

std::vector<int64_t> Config::integers(std::string_view key) const {
  const Value* value = find(key);
  if (!value || value->kind() != Value::Kind::list) wrong(key, "a list of integers", value);
  std::vector<int64_t> out;
  for (const Value& item : value->to_items()) {
    if (item.kind() != Value::Kind::integer) wrong(key, "a list of integers", value);
    out.push_back(item.to_int());
  }
  return out;
}

std::optional<int64_t> Config::optional_integer(std::string_view key) const {
  return has(key) ? std::optional(integer(key)) : std::nullopt;
}
std::optional<double> Config::optional_number(std::string_view key) const {
  return has(key) ? std::optional(number(key)) : std::nullopt;
}
std::optional<std::string> Config::optional_text(std::string_view key) const {
  return has(key) ? std::optional(text(key)) : std::nullopt;
}

Config Config::nested(std::string_view key) const {
  const Value* value = find(key);
  if (!value || value->is_none()) return {};
  if (value->kind() != Value::Kind::dict) wrong(key, "an object", value);
  return Config(items_of(*value), where_ + ": " + std::string(key));
}

}  // namespace calque
