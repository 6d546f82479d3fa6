#include "calque/hub/config.h"

#include <algorithm>
#include <charconv>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/file/file_writer.h"
#include "calque/file/mapped_file.h"
#include "calque/hub/registry.h"
#include "calque/hub/text_part.h"
#include "hub/config_json.h"

namespace calque {

namespace fs = std::filesystem;

// Each gets a name, in two tables.
static constexpr int64_t most_labels = int64_t{1} << 22;

// ---- in -------------------------------------------------------------------------------------------------------------

// "type" is what transformers 4 calls "rope_type"; 5 keeps both.
static Value older_rope_type(const Config& config) {
  for (const char* name : {"rope_parameters", "rope_scaling"})
    if (const Value* rope = config.find(name); rope && rope->kind() == Value::Kind::dict)
      if (const Value* type = rope->to_dict().find("type")) return *type;
  return {};
}

Config::Config(Items items, std::string where) : where_(std::move(where)) {
  if (const Value* type = find_item(items, "model_type"); type && type->kind() == Value::Kind::string)
    architecture_ = model_registry().find(type->to_string());
  // dtype counts where a file has both names, and labels tell their number.
  const bool has_dtype = find_item(items, "dtype") && !find_item(items, "dtype")->is_none();
  const Value* labels = find_item(items, "id2label");
  const bool has_labels = labels && !labels->is_none();
  for (auto& [key, value] : items) {
    if (key == "torch_dtype" && has_dtype) continue;
    if (key == "num_labels" && has_labels) {
      if (value.kind() == Value::Kind::integer && labels->kind() == Value::Kind::dict &&
          value.to_int() != static_cast<int64_t>(labels->to_dict().items.size()))
        warn(where_ + ": num_labels is " + value.str() + ", but id2label has " +
             std::to_string(labels->to_dict().items.size()) + " labels, which count");
      continue;
    }
    if (key == "id2label" && value.is_none()) continue;
    set(key, value);
  }
  if (architecture_) {
    for (auto& [key, value] : parse_config_items(architecture_->defaults, architecture_->config_class))
      if (!position_.contains(key)) put(key, std::move(value));
    check_values();  // before anything is computed from them
    const Value rope_type = older_rope_type(*this);
    if (architecture_->complete) naming_errors([&] { architecture_->complete(*this); });
    gather_rope();
    const Value* rope = find("rope_parameters");
    if (!rope_type.is_none() && rope && rope->kind() == Value::Kind::dict && !rope->to_dict().find("type")) {
      std::vector<std::pair<Value, Value>> parts = rope->to_dict().items;
      parts.emplace_back("type", rope_type);
      put("rope_parameters", dict(std::move(parts)));
    }
  }
  check();
}

// transformers 4 has rope_theta and rope_scaling, 5 keeps all of it in rope_parameters, which `complete` has made.
void Config::gather_rope() {
  const Value* rope = find("rope_parameters");
  if (!rope || rope->kind() != Value::Kind::dict) return;
  for (const char* name : {"rope_theta", "rope_scaling", "partial_rotary_factor"})
    if (name == std::string_view("rope_scaling") || find("rope_parameters")->to_dict().find(name)) erase(name);
}

Config Config::from_json(std::string_view json, const std::string& where) {
  return Config(parse_config_items(json, where), where);
}

static std::string read_config_text(const fs::path& file) {
  const std::shared_ptr<const MappedFile> mapped = MappedFile::open(file.string());
  const std::span<const std::byte> bytes = mapped->bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

static std::vector<int64_t> version_numbers(std::string_view text) {
  std::vector<int64_t> out;
  for (size_t at = 0; at < text.size();) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (error != std::errc()) break;
    out.push_back(number);
    at = static_cast<size_t>(end - text.data()) + 1;
  }
  return out;
}

// Of config.VERSION.json files the newest that is not newer than the transformers we follow.
static std::string configuration_file(const Value& files) {
  std::string best = "config.json";
  std::vector<int64_t> best_version;
  for (const Value& file : files.to_items()) {
    const std::string& name = file.to_string();
    constexpr std::string_view start = "config.", end = ".json";
    if (name.size() <= start.size() + end.size() || !name.starts_with(start) || !name.ends_with(end)) continue;
    const std::vector<int64_t> version =
        version_numbers(std::string_view(name).substr(start.size(), name.size() - start.size() - end.size()));
    if (version.empty() || version > version_numbers(transformers_version) || version < best_version) continue;
    best = name;
    best_version = version;
  }
  return best;
}

Config Config::from_file(const fs::path& path) {
  const bool is_folder = fs::is_directory(path);
  fs::path file = is_folder ? path / "config.json" : path;
  if (!fs::exists(file))
    throw UserError(ErrorKind::bad_file, is_folder ? "no config.json in the folder " + path.string()
                                                   : "no configuration at " + path.string() +
                                                         ": expected a folder with a config.json, or a JSON file");
  Items items = parse_config_items(read_config_text(file), file.string());
  if (const Value* files = find_item(items, "configuration_files");
      is_folder && files && files->kind() == Value::Kind::list) {
    const fs::path other = path / configuration_file(*files);
    if (other != file) {
      file = other;
      items = parse_config_items(read_config_text(file), file.string());
    }
  }
  return Config(std::move(items), file.string());
}

// ---- keys -----------------------------------------------------------------------------------------------------------

std::string_view Config::name_of(std::string_view key) const {
  if (key == "torch_dtype") return "dtype";
  if (key == "name_or_path") return "_name_or_path";
  if (architecture_)
    for (const auto& [other, own] : architecture_->attribute_map)
      if (other == key) return own;
  return key;
}

const Value* Config::find(std::string_view key) const {
  const std::string_view name = name_of(key);
  if (name == "num_labels") return num_labels_.is_none() ? nullptr : &num_labels_;
  if (const auto at = position_.find(name); at != position_.end()) return &items_[at->second].second;
  if (const Value* value = find_item(common_keys().current, name)) return value;
  return find_item(common_keys().older, name);
}

bool Config::has(std::string_view key) const {
  const Value* value = find(key);
  return value && !value->is_none();
}

void Config::put(std::string_view name, Value value) {
  const auto [at, fresh] = position_.try_emplace(std::string(name), items_.size());
  if (fresh)
    items_.emplace_back(name, std::move(value));
  else
    items_[at->second].second = std::move(value);
}

bool Config::erase(std::string_view key) {
  const auto at = position_.find(name_of(key));
  if (at == position_.end()) return false;
  items_.erase(items_.begin() + static_cast<ptrdiff_t>(at->second));
  position_.clear();
  for (size_t i = 0; i < items_.size(); ++i) position_.emplace(items_[i].first, i);
  return true;
}

void Config::set_labels(Value id2label) {
  std::vector<std::pair<Value, Value>> by_number;
  if (id2label.kind() != Value::Kind::dict) wrong("id2label", "an object from numbers to names", &id2label);
  for (const auto& [key, label] : id2label.to_dict().items) {
    if (key.kind() == Value::Kind::integer) {
      by_number.emplace_back(key, label);
      continue;
    }
    const std::string& digits = key.to_string();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size())
      wrong("id2label", "an object from numbers to names", &id2label);
    by_number.emplace_back(number, label);
  }
  num_labels_ = static_cast<int64_t>(by_number.size());
  put("id2label", dict(std::move(by_number)));
}

