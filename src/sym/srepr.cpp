#include "calque/sym/srepr.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "calque/base/error.h"
#include "calque/sym/expr.h"
#include "sym/env_impl.h"
#include "sym/order.h"

namespace calque {

namespace {

constexpr size_t greatest_nesting = 200;

std::string repr_of_float(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-oo" : "oo";
  return "Float('" + float_text(v, 17, true) + "', precision=53)";
}

std::string write(const Expr* e) {
  if (e->is_integer()) return "Integer(" + std::to_string(e->integer()) + ")";
  if (e->kind() == ExprKind::float_number) return repr_of_float(e->float_value());
  if (e->kind() == ExprKind::true_value) return "true";
  if (e->kind() == ExprKind::false_value) return "false";
  if (e->kind() == ExprKind::symbol) {
    const Symbol& s = e->env()->symbols()[e->symbol_index()];
    if (s.is_float) return "Symbol('" + s.name + (e->has_unbacked() ? "')" : "', real=True)");
    return "Symbol('" + s.name + (s.positive ? "', positive=True, integer=True)" : "', integer=True)");
  }
  if (e->kind() == ExprKind::piecewise)
    return "Piecewise(ExprCondPair(" + write(e->arg(1)) + ", " + write(e->arg(0)) + "), ExprCondPair(" + write(e->arg(2)) +
           ", true))";
  std::string out = std::string(sympy_name(e)) + "(";
  bool first = true;
  for (const Expr* a : printing_order(e)) {
    if (!first) out += ", ";
    // sympy takes the sign of a product's number apart.
    if (first && e->kind() == ExprKind::mul && a->is_integer() && a->integer() < -1 && a->integer() != INT64_MIN)
      out += "Integer(-1), Integer(" + std::to_string(-a->integer()) + ")";
    else if (first && e->kind() == ExprKind::mul && a->kind() == ExprKind::float_number && a->float_value() < 0)
      out += "Integer(-1), " + repr_of_float(-a->float_value());
    else
      out += write(a);
    first = false;
  }
  return out + ")";
}

class Parser {
 public:
  Parser(ShapeEnv& env, std::string_view text) : env_(env), pool_(env.impl().pool), text_(text) {}

  const Expr* whole() {
    const Expr* e;
    try {
      e = expression(0);
    } catch (const UserError& error) {
      if (error.kind() == ErrorKind::bad_file) throw;
      fail(error.what());  // overflow or division by zero: say where
    }
    skip_spaces();
    if (at_ != text_.size()) fail("unexpected text after the expression");
    return e;
  }

  [[noreturn]] void fail(const std::string& what) const {
    const std::string_view shown = text_.substr(0, 200);
    throw UserError(ErrorKind::bad_file, "symbolic expression: " + what + " at position " + std::to_string(at_) + " of \"" +
                                             std::string(shown) + (shown.size() < text_.size() ? "..." : "") + "\"");
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool next_is(char c) {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'");
  }
  std::string_view word() {
    skip_spaces();
    const size_t begin = at_;
    const auto is_word = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (begin == at_) fail("expected a name");
    return text_.substr(begin, at_ - begin);
  }
  std::string_view quoted() {
    skip_spaces();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("expected a quoted text");
    const char quote = text_[at_++];
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != quote) ++at_;
    if (at_ == text_.size()) fail("the quoted text does not end");
    return text_.substr(begin, at_++ - begin);
  }
  int64_t integer() {
    skip_spaces();
    int64_t value;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fail("the integer does not fit 64 bits");
    if (error != std::errc()) fail("expected an integer");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  const Expr* symbol() {
    const std::string name(quoted());
    if (name.empty()) fail("a symbol without a name");
    bool positive = false, not_negative = false, integer = false;
    while (accept(',')) {
      const std::string_view assumption = word();
      expect('=');
      const std::string_view value = word();
      if (value != "True" && value != "False" && value != "None") fail("expected True or False");
      if (assumption == "positive") positive = value == "True";
      if (assumption == "integer") integer = value == "True";
      if (assumption == "nonnegative") not_negative = value == "True";
    }
    expect(')');
    ShapeEnv::Impl& impl = env_.impl();
    if (const auto known = impl.by_name.find(name); known != impl.by_name.end()) return impl.knowledge.node(known->second);
    const ValueRange range = positive || not_negative ? ValueRange{0, ValueRange::unbounded_above} : ValueRange{};
    const bool is_float = !integer && name.starts_with("z");
    const bool unbacked = name[0] == 'u' || name.starts_with("zuf");
    if (is_float) return impl.declare_float(name, std::nullopt, "", unbacked).expr();
    return impl.declare(name, std::nullopt, range, "", unbacked, positive).expr();
  }

  const Expr* float_number() {
    const std::string_view digits = quoted();
    double value;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) fail("not a float");
    while (accept(',')) {
      word();
      expect('=');
      integer();
    }
    expect(')');
    return pool_.float_number(value);
  }

