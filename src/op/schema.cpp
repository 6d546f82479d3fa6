#include "calque/op/schema.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include "calque/base/error.h"
#include "calque/op/bind_arguments.h"
#include "op/schema_text.h"

namespace calque {
namespace {

using Kind = SchemaType::Kind;

// Defaults are values here; the parser, which the generator of the typed operators uses too, knows their text alone.
Value number(const SchemaType& type, std::string_view text) {
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
  throw UserError("'" + std::string(text) + "' is no default of type " + type.str());
}

Value default_value(const SchemaType& type, std::string_view text) {
  if (text == "None") return Value();
  if (text == "True") return true;
  if (text == "False") return false;
  if (type.list) {
    Values items;
    for (const std::string_view item : default_items(type, text)) items.push_back(number(type, item));
    return list(std::move(items));
  }
  if (text.starts_with('\'') || text.starts_with('"')) return text.substr(1, text.size() - 2);
  if (type.kind == Kind::dtype) {
    if (const auto d = dtype_from_name(text)) return *d;
    const Value torch_number = number(type, text);
    if (torch_number.kind() == Value::Kind::integer)
      if (const auto d = dtype_from_torch_number(static_cast<int>(torch_number.to_int()))) return *d;
  }
  if (text == "contiguous_format" || (type.kind == Kind::memory_format && text == "0")) return MemoryFormat::contiguous;
  if (text == "strided" || (type.kind == Kind::layout && text == "0")) return Layout::strided;
  if (text == "Mean") return 1;  // at::Reduction
  if (text == "Sum") return 2;
  return number(type, text);
}

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

}  // namespace

bool bind_argument(const SchemaType& type, const Value& v, Value& out) {
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

namespace {

std::string kind_and_value(const Value& v) {
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

Schema parse_schema(std::string_view text, std::string_view default_namespace) {
  Schema schema = parse_schema_text(text, default_namespace);
  for (SchemaArgument& a : schema.arguments) {
    if (!a.has_default()) continue;
    try {
      a.default_value = std::make_shared<const Value>(default_value(a.type, a.default_text));
    } catch (const UserError& e) {
      throw UserError("schema '" + std::string(text) + "': argument " + a.name + ": " + e.what());
    }
  }
  return schema;
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
    if (!bind_argument(args[i].type, bound[i], v))
      throw UserError(schema.full_name() + ": argument '" + args[i].name + "' must be " + args[i].type.str() + ", found " +
                      kind_and_value(bound[i]));
    bound[i] = std::move(v);
  }
  return bound;
}

bool is_default(const SchemaArgument& argument, const Value& value) {
  return argument.default_value && value.equals(*argument.default_value);
}

WrittenArguments written_arguments(const Schema& schema, const Values& args) {
  size_t positional = 0;
  for (size_t i = 0; i < args.size(); ++i)
    if (const SchemaArgument& a = schema.arguments[i]; !a.keyword_only && !is_default(a, args[i])) positional = i + 1;
  WrittenArguments written;
  for (size_t i = 0; i < args.size(); ++i) {
    const SchemaArgument& a = schema.arguments[i];
    if (!a.keyword_only && i < positional) written.positional.push_back(args[i]);
    if (a.keyword_only && !is_default(a, args[i])) written.keyword.emplace_back(a.name, args[i]);
  }
  return written;
}

}  // namespace calque
