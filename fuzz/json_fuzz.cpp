// Any text as JSON: read, or one UserError. What another reader takes, this one takes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "calque/base/error.h"
#include "calque/file/json.h"

using namespace calque;

namespace {

void write(JsonWriter& out, const Json& json) {
  switch (json.kind()) {
    case Json::Kind::null: return out.null();
    case Json::Kind::boolean: return out.value(json.to_bool());
    case Json::Kind::integer: return out.value(json.to_int());
    case Json::Kind::floating: return out.value(json.to_float());
    case Json::Kind::string: return out.value(json.to_string());
    case Json::Kind::array:
      out.begin_array();
      for (const Json& x : json.items()) write(out, x);
      return out.end_array();
    case Json::Kind::object:
      out.begin_object();
      for (const JsonMember& m : json.members()) {
        out.key(m.key);
        write(out, m.value);
      }
      return out.end_object();
  }
}

std::string printed(const std::string& text) {
  const JsonDocument document(text, "fuzz");
  JsonWriter out;
  write(out, document.root());
  return out.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::string once;
  try {
    once = printed(text);
  } catch (const UserError& e) {
    const bool too_deep = std::string(e.what()).find("nested deeper") != std::string::npos;
    // The other reader skips a byte order mark and takes a zero for the end.
    const bool is_lenient = text.starts_with("\xEF\xBB\xBF") || text.find('\0') != std::string::npos;
    if (!too_deep && !is_lenient && nlohmann::json::accept(text)) std::abort();
    return 0;
  }
  if (printed(once) != once) std::abort();
  return 0;
}
