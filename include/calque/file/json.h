// Reading JSON into a tree of small values, and writing it as Python's json.dumps does. The tree is views into the text
// that was parsed, which must outlive it, and into the document's own arena; strings without escapes are not copied.
// Wrong text, and a value of another kind than the one asked for, is a UserError (bad_file) with the byte position; what is asked
// through JsonDocument::read also names the document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calque/base/error.h"

namespace calque {

class JsonDocument;
struct JsonMember;

class Json {
 public:
  enum class Kind : uint8_t { null, boolean, integer, floating, string, array, object };

  Kind kind() const { return static_cast<Kind>(kind_); }
  bool is_null() const { return kind() == Kind::null; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_object() const { return kind() == Kind::object; }
  bool is_array() const { return kind() == Kind::array; }
  size_t offset() const { return offset_; }  // where it starts in the text

  bool to_bool() const;
  int64_t to_int() const;
  double to_float() const;  // also of an integer, and of "Infinity", "-Infinity" and "NaN" as PyTorch writes them
  std::string_view to_string() const;
  std::span<const Json> items() const;          // of an array
  std::span<const JsonMember> members() const;  // of an object

  const Json* find(std::string_view key) const;  // null when absent; of an object
  const Json& at(std::string_view key) const;
  // An object with one member, PyTorch's form of a union.
  const JsonMember& only() const;
  [[noreturn]] void fail(const std::string& why) const;

 private:
  friend class JsonParser;
  [[noreturn]] void wrong_kind(const char* expected) const;
  union {
    bool boolean_;
    int64_t integer_;
    double floating_;
    const char* text_;
    const Json* items_;
    const JsonMember* members_;
  };
  uint64_t kind_ : 4;
  uint64_t offset_ : 30;
  uint64_t count_ : 30;
};

struct JsonMember {
  std::string_view key;
  Json value;
};

class JsonDocument {
 public:
  // `what` names the text in errors. Nesting deeper than `max_depth` is refused.
  JsonDocument(std::string_view text, const std::string& what, size_t max_depth = 500);
  JsonDocument(JsonDocument&&) noexcept = default;
  JsonDocument& operator=(JsonDocument&&) noexcept = default;
  const Json& root() const { return *root_; }
  // What fn(root()) gives. A UserError that leaves it is about this document, and names it.
  template <class F>
  decltype(auto) read(F&& fn) const {
    try {
      return fn(root());
    } catch (UserError& error) {
      name_in(error);
      throw;
    }
  }

 private:
  friend class JsonParser;
  void name_in(UserError& error) const;
  std::string what_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  const Json* root_ = nullptr;
};

// Appends JSON with Python's separators (", " and ": ") and its ASCII-only strings. Commas are put by themselves.
class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(int64_t number);
  void value(int number) { value(static_cast<int64_t>(number)); }
  void value(double number);  // infinities and NaN as PyTorch's strings
  void value(bool truth);
  void null();
  void raw(std::string_view json);  // one value, as it is
  template <class T>
  void member(std::string_view name, const T& v) {
    key(name);
    value(v);
  }
  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void separate();
  void open(char c);
  void close(char c);
  std::string out_;
  bool fresh_ = true;  // nothing yet in the innermost container, or a key was just written
};

std::string json_quoted(std::string_view utf8);  // "\"a\\u00e9\""

}  // namespace calque