  // A function's name, where it stands, and its arguments; the checks fail at the name.
  struct Call {
    Parser& parser;
    std::string_view head;
    size_t head_at;
    const std::vector<const Expr*>& args;

    [[noreturn]] void fail(const std::string& what) const {
      parser.at_ = head_at;
      parser.fail(what);
    }
    bool is(std::string_view name) const { return head == name; }
    const Expr* arg(size_t i) const { return args[i]; }
    void expect_count(size_t n) const {
      if (args.size() != n)
        fail(std::string(head) + " takes " + std::to_string(n) + " arguments, not " + std::to_string(args.size()));
    }
    void expect_kind(size_t first, size_t last, bool boolean) const {
      for (size_t i = first; i < last; ++i)
        if (args[i]->is_boolean() != boolean)
          fail("argument " + std::to_string(i + 1) + " of " + std::string(head) + " is " + (boolean ? "not " : "") +
               "a boolean");
    }
    void expect_numbers(size_t n) const {
      expect_count(n);
      expect_kind(0, n, false);
    }
    void expect_some_numbers() const {
      if (args.empty()) expect_count(1);
      expect_kind(0, args.size(), false);
    }
    void expect_two_integers() const {
      expect_numbers(2);
      if (args[0]->is_float() || args[1]->is_float()) fail(std::string(head) + " takes integers");
    }
    void expect_division() const {
      expect_numbers(2);
      if (args[1]->is_integer() && args[1]->integer() == 0) fail(std::string(head) + " by zero");
    }
  };

  const Expr* call(std::string_view head, size_t head_at, const std::vector<const Expr*>& args) {
    const Call c{*this, head, head_at, args};
    if (const Expr* e = arithmetic(c)) return e;
    if (const Expr* e = function_of_table(c)) return e;
    if (const Expr* e = logic(c)) return e;
    if (const Expr* e = special(c)) return e;
    c.fail("unknown function " + std::string(head));
  }

  // Each of the following: the expression, or null when the function is not one of these.
  const Expr* arithmetic(const Call& c) {
    if (c.is("Add") || c.is("Mul")) {
      c.expect_some_numbers();
      return c.is("Add") ? pool_.sum_of(c.args) : pool_.product_of(c.args);
    }
    if (c.is("Max") || c.is("Min")) {
      c.expect_some_numbers();
      return pool_.extremum(c.is("Max") ? ExprKind::max : ExprKind::min, c.args);
    }
    if (c.is("Pow")) {
      c.expect_numbers(2);
      if (!c.arg(1)->is_integer() || c.arg(1)->integer() < 0) c.fail("Pow with an exponent that is not a natural number");
      return pool_.pow(c.arg(0), c.arg(1)->integer());
    }
    if (c.is("FloorDiv") || c.is("CleanDiv")) {
      if (c.is("CleanDiv")) c.expect_two_integers();
      c.expect_division();
      return pool_.divide(c.is("FloorDiv") ? ExprKind::floor_div : ExprKind::clean_div, c.arg(0), c.arg(1));
    }
    if (c.is("Mod") || c.is("PythonMod")) {
      c.expect_division();
      return pool_.mod(c.is("Mod") ? ExprKind::mod : ExprKind::python_mod, c.arg(0), c.arg(1));
    }
    if (c.is("PowByNatural")) {
      c.expect_two_integers();
      return pool_.pow_by_natural(c.arg(0), c.arg(1));
    }
    if (c.is("Abs")) {
      c.expect_numbers(1);
      return pool_.absolute(c.arg(0));
    }
    return nullptr;
  }

