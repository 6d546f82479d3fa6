#include "calque/op/value.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <type_traits>

#include "base/join.h"
#include "calque/tensor/number_text.h"

namespace calque {

namespace {

constexpr std::array<std::string_view, 18> kind_names = {
    "None",   "bool",   "int",           "float",     "complex", "str",  "slice", "Tensor", "dtype",
    "device", "layout", "memory_format", "Generator", "node",    "list", "tuple", "dict",   "struct"};
static_assert(kind_names.size() == static_cast<size_t>(Value::Kind::structure) + 1);

constexpr size_t longest_shown = 60;  // of a value in an error message

bool is_number(Value::Kind k) { return k >= Value::Kind::boolean && k <= Value::Kind::complex; }

[[noreturn]] void throw_mismatch(const Value& v, std::string_view expected) {
  std::string text = "expected ";
  text += expected;
  text += ", found ";
  text += Value::kind_name(v.kind());
  if (is_number(v.kind()) || v.kind() == Value::Kind::string) {
    std::string shown = v.str();
    if (shown.size() > longest_shown) shown = shown.substr(0, longest_shown) + "...";
    text += " " + shown;
  }
  throw UserError(std::move(text));
}

[[noreturn]] void throw_symbolic(const std::string& expression, std::string_view expected) {
  throw UserError("expected " + std::string(expected) + ", found the symbolic value " + expression +
                  "; its number is not known here");
}

bool plain_bool(SymBool b, std::string_view expected) {
  if (b.is_symbolic()) throw_symbolic(b.str(), expected);
  return b.plain();
}

double plain_float(SymFloat f, std::string_view expected) {
  if (f.is_symbolic()) throw_symbolic(f.str(), expected);
  return f.as_float();
}

int64_t plain_int(SymInt i, std::string_view expected) {
  try {
    return i.as_int();
  } catch (const UserError&) {
    throw_symbolic(i.str(), expected);
  }
}

// The same number: NaN equals itself and the two zeros differ, so that equal Values are interchangeable in a graph.
bool same_number(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

bool same_items(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!a[i].equals(b[i])) return false;
  return true;
}

const Value* find_key(const DictValue& d, const Value& key) {
  for (const auto& [k, v] : d.items)
    if (k.equals(key)) return &v;
  return nullptr;
}

// As in Python: order counts for OrderedDict alone.
bool same_dict(const DictValue& a, const DictValue& b) {
  if (a.ordered != b.ordered || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    const auto& [key, value] = a.items[i];
    const bool same_place = b.items[i].first.equals(key);
    if (a.ordered && !same_place) return false;
    const Value* other = same_place ? &b.items[i].second : find_key(b, key);
    if (other == nullptr || !value.equals(*other)) return false;
  }
  return true;
}

struct CodePoint {
  char32_t value;
  size_t length;  // in bytes; 0 for bytes that are not UTF-8
};

CodePoint decode_utf8(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = byte(0);
  size_t length = 0;
  char32_t value = 0;
  if (lead < 0x80) return {lead, 1};
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
    value = lead & 0x1fU;
  } else if ((lead & 0xf0U) == 0xe0) {
    length = 3;
    value = lead & 0x0fU;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    value = lead & 0x07U;
  } else {
    return {lead, 0};
  }
  if (s.size() < length) return {lead, 0};
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {lead, 0};
    value = value << 6 | (byte(i) & 0x3fU);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < smallest[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {lead, 0};
  return {value, length};
}

// The separators, format characters and private areas that Python's repr escapes; unassigned code points are not told
// apart from assigned ones.
bool is_printable(char32_t c) {
  if (c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad) return false;
  if (c == 0x1680 || (c >= 0x2000 && c <= 0x200f) || (c >= 0x2028 && c <= 0x202f) || (c >= 0x205f && c <= 0x206f))
    return false;
  if (c == 0x3000 || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe000 && c <= 0xf8ff)) return false;
  return c < 0xe0000;
}

void append_hex(std::string& out, const char* format, unsigned value) {
  char buffer[16];
  const int n = std::snprintf(buffer, sizeof buffer, format, value);
  out.append(buffer, static_cast<size_t>(n));
}

std::string string_repr(std::string_view s) {
  const bool has_single = s.find('\'') != std::string_view::npos;
  const bool has_double = s.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  while (!s.empty()) {
    const CodePoint c = decode_utf8(s);
    const size_t length = c.length == 0 ? 1 : c.length;
    if (c.value == '\\' || c.value == static_cast<unsigned char>(quote)) {
      out += '\\';
      out += s[0];
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\r') {
      out += "\\r";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (c.length != 0 && is_printable(c.value)) {
      out.append(s.substr(0, length));
    } else if (c.value <= 0xff) {
      append_hex(out, "\\x%02x", static_cast<unsigned>(c.value));
    } else if (c.value <= 0xffff) {
      append_hex(out, "\\u%04x", static_cast<unsigned>(c.value));
    } else {
      append_hex(out, "\\U%08x", static_cast<unsigned>(c.value));
    }
    s.remove_prefix(length);
  }
  out += quote;
  return out;
}

std::string joined(const Values& items) {
  return join(items, ", ", [](const Value& v) { return v.str(); });
}

std::string dict_repr(const DictValue& d) {
  std::string out;
  for (size_t i = 0; i < d.items.size(); ++i) {
    const auto& [key, value] = d.items[i];
    if (i != 0) out += ", ";
    out += d.ordered ? "(" + key.str() + ", " + value.str() + ")" : key.str() + ": " + value.str();
  }
  if (!d.ordered) return "{" + out + "}";
  return d.items.empty() ? "OrderedDict()" : "OrderedDict([" + out + "])";
}

std::string struct_repr(const StructValue& s) {
  // PyTorch's context of a namedtuple is the name it was registered under, in quotes.
  std::string_view type = s.type;
  if (type == "collections.namedtuple" && s.context.size() > 2)
    type = std::string_view(s.context).substr(1, s.context.size() - 2);
  std::string out = std::string(type.substr(type.rfind('.') + 1)) + "(";
  for (size_t i = 0; i < s.items.size(); ++i) {
    if (i != 0) out += ", ";
    if (i < s.fields.size()) out += s.fields[i] + "=";
    out += s.items[i].str();
  }
  return out + ")";
}

std::string device_repr(Device d) {
  const std::string type = Device(d.type).str();
  return "device(type='" + type + "'" + (d.index >= 0 ? ", index=" + std::to_string(d.index) : "") + ")";
}

struct Repr {
  std::string operator()(None) const { return "None"; }
  std::string operator()(SymBool b) const { return b.is_symbolic() ? b.str() : b.plain() ? "True" : "False"; }
  std::string operator()(SymInt i) const { return i.str(); }
  std::string operator()(SymFloat f) const { return f.is_symbolic() ? f.str() : python_repr(f.as_float()); }
  std::string operator()(const std::complex<double>& c) const { return python_repr(c); }
  std::string operator()(const std::shared_ptr<const std::string>& s) const { return string_repr(*s); }
  std::string operator()(const std::shared_ptr<const SliceValue>& s) const {
    return "slice(" + s->start.str() + ", " + s->stop.str() + ", " + s->step.str() + ")";
  }
  std::string operator()(const Tensor& t) const { return t.str(); }
  std::string operator()(DType d) const { return "torch." + std::string(name(d)); }
  std::string operator()(Device d) const { return device_repr(d); }
  std::string operator()(Layout l) const { return std::string(name(l)); }
  std::string operator()(MemoryFormat f) const { return std::string(name(f)); }
  std::string operator()(Generator*) const { return "<torch._C.Generator object>"; }
  std::string operator()(Node*) const { return "<node>"; }  // the graph prints its own
  std::string operator()(const std::shared_ptr<const ListValue>& l) const { return "[" + joined(l->items) + "]"; }
  std::string operator()(const std::shared_ptr<const TupleValue>& t) const {
    return "(" + joined(t->items) + (t->items.size() == 1 ? ",)" : ")");
  }
  std::string operator()(const std::shared_ptr<const DictValue>& d) const { return dict_repr(*d); }
  std::string operator()(const std::shared_ptr<const StructValue>& s) const { return struct_repr(*s); }
};

// Called with two values of the same alternative.
struct Same {
  bool operator()(None, None) const { return true; }
  bool operator()(SymBool a, SymBool b) const {
    if (a.is_symbolic() || b.is_symbolic()) return a.is_symbolic() && b.is_symbolic() && a.expr() == b.expr();
    return a.plain() == b.plain();
  }
  bool operator()(SymInt a, SymInt b) const { return identical(a, b); }
  bool operator()(SymFloat a, SymFloat b) const {
    if (a.is_symbolic() || b.is_symbolic()) return a.expr() == b.expr();
    return same_number(a.as_float(), b.as_float());
  }
  bool operator()(const std::complex<double>& a, const std::complex<double>& b) const {
    return same_number(a.real(), b.real()) && same_number(a.imag(), b.imag());
  }
  bool operator()(const Tensor& a, const Tensor& b) const { return a.is_same(b); }
  bool operator()(const std::string& a, const std::string& b) const { return a == b; }
  bool operator()(const SliceValue& a, const SliceValue& b) const {
    return a.start.equals(b.start) && a.stop.equals(b.stop) && a.step.equals(b.step);
  }
  bool operator()(const ListValue& a, const ListValue& b) const { return same_items(a.items, b.items); }
  bool operator()(const TupleValue& a, const TupleValue& b) const { return same_items(a.items, b.items); }
  bool operator()(const DictValue& a, const DictValue& b) const { return same_dict(a, b); }
  bool operator()(const StructValue& a, const StructValue& b) const {
    return a.type == b.type && a.context == b.context && a.fields == b.fields && same_items(a.items, b.items);
  }
  template <class T>
  bool operator()(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b) const {
    return a == b || (*this)(*a, *b);
  }
  template <class T>
    requires(std::same_as<T, DType> || std::same_as<T, Device> || std::same_as<T, Layout> || std::same_as<T, MemoryFormat> ||
             std::same_as<T, Generator*> || std::same_as<T, Node*>)
  bool operator()(const T& a, const T& b) const {
    return a == b;
  }
};

}  // namespace

Value::Value(const Value& other) = default;
Value& Value::operator=(const Value& other) = default;

Value::Value(std::string s) : v_(std::make_shared<const std::string>(std::move(s))) {}
Value::Value(SliceValue s) : v_(std::make_shared<const SliceValue>(std::move(s))) {}
Value::Value(ListValue l) : v_(std::make_shared<const ListValue>(std::move(l))) {}
Value::Value(TupleValue t) : v_(std::make_shared<const TupleValue>(std::move(t))) {}
Value::Value(DictValue d) : v_(std::make_shared<const DictValue>(std::move(d))) {}
Value::Value(StructValue s) : v_(std::make_shared<const StructValue>(std::move(s))) {}

Value::Value(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::boolean: v_ = s.sym_bool(); break;
    case Scalar::Kind::integer: v_ = s.sym_int(); break;
    case Scalar::Kind::floating: v_ = s.sym_float(); break;
    case Scalar::Kind::complex: v_ = s.to_complex(); break;
  }
}

