#include "text_value.h"

#include <charconv>
#include <limits>

#include "base/utf8.h"
#include "calque/graph/text.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/sym_math.h"

namespace calque {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_path(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

int hex_digit(char c) {
  return is_decimal(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

// ---- values -----------------------------------------------------------------------------------------------------------

Value ValueParser::value() {
  const Depth depth(*this);
  in_.skip_blank();
  const char c = in_.peek();
  if (c == '%') {
    const size_t start = in_.position();
    in_.advance();
    const std::string_view name = in_.identifier();
    Node* n = find_node_(name);
    if (!n) {
      in_.go_to(start);
      in_.fail("%" + std::string(name) + " is not defined above");
    }
    return n;
  }
  if (c == '[') return bracketed(']', true);
  if (c == '(') return in_parentheses();
  if (c == '{') return in_braces();
  if (c == '\'' || c == '"') return quoted();
  if (is_decimal(c) || c == '-' || c == '.') return number();
  return named();
}

Value ValueParser::number() {
  const size_t start = in_.position();
  std::string text;
  if (in_.peek() == '-') {
    text = "-";
    in_.advance();
  }
  if (in_.starts_with("inf") || in_.starts_with("nan")) {
    double v = in_.peek() == 'i' ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    in_.advance(3);
    if (!text.empty()) v = -v;
    if (in_.peek() != 'j') return v;
    in_.advance();
    return std::complex<double>(0, v);
  }
  bool is_float = false;
  while (is_decimal(in_.peek()) || in_.peek() == '.' || in_.peek() == 'e' ||
         ((in_.peek() == '-' || in_.peek() == '+') && !text.empty() && text.back() == 'e')) {
    is_float |= !is_decimal(in_.peek());
    text += in_.peek();
    in_.advance();
  }
  const auto bad = [&]() {
    in_.go_to(start);
    in_.fail("expected a number");
  };
  if (is_float || in_.peek() == 'j') {
    double v = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error != std::errc() || end != text.data() + text.size()) bad();
    if (in_.peek() != 'j') return v;
    in_.advance();
    return std::complex<double>(0, v);
  }
  int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size()) bad();
  return v;
}

std::string ValueParser::quoted() {
  in_.skip_blank();
  const char quote = in_.peek();
  if (quote != '\'' && quote != '"') in_.fail("expected a text in quotes");
  in_.advance();
  std::string out;
  while (in_.peek() != quote) {
    if (in_.at_end() || in_.peek() == '\n') in_.fail("the text in quotes does not end");
    if (in_.peek() != '\\') {
      out += in_.peek();
      in_.advance();
      continue;
    }
    const char kind = in_.peek(1);
    in_.advance(2);
    const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits == 0) {
      const char plain = kind == 'n' ? '\n' : kind == 't' ? '\t' : kind == 'r' ? '\r' : kind;
      if (plain == kind && kind != '\\' && kind != '\'' && kind != '"') in_.fail("an escape that is not known");
      out += plain;
      continue;
    }
    uint32_t code = 0;
    for (int i = 0; i < digits; ++i) {
      const int d = hex_digit(in_.peek());
      if (d < 0) in_.fail("expected a hexadecimal digit");
      code = code << 4 | static_cast<uint32_t>(d);
      in_.advance();
    }
    if (code > 0x10ffff) in_.fail("a character that does not exist");
    append_utf8(out, code);
  }
  in_.advance();
  return out;
}

Value ValueParser::bracketed(char close, bool is_list) {
  in_.advance();
  const std::string_view end(&close, 1);
  Values items;
  while (!in_.accept(end)) {
    if (!items.empty()) in_.expect(",");
    if (in_.accept(end)) break;  // (a,)
    items.push_back(value());
  }
  return is_list ? list(std::move(items)) : tuple(std::move(items));
}

// A tuple, or a complex number: (1+2j).
Value ValueParser::in_parentheses() {
  const size_t start = in_.position();
  in_.advance();
  in_.skip_blank();
  if (is_decimal(in_.peek()) || in_.peek() == '-' || in_.starts_with("inf") || in_.starts_with("nan")) {
    const Value real = number();
    const char sign = in_.peek();
    if ((sign == '+' || sign == '-') && (real.kind() == Value::Kind::integer || real.kind() == Value::Kind::floating)) {
      in_.advance();
      const Value imaginary = number();
      if (imaginary.kind() != Value::Kind::complex) in_.fail("expected the imaginary part of a complex number");
      in_.expect(")");
      const double i = imaginary.to_complex().imag();
      return std::complex<double>(real.to_float(), sign == '-' ? -i : i);
    }
  }
  in_.go_to(start);
  return bracketed(')', false);
}

Value ValueParser::in_braces() {
  in_.advance();
  DictValue d;
  while (!in_.accept("}")) {
    if (!d.items.empty()) in_.expect(",");
    Value key = value();
    in_.expect(":");
    d.items.emplace_back(std::move(key), value());
  }
  return d;
}

Value ValueParser::named() {
  const size_t start = in_.position();
  const std::string name(in_.take_while(is_path));
  if (in_.peek() == '(') return call(name);
  if (name == "None") return {};
  if (name == "True") return true;
  if (name == "False") return false;
  if (name == "inf" || name == "nan" || name == "infj" || name == "nanj") {
    in_.go_to(start);
    return number();
  }
  if (name == "Ellipsis") return StructValue{"builtins.Ellipsis", "", {}, {}};
  if (name.starts_with("torch.")) {
    if (const std::optional<DType> d = dtype_from_name(name)) return *d;
    for (const Layout l : {Layout::strided, Layout::sparse_coo, Layout::sparse_csr, Layout::sparse_csc, Layout::sparse_bsr,
                           Layout::sparse_bsc, Layout::jagged})
      if (calque::name(l) == name) return l;
    for (const MemoryFormat f :
         {MemoryFormat::contiguous, MemoryFormat::preserve, MemoryFormat::channels_last, MemoryFormat::channels_last_3d})
      if (calque::name(f) == name) return f;
  }
  in_.go_to(start);
  in_.fail("expected a value");
}

Value ValueParser::call(std::string_view function) {
  in_.expect("(");
  if (function == "Sym") {
    Value v = expression();
    in_.expect(")");
    return v;
  }
  if (function == "tensor") return constant_tensor();
  if (function == "fake") {
    Tensor t = fake_tensor();
    in_.expect(")");
    return t;
  }
  if (function == "slice") {
    SliceValue s;
    s.start = value();
    in_.expect(",");
    s.stop = value();
    in_.expect(",");
    s.step = value();
    in_.expect(")");
    return s;
  }
  if (function == "device") {
    in_.expect("type=");
    std::string text = quoted();
    if (in_.accept(",")) {
      in_.expect("index=");
      in_.skip_blank();
      text += ":" + std::to_string(number().to_int());
    }
    in_.expect(")");
    return Device(text);
  }
  if (function == "OrderedDict") {
    DictValue d;
    d.ordered = true;
    if (in_.accept(")")) return d;
    in_.skip_blank();
    const Value pairs = value();
    if (pairs.kind() != Value::Kind::list) in_.fail("expected a list of pairs");
    for (const Value& pair : pairs.to_items()) {
      if (pair.kind() != Value::Kind::tuple || pair.to_items().size() != 2) in_.fail("expected a list of pairs");
      d.items.emplace_back(pair.to_items()[0], pair.to_items()[1]);
    }
    in_.expect(")");
    return d;
  }
  if (function == "struct") {
    StructValue s;
    s.type = quoted();
    in_.expect(",");
    s.context = quoted();
    while (in_.accept(",")) {
      in_.skip_blank();
      const size_t start = in_.position();
      const std::string field(in_.identifier());
      if (!field.empty() && in_.peek() == '=') {
        in_.advance();
        s.fields.push_back(field);
      } else {
        in_.go_to(start);
      }
      s.items.push_back(value());
    }
    in_.expect(")");
    return s;
  }
  in_.fail("'" + std::string(function) + "' is no value");
}

Value ValueParser::constant_tensor() {
  const DType dtype = abbreviated_dtype();
  std::vector<int64_t> plain;
  int64_t count = 1;
  for (const SymInt s : sizes()) {
    if (s.is_symbolic() || s.as_int() < 0 || __builtin_mul_overflow(count, s.as_int(), &count))
      in_.fail("a constant tensor cannot have the size " + s.str());
    plain.push_back(s.as_int());
  }
  in_.expect(",");
  const std::string hex = quoted();
  if (hex.size() % (2 * item_size(dtype)) != 0 || hex.size() / (2 * item_size(dtype)) != static_cast<size_t>(count))
    in_.fail("expected the bytes of " + std::to_string(count) + " elements");
  const Tensor t = make_tensor(IntList(plain), dtype);
  auto* bytes = static_cast<unsigned char*>(t.mutable_data());
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = hex_digit(hex[i]);
    const int low = hex_digit(hex[i + 1]);
    if (high < 0 || low < 0) in_.fail("expected hexadecimal digits");
    bytes[i / 2] = static_cast<unsigned char>(high << 4 | low);
  }
  in_.expect(")");
  return t;
}

