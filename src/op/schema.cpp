#include "calque/op/schema.h"

#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "calque/base/error.h"

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
      a.default_value = default_value(a.type, a.default_text);
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

  Value default_value(const SchemaType& type, std::string_view text) const {
    if (text == "None") return Value();
    if (text == "True") return true;
    if (text == "False") return false;
    if (type.list) {
      Values items;
      if (text.starts_with('[')) {
        std::string_view rest = text.substr(1, text.size() - 2);
        while (!rest.empty()) {
          const size_t comma = rest.find(',');
          std::string_view item = rest.substr(0, comma);
          while (item.starts_with(' ')) item.remove_prefix(1);
          items.push_back(number(type, item));
          rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
        }
      } else {
        items.assign(static_cast<size_t>(std::max(type.fixed_size, 1)), number(type, text));
      }
      return list(std::move(items));
    }
    if (text.starts_with('\'') || text.starts_with('"')) return text.substr(1, text.size() - 2);
    if (type.kind == Kind::dtype) {
      if (const auto d = dtype_from_name(text)) return *d;
    }
    if (text == "long") return DType::int64;
    if (text == "contiguous_format" || (type.kind == Kind::memory_format && text == "0")) return MemoryFormat::contiguous;
    if (text == "strided") return Layout::strided;
    if (text == "Mean") return 1;  // at::Reduction
    if (text == "Sum") return 2;
    return number(type, text);
  }

  Value number(const SchemaType& type, std::string_view text) const {
    if (text == "True") return true;
    if (text == "False") return false;
    if (text == "inf") return HUGE_VAL;
    if (text == "-inf") return -HUGE_VAL;
    int64_t i = 0;
    const char* end = text.data() + text.size();
    if (std::from_chars(text.data(), end, i).ptr == end)
      return type.kind == Kind::floating ? Value(static_cast<double>(i)) : Value(i);
    double d = 0;
    if (std::from_chars(text.data(), end, d).ptr == end) return d;
    fail("a default value");
  }

  std::string_view text_;
  size_t at_ = 0;
};

// One value against one element type; widened where the schema allows it.
bool fits(Kind kind, const Value& v) {
  using V = Value::Kind;
  switch (kind) {
    case Kind::tensor: return v.kind() == V::tensor;
    case Kind::scalar:
      return v.kind() == V::boolean || v.kind() == V::integer || v.kind() == V::floating || v.kind() == V::complex;
    case Kind::integer:
    case Kind::sym_int: return v.kind() == V::integer || v.kind() == V::boolean;
    case Kind::floating: return v.kind() == V::floating || v.kind() == V::integer || v.kind() == V::boolean;
    case Kind::boolean:
    case Kind::sym_bool: return v.kind() == V::boolean;
    case Kind::string: return v.kind() == V::string;
    case Kind::dtype: return v.kind() == V::dtype;
    case Kind::device: return v.kind() == V::device || v.kind() == V::string;
    case Kind::layout: return v.kind() == V::layout;
    case Kind::memory_format: return v.kind() == V::memory_format;
    case Kind::generator: return v.kind() == V::generator;
    case Kind::complex: return v.kind() == V::complex || v.kind() == V::floating || v.kind() == V::integer;
  }
  return false;
}

Value convert_element(Kind kind, const Value& v) {
  if (kind == Kind::device && v.kind() == Value::Kind::string) return Device(v.to_string());
  return v;
}

bool bind(const SchemaType& type, const Value& v, Value& out) {
  if (v.is_none()) {
    out = v;
    return type.optional;
  }
  if (!type.list) {
    // A number may stand for a tensor: x + 1e-5 is recorded as add.Tensor.
    if (type.kind == Kind::tensor && fits(Kind::scalar, v)) {
      out = wrapped_scalar(v.to_scalar());
      return true;
    }
    if (!fits(type.kind, v)) return false;
    out = convert_element(type.kind, v);
    return true;
  }
  if (v.kind() != Value::Kind::list && v.kind() != Value::Kind::tuple) {
    if (type.fixed_size == 0 || !fits(type.kind, v)) return false;
    out = list(Values(static_cast<size_t>(type.fixed_size), v));
    return true;
  }
  for (const Value& item : v.to_items())
    if (!(item.is_none() ? type.element_optional : fits(type.kind, item))) return false;
  out = v;
  return true;
}

std::string describe(const Value& v) {
  std::string s(Value::kind_name(v.kind()));
  if (v.kind() == Value::Kind::list || v.kind() == Value::Kind::tuple) {
    s += " of (";
    const Values& items = v.to_items();
    for (size_t i = 0; i < items.size() && i < 4; ++i) s += (i ? ", " : "") + std::string(Value::kind_name(items[i].kind()));
    s += items.size() > 4 ? ", ...)" : ")";
  } else if (!v.is_tensor()) {
    s += " " + v.str();
  }
  return s;
}

}  // namespace

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
  if (kind == Kind::boolean && list) return "BoolMask";
  if (list) {
    switch (kind) {
      case Kind::tensor: return "TensorList";
      case Kind::integer: s = "IntList"; break;
      case Kind::sym_int: s = "SymIntList"; break;
      default: s = "ListRef<" + s + ">";
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
  if (default_value) s += "=" + default_text;
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

Schema parse_schema(std::string_view text, std::string_view default_namespace) {
  return Parser(text).parse(default_namespace);
}

Values bind_arguments(const Schema& schema, Values positional, std::vector<std::pair<std::string, Value>> keyword) {
  const auto& args = schema.arguments;
  Values bound(args.size());
  std::vector<bool> given(args.size(), false);
  size_t accepted = 0;
  while (accepted < args.size() && !args[accepted].keyword_only) ++accepted;
  if (positional.size() > accepted)
    throw UserError(schema.full_name() + ": takes " + std::to_string(accepted) + " positional arguments, found " +
                    std::to_string(positional.size()) + "; the signature is " + schema.str());
  for (size_t i = 0; i < positional.size(); ++i) {
    bound[i] = std::move(positional[i]);
    given[i] = true;
  }
  for (auto& [name, value] : keyword) {
    const auto at = schema.find_argument(name);
    if (!at) throw UserError(schema.full_name() + ": has no argument '" + name + "'; the signature is " + schema.str());
    if (given[*at]) throw UserError(schema.full_name() + ": argument '" + name + "' is given twice");
    bound[*at] = std::move(value);
    given[*at] = true;
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (!given[i]) {
      if (!args[i].default_value)
        throw UserError(schema.full_name() + ": argument '" + args[i].name + "' (" + args[i].type.str() +
                        ") is missing; the signature is " + schema.str());
      bound[i] = *args[i].default_value;
      continue;
    }
    Value v;
    if (!bind(args[i].type, bound[i], v))
      throw UserError(schema.full_name() + ": argument '" + args[i].name + "' must be " + args[i].type.str() + ", found " +
                      describe(bound[i]));
    bound[i] = std::move(v);
  }
  return bound;
}

}  // namespace calque