const Expr* Value::expr() const {
  if (kind() == Kind::integer) return to_sym_int().expr();
  if (kind() == Kind::floating) return to_sym_float().expr();
  if (kind() == Kind::boolean) return to_sym_bool().expr();
  return nullptr;
}

bool Value::to_bool() const { return plain_bool(to_sym_bool(), "a bool"); }

SymBool Value::to_sym_bool() const {
  if (const auto* b = std::get_if<SymBool>(&v_)) return *b;
  throw_mismatch(*this, "a bool");
}

int64_t Value::to_int() const { return plain_int(to_sym_int(), "an int"); }

SymInt Value::to_sym_int() const {
  if (const auto* i = std::get_if<SymInt>(&v_)) return *i;
  if (const auto* b = std::get_if<SymBool>(&v_)) return plain_bool(*b, "an int") ? 1 : 0;
  throw_mismatch(*this, "an int");
}

double Value::to_float() const {
  if (const auto* f = std::get_if<SymFloat>(&v_)) return plain_float(*f, "a float");
  if (kind() == Kind::integer || kind() == Kind::boolean) return static_cast<double>(plain_int(to_sym_int(), "a float"));
  throw_mismatch(*this, "a float");
}

SymFloat Value::to_sym_float() const {
  if (const auto* f = std::get_if<SymFloat>(&v_)) return *f;
  return to_float();
}