// ---- meta.val ---------------------------------------------------------------------------------------------------------

DType ValueParser::abbreviated_dtype() {
  in_.skip_blank();
  const size_t start = in_.position();
  const std::string_view text = in_.take_while([](char c) { return std::isalnum(static_cast<unsigned char>(c)); });
  for (const DType d : all_dtypes)
    if (dtype_abbreviation(d) == text) return d;
  in_.go_to(start);
  in_.fail("expected a dtype such as f32");
}

SymInts ValueParser::sizes() {
  in_.expect("[");
  SymInts out;
  while (!in_.accept("]")) {
    if (!out.empty()) in_.expect(",");
    const Value v = expression();
    if (v.kind() != Value::Kind::integer) in_.fail("expected an integer expression");
    out.push_back(v.to_sym_int());
  }
  return out;
}

Tensor ValueParser::fake_tensor() {
  Meta meta;
  meta.dtype = abbreviated_dtype();
  meta.sizes = sizes();
  for (const SymInt s : meta.sizes)
    if (!s.is_symbolic() && s.as_int() < 0) in_.fail("a tensor cannot have the size " + s.str());
  if (in_.peek() == '[') {
    meta.strides = sizes();
    if (meta.strides.size() != meta.sizes.size()) in_.fail("expected as many strides as sizes");
  } else {
    meta.strides = contiguous_strides(meta.sizes);
  }
  const std::string_view device =
      in_.take_while([](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == ':'; });
  if (!device.empty()) meta.device = Device(device);
  return make_tensor(meta, true);
}