  const Expr* function_of_table(const Call& c) {
    struct Row {
      std::string_view name;
      ExprKind kind;
      size_t arguments;
    };
    static constexpr Row functions[] = {
        {"RoundToInt", ExprKind::round_to_int, 1},
        {"RoundDecimal", ExprKind::round_decimal, 2},
        {"TruncToFloat", ExprKind::trunc_to_float, 1},
        {"floor", ExprKind::floor, 1},
        {"ToFloat", ExprKind::to_float, 1},
        {"TrueDiv", ExprKind::int_true_div, 2},
        {"IntTrueDiv", ExprKind::int_true_div, 2},
        {"FloatTrueDiv", ExprKind::float_true_div, 2},
        {"FloatPow", ExprKind::float_pow, 2},
        {"FloorToInt", ExprKind::floor_to_int, 1},
        {"CeilToInt", ExprKind::ceil_to_int, 1},
        {"TruncToInt", ExprKind::trunc_to_int, 1},
    };
    static constexpr Row relations[] = {
        {"Equality", ExprKind::eq, 2},          {"Eq", ExprKind::eq, 2},
        {"Unequality", ExprKind::ne, 2},        {"Ne", ExprKind::ne, 2},
        {"StrictLessThan", ExprKind::lt, 2},    {"Lt", ExprKind::lt, 2},
        {"LessThan", ExprKind::le, 2},          {"Le", ExprKind::le, 2},
        {"StrictGreaterThan", ExprKind::gt, 2}, {"Gt", ExprKind::gt, 2},
        {"GreaterThan", ExprKind::ge, 2},       {"Ge", ExprKind::ge, 2},
    };
    static constexpr Row bitwise[] = {
        {"BitwiseFn_bitwise_and", ExprKind::bitwise_and, 2},
        {"BitwiseFn_bitwise_or", ExprKind::bitwise_or, 2},
        {"BitwiseFn_bitwise_xor", ExprKind::bitwise_xor, 2},
    };
    for (const Row& row : functions)
      if (c.is(row.name)) {
        c.expect_numbers(row.arguments);
        return pool_.float_function(row.kind, c.args);
      }
    for (const Row& row : relations)
      if (c.is(row.name)) {
        c.expect_numbers(row.arguments);
        return pool_.relation(row.kind, c.arg(0), c.arg(1));
      }
    for (const Row& row : bitwise)
      if (c.is(row.name)) {
        c.expect_two_integers();
        return pool_.bitwise(row.kind, c.arg(0), c.arg(1));
      }
    return nullptr;
  }

  const Expr* logic(const Call& c) {
    if (c.is("And") || c.is("Or")) {
      c.expect_kind(0, c.args.size(), true);
      return pool_.connective(c.is("And") ? ExprKind::logical_and : ExprKind::logical_or, c.args);
    }
    if (c.is("Not")) {
      c.expect_count(1);
      c.expect_kind(0, 1, true);
      return pool_.logical_not(c.arg(0));
    }
    if (c.is("Where")) {
      c.expect_count(3);
      c.expect_kind(0, 1, true);
      c.expect_kind(1, 3, false);
      return pool_.where(c.arg(0), c.arg(1), c.arg(2));
    }
    return nullptr;
  }

  const Expr* special(const Call& c) {
    if (c.is("Identity")) {
      c.expect_numbers(1);
      return c.arg(0);
    }
    if (c.is("IsNonOverlappingAndDenseIndicator")) {
      c.expect_kind(0, c.args.size(), false);
      if (c.args.size() % 2 != 0) c.expect_count(c.args.size() + 1);
      return pool_.dense_indicator(c.args);
    }
    constexpr std::string_view opaque = "OpaqueUnaryFn_";
    if (c.head.starts_with(opaque)) {
      c.expect_numbers(1);
      for (size_t i = 0; i < opaque_function_count; ++i)
        if (c.head.substr(opaque.size()) == opaque_name(static_cast<OpaqueFunction>(i)))
          return pool_.opaque(static_cast<OpaqueFunction>(i), c.arg(0));
    }
    return nullptr;
  }