std::complex<double> Value::to_complex() const {
  if (const auto* c = std::get_if<std::complex<double>>(&v_)) return *c;
  if (is_number(kind())) return to_float();
  throw_mismatch(*this, "a complex number");
}

Scalar Value::to_scalar() const {
  if (const auto* i = std::get_if<SymInt>(&v_)) return *i;
  if (const auto* f = std::get_if<SymFloat>(&v_)) return *f;
  if (const auto* b = std::get_if<SymBool>(&v_)) return *b;
  if (const auto* c = std::get_if<std::complex<double>>(&v_)) return *c;
  throw_mismatch(*this, "a number");
}

const std::string& Value::to_string() const {
  if (const auto* s = std::get_if<std::shared_ptr<const std::string>>(&v_)) return **s;
  throw_mismatch(*this, "a str");
}

const SliceValue& Value::to_slice() const {
  if (const auto* s = std::get_if<std::shared_ptr<const SliceValue>>(&v_)) return **s;
  throw_mismatch(*this, "a slice");
}

const Tensor& Value::to_tensor() const {
  if (const auto* t = std::get_if<Tensor>(&v_)) return *t;
  throw_mismatch(*this, "a Tensor");
}

const Tensor& Value::to_tensor_or_none() const {
  static const Tensor undefined;
  if (const auto* t = std::get_if<Tensor>(&v_)) return *t;
  if (is_none()) return undefined;
  throw_mismatch(*this, "a Tensor or None");
}