void Config::set(std::string_view key, Value value) {
  const std::string_view name = name_of(key);
  if (name == "id2label" && !value.is_none()) return set_labels(std::move(value));
  if (name == "label2id" && !value.is_none() && value.kind() != Value::Kind::dict)
    wrong(key, "an object from names to numbers", &value);
  if (name == "num_labels" && value.is_none()) return;
  if (name == "num_labels") {
    if (value.kind() != Value::Kind::integer || value.to_int() < 0 || value.to_int() > most_labels)
      wrong(key, "a number of labels, at most 4194304", &value);
    if (num_labels() == value.to_int() && !num_labels_.is_none()) return;
    std::vector<std::pair<Value, Value>> by_number, by_name;
    for (int64_t i = 0; i < value.to_int(); ++i) {
      by_number.emplace_back(i, "LABEL_" + std::to_string(i));
      by_name.emplace_back("LABEL_" + std::to_string(i), i);
    }
    set_labels(dict(std::move(by_number)));
    put("label2id", dict(std::move(by_name)));
    return;
  }
  if (name == "model_type" && value.kind() == Value::Kind::string) architecture_ = model_registry().find(value.to_string());
  if (name == "dtype" && value.kind() == Value::Kind::dtype) value = calque::name(value.to_dtype());
  put(name, std::move(value));
}

