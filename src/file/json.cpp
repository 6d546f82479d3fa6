#include "calque/file/json.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "base/utf8.h"
#include "calque/tensor/number_text.h"
#include "file/file_format.h"

namespace calque {
namespace {

constexpr size_t max_text = size_t{1} << 30;  // what the offsets of Json hold

const char* name_of(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::null: return "null";
    case Json::Kind::boolean: return "a boolean";
    case Json::Kind::integer: return "an integer";
    case Json::Kind::floating: return "a number";
    case Json::Kind::string: return "a string";
    case Json::Kind::array: return "a list";
    case Json::Kind::object: return "an object";
  }
  return "";
}

}  // namespace

// ---- reading --------------------------------------------------------------------------------------------------------

class JsonParser {
 public:
  JsonParser(std::string_view text, const std::string& what, size_t max_depth, JsonDocument& out)
      : text_(text), what_(what), max_depth_(max_depth), out_(out) {}

  void run() {
    if (text_.size() >= max_text)
      fail(0, "it has " + std::to_string(text_.size()) + " bytes, more than " + std::to_string(max_text));
    Json root;
    value(root, 0);
    skip_space();
    if (at_ != text_.size()) fail(at_, "something follows the end of the document");
    Json* kept = allocate<Json>(1);
    *kept = root;
    out_.root_ = kept;
  }

 private:
  [[noreturn]] void fail(size_t position, const std::string& why) const {
    throw UserError(ErrorKind::bad_file, what_ + ": not valid JSON at byte " + std::to_string(position) + ": " + why);
  }