DType Value::to_dtype() const {
  if (const auto* d = std::get_if<DType>(&v_)) return *d;
  throw_mismatch(*this, "a dtype");
}

Device Value::to_device() const {
  if (const auto* d = std::get_if<Device>(&v_)) return *d;
  if (kind() == Kind::string) return Device(std::string_view(to_string()));  // as schema arguments: device="cpu"
  throw_mismatch(*this, "a device");
}

Layout Value::to_layout() const {
  if (const auto* l = std::get_if<Layout>(&v_)) return *l;
  throw_mismatch(*this, "a layout");
}

MemoryFormat Value::to_memory_format() const {
  if (const auto* f = std::get_if<MemoryFormat>(&v_)) return *f;
  throw_mismatch(*this, "a memory_format");
}

Node* Value::to_node() const {
  if (const auto* n = std::get_if<Node*>(&v_)) return *n;
  throw_mismatch(*this, "a node of a graph");
}

Generator* Value::to_generator() const {
  if (const auto* g = std::get_if<Generator*>(&v_)) return *g;
  if (is_none()) return nullptr;
  throw_mismatch(*this, "a Generator or None");
}

const Values& Value::to_items() const {
  if (const auto* l = std::get_if<std::shared_ptr<const ListValue>>(&v_)) return (*l)->items;
  if (const auto* t = std::get_if<std::shared_ptr<const TupleValue>>(&v_)) return (*t)->items;
  throw_mismatch(*this, "a list or tuple");
}

const DictValue& Value::to_dict() const {
  if (const auto* d = std::get_if<std::shared_ptr<const DictValue>>(&v_)) return **d;
  throw_mismatch(*this, "a dict");
}

const StructValue& Value::to_struct() const {
  if (const auto* s = std::get_if<std::shared_ptr<const StructValue>>(&v_)) return **s;
  throw_mismatch(*this, "a struct");
}

std::string Value::str() const { return std::visit(Repr{}, v_); }

bool Value::equals(const Value& other) const {
  if (kind() != other.kind()) return false;
  return std::visit(
      [&](const auto& mine) {
        using T = std::decay_t<decltype(mine)>;
        return Same{}(mine, std::get<T>(other.v_));
      },
      v_);
}

std::string_view Value::kind_name(Kind k) { return kind_names[static_cast<size_t>(k)]; }

const Value* DictValue::find(std::string_view key) const {
  for (const auto& [k, v] : items)
    if (k.kind() == Value::Kind::string && k.to_string() == key) return &v;
  return nullptr;
}

Value dict(std::vector<std::pair<Value, Value>> items) { return Value(DictValue{std::move(items), false}); }

}  // namespace calque