  // Two branches, the second of which is the rest: what sym_ite makes.
  const Expr* piecewise(size_t depth) {
    const auto pair = [&](const Expr*& value, const Expr*& condition) {
      if (word() != "ExprCondPair") fail("expected ExprCondPair");
      expect('(');
      value = expression(depth + 1);
      expect(',');
      condition = expression(depth + 1);
      expect(')');
      if (value->is_boolean() || !condition->is_boolean()) fail("Piecewise takes pairs of a number and a condition");
    };
    const Expr *a, *b, *condition, *rest;
    pair(a, condition);
    expect(',');
    pair(b, rest);
    expect(')');
    if (rest->kind() != ExprKind::true_value) fail("Piecewise with more than one condition");
    return pool_.piecewise(condition, a, b);
  }

  const Expr* expression(size_t depth) {
    if (depth > greatest_nesting) fail("nested more than " + std::to_string(greatest_nesting) + " levels deep");
    skip_spaces();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (text_.substr(at_).starts_with("-oo")) {
      at_ += 3;
      return pool_.float_number(-infinity);
    }
    if (at_ < text_.size() && (text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9')))
      return pool_.integer(integer());
    const size_t head_at = at_;
    const std::string_view head = word();
    if (head == "true" || head == "True") return pool_.boolean(true);
    if (head == "false" || head == "False") return pool_.boolean(false);
    if (head == "oo") return pool_.float_number(infinity);
    if (head == "nan") return pool_.float_number(std::numeric_limits<double>::quiet_NaN());
    expect('(');
    if (head == "Symbol") return symbol();
    if (head == "Float") return float_number();
    if (head == "Integer") {
      const Expr* e = pool_.integer(integer());
      expect(')');
      return e;
    }
    if (head == "Piecewise") return piecewise(depth);
    std::vector<const Expr*> args;
    if (!next_is(')')) {
      do {
        args.push_back(expression(depth + 1));
      } while (accept(','));
    }
    expect(')');
    return call(head, head_at, args);
  }

  ShapeEnv& env_;
  ExprPool& pool_;
  std::string_view text_;
  size_t at_ = 0;
};

const Expr* replaced(const Expr* e) { return e->env() == nullptr ? e : e->env()->impl().knowledge.replace(e); }

}  // namespace

std::string srepr(SymInt value) {
  return value.expr() == nullptr ? "Integer(" + std::to_string(value.as_int()) + ")" : write(replaced(value.expr()));
}

std::string srepr(SymBool value) {
  return value.expr() == nullptr ? (value.plain() ? "true" : "false") : write(replaced(value.expr()));
}

std::string srepr(SymFloat value) {
  return value.expr() == nullptr ? repr_of_float(value.as_float()) : write(replaced(value.expr()));
}

std::string srepr(const Expr* expr) { return write(expr); }

SymInt parse_srepr(ShapeEnv& env, std::string_view text) {
  Parser parser(env, text);
  const Expr* e = parser.whole();
  if (e->is_boolean() || e->is_float()) parser.fail("expected an integer expression; it ends");
  return SymInt(e);
}

SymBool parse_srepr_bool(ShapeEnv& env, std::string_view text) {
  Parser parser(env, text);
  const Expr* e = parser.whole();
  if (!e->is_boolean()) parser.fail("expected a boolean expression; it ends");
  return SymBool(e);
}

SymFloat parse_srepr_float(ShapeEnv& env, std::string_view text) {
  Parser parser(env, text);
  const Expr* e = parser.whole();
  if (e->is_boolean()) parser.fail("expected a float expression; it ends");
  return SymFloat(e->is_float() ? e : env.impl().pool.float_function(ExprKind::to_float, {&e, 1}));
}

}  // namespace calque