  template <class T>
  T* allocate(size_t count) {
    const size_t bytes = (count * sizeof(T) + 15) / 16 * 16;
    if (bytes > left_) {
      block_bytes_ = std::min<size_t>(std::max<size_t>(block_bytes_ * 2, 4096), size_t{1} << 22);
      const size_t block = std::max(bytes, block_bytes_);
      out_.blocks_.push_back(std::make_unique<std::byte[]>(block));
      next_ = out_.blocks_.back().get();
      left_ = block;
    }
    std::byte* p = next_;
    next_ += bytes;
    left_ -= bytes;
    return reinterpret_cast<T*>(p);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void expect(char c, const char* where) {
    if (at_ >= text_.size()) fail(at_, std::string("the text ends ") + where);
    if (text_[at_] != c) fail(at_, std::string("expected '") + c + "' " + where);
    ++at_;
  }
  bool literal(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void set(Json& out, Json::Kind kind, size_t offset, size_t count = 0) {
    out.kind_ = static_cast<uint64_t>(kind) & 15U;
    out.offset_ = offset & (max_text - 1);
    out.count_ = count & (max_text - 1);
  }

  void value(Json& out, size_t depth) {
    skip_space();
    const size_t start = at_;
    if (depth > max_depth_) fail(at_, "it is nested deeper than " + std::to_string(max_depth_));
    switch (peek()) {
      case '{': object(out, start, depth); return;
      case '[': array(out, start, depth); return;
      case '"': {
        const std::string_view s = string();
        set(out, Json::Kind::string, start, s.size());
        out.text_ = s.data();
        return;
      }
      case 't':
      case 'f': {
        const bool truth = peek() == 't';
        if (!literal(truth ? "true" : "false")) fail(start, "expected a value");
        set(out, Json::Kind::boolean, start);
        out.boolean_ = truth;
        return;
      }
      case 'n':
        if (!literal("null")) fail(start, "expected a value");
        set(out, Json::Kind::null, start);
        out.integer_ = 0;
        return;
      case 'N':
        if (!literal("NaN")) fail(start, "expected a value");
        set(out, Json::Kind::floating, start);
        out.floating_ = std::numeric_limits<double>::quiet_NaN();
        return;
      case 'I':
        if (!literal("Infinity")) fail(start, "expected a value");
        set(out, Json::Kind::floating, start);
        out.floating_ = std::numeric_limits<double>::infinity();
        return;
      default: number(out, start);
    }
  }

  void number(Json& out, size_t start) {
    if (peek() == '-') {
      ++at_;
      if (literal("Infinity")) {
        set(out, Json::Kind::floating, start);
        out.floating_ = -std::numeric_limits<double>::infinity();
        return;
      }
    }
    const auto digits = [&] {
      const size_t first = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      return at_ - first;
    };
    const size_t first = at_;
    const size_t count = digits();
    if (count == 0) fail(start, at_ >= text_.size() ? "the text ends where a value is expected" : "expected a value");
    if (count > 1 && text_[first] == '0') fail(start, "a number starts with 0");
    bool integral = true;
    if (peek() == '.') {
      ++at_;
      integral = false;
      if (digits() == 0) fail(at_, "expected digits after the point");
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      integral = false;
      if (peek() == '+' || peek() == '-') ++at_;
      if (digits() == 0) fail(at_, "expected the digits of an exponent");
    }
    const char* begin = text_.data() + start;
    const char* end = text_.data() + at_;
    if (integral) {
      const auto [p, error] = std::from_chars(begin, end, out.integer_);
      if (error == std::errc()) return set(out, Json::Kind::integer, start);
    }
    set(out, Json::Kind::floating, start);
    const auto [p, error] = std::from_chars(begin, end, out.floating_);
    if (error == std::errc::result_out_of_range) out.floating_ = std::strtod(std::string(begin, end).c_str(), nullptr);
  }

  void array(Json& out, size_t start, size_t depth) {
    ++at_;
    const size_t base = values_.size();
    skip_space();
    if (peek() != ']') {
      while (true) {
        Json item;
        value(item, depth + 1);
        values_.push_back(item);
        skip_space();
        if (peek() != ',') break;
        ++at_;
      }
    }
    expect(']', "in a list");
    const size_t count = values_.size() - base;
    set(out, Json::Kind::array, start, count);
    Json* items = allocate<Json>(count);
    std::copy(values_.begin() + static_cast<std::ptrdiff_t>(base), values_.end(), items);
    values_.resize(base);
    out.items_ = items;
  }

  void object(Json& out, size_t start, size_t depth) {
    ++at_;
    const size_t base = members_.size();
    skip_space();
    if (peek() != '}') {
      while (true) {
        skip_space();
        if (peek() != '"') fail(at_, "expected a key");
        JsonMember member;
        member.key = string();
        skip_space();
        expect(':', "after a key");
        value(member.value, depth + 1);
        members_.push_back(member);
        skip_space();
        if (peek() != ',') break;
        ++at_;
      }
    }
    expect('}', "in an object");
    const size_t count = members_.size() - base;
    set(out, Json::Kind::object, start, count);
    JsonMember* members = allocate<JsonMember>(count);
    std::copy(members_.begin() + static_cast<std::ptrdiff_t>(base), members_.end(), members);
    members_.resize(base);
    out.members_ = members;
  }

  std::string_view string() {
    const size_t start = ++at_;
    bool ascii = true;
    while (at_ < text_.size()) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"' || c == '\\') break;
      if (c < 0x20) fail(at_, "a control character in a string");
      ascii &= c < 0x80;
      ++at_;
    }
    if (at_ >= text_.size()) fail(start - 1, "a string without an end");
    const std::string_view plain = text_.substr(start, at_ - start);
    if (text_[at_] == '"') {
      ++at_;
      if (!ascii && !is_valid_utf8(plain, Surrogates::keep)) fail(start, "a string that is not UTF-8");
      return plain;
    }
    return escaped_string(start, std::string(plain));
  }

  std::string_view escaped_string(size_t start, std::string decoded) {
    while (true) {
      if (at_ >= text_.size()) fail(start - 1, "a string without an end");
      const char c = text_[at_++];
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) fail(at_ - 1, "a control character in a string");
      if (c != '\\') {
        decoded += c;
        continue;
      }
      const char escape = at_ < text_.size() ? text_[at_++] : '\0';
      switch (escape) {
        case '"':
        case '\\':
        case '/': decoded += escape; break;
        case 'b': decoded += '\b'; break;
        case 'f': decoded += '\f'; break;
        case 'n': decoded += '\n'; break;
        case 'r': decoded += '\r'; break;
        case 't': decoded += '\t'; break;
        case 'u': {
          uint32_t code = hex4();
          if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
            const size_t before = at_;
            at_ += 2;
            const uint32_t low = hex4();
            if (low >= 0xDC00 && low < 0xE000)
              code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            else
              at_ = before;
          }
          append_utf8(decoded, code);
          break;
        }
        default: fail(at_ - 1, "an unknown escape in a string");
      }
    }
    if (!is_valid_utf8(decoded, Surrogates::keep)) fail(start, "a string that is not UTF-8");
    char* kept = allocate<char>(decoded.size());
    std::memcpy(kept, decoded.data(), decoded.size());
    return {kept, decoded.size()};
  }

  uint32_t hex4() {
    uint32_t code = 0;
    if (text_.size() - at_ < 4) fail(at_, "expected four hexadecimal digits");
    const auto [p, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, code, 16);
    if (error != std::errc() || p != text_.data() + at_ + 4) fail(at_, "expected four hexadecimal digits");
    at_ += 4;
    return code;
  }

  std::string_view text_;
  const std::string& what_;
  size_t max_depth_;
  JsonDocument& out_;
  size_t at_ = 0;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
  size_t block_bytes_ = 0;
  std::vector<Json> values_;  // of the lists that are being read
  std::vector<JsonMember> members_;
};

JsonDocument::JsonDocument(std::string_view text, const std::string& what, size_t max_depth) : what_(what) {
  try {
    JsonParser(text, what, max_depth, *this).run();
  } catch (const UserError&) {
    const FileFormat found = format_of(std::as_bytes(std::span(text)));
    if (found == FileFormat::lfs_pointer || found == FileFormat::web_page)
      refuse_format(what, format_name(FileFormat::json), found);
    throw;
  }
}