Config::Items Config::update(const Items& items) {
  Items unused;
  for (const auto& [key, value] : items) {
    const bool known = key == "num_labels" || find(key);
    if (known) {
      const Value* now = find(key);
      // Of a configuration inside this one, what is given.
      if (now && now->kind() == Value::Kind::dict && value.kind() == Value::Kind::dict &&
          now->to_dict().find("model_type")) {
        Config inner = nested(key);
        for (const auto& [name, part] : value.to_dict().items) inner.set(name.to_string(), part);
        set(key, dict({inner.items_.begin(), inner.items_.end()}));
      } else {
        set(key, value);
      }
    }
    if (!known || name_of(key) == "dtype") unused.emplace_back(key, value);
  }
  return unused;
}

namespace {

template <class Number>
std::optional<Number> parsed(std::string_view digits) {
  Number number{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

bool parsed_truth(std::string_view key, const std::string& given) {
  std::string lower = given;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (lower == "true" || lower == "1" || lower == "y" || lower == "yes") return true;
  if (lower == "false" || lower == "0" || lower == "n" || lower == "no") return false;
  throw UserError("can't derive true or false from " + given + " (key " + std::string(key) + ")");
}

// `given` as a value of the kind that the key has now.
Value value_like(const Value& now, const std::string& key, const std::string& given) {
  if (now.kind() == Value::Kind::string) return given;
  if (now.kind() == Value::Kind::boolean) return parsed_truth(key, given);
  if (now.kind() == Value::Kind::integer) {
    if (const auto number = parsed<int64_t>(given)) return *number;
    throw UserError("key " + key + " is an integer, found \"" + given + "\"");
  }
  if (now.kind() == Value::Kind::floating) {
    if (const auto number = parsed<double>(given)) return *number;
    throw UserError("key " + key + " is a number, found \"" + given + "\"");
  }
  throw UserError("You can only update int, float, bool or string values in the config, got " + given + " for key " + key);
}

}  // namespace

void Config::update_from_string(std::string_view text) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) throw UserError("\"" + std::string(part) + "\" is not of the form key=value");
    const std::string key(part.substr(0, equals));
    const std::string given(part.substr(equals + 1));
    const Value* now = find(key);
    if (!now) throw UserError("key " + key + " isn't in the original config dict");
    set(key, value_like(*now, key, given));
  }
}

// ---- values ---------------------------------------------------------------------------------------------------------

void Config::wrong(std::string_view key, const char* expected, const Value* found) const {
  throw UserError(ErrorKind::bad_file, where_ + ": \"" + std::string(key) + "\" is " + (found ? found->str() : "missing") +
                                           ", expected " + expected);
}

void Config::check_values() const { check_schema(*this, architecture_); }

// What every configuration must hold to; an architecture's own rules are in its `complete`.
void Config::check() const {
  if (has("problem_type")) {
    const std::string type = text("problem_type");
    if (type != "regression" && type != "single_label_classification" && type != "multi_label_classification")
      wrong("problem_type", "regression, single_label_classification or multi_label_classification", find("problem_type"));
    if (type == "single_label_classification" && num_labels() == 1)
      throw UserError(ErrorKind::bad_file,
                      where_ +
                          ": problem_type single_label_classification needs at least two labels, found one; "
                          "use regression for a head with one output");
  }
  if (has("architectures")) {
    const Value& names = *find("architectures");
    if (names.kind() != Value::Kind::list ||
        !std::all_of(names.to_items().begin(), names.to_items().end(),
                     [](const Value& name) { return name.kind() == Value::Kind::string; }))
      wrong("architectures", "a list of class names", &names);
  }
  if (has("layer_types") && find("layer_types")->kind() == Value::Kind::list && has("num_hidden_layers")) {
    const auto count = static_cast<int64_t>(find("layer_types")->to_items().size());
    if (count != integer("num_hidden_layers"))
      throw UserError(ErrorKind::bad_file,
                      where_ + ": \"layer_types\" has " + std::to_string(count) + " entries, expected one for each of the " +
                          std::to_string(integer("num_hidden_layers")) + " layers of num_hidden_layers");
  }
  dtype();
  if (!has("vocab_size") || find("vocab_size")->kind() != Value::Kind::integer) return;
  const int64_t vocab = integer("vocab_size");
  if (vocab <= 0) return;  // no token would do; what is built with it is refused
  for (const auto& [key, value] : items_) {
    if (!key.ends_with("_token_id") || value.kind() != Value::Kind::integer) continue;
    if (value.to_int() < 0 || value.to_int() >= vocab)
      warn(where_ + ": " + key + " is " + value.str() + ", expected None or a token of the vocabulary (0 to " +
           std::to_string(vocab - 1) + ")");
  }
}

