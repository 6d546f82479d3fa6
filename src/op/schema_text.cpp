#include "op/schema_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "calque/base/error.h"
#include "calque/tensor/dtype.h"

namespace calque {
namespace {

using Kind = SchemaType::Kind;

struct TypeName {
  std::string_view text;
  Kind kind;
  std::string_view cpp;
};
constexpr TypeName type_names[] = {
    {"Tensor", Kind::tensor, "Tensor"},
    {"Scalar", Kind::scalar, "Scalar"},
    {"int", Kind::integer, "int64_t"},
    {"SymInt", Kind::sym_int, "SymInt"},
    {"float", Kind::floating, "double"},
    {"bool", Kind::boolean, "bool"},
    {"SymBool", Kind::sym_bool, "SymBool"},
    {"str", Kind::string, "std::string_view"},
    {"ScalarType", Kind::dtype, "DType"},
    {"Device", Kind::device, "Device"},
    {"Layout", Kind::layout, "Layout"},
    {"MemoryFormat", Kind::memory_format, "MemoryFormat"},
    {"Generator", Kind::generator, "Generator*"},
    {"complex", Kind::complex, "std::complex<double>"},
};

const TypeName& entry(Kind kind) {
  for (const TypeName& t : type_names)
    if (t.kind == kind) return t;
  throw InternalError("schema type outside its table");
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Schema parse(std::string_view default_namespace) {
    Schema s;
    std::string head = word(":.");
    if (const size_t at = head.find("::"); at != std::string::npos) {
      s.name_space = head.substr(0, at);
      head = head.substr(at + 2);
    } else {
      s.name_space = default_namespace;
    }
    if (const size_t dot = head.find('.'); dot != std::string::npos) {
      s.overload = head.substr(dot + 1);
      head.resize(dot);
    }
    s.name = head;
    if (s.name.empty()) fail("an operator name");
    expect('(');
    bool keyword_only = false;
    while (!accept(')')) {
      if (!s.arguments.empty() || keyword_only) expect(',');
      if (accept('*')) {
        keyword_only = true;
        continue;
      }
      SchemaArgument a = argument(true);
      a.keyword_only = keyword_only;
      s.arguments.push_back(std::move(a));
    }
    expect('-');
    expect('>');
    if (accept('(')) {
      s.returns_parenthesised = true;
      while (!accept(')')) {
        if (!s.returns.empty()) expect(',');
        s.returns.push_back(argument(false));
      }
    } else {
      s.returns.push_back(argument(false));
    }
    skip();
    if (at_ != text_.size()) fail("the end");
    return s;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    throw UserError("schema '" + std::string(text_) + "': expected " + std::string(expected) + " at position " +
                    std::to_string(at_) + ", found '" + std::string(text_.substr(at_, 12)) + "'");
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "'");
  }
  std::string word(std::string_view extra = "") {
    skip();
    const size_t from = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' ||
                                  extra.find(text_[at_]) != std::string_view::npos))
      ++at_;
    return std::string(text_.substr(from, at_ - from));
  }

  SchemaArgument argument(bool named) {
    SchemaArgument a;
    const size_t type_at = at_;
    const std::string type = word();
    bool known = false;
    for (const TypeName& t : type_names)
      if (t.text == type) {
        a.type.kind = t.kind;
        known = true;
      }
    if (!known) {
      at_ = type_at;
      fail("a type");
    }
    if (at_ < text_.size() && text_[at_] == '(') a.alias = bracketed();
    while (at_ < text_.size() && (text_[at_] == '?' || text_[at_] == '[')) {
      if (text_[at_] == '?') {
        ++at_;
        if (at_ < text_.size() && text_[at_] == '[')
          a.type.element_optional = true;
        else
          a.type.optional = true;
        continue;
      }
      ++at_;
      a.type.list = true;
      const std::string digits = word();
      if (!digits.empty()) a.type.fixed_size = std::stoi(digits);
      expect(']');
      if (at_ < text_.size() && text_[at_] == '(') a.alias = bracketed();  // Tensor[](a!)
    }
    a.name = word();
    if (named && a.name.empty()) fail("an argument name");
    if (accept('=')) {
      skip();
      const size_t from = at_;
      int depth = 0;
      while (at_ < text_.size() && (depth > 0 || (text_[at_] != ',' && text_[at_] != ')'))) {
        depth += text_[at_] == '[' ? 1 : text_[at_] == ']' ? -1 : 0;
        ++at_;
      }
      a.default_text = std::string(text_.substr(from, at_ - from));
      if (a.default_text.starts_with('\'')) a.default_text.front() = a.default_text.back() = '"';  // PyTorch prints "none"
    }
    return a;
  }

  std::string bracketed() {
    const size_t close = text_.find(')', at_);
    if (close == std::string_view::npos) fail("')'");
    std::string inside(text_.substr(at_ + 1, close - at_ - 1));
    at_ = close + 1;
    return inside;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// A whole number gets a point, any other one as many digits as it needs to be read back: 2., 0.5, 9.9999999999999995e-07.
std::string printed_floating(double d) {
  if (d == std::trunc(d) && std::abs(d) < 0x1p63) return std::to_string(static_cast<int64_t>(d)) + ".";
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.17g", d);
  return digits;
}

// PyTorch keeps an enumeration as its number.
std::string_view enumeration_number(std::string_view text) {
  if (text == "Mean") return "1";  // at::Reduction
  if (text == "Sum") return "2";
  if (text == "contiguous_format" || text == "strided") return "0";
  return text;
}

std::string printed_dtype(std::string_view text) {
  if (text == "long") text = "int64";
#define X(name, type, category, number) \
  if (text == #name) return #number;
  CALQUE_DTYPES(X)
#undef X
  return std::string(text);
}

std::string printed_item(Kind kind, std::string_view text) {
  if (text == "None") return "None";
  if (kind == Kind::dtype) return printed_dtype(text);
  const bool whole = text.find_first_not_of("-0123456789") == std::string_view::npos;
  double d = 0;
  const bool number = std::from_chars(text.data(), text.data() + text.size(), d).ptr == text.data() + text.size();
  if (number && (kind == Kind::floating || (kind == Kind::scalar && !whole))) return printed_floating(d);
  return std::string(enumeration_number(text));
}

}  // namespace

std::vector<std::string_view> default_items(const SchemaType& type, std::string_view text) {
  if (!text.starts_with('[')) return std::vector<std::string_view>(static_cast<size_t>(std::max(type.fixed_size, 1)), text);
  std::vector<std::string_view> items;
  for (std::string_view rest = text.substr(1, text.size() - 2); !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string_view item = rest.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    items.push_back(item);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return items;
}

std::string printed_default(const SchemaType& type, std::string_view text) {
  if (!type.list || text == "None") return printed_item(type.kind, text);
  const auto items = default_items(type, text);
  const bool all_equal = std::ranges::all_of(items, [&](std::string_view item) { return item == items[0]; });
  if (type.kind == Kind::integer && all_equal && items.size() > 1) return printed_item(type.kind, items[0]);
  std::string s;
  for (const std::string_view item : items) s += (s.empty() ? "" : ", ") + printed_item(type.kind, item);
  return "[" + s + "]";
}

std::string SchemaType::str() const {
  std::string s(entry(kind).text);
  if (list) {
    if (element_optional) s += "?";
    s += "[" + (fixed_size ? std::to_string(fixed_size) : "") + "]";
  }
  if (optional) s += "?";
  return s;
}

std::string SchemaType::cpp_type() const {
  std::string s(entry(kind).cpp);
  if (kind == Kind::boolean && list) return fixed_size == 2 ? "std::array<bool, 2>" : "BoolMask";
  if (list) {
    switch (kind) {
      case Kind::tensor: return "TensorList";
      case Kind::integer: s = "IntList"; break;
      case Kind::sym_int: s = "SymIntList"; break;
      case Kind::scalar:
      case Kind::floating:
      case Kind::boolean:
      case Kind::sym_bool:
      case Kind::string:
      case Kind::dtype:
      case Kind::device:
      case Kind::layout:
      case Kind::memory_format:
      case Kind::generator:
      case Kind::complex: s = "ListRef<" + s + ">";
    }
  }
  if (kind == Kind::tensor || kind == Kind::generator) return s;  // None is an undefined tensor or a null pointer
  return optional ? "std::optional<" + s + ">" : s;
}

std::string SchemaType::cpp_return_type() const {
  if (kind == Kind::tensor && list) return "std::vector<Tensor>";
  return cpp_type();
}

std::string SchemaArgument::str() const {
  std::string s = type.str();
  if (!alias.empty()) {
    const size_t at = s.find_first_of("[?");
    const std::string mark = "(" + alias + ")";
    s.insert(at == std::string::npos ? s.size() : at, mark);
  }
  if (!name.empty()) s += " " + name;
  if (has_default()) s += "=" + printed_default(type, default_text);
  return s;
}

std::string Schema::full_name() const { return name_space + "::" + name + (overload.empty() ? "" : "." + overload); }
std::string Schema::target_name() const { return name_space + "." + name + "." + (overload.empty() ? "default" : overload); }

std::string Schema::str() const {
  std::string s = full_name() + "(";
  bool keyword_only = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i) s += ", ";
    if (arguments[i].keyword_only && !std::exchange(keyword_only, true)) s += "*, ";
    s += arguments[i].str();
  }
  s += ") -> ";
  if (returns.size() == 1 && !returns_parenthesised) return s + returns[0].str();
  s += "(";
  for (size_t i = 0; i < returns.size(); ++i) s += (i ? ", " : "") + returns[i].str();
  return s + ")";
}

std::optional<size_t> Schema::find_argument(std::string_view argument_name) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == argument_name) return i;
  return std::nullopt;
}

Schema parse_schema_text(std::string_view text, std::string_view default_namespace) {
  return Parser(text).parse(default_namespace);
}

}  // namespace calque
