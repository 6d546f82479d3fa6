// Reading the parts of a tokenizer.json: each is an object with a type.
#pragma once

#include <string>
#include <string_view>

#include "calque/base/error.h"
#include "calque/file/json.h"
#include "text/utf8.h"

namespace calque {

inline std::string_view part_type(const Json& json) { return json.at("type").to_string(); }

[[noreturn]] inline void unsupported_part(const char* part, std::string_view type) {
  throw UserError(ErrorKind::bad_file, "tokenizer: the " + std::string(part) + " \"" + excerpt(type) +
                                           "\" is not supported; expected one that the tokenizers library 0.23 has");
}

inline bool flag_or(const Json& json, std::string_view key, bool otherwise) {
  const Json* found = json.find(key);
  return found && !found->is_null() ? found->to_bool() : otherwise;
}

inline std::string text_or(const Json& json, std::string_view key, std::string_view otherwise) {
  const Json* found = json.find(key);
  return std::string(found && !found->is_null() ? found->to_string() : otherwise);
}

}  // namespace calque
