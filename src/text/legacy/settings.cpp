#include "text/legacy/settings.h"

#include <algorithm>

#include "calque/base/error.h"
#include "text/json_parts.h"

namespace calque {
namespace {

bool is_role(std::string_view key) {
  return std::find(std::begin(legacy_roles), std::end(legacy_roles), key) != std::end(legacy_roles);
}

// "x", or {"content": "x", "lstrip": true, ...}.
GivenToken read_given(const Json& json) {
  if (json.is_string()) return {{.content = std::string(json.to_string())}, true};
  GivenToken out{{.content = std::string(json.at("content").to_string())}, false};
  out.token.single_word = flag_or(json, "single_word", false);
  out.token.lstrip = flag_or(json, "lstrip", false);
  out.token.rstrip = flag_or(json, "rstrip", false);
  out.token.special = flag_or(json, "special", false);
  if (const Json* found = json.find("normalized"); found && !found->is_null()) out.token.normalized = found->to_bool();
  return out;
}

std::vector<GivenToken> read_list(const Json& json) {
  std::vector<GivenToken> out;
  for (const Json& item : json.items()) out.push_back(read_given(item));
  return out;
}

}  // namespace

LegacySettings::File::File(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return;
  text = read_utf8_file(path);
  document.emplace(text, path.string());
}

LegacySettings::LegacySettings(const std::filesystem::path& folder)
    : folder_(folder), config_(folder / "tokenizer_config.json"), model_config_(folder / "config.json") {
  config_.read([&](const Json& root) { read_config(root); });
  const Json* decoder = find("added_tokens_decoder");
  if (decoder != nullptr) {
    config_.read([&](const Json&) { read_added_decoder(*decoder); });
  } else {
    const File special(folder / "special_tokens_map.json"), tokens(folder / "added_tokens.json");
    special.read([&](const Json& root) { read_special_map(root); });
    tokens.read([&](const Json& root) { read_added_tokens(root); });
  }
  // A role's token matches as the added token of its text does.
  std::map<std::string_view, const LegacyToken*> by_text;
  for (const auto& [id, token] : added) by_text[token.content] = &token;
  for (auto& [role, given] : roles)
    if (given)
      if (const auto found = by_text.find(given->token.content); found != by_text.end()) given = {*found->second, false};
}

void LegacySettings::read_config(const Json& root) {
  for (const JsonMember& member : root.members()) {
    const std::string key(member.key);
    const Json& value = member.value;
    if (is_role(key)) {
      roles[key] = value.is_null() ? std::nullopt : std::optional(read_given(value));
    } else if (key.ends_with("_token") && (value.is_string() || value.is_object())) {
      own_roles.emplace_back(key, read_given(value));
    } else if (key == "extra_special_tokens" && value.is_object()) {
      for (const JsonMember& token : value.members())
        own_roles.emplace_back(std::string(token.key), read_given(token.value));
    } else if (key == "extra_special_tokens" && !value.is_null()) {
      extra = read_list(value);
    } else if (key == "additional_special_tokens" && !value.is_null()) {
      additional = read_list(value);
    }
  }
  if (additional && (!extra || extra->empty())) {
    extra = std::move(additional);
    additional.reset();
  }
}

void LegacySettings::read_added_decoder(const Json& decoder) {
  for (const JsonMember& member : decoder.members()) {
    const std::string key(member.key);
    if (key.empty() || key.size() > 9 || key.find_first_not_of("0123456789") != std::string::npos)
      member.value.fail("added_tokens_decoder: the id \"" + excerpt(key) + "\"; expected a whole number");
    added[std::stoll(key)] = read_given(member.value).token;
  }
}

void LegacySettings::read_special_map(const Json& root) {
  for (const JsonMember& member : root.members()) {
    const std::string key(member.key);
    const Json& value = member.value;
    if (key == "extra_special_tokens" && value.is_object()) {
      for (const JsonMember& token : value.members())
        own_roles.emplace_back(std::string(token.key), read_given(token.value));
    } else if (key == "extra_special_tokens" || key == "additional_special_tokens") {
      if (value.is_null()) continue;
      std::vector<GivenToken> tokens = read_list(value);
      for (GivenToken& token : tokens) token.token.special = token.token.special || !token.plain;
      std::optional<std::vector<GivenToken>>& to = key == "extra_special_tokens" ? extra : additional;
      to = std::move(tokens);
    } else if (value.is_string() || value.is_object()) {
      GivenToken token = read_given(value);
      token.token.special = !token.plain;
      if (is_role(key))
        roles[key] = std::move(token);
      else if (key.ends_with("_token"))
        own_roles.emplace_back(key, std::move(token));
    }
  }
}

void LegacySettings::read_added_tokens(const Json& root) {
  const auto is_special = [&](std::string_view text) {
    for (const auto& [role, given] : roles)
      if (given && given->token.content == text) return true;
    return extra && std::any_of(extra->begin(), extra->end(), [&](const GivenToken& t) { return t.token.content == text; });
  };
  for (const JsonMember& member : root.members()) {
    const bool special = is_special(member.key);
    added[member.value.to_int()] = {.content = std::string(member.key), .special = special, .normalized = !special};
  }
}

const Json* LegacySettings::find(std::string_view key) const {
  const Json* found = config_.document ? config_.document->root().find(key) : nullptr;
  return found && !found->is_null() ? found : nullptr;
}

bool LegacySettings::has(std::string_view key) const {
  return config_.document && config_.document->root().find(key) != nullptr;
}

bool LegacySettings::flag(std::string_view key, bool otherwise) const {
  const Json* found = find(key);
  return found ? config_.document->read([&](const Json&) { return found->to_bool(); }) : otherwise;
}

int64_t LegacySettings::number(std::string_view key, int64_t otherwise, int64_t most) const {
  const Json* found = find(key);
  if (!found) return otherwise;
  return config_.document->read([&](const Json&) {
    const int64_t value = found->to_int();
    if (value < 0 || value > most)
      found->fail(std::string(key) + " is " + std::to_string(value) + "; expected 0 to " + std::to_string(most));
    return value;
  });
}

std::optional<std::string> LegacySettings::text(std::string_view key) const {
  const Json* found = find(key);
  if (!found) return std::nullopt;
  return config_.document->read([&](const Json&) { return std::string(found->to_string()); });
}

std::optional<std::string> LegacySettings::model_type() const {
  if (!model_config_.document) return std::nullopt;
  return model_config_.document->read([](const Json& root) -> std::optional<std::string> {
    const Json* found = root.find("model_type");
    if (!found || found->is_null()) return std::nullopt;
    return std::string(found->to_string());
  });
}

std::optional<std::string> LegacySettings::tokenizer_class() const {
  for (const File* file : {&config_, &model_config_}) {
    std::optional<std::string> name;
    file->read([&](const Json& root) {
      if (const Json* found = root.find("tokenizer_class"); found && !found->is_null()) name = found->to_string();
    });
    if (name && name->ends_with("Fast")) name->resize(name->size() - 4);
    if (name) return name;
  }
  return std::nullopt;
}

}  // namespace calque