Value ValueParser::val() {
  const Depth depth(*this);
  in_.skip_blank();
  if (in_.accept("None")) return {};
  if (in_.accept("Sym(")) {
    Value v = expression();
    in_.expect(")");
    return v;
  }
  const bool is_list = in_.peek() == '[';
  if (!is_list && in_.peek() != '(') return fake_tensor();
  in_.advance();
  const std::string_view close = is_list ? "]" : ")";
  Values items;
  while (!in_.accept(close)) {
    if (!items.empty()) in_.expect(",");
    if (in_.accept(close)) break;
    items.push_back(val());
  }
  return is_list ? list(std::move(items)) : tuple(std::move(items));
}

// ---- symbolic expressions ---------------------------------------------------------------------------------------------

Value ValueParser::apply(std::string_view function, const Values& args) const {
  try {
    return (*get_function(function))(args);
  } catch (const UserError& e) {
    in_.fail(std::string(e.reason()));
  }
}

Value ValueParser::expression() {
  const Depth depth(*this);
  Value left = conjunction();
  while (in_.accept("|")) left = apply("operator.or_", {left, conjunction()});
  return left;
}

Value ValueParser::conjunction() {
  Value left = comparison();
  while (in_.accept("&")) left = apply("operator.and_", {left, comparison()});
  return left;
}

Value ValueParser::comparison() {
  Value left = sum();
  if (in_.accept("<=")) return apply("operator.le", {left, sum()});
  if (in_.accept(">=")) return apply("operator.ge", {left, sum()});
  if (in_.accept("==")) return apply("operator.eq", {left, sum()});
  if (in_.accept("!=")) return apply("operator.ne", {left, sum()});
  if (in_.accept("<")) return apply("operator.lt", {left, sum()});
  if (in_.accept(">")) return apply("operator.gt", {left, sum()});
  return left;
}

Value ValueParser::sum() {
  Value left = product();
  while (true) {
    if (in_.accept("+"))
      left = apply("operator.add", {left, product()});
    else if (in_.accept("-"))
      left = apply("operator.sub", {left, product()});
    else
      return left;
  }
}

namespace {
bool is_symbolic_float(const Value& v) { return v.kind() == Value::Kind::floating && v.to_sym_float().is_symbolic(); }
bool is_count(const Value& v) {
  return v.kind() == Value::Kind::integer && !v.to_sym_int().is_symbolic() && v.to_int() != 0;
}
}  // namespace

// Whole numbers among the factors, and a minus before them, count the product of the others, as sympy has it: Python would take 2 times
// a float for a product of floats, and -(a + b)*c for (-a - b)*c.
Value ValueParser::product() {
  Value count = 1;
  while (in_.accept("-")) count = apply("operator.neg", {count});
  Value left;
  const auto multiply = [&](Value factor) {
    if (is_count(factor))
      count = apply("operator.mul", {count, factor});
    else
      left = left.is_none() ? std::move(factor) : apply("operator.mul", {left, factor});
  };
  const auto counted = [&] {
    const Value n = std::exchange(count, 1);
    if (left.is_none()) return n;
    if (n.to_int() == 1) return left;
    if (is_symbolic_float(left)) return Value(sym_repeated_sum(left.to_sym_float(), n.to_int()));
    return n.to_int() == -1 ? apply("operator.neg", {left}) : apply("operator.mul", {n, left});
  };
  multiply(factor());
  while (true) {
    in_.skip_blank();
    if (in_.starts_with("**")) return counted();
    if (in_.accept("*"))
      multiply(factor());
    else if (in_.accept("//"))
      left = apply("operator.floordiv", {counted(), factor()});
    else if (in_.accept("/"))
      left = apply("operator.truediv", {counted(), factor()});
    else if (in_.accept("%"))
      left = apply("operator.mod", {counted(), factor()});
    else
      return counted();
  }
}

