#include <algorithm>

#include "calque/base/error.h"
#include "calque/sym/srepr.h"
#include "export/pt2/pt2_format.h"

namespace calque::pt2 {
namespace {

constexpr std::pair<int, DType> dtypes[] = {{1, DType::uint8},
                                            {2, DType::int8},
                                            {3, DType::int16},
                                            {4, DType::int32},
                                            {5, DType::int64},
                                            {6, DType::float16},
                                            {7, DType::float32},
                                            {8, DType::float64},
                                            {10, DType::complex64},
                                            {11, DType::complex128},
                                            {12, DType::bool_},
                                            {13, DType::bfloat16},
                                            {28, DType::uint16},
                                            {29, DType::float8_e4m3fn},
                                            {30, DType::float8_e5m2},
                                            {31, DType::float8_e4m3fnuz},
                                            {32, DType::float8_e5m2fnuz},
                                            {33, DType::float8_e8m0fnu},
                                            {34, DType::uint32},
                                            {35, DType::uint64}};
constexpr std::pair<int, Layout> layouts[] = {{1, Layout::sparse_coo}, {2, Layout::sparse_csr}, {3, Layout::sparse_csc},
                                              {4, Layout::sparse_bsr}, {5, Layout::sparse_bsc}, {6, Layout::mkldnn},
                                              {7, Layout::strided}};
constexpr std::pair<int, MemoryFormat> memory_formats[] = {{1, MemoryFormat::contiguous},
                                                           {2, MemoryFormat::channels_last},
                                                           {3, MemoryFormat::channels_last_3d},
                                                           {4, MemoryFormat::preserve}};

template <class T, size_t n>
T from_number(const std::pair<int, T> (&table)[n], const Json& number, const char* what) {
  const int64_t wanted = number.to_int();
  for (const auto& [k, v] : table)
    if (k == wanted) return v;
  number.fail(std::string("the ") + what + " number " + std::to_string(wanted) + " is unknown");
}
template <class T, size_t n>
int to_number(const std::pair<int, T> (&table)[n], T value) {
  for (const auto& [k, v] : table)
    if (v == value) return k;
  return 0;
}

}  // namespace

DType dtype_from_number(const Json& number) { return from_number(dtypes, number, "dtype"); }
int number_of(DType dtype) { return to_number(dtypes, dtype); }
Layout layout_from_number(const Json& number) { return from_number(layouts, number, "layout"); }
int number_of(Layout layout) { return to_number(layouts, layout); }
MemoryFormat memory_format_from_number(const Json& number) { return from_number(memory_formats, number, "memory format"); }
int number_of(MemoryFormat format) { return to_number(memory_formats, format); }

const std::vector<std::string>* symbolic_function_arguments(std::string_view name) {
  static const std::vector<std::string> two = {"a", "b"};
  static const std::vector<std::string> one = {"a"};
  static const std::vector<std::string> x = {"x"};
  static const std::vector<std::string> choice = {"b", "t", "f"};
  static constexpr std::string_view binary[] = {"eq",       "ne",  "le",  "ge",      "lt",   "gt",  "mul",    "add",   "sub",
                                                "floordiv", "mod", "pow", "truediv", "and_", "or_", "lshift", "rshift"};
  if (name.starts_with("_")) name.remove_prefix(1);
  constexpr std::string_view prefix = "operator.";
  if (name.starts_with(prefix)) {
    const std::string_view f = name.substr(prefix.size());
    if (std::find(std::begin(binary), std::end(binary), f) != std::end(binary)) return &two;
    return f == "neg" || f == "pos" ? &one : nullptr;
  }
  if (name == "math.trunc") return &x;
  if (name == "torch.sym_max" || name == "torch.sym_min") return &two;
  if (name == "torch.sym_ite") return &choice;
  if (name == "torch.sym_not" || name == "torch.sym_int" || name == "torch.sym_float" || name == "torch._sym_sqrt" ||
      name == "torch.sym_sqrt")
    return &one;
  return nullptr;
}

Device DeviceMap::operator()(const Json& device) const {
  const std::string type(device.at("type").to_string());
  const Json* index = device.find("index");
  const bool has_index = index && !index->is_null();
  const std::string full = has_index ? type + ":" + std::to_string(index->to_int()) : type;
  for (const std::string& name : {full, type})
    if (const auto it = names_.find(name); it != names_.end()) return Device(it->second);
  try {
    return Device(full);
  } catch (const UserError&) {
    device.fail("the program uses the device '" + full +
                "', which Calque does not have; map it with LoadProgramOptions::devices, e.g. {\"" + type + "\", \"cpu\"}");
  }
}

std::vector<int64_t> plain_integers(const Json& list) {
  std::vector<int64_t> out;
  for (const Json& x : list.items()) {
    const JsonMember& m = x.only();
    if (m.key != "as_int") x.fail("expected a plain integer, found a symbolic one");
    out.push_back(m.value.to_int());
  }
  return out;
}

// ---- symbols --------------------------------------------------------------------------------------------------------

SymbolReader::SymbolReader(const Json& range_constraints, const DeviceMap& devices) : devices_(devices) {
  ShapeEnvOptions options;
  options.assume_static_by_default = true;
  options.keep_log = false;
  env_ = ShapeEnv::make(options);
  FakeOptions fake;
  fake.env = env_;
  fake.allow_non_fake_inputs = true;
  mode_ = FakeMode::make(fake);
  for (const JsonMember& m : range_constraints.members()) {
    ValueRange range;
    // Older files write infinities as numbers beyond 64 bits.
    if (const Json* lower = m.value.find("min_val"); lower && lower->kind() == Json::Kind::integer)
      range.lower = lower->to_int();
    if (const Json* upper = m.value.find("max_val"); upper && upper->kind() == Json::Kind::integer)
      range.upper = upper->to_int();
    if (range.lower > range.upper) m.value.fail("the range of " + std::string(m.key) + " is empty");
    ranges_.emplace_back(m.key, range);
  }
}

// Only at the end: what the ranges decide would otherwise be decided while expressions are read, and the file keeps them
// as they were made.
void SymbolReader::finish() {
  for (const auto& [name, range] : ranges_)
    if (declared_.contains(name) && !env_->symbol(name).is_float) env_->declare_symbol(name, std::nullopt, range);
}

namespace {

// The names in Symbol('s77', ...), each once.
std::vector<std::string> symbol_names(std::string_view expression) {
  constexpr std::string_view start = "Symbol('";
  std::vector<std::string> out;
  for (size_t at = 0; (at = expression.find(start, at)) != std::string_view::npos;) {
    at += start.size();
    const size_t end = expression.find('\'', at);
    if (end == std::string_view::npos) break;
    std::string name(expression.substr(at, end - at));
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
    if (out.size() > 32) break;  // no program has so many in one size
  }
  return out;
}

}  // namespace

// The example value of an expression tells that of its symbol where it is the only one without and the expression linear.
void SymbolReader::learn_hint(SymInt value, const std::vector<std::string>& names, int64_t hint) {
  const std::string* missing = nullptr;
  ShapeEnv::Assignment values;
  for (const std::string& name : names) {
    const Symbol& s = env_->symbol(name);
    if (s.hint) {
      values.emplace_back(name, *s.hint);
    } else {
      if (missing || s.is_float || name.starts_with('u')) return;
      missing = &name;
    }
  }
  if (!missing) return;
  const auto at = [&](int64_t x) {
    ShapeEnv::Assignment all = values;
    all.emplace_back(*missing, x);
    return env_->evaluate(value, all);
  };
  const std::optional<int64_t> zero = at(0);
  const std::optional<int64_t> one = at(1);
  int64_t slope = 0;
  int64_t rest = 0;
  if (!zero || !one || __builtin_sub_overflow(*one, *zero, &slope) || __builtin_sub_overflow(hint, *zero, &rest) ||
      slope == 0 || (slope == -1 && rest == INT64_MIN))
    return;
  if (rest % slope == 0 && at(rest / slope) == hint) env_->declare_symbol(*missing, rest / slope, ValueRange{});
}

std::vector<std::string> SymbolReader::note_symbols(std::string_view expression) {
  std::vector<std::string> names = symbol_names(expression);
  declared_.insert(names.begin(), names.end());
  return names;
}

SymInt SymbolReader::sym_int(const Json& value) {
  const JsonMember& m = value.only();
  if (m.key == "as_int") return m.value.to_int();
  if (m.key != "as_expr") value.fail("expected as_int or as_expr, found " + std::string(m.key));
  const std::string_view text = m.value.at("expr_str").to_string();
  const auto [it, fresh] = parsed_.try_emplace(text);
  if (!fresh) return it->second;
  const SymInt parsed = parse_srepr(*env_, text);
  const std::vector<std::string> names = note_symbols(text);
  if (const Json* hint = m.value.find("hint");
      hint && hint->is_object() && parsed.is_symbolic() && hint->only().key == "as_int")
    learn_hint(parsed, names, hint->only().value.to_int());
  return parsed_[text] = parsed;
}

SymFloat SymbolReader::sym_float(const Json& value) {
  const JsonMember& m = value.only();
  if (m.key == "as_float") return m.value.to_float();
  if (m.key != "as_expr") value.fail("expected as_float or as_expr, found " + std::string(m.key));
  const SymFloat parsed = parse_srepr_float(*env_, m.value.at("expr_str").to_string());
  note_symbols(m.value.at("expr_str").to_string());
  return parsed;
}

SymBool SymbolReader::sym_bool(const Json& value) {
  const JsonMember& m = value.only();
  if (m.key == "as_bool") return m.value.to_bool();
  if (m.key != "as_expr") value.fail("expected as_bool or as_expr, found " + std::string(m.key));
  const SymBool parsed = parse_srepr_bool(*env_, m.value.at("expr_str").to_string());
  note_symbols(m.value.at("expr_str").to_string());
  return parsed;
}

Tensor SymbolReader::fake(const Json& meta) {
  Meta m;
  for (const Json& s : meta.at("sizes").items()) m.sizes.push_back(sym_int(s));
  for (const Json& s : meta.at("strides").items()) m.strides.push_back(sym_int(s));
  if (m.sizes.size() != m.strides.size())
    meta.fail(std::to_string(m.sizes.size()) + " sizes but " + std::to_string(m.strides.size()) + " strides");
  m.dtype = dtype_from_number(meta.at("dtype"));
  m.device = devices_(meta.at("device"));
  const Json* offset = meta.find("storage_offset");
  const SymInt first = offset ? sym_int(*offset) : SymInt(0);
  // What is plain must be no less than 0 and small enough to be counted in bytes.
  const auto number = [&](SymInt n) -> std::optional<int64_t> {
    if (n.is_symbolic()) return std::nullopt;
    if (n.as_int() < 0) meta.fail("a negative size, stride or storage offset");
    return n.as_int();
  };
  int64_t last = 16;
  if (const auto at = number(first))
    if (__builtin_add_overflow(*at, int64_t{1}, &last) || __builtin_mul_overflow(last, int64_t{16}, &last))
      meta.fail("a tensor whose storage offset overflows");
  for (size_t d = 0; d < m.sizes.size(); ++d) {
    const auto size = number(m.sizes[d]), stride = number(m.strides[d]);
    int64_t reach = 0;
    if (size && stride &&
        (__builtin_mul_overflow(*size, *stride, &reach) || __builtin_mul_overflow(reach, int64_t{16}, &reach) ||
         __builtin_add_overflow(last, reach, &last)))
      meta.fail("a tensor whose sizes and strides overflow");
  }
  Tensor t = mode_->make_fake(m);
  t.impl().offset = first;  // where a view begins; its storage is its own, as those of all values of a file
  if (const Json* grad = meta.find("requires_grad");
      grad && grad->to_bool() && (is_floating(m.dtype) || is_complex(m.dtype)))
    t.set_requires_grad();
  return t;
}

// ---- values that have no kind of their own --------------------------------------------------------------------------

Value opaque_object(std::string kind, std::string bytes) {
  return StructValue{"torch.ScriptObject", std::move(bytes), {std::move(kind)}, {Value()}};
}
const StructValue* as_opaque_object(const Value& value) {
  return value.kind() == Value::Kind::structure && value.to_struct().type == "torch.ScriptObject" &&
                 value.to_struct().fields.size() == 1
             ? &value.to_struct()
             : nullptr;
}

Value operator_argument(std::string name) { return StructValue{"torch._ops.OpOverload", std::move(name), {}, {}}; }
const std::string* as_operator_argument(const Value& value) {
  return value.kind() == Value::Kind::structure && value.to_struct().type == "torch._ops.OpOverload"
             ? &value.to_struct().context
             : nullptr;
}

void write_json(JsonWriter& out, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none: return out.null();
    case Value::Kind::boolean: return out.value(value.to_bool());
    case Value::Kind::integer: return out.value(value.to_int());
    case Value::Kind::floating: return out.value(value.to_float());
    case Value::Kind::string: return out.value(value.to_string());
    case Value::Kind::list:
    case Value::Kind::tuple:
      out.begin_array();
      for (const Value& item : value.to_items()) write_json(out, item);
      return out.end_array();
    case Value::Kind::dict:
      out.begin_object();
      for (const auto& [key, item] : value.to_dict().items) {
        out.key(key.kind() == Value::Kind::string ? key.to_string() : key.str());
        write_json(out, item);
      }
      return out.end_object();
    case Value::Kind::complex:
    case Value::Kind::slice:
    case Value::Kind::tensor:
    case Value::Kind::dtype:
    case Value::Kind::device:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::generator:
    case Value::Kind::node:
    case Value::Kind::structure: break;
  }
  throw UserError("custom metadata holds " + std::string(Value::kind_name(value.kind())) + ", which JSON does not have");
}

}  // namespace calque::pt2