std::string Config::model_type() const { return optional_text("model_type").value_or(""); }

std::vector<std::string> Config::architectures() const {
  std::vector<std::string> names;
  if (has("architectures"))
    for (const Value& name : find("architectures")->to_items()) names.push_back(name.to_string());
  return names;
}

std::optional<DType> Config::dtype() const {
  const std::optional<std::string> given = optional_text("dtype");
  if (!given) return std::nullopt;
  const std::optional<DType> found = dtype_from_name(*given);
  if (!found) wrong("dtype", "the name of a dtype such as float32 or bfloat16", find("dtype"));
  return found;
}

int64_t Config::num_labels() const { return num_labels_.is_none() ? 2 : num_labels_.to_int(); }

bool Config::use_return_dict() const { return flag("return_dict") && !flag("torchscript"); }

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
  Config inner(items_of(*value), where_ + ": " + std::string(key));
  inner.attention_implementation = attention_implementation;
  return inner;
}

Config text_part(const Config& config) { return config.has("text_config") ? config.nested("text_config") : config; }

// ---- out ------------------------------------------------------------------------------------------------------------

bool Config::operator==(const Config& other) const {
  const auto within = [](const Config& a, const Config& b) {
    return std::all_of(a.items_.begin(), a.items_.end(), [&](const auto& item) {
      const auto at = b.position_.find(item.first);
      return item.first == "transformers_version" ||
             (at != b.position_.end() && same_value(item.second, b.items_[at->second].second));
    });
  };
  return within(*this, other) && within(other, *this);
}

static bool is_internal(std::string_view key) {
  return key == "_commit_hash" || key == "_attn_implementation_internal" || key == "_attn_implementation" ||
         key == "_attn_implementation_autoset" || key == "transformers_weights" || key == "num_labels";
}

// A configuration inside another: without the version, and without what every configuration has by default.
static Value nested_diff(const Value& value) {
  if (value.kind() != Value::Kind::dict || !value.to_dict().find("model_type")) return value;
  std::vector<std::pair<Value, Value>> kept;
  for (const auto& [key, item] : value.to_dict().items) {
    const std::string& name = key.to_string();
    if (name == "transformers_version" || is_internal(name)) continue;
    const Value* usual = find_item(common_keys().current, name);
    if (!usual || !same_value(item, *usual)) kept.emplace_back(key, nested_diff(item));
  }
  return dict(std::move(kept));
}

Config::Items Config::to_diff() const {
  const Items own = architecture_ ? parse_config_items(architecture_->defaults, architecture_->config_class) : Items();
  Items out;
  for (const auto& [key, value] : items_) {
    if (is_internal(key) || key == "_name_or_path" || key == "transformers_version") continue;
    const Value* usual = find_item(common_keys().current, key);
    const Value* of_class = find_item(own, key);
    if (!usual || !same_value(value, *usual) || (of_class && !same_value(value, *of_class)))
      out.emplace_back(key, nested_diff(value));
  }
  out.emplace_back("transformers_version", transformers_version);
  return out;
}

std::string Config::to_json_string(bool use_diff) const {
  if (use_diff) return config_json(to_diff());
  Items all = common_keys().current;
  std::erase_if(all, [&](const auto& item) { return position_.contains(item.first); });
  for (const auto& item : items_)
    if (!is_internal(item.first) && item.first != "transformers_version") all.push_back(item);
  all.emplace_back("transformers_version", transformers_version);
  return config_json(all);
}

Config::Items Config::non_default_generation_parameters() const {
  const Items own = architecture_ ? parse_config_items(architecture_->defaults, architecture_->config_class) : Items();
  Items out;
  for (const auto& [key, usual] : generation_defaults())
    if (const auto at = position_.find(key);
        at != position_.end() && !find_item(own, key) && !same_value(items_[at->second].second, usual))
      out.emplace_back(key, items_[at->second].second);
  return out;
}

void Config::save(const fs::path& folder) const {
  if (fs::exists(folder) && !fs::is_directory(folder))
    throw UserError("provided path (" + folder.string() + ") should be a directory, not a file");
  const Items generation = non_default_generation_parameters();
  if (!generation.empty()) {
    std::string names;
    for (const auto& [key, value] : generation) names += (names.empty() ? "" : ", ") + key + "=" + value.str();
    warn("the model's config holds generation settings, which belong in generation_config.json: " + names);
  }
  fs::create_directories(folder);
  const std::string text = to_json_string();
  FileWriter file((folder / "config.json").string());
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace calque