Value ValueParser::factor() {
  const Depth depth(*this);
  if (in_.accept("~")) return apply("operator.not_", {factor()});
  if (in_.accept("-")) return apply("operator.neg", {factor()});
  return power();
}

Value ValueParser::power() {
  Value base = atom();
  if (!in_.accept("**")) return base;
  const Value exponent = factor();
  if (is_symbolic_float(base) && is_count(exponent) && exponent.to_int() > 0)
    return sym_repeated_product(base.to_sym_float(), exponent.to_int());
  return apply("operator.pow", {base, exponent});
}

Value ValueParser::atom() {
  in_.skip_blank();
  if (in_.accept("(")) {
    Value v = expression();
    in_.expect(")");
    return v;
  }
  if (is_decimal(in_.peek())) return number();
  const size_t start = in_.position();
  const std::string name(in_.identifier());
  if (name.empty()) in_.fail("expected an expression");
  if (name == "True") return true;
  if (name == "False") return false;
  if (name == "oo") return std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (in_.peek() != '(') {
    try {
      for (const Symbol& s : env_.symbols())
        if (s.name == name && !s.is_float) return env_.declare_symbol(name, {}, s.range);
      return env_.declare_symbol(name, {}, ValueRange{0, ValueRange::unbounded_above});
    } catch (const UserError& e) {
      in_.go_to(start);
      in_.fail(e.what());
    }
  }
  in_.advance();
  if (name == "Piecewise") return choice();
  Values args;
  while (!in_.accept(")")) {
    if (!args.empty()) in_.expect(",");
    args.push_back(expression());
  }
  return function_of(name, args);
}

// Piecewise((a, condition), (b, True))
Value ValueParser::choice() {
  in_.expect("(");
  const Value if_true = expression();
  in_.expect(",");
  const Value condition = expression();
  in_.expect(")");
  in_.expect(",");
  in_.expect("(");
  const Value if_false = expression();
  in_.expect(",");
  in_.expect("True");
  in_.expect(")");
  in_.expect(")");
  return apply("torch.sym_ite", {condition, if_true, if_false});
}

Value ValueParser::function_of(std::string_view name, const Values& args) {
  struct Known {
    std::string_view name;
    size_t arity;
    std::string_view function;
  };
  static constexpr Known known[] = {
      {"FloorDiv", 2, "operator.floordiv"},
      {"CleanDiv", 2, "operator.floordiv"},
      {"Mod", 2, "operator.mod"},
      {"PythonMod", 2, "operator.mod"},
      {"PowByNatural", 2, "operator.pow"},
      {"ToFloat", 1, "torch.sym_float"},
      {"IntTrueDiv", 2, "operator.truediv"},
      {"FloatTrueDiv", 2, "operator.truediv"},
      {"FloatPow", 2, "operator.pow"},
      {"FloorToInt", 1, "math.floor"},
      {"CeilToInt", 1, "math.ceil"},
      {"TruncToInt", 1, "math.trunc"},
      {"Eq", 2, "operator.eq"},
      {"Ne", 2, "operator.ne"},
      {"RoundToInt", 1, "builtins.round"},
      {"RoundDecimal", 2, "builtins.round"},
      {"Abs", 1, "builtins.abs"},
      {"BitwiseFn_bitwise_and", 2, "operator.and_"},
      {"BitwiseFn_bitwise_or", 2, "operator.or_"},
      {"BitwiseFn_bitwise_xor", 2, "operator.xor"},
  };
  if ((name == "Max" || name == "Min") && !args.empty())
    return apply(name == "Max" ? "torch.sym_max" : "torch.sym_min", args);
  if (name == "Where" && args.size() == 3 && args[0].kind() == Value::Kind::boolean &&
      args[1].kind() == Value::Kind::integer && args[2].kind() == Value::Kind::integer)
    return sym_where(args[0].to_sym_bool(), args[1].to_sym_int(), args[2].to_sym_int());
  constexpr std::string_view opaque = "OpaqueUnaryFn_";
  if (name.starts_with(opaque) && args.size() == 1) return apply("math." + std::string(name.substr(opaque.size())), args);
  for (const Known& k : known)
    if (k.name == name && k.arity == args.size()) return apply(k.function, args);
  in_.fail("no function " + std::string(name) + " of " + std::to_string(args.size()) + " arguments");
}

}  // namespace calque
