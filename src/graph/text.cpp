#include "calque/graph/text.h"

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "calque/sym/shape_env.h"
#include "sym/condition_text.h"
#include "value_print.h"

namespace calque {

std::string_view dtype_abbreviation(DType dtype) {
  switch (dtype) {
    case DType::bool_: return "b8";
    case DType::uint8: return "u8";
    case DType::int8: return "i8";
    case DType::int16: return "i16";
    case DType::int32: return "i32";
    case DType::int64: return "i64";
    case DType::uint16: return "u16";
    case DType::uint32: return "u32";
    case DType::uint64: return "u64";
    case DType::float16: return "f16";
    case DType::bfloat16: return "bf16";
    case DType::float32: return "f32";
    case DType::float64: return "f64";
    case DType::float8_e4m3fn: return "f8e4m3fn";
    case DType::float8_e5m2: return "f8e5m2";
    case DType::float8_e4m3fnuz: return "f8e4m3fnuz";
    case DType::float8_e5m2fnuz: return "f8e5m2fnuz";
    case DType::float8_e8m0fnu: return "f8e8m0fnu";
    case DType::complex64: return "c64";
    case DType::complex128: return "c128";
  }
  throw InternalError("a dtype without abbreviation");
}

namespace {

bool has_contiguous_strides(const Tensor& t) {
  const SymIntList strides = t.sym_strides();
  const SymInts contiguous = contiguous_strides(t.sym_sizes());
  for (size_t d = 0; d < strides.size(); ++d)
    if (!identical(strides[d], contiguous[d])) return false;
  return true;
}

std::string tensor_val_text(const Tensor& t) {
  std::string s = std::string(dtype_abbreviation(t.dtype())) + str(t.sym_sizes());
  if (!has_contiguous_strides(t)) s += str(t.sym_strides());
  if (t.device() != Device()) s += t.device().str();
  return s;
}

// The bytes of a dense tensor in row-major order.
std::string hex_of(const Tensor& t) {
  const Tensor dense = t.contiguous();
  const auto* bytes = static_cast<const unsigned char*>(dense.data());
  const size_t count = static_cast<size_t>(dense.numel()) * item_size(dense.dtype());
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * count);
  for (size_t i = 0; i < count; ++i) {
    out += digits[bytes[i] >> 4];
    out += digits[bytes[i] & 15];
  }
  return out;
}

// A tensor among the arguments: its dtype, sizes and bytes; of a fake one what is known.
std::string tensor_text(const Tensor& t) {
  if (t.is_fake() || t.device().type != DeviceType::cpu) return "fake(" + tensor_val_text(t) + ")";
  return "tensor(" + std::string(dtype_abbreviation(t.dtype())) + str(t.sym_sizes()) + ", '" + hex_of(t) + "')";
}

// A plain integer too large for a word with a tag is kept as an expression.
bool is_symbolic(const Value& v) { return v.expr() && !v.expr()->is_integer(); }

}  // namespace

std::string val_text(const Value& val) {
  switch (val.kind()) {
    case Value::Kind::tensor: return tensor_val_text(val.to_tensor());
    case Value::Kind::boolean: return "Sym(" + condition_text(val.to_sym_bool()) + ")";
    case Value::Kind::integer:
    case Value::Kind::floating: return "Sym(" + val.str() + ")";
    case Value::Kind::list:
    case Value::Kind::tuple: {
      const bool is_list = val.kind() == Value::Kind::list;
      std::string s = is_list ? "[" : "(";
      for (size_t i = 0; i < val.to_items().size(); ++i) {
        const std::string item = val.to_items()[i].is_none() ? "None" : val_text(val.to_items()[i]);
        if (item.empty()) return {};
        s += (i ? ", " : "") + item;
      }
      if (!is_list && val.to_items().size() == 1) s += ",";
      return s + (is_list ? "]" : ")");
    }
    case Value::Kind::none:
    case Value::Kind::complex:
    case Value::Kind::string:
    case Value::Kind::slice:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node:
    case Value::Kind::dict:
    case Value::Kind::structure: break;
  }
  return {};
}

std::string value_text(const Value& value) {
  ValuePrinter print;
  print.node = [](const Node& n) { return "%" + n.name(); };
  print.leaf = [](const Value& v) -> std::string {
    if (v.is_tensor()) return tensor_text(v.to_tensor());
    if (!is_symbolic(v)) return v.str();
    return "Sym(" + (v.kind() == Value::Kind::boolean ? condition_text(v.to_sym_bool()) : v.str()) + ")";
  };
  print.structure = [&](const StructValue& s) {
    if (s.type == "builtins.Ellipsis") return std::string("Ellipsis");
    std::string out = "struct(" + Value(s.type).str() + ", " + Value(s.context).str();
    for (size_t i = 0; i < s.items.size(); ++i)
      out += ", " + (i < s.fields.size() ? s.fields[i] + "=" : std::string()) + print(s.items[i]);
    return out + ")";
  };
  return print(value);
}

std::string Node::str() const {
  const std::string type = type_ ? " as " + Value(*type_).str() : "";
  if (kind_ == NodeKind::output) return "return " + (args_.empty() ? std::string("None") : value_text(args_[0])) + type;
  std::string s = "%" + name_;
  if (const std::string val = val_text(meta.val); !val.empty()) s += " : " + val;
  s += type + " = ";
  switch (kind_) {
    case NodeKind::placeholder:
      s += "placeholder";
      if (target_.text() != name_) s += "[" + target_.text() + "]";
      return args_.empty() ? s : s + "(" + value_text(args_[0]) + ")";
    case NodeKind::get_attr: return s + "get_attr[" + target_.text() + "]";
    case NodeKind::call_module: s += "call_module[" + target_.text() + "]"; break;
    case NodeKind::call_method: s += "call_method[" + target_.text() + "]"; break;
    case NodeKind::call_function: s += target_.str(); break;
    case NodeKind::output: break;
  }
  s += "(";
  std::string_view comma;
  for (const Value& a : args_) {
    s.append(comma).append(value_text(a));
    comma = ", ";
  }
  for (const auto& [key, a] : kwargs_) {
    s.append(comma).append(key).append("=").append(value_text(a));
    comma = ", ";
  }
  return s + ")";
}

std::string text_with_symbols(const Graph& graph) {
  std::string s;
  const auto bound = [](int64_t v) {
    return v == ValueRange::unbounded_above   ? std::string("inf")
           : v == ValueRange::unbounded_below ? std::string("-inf")
                                              : std::to_string(v);
  };
  if (graph.shape_env())
    for (const Symbol& symbol : graph.shape_env()->symbols()) {
      s += "symbol " + symbol.name + " in [" + bound(symbol.range.lower) + ", " + bound(symbol.range.upper) + "]";
      s += (symbol.hint ? " = " + std::to_string(*symbol.hint) : "") + "\n";
    }
  return s + graph.str();
}

std::string Graph::str() const {
  std::string s;
  for (const Node* n : nodes()) s += n->str() + "\n";
  return s;
}

}  // namespace calque