void JsonDocument::name_in(UserError& error) const {
  if (!error.reason().starts_with(what_)) error.prepend(what_ + ": ");
}

// ---- asking ---------------------------------------------------------------------------------------------------------

void Json::fail(const std::string& why) const {
  throw UserError(ErrorKind::bad_file, "at byte " + std::to_string(offset()) + ": " + why);
}
void Json::wrong_kind(const char* expected) const {
  fail(std::string("expected ") + expected + ", found " + name_of(kind()));
}

bool Json::to_bool() const {
  if (kind() != Kind::boolean) wrong_kind("a boolean");
  return boolean_;
}
int64_t Json::to_int() const {
  if (kind() != Kind::integer) wrong_kind("an integer");
  return integer_;
}
double Json::to_float() const {
  if (kind() == Kind::floating) return floating_;
  if (kind() == Kind::integer) return static_cast<double>(integer_);
  if (kind() == Kind::string) {
    if (to_string() == "Infinity") return std::numeric_limits<double>::infinity();
    if (to_string() == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (to_string() == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  wrong_kind("a number");
}
std::string_view Json::to_string() const {
  if (kind() != Kind::string) wrong_kind("a string");
  return {text_, count_};
}
std::span<const Json> Json::items() const {
  if (kind() != Kind::array) wrong_kind("a list");
  return {items_, count_};
}
std::span<const JsonMember> Json::members() const {
  if (kind() != Kind::object) wrong_kind("an object");
  return {members_, count_};
}
const Json* Json::find(std::string_view key) const {
  const std::span<const JsonMember> all = members();
  for (size_t i = all.size(); i-- > 0;)  // of equal keys the last one counts, as in Python
    if (all[i].key == key) return &all[i].value;
  return nullptr;
}
const Json& Json::at(std::string_view key) const {
  const Json* found = find(key);
  if (!found) fail("an object without '" + std::string(key) + "'");
  return *found;
}
const JsonMember& Json::only() const {
  if (members().size() != 1) fail("expected an object with one member, found " + std::to_string(members().size()));
  return members()[0];
}

// ---- writing --------------------------------------------------------------------------------------------------------

void JsonWriter::separate() {
  if (!fresh_) out_ += ", ";
  fresh_ = false;
}
void JsonWriter::open(char c) {
  separate();
  out_ += c;
  fresh_ = true;
}
void JsonWriter::close(char c) {
  out_ += c;
  fresh_ = false;
}

namespace {

void append_quoted(std::string& out, std::string_view s) {
  static constexpr char hex[] = "0123456789abcdef";
  const auto escape = [&](uint32_t unit) {
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += hex[unit >> shift & 15U];
  };
  out += '"';
  for (size_t i = 0; i < s.size();) {
    size_t plain = i;
    while (plain < s.size() && s[plain] >= 0x20 && s[plain] < 0x7F && s[plain] != '"' && s[plain] != '\\') ++plain;
    out.append(s, i, plain - i);
    i = plain;
    if (i == s.size()) break;
    const auto c = static_cast<unsigned char>(s[i]);
    if (c < 0x80) {
      ++i;
      switch (c) {
        case '"': out += "\\\""; break;
        case '\\': out += "\\\\"; break;
        case '\n': out += "\\n"; break;
        case '\r': out += "\\r"; break;
        case '\t': out += "\\t"; break;
        case '\b': out += "\\b"; break;
        case '\f': out += "\\f"; break;
        case 0x7F: out += '\x7F'; break;
        default: escape(c);
      }
      continue;
    }
    const Utf8Step step = next_utf8(s.substr(i), Surrogates::keep);
    uint32_t code = 0xFFFD;  // not UTF-8: the replacement character
    if (step.kind == Utf8Step::Kind::valid) {
      code = c & (0xFFU >> (step.size + 1));
      for (size_t j = 1; j < step.size; ++j) code = code << 6 | (static_cast<unsigned char>(s[i + j]) & 0x3FU);
    }
    i += step.size;
    if (code < 0x10000) {
      escape(code);
    } else {
      escape(0xD800 + ((code - 0x10000) >> 10));
      escape(0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }
  out += '"';
}

}  // namespace

std::string json_quoted(std::string_view utf8) {
  std::string out;
  append_quoted(out, utf8);
  return out;
}

void JsonWriter::key(std::string_view name) {
  separate();
  append_quoted(out_, name);
  out_ += ": ";
  fresh_ = true;
}
void JsonWriter::value(std::string_view text) {
  separate();
  append_quoted(out_, text);
}
void JsonWriter::value(int64_t number) {
  separate();
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  out_.append(digits, end);
}
void JsonWriter::value(double number) {
  if (std::isnan(number)) return value("NaN");
  if (std::isinf(number)) return value(number > 0 ? "Infinity" : "-Infinity");
  separate();
  out_ += python_repr(number);
}
void JsonWriter::value(bool truth) {
  separate();
  out_ += truth ? "true" : "false";
}
void JsonWriter::null() {
  separate();
  out_ += "null";
}
void JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
}

}  // namespace calque
