#include "text/jinja/lexer.h"

#include <algorithm>

#include "calque/base/error.h"
#include "text/jinja/python_text.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque::jinja {
namespace {

using Type = Token::Type;

// Longer signs come before those that they begin with.
constexpr std::string_view signs[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                      "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_character(char32_t c) {
  if (c < 0x80) return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const UnicodeTable& table = UnicodeTable::instance();
  return table.is_letter(c) || table.is_number(c);
}

// Line ends as "\n"; the last one is not kept.
std::string with_plain_lines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_plain_lines(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) data();
    add(Type::end, "");
    return std::move(out_);
  }

 private:
  bool starts(std::string_view what, size_t at) const { return std::string_view(source_).substr(at).starts_with(what); }
  bool starts(std::string_view what) const { return starts(what, at_); }
  void add(Type type, std::string value) { out_.push_back({type, line_, std::move(value)}); }
  void advance(size_t to) {
    line_ += static_cast<uint32_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                              source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    if (to > at_) line_starts_ = source_[to - 1] == '\n';
    at_ = to;
  }
  size_t after_space(size_t at) const {
    while (at < source_.size()) {
      const Utf8Char c = decode_utf8(source_.data() + at);
      if (!is_python_space(c.value)) break;
      at += c.size;
    }
    return at;
  }

  // Text up to a tag whose sign is `sign`; tags that print do not take the space before them.
  void text_before(size_t end, char sign, bool takes_space) {
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-') {
      text = strip(text, nullptr, false, true);
    } else if (sign != '+' && takes_space) {
      const size_t newline = text.rfind('\n');
      const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
      if (begin > 0 || line_starts_) {
        const std::string_view rest = text.substr(begin);
        if (strip(rest, nullptr, true, false).empty()) text = text.substr(0, begin);
      }
    }
    if (!text.empty()) add(Type::data, std::string(text));
    advance(end);
  }

  static char space_sign(char c) { return c == '-' || c == '+' ? c : '\0'; }

  // The text before the next tag, and the tag.
  void data() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos) {
        add(Type::data, source_.substr(at_));
        return advance(source_.size());
      }
      if (starts("{%", tag) || starts("{{", tag) || starts("{#", tag)) break;
    }
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? space_sign(source_[tag + 2]) : '\0';
    text_before(tag, sign, kind != '{');
    const size_t inside = tag + 2 + (sign ? 1 : 0);
    if (kind == '#') return comment(inside);
    if (kind == '%' && raw(inside)) return;
    add(kind == '{' ? Type::print_begin : Type::tag_begin, "");
    advance(inside);
    inside_tag(kind == '{' ? "}}" : "%}", kind == '{');
  }

  // Behind the end of a tag: "-" takes all space, else a tag that does not print takes one line end.
  size_t after_end(size_t end, char sign) const {
    if (sign == '-') return after_space(end);
    return sign != '+' && end < source_.size() && source_[end] == '\n' ? end + 1 : end;
  }

  void comment(size_t inside) {
    if (inside == source_.size()) return advance(inside);  // the template may end so
    const size_t end = source_.find("#}", inside);
    if (end == std::string::npos) syntax_error(line_, "Missing end of comment tag");
    advance(after_end(end + 2, end > inside ? space_sign(source_[end - 1]) : '\0'));
  }

  bool raw(size_t inside) {
    size_t at = after_space(inside);
    if (!starts("raw", at)) return false;
    at = after_space(at + 3);
    if (starts("-%}", at))
      at = after_space(at + 3);
    else if (starts("%}", at))
      at += 2;
    else
      return false;
    advance(at);
    for (size_t tag = source_.find("{%", at); tag != std::string::npos; tag = source_.find("{%", tag + 1)) {
      const char sign = tag + 2 < source_.size() ? space_sign(source_[tag + 2]) : '\0';
      size_t end = after_space(tag + 2 + (sign ? 1 : 0));
      if (!starts("endraw", end)) continue;
      end = after_space(end + 6);
      const char last = end < source_.size() ? space_sign(source_[end]) : '\0';
      if (last) ++end;
      if (!starts("%}", end)) continue;
      text_before(tag, sign, true);
      advance(after_end(end + 2, last));
      return true;
    }
    if (at == source_.size()) return true;
    syntax_error(line_, "Missing end of raw directive");
  }

  void inside_tag(std::string_view closing, bool prints) {
    std::string open;  // brackets that are to be closed
    while (at_ < source_.size()) {
      if (open.empty()) {
        const char sign = starts("-") || (!prints && starts("+")) ? source_[at_] : '\0';
        const size_t end = at_ + (sign ? 1 : 0);
        if (starts(closing, end)) {
          const size_t past = end + closing.size();
          add(prints ? Type::print_end : Type::tag_end, "");
          return advance(prints ? (sign == '-' ? after_space(past) : past) : after_end(past, sign));
        }
      }
      if (const size_t past = after_space(at_); past != at_) {
        advance(past);
      } else if (!number() && !name() && !text()) {
        sign(open);
      }
    }
    // The parser says what it misses.
  }

  size_t digits(size_t at) const {
    while (at < source_.size() &&
           (is_digit(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() && is_digit(source_[at + 1]))))
      ++at;
    return at;
  }

  bool number() {
    if (!is_digit(source_[at_])) return false;
    const char before = at_ > 0 ? source_[at_ - 1] : ' ';
    size_t end = digits(at_);
    bool floating = false;
    if (before != '.') {
      size_t more = end;
      if (more + 1 < source_.size() && source_[more] == '.' && is_digit(source_[more + 1])) more = digits(more + 1);
      floating = more != end;
      if (more < source_.size() && (source_[more] == 'e' || source_[more] == 'E')) {
        size_t exponent = more + 1;
        if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
        if (exponent < source_.size() && is_digit(source_[exponent])) {
          more = digits(exponent);
          floating = true;
        }
      }
      end = more;
    }
    if (!floating) end = integer_end();
    std::string value = source_.substr(at_, end - at_);
    std::erase(value, '_');
    add(floating ? Type::floating : Type::integer, std::move(value));
    advance(end);
    return true;
  }

  size_t integer_end() const {
    const auto run = [&](size_t at, auto&& is) {
      while (at < source_.size() &&
             (is(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() && is(source_[at + 1]))))
        ++at;
      return at;
    };
    if (source_[at_] != '0') return digits(at_);
    if (at_ + 1 < source_.size()) {
      const char kind = static_cast<char>(source_[at_ + 1] | 32);
      const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
      if (base != 0) {
        const size_t end = run(at_ + 2, [base](char c) {
          const int digit = is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
          return digit < base;
        });
        if (end > at_ + 2) return end;
      }
    }
    return run(at_, [](char c) { return c == '0'; });
  }

  bool name() {
    size_t end = at_;
    while (end < source_.size()) {
      const Utf8Char c = decode_utf8(source_.data() + end);
      if (!is_name_character(c.value)) break;
      end += c.size;
    }
    if (end == at_) return false;
    add(Type::name, source_.substr(at_, end - at_));
    advance(end);
    return true;
  }

  bool text() {
    const char quote = source_[at_];
    if (quote != '\'' && quote != '"') return false;
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return false;  // an unexpected character
    add(Type::text, unescaped(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
    advance(end + 1);
    return true;
  }

  // The escapes of Python's strings.
  std::string unescaped(std::string_view text) const {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      static constexpr std::string_view names = "abfnrtv\\'\"", values = "\a\b\f\n\r\t\v\\'\"";
      if (const size_t known = names.find(c); known != std::string_view::npos) {
        out += values[known];
      } else if (c == '\n') {
        // The line goes on.
      } else if (c >= '0' && c <= '7') {
        char32_t value = 0;
        size_t digits = 0;
        for (; digits < 3 && i < text.size() && text[i] >= '0' && text[i] <= '7'; ++digits)
          value = value * 8 + static_cast<char32_t>(text[i++] - '0');
        --i;
        append_utf8(out, value);
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        const std::string_view hex = text.substr(i + 1, digits);
        if (hex.size() < digits || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
          syntax_error(line_, std::string("truncated \\") + c + " escape");
        const int64_t value = parse_integer(hex, 16).value_or(0);
        if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) syntax_error(line_, "illegal Unicode character");
        append_utf8(out, static_cast<char32_t>(value));
        i += digits;
      } else if (c == 'N') {
        syntax_error(line_, "characters by name (\\N{...}) are not supported; write the character, or \\uXXXX");
      } else {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  void sign(std::string& open) {
    const auto* found = std::find_if(std::begin(signs), std::end(signs), [&](std::string_view s) { return starts(s); });
    if (found == std::end(signs)) {
      const Utf8Char c = decode_utf8(source_.data() + at_);
      syntax_error(line_, "unexpected char " + repr_text(std::string_view(source_).substr(at_, c.size)) + " at " +
                              std::to_string(count_utf8(std::string_view(source_).substr(0, at_))));
    }
    const char c = (*found)[0];
    if (found->size() == 1) {
      if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (c == ')' || c == ']' || c == '}') {
        if (open.empty()) syntax_error(line_, std::string("unexpected '") + c + "'");
        if (open.back() != c) syntax_error(line_, std::string("unexpected '") + c + "', expected '" + open.back() + "'");
        open.pop_back();
      }
    }
    add(Type::sign, std::string(*found));
    advance(at_ + found->size());
  }

  std::string source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starts_ = true;
  std::vector<Token> out_;
};

}  // namespace

void syntax_error(uint32_t line, const std::string& message) {
  throw UserError(ErrorKind::bad_file, "line " + std::to_string(line) + ": " + message);
}

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).run(); }

}  // namespace calque::jinja
