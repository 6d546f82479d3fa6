#include "text/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "text/jinja/python_text.h"
#include "text/utf8.h"

namespace calque::jinja {
namespace {

constexpr const char* operator_signs[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void unsupported(BinaryOperator op, const Value& a, const Value& b) {
  type_error(std::string("unsupported operand type(s) for ") + operator_signs[static_cast<size_t>(op)] + ": '" +
             type_name(a) + "' and '" + type_name(b) + "'");
}

[[noreturn]] void too_large() { fail("an integer of the template is larger than 64 bits hold"); }

bool is_sequence(const Value& v) { return v.is(Kind::list) || v.is(Kind::tuple); }

Value repeated(Budget& budget, const Value& value, const Value& count) {
  const auto times = static_cast<size_t>(std::max<int64_t>(count.integer(), 0));
  if (value.is(Kind::text)) {
    Builder out(budget);
    out.repeat(value.text().bytes, times);
    return make_text(budget, out.take(), value.text().safe);
  }
  const auto& items = value.list().items;
  std::vector<Value> out;
  if (!items.empty()) {
    if (times > (size_t{1} << 40) / items.size()) budget.require(size_t{1} << 50);
    budget.spend(items.size() * times);
    budget.require(items.size() * times * sizeof(Value));
    for (size_t i = 0; i < times; ++i) out.insert(out.end(), items.begin(), items.end());
  }
  return value.is(Kind::list) ? make_list(budget, std::move(out)) : make_tuple(budget, std::move(out));
}

Value joined(Budget& budget, const Value& a, const Value& b) {
  if (a.is(Kind::text)) {
    // Markup escapes what it is put together with.
    const bool safe = a.text().safe || b.text().safe;
    const auto part = [&](const Value& v) {
      return safe && !v.text().safe ? escaped(budget, v.text().bytes) : v.text().bytes;
    };
    Builder out(budget);
    out += part(a);
    out += part(b);
    return make_text(budget, out.take(), safe);
  }
  std::vector<Value> items = collect(budget, a);
  budget.spend(b.list().items.size());
  budget.require((items.size() + b.list().items.size()) * sizeof(Value));
  items.insert(items.end(), b.list().items.begin(), b.list().items.end());
  return a.is(Kind::list) ? make_list(budget, std::move(items)) : make_tuple(budget, std::move(items));
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  if (a < 0 && b != std::floor(b)) fail("a negative number cannot be raised to a fractional power in a template");
  const double out = std::pow(a, b);
  if (std::isinf(out) && !std::isinf(a) && !std::isinf(b)) fail("(34, 'Numerical result out of range')");
  return out;
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value(exponent == 0 ? int64_t{1} : base);
  if (base == -1) return Value(exponent % 2 == 0 ? int64_t{1} : int64_t{-1});
  if (exponent > 63) too_large();
  int64_t out = 1;
  for (int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(out, base, &out)) too_large();
  return Value(out);
}

Value integers(BinaryOperator op, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (op) {
    case BinaryOperator::add:
      if (__builtin_add_overflow(a, b, &out)) too_large();
      return Value(out);
    case BinaryOperator::subtract:
      if (__builtin_sub_overflow(a, b, &out)) too_large();
      return Value(out);
    case BinaryOperator::multiply:
      if (__builtin_mul_overflow(a, b, &out)) too_large();
      return Value(out);
    case BinaryOperator::divide:
      if (b == 0) fail("division by zero");
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOperator::floor_divide:
      if (b == 0) fail("integer division or modulo by zero");
      if (b == -1) return integers(BinaryOperator::subtract, 0, a);
      out = a / b;
      return Value(a % b != 0 && (a < 0) != (b < 0) ? out - 1 : out);
    case BinaryOperator::modulo:
      if (b == 0) fail("integer modulo by zero");
      if (b == -1) return Value(int64_t{0});
      out = a % b;
      return Value(out != 0 && (out < 0) != (b < 0) ? out + b : out);
    case BinaryOperator::power: return integer_power(a, b);
  }
  return {};
}

Value floats(BinaryOperator op, double a, double b) {
  const auto modulo = [&] {
    if (b == 0) fail("float modulo");
    const double out = std::fmod(a, b);
    if (out == 0) return std::copysign(0.0, b);
    return (out < 0) != (b < 0) ? out + b : out;
  };
  switch (op) {
    case BinaryOperator::add: return Value(a + b);
    case BinaryOperator::subtract: return Value(a - b);
    case BinaryOperator::multiply: return Value(a * b);
    case BinaryOperator::divide:
      if (b == 0) fail("float division by zero");
      return Value(a / b);
    case BinaryOperator::floor_divide: {
      if (b == 0) fail("float floor division by zero");
      const double quotient = (a - modulo()) / b, floor = std::floor(quotient);
      if (quotient == 0) return Value(std::copysign(0.0, a / b));
      return Value(quotient - floor > 0.5 ? floor + 1 : floor);
    }
    case BinaryOperator::modulo: return Value(modulo());
    case BinaryOperator::power: return Value(float_power(a, b));
  }
  return {};
}

// -1, 0, 1; 2 when one is not a number.
int order_of(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  if (a.is_integral() || b.is_integral()) {
    // Exactly: an integer may have more digits than a float.
    const bool left = a.is_integral();
    const int64_t i = left ? a.integer() : b.integer();
    const double d = left ? b.floating() : a.floating();
    if (std::isnan(d)) return 2;
    int out = 0;
    if (d >= 9223372036854775808.0) {
      out = -1;
    } else if (d < -9223372036854775808.0) {
      out = 1;
    } else {
      const auto whole = static_cast<int64_t>(std::floor(d));
      out = i < whole ? -1 : i > whole ? 1 : d > std::floor(d) ? -1 : 0;
    }
    return left ? out : -out;
  }
  const double x = a.floating(), y = b.floating();
  return std::isnan(x) || std::isnan(y) ? 2 : x < y ? -1 : x > y;
}

bool ordered(Budget& budget, const Value& a, const Value& b, Comparison comparison) {
  const auto holds = [comparison](int order) {
    if (order == 2) return false;
    return comparison == Comparison::less         ? order < 0
           : comparison == Comparison::less_equal ? order <= 0
           : comparison == Comparison::greater    ? order > 0
                                                  : order >= 0;
  };
  if (a.is_number() && b.is_number()) return holds(order_of(a, b));
  if (a.is(Kind::text) && b.is(Kind::text)) {
    // UTF-8 sorts as its code points do.
    budget.spend_bytes(std::min(a.text().bytes.size(), b.text().bytes.size()));
    const int order = a.text().bytes.compare(b.text().bytes);
    return holds(order < 0 ? -1 : order > 0);
  }
  if (is_sequence(a) && a.kind() == b.kind()) {
    const auto &x = a.list().items, &y = b.list().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(budget, x[i], y[i])) return ordered(budget, x[i], y[i], comparison);
    return holds(x.size() < y.size() ? -1 : x.size() > y.size());
  }
  if (a.is(Kind::undefined)) undefined_error(a);
  if (b.is(Kind::undefined)) undefined_error(b);
  static constexpr const char* signs[] = {"==", "!=", "<", "<=", ">", ">="};
  type_error(std::string("'") + signs[static_cast<size_t>(comparison)] + "' not supported between instances of '" +
             type_name(a) + "' and '" + type_name(b) + "'");
}

}  // namespace

void undefined_error(const Value& value) { fail(value.undefined().message); }

int64_t to_index(const Value& value) {
  if (value.is(Kind::undefined)) undefined_error(value);
  if (!value.is_integral()) type_error(std::string("'") + type_name(value) + "' object cannot be interpreted as an integer");
  return value.integer();
}

Value apply(Budget& budget, BinaryOperator op, const Value& a, const Value& b) {
  if (op == BinaryOperator::modulo && a.is(Kind::text)) return format_percent(budget, a, b);
  if (a.is(Kind::undefined)) undefined_error(a);
  if (b.is(Kind::undefined)) undefined_error(b);
  if (a.is_integral() && b.is_integral()) return integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return floats(op, a.floating(), b.floating());
  const bool joins = a.is(Kind::text) || is_sequence(a);
  if (op == BinaryOperator::add && joins) {
    if (a.kind() == b.kind()) return joined(budget, a, b);
    if (a.is(Kind::text)) type_error(std::string("can only concatenate str (not \"") + type_name(b) + "\") to str");
    type_error(std::string("can only concatenate ") + type_name(a) + " (not \"" + type_name(b) + "\") to " + type_name(a));
  }
  if (op == BinaryOperator::multiply) {
    if (joins && b.is_integral()) return repeated(budget, a, b);
    if ((b.is(Kind::text) || is_sequence(b)) && a.is_integral()) return repeated(budget, b, a);
  }
  unsupported(op, a, b);
}

Value negate(Budget& budget, const Value& value) {
  if (value.is(Kind::floating)) return Value(-value.floating());
  if (value.is_integral()) return integers(BinaryOperator::subtract, 0, value.integer());
  (void)budget;
  if (value.is(Kind::undefined)) undefined_error(value);
  type_error(std::string("bad operand type for unary -: '") + type_name(value) + "'");
}

Value plus(const Value& value) {
  if (value.is(Kind::floating)) return value;
  if (value.is_integral()) return Value(value.integer());
  if (value.is(Kind::undefined)) undefined_error(value);
  type_error(std::string("bad operand type for unary +: '") + type_name(value) + "'");
}

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  if (a.is_number() && b.is_number()) return order_of(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::none:
    case Kind::undefined: return true;
    case Kind::boolean:
    case Kind::integer:
    case Kind::floating: return false;  // numbers were compared above
    case Kind::text: budget.spend_bytes(a.text().bytes.size()); return a.text().bytes == b.text().bytes;
    case Kind::view:
      if (a.list().style != b.list().style || a.list().style == List::Style::values) return a.object() == b.object();
      [[fallthrough]];
    case Kind::list:
    case Kind::tuple: {
      const auto &x = a.list().items, &y = b.list().items;
      if (x.size() != y.size()) return false;
      for (size_t i = 0; i < x.size(); ++i)
        if (!x[i].same_as(y[i]) && !equal(budget, x[i], y[i])) return false;
      return true;
    }
    case Kind::dict: {
      if (a.dict().items.size() != b.dict().items.size()) return false;
      for (const auto& [key, value] : a.dict().items) {
        const Value* other = b.dict().find(key);
        if (!other || !equal(budget, value, *other)) return false;
      }
      return true;
    }
    case Kind::range: {
      const Range &x = a.range(), &y = b.range();
      return x.size() == y.size() && (x.size() == 0 || (x.start == y.start && (x.size() == 1 || x.step == y.step)));
    }
    case Kind::iterator:
    case Kind::names:
    case Kind::function:
    case Kind::loop:
    case Kind::cycler: return a.object() == b.object();
  }
  return false;
}

bool less(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  return ordered(budget, a, b, Comparison::less);
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::text:
      if (item.is(Kind::undefined)) type_error("'in <string>' requires string as left operand, not Undefined");
      if (!item.is(Kind::text))
        type_error(std::string("'in <string>' requires string as left operand, not ") + type_name(item));
      budget.spend_bytes(container.text().bytes.size());
      return container.text().bytes.find(item.text().bytes) != std::string::npos;
    case Kind::dict: return container.dict().find(item) != nullptr;
    case Kind::undefined:
    case Kind::list:
    case Kind::tuple:
    case Kind::view:
    case Kind::range:
    case Kind::iterator: {
      const auto iterator = iterate(budget, container);
      for (Value candidate; iterator->next(candidate);)
        if (candidate.same_as(item) || equal(budget, candidate, item)) return true;
      return false;
    }
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::floating:
    case Kind::names:
    case Kind::function:
    case Kind::loop:
    case Kind::cycler: break;
  }
  type_error(std::string("argument of type '") + type_name(container) + "' is not iterable");
}

bool compare(Budget& budget, Comparison comparison, const Value& a, const Value& b) {
  budget.spend(1);
  switch (comparison) {
    case Comparison::equal: return equal(budget, a, b);
    case Comparison::not_equal: return !equal(budget, a, b);
    case Comparison::in: return contains(budget, b, a);
    case Comparison::not_in: return !contains(budget, b, a);
    case Comparison::less:
    case Comparison::less_equal:
    case Comparison::greater:
    case Comparison::greater_equal: return ordered(budget, a, b, comparison);
  }
  return false;
}

void sort_values(Budget& budget, std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
  // Reversed, equal values keep their order all the same.
  if (reverse) std::reverse(keyed.begin(), keyed.end());
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) { return less(budget, a.first, b.first); });
  if (reverse) std::reverse(keyed.begin(), keyed.end());
}

// ---- reaching in ------------------------------------------------------------------------------------------------------

namespace {

std::string described(const Value& value) {
  if (value.is(Kind::none)) return "None";
  return std::string(type_name(value)) + " object";
}

Value missing(Budget& budget, const Value& value, const Value& key) {
  if (key.is(Kind::text))
    return make_undefined(budget,
                          "'" + described(value) + "' has no attribute " + repr_text(excerpt(key.text().bytes, 200)));
  return make_undefined(budget, described(value) + " has no element " + repr(budget, key));
}

// obj[key] of Python; nothing for a LookupError or TypeError.
std::optional<Value> subscript(Budget& budget, const Value& value, const Value& key) {
  if (value.is(Kind::undefined)) undefined_error(value);
  if (value.is(Kind::dict)) {
    if (key.is(Kind::list) || key.is(Kind::dict)) return std::nullopt;  // they cannot be keys
    const Value* found = value.dict().find(key);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (!key.is_integral()) return std::nullopt;
  const bool walks = value.is(Kind::text) || value.is(Kind::list) || value.is(Kind::tuple) || value.is(Kind::range);
  if (!walks) return std::nullopt;
  const auto size = static_cast<int64_t>(*size_of(value));
  int64_t i = key.integer();
  if (i < 0) i += size;
  if (i < 0 || i >= size) return std::nullopt;
  if (value.is(Kind::range)) return value.range().at(i);
  if (!value.is(Kind::text)) return value.list().items[static_cast<size_t>(i)];
  const auto at = static_cast<size_t>(i);
  return make_text(budget, std::string(code_points(budget, value.text(), at, at + 1)));
}

}  // namespace

Value get_attribute(Budget& budget, const Value& value, std::string_view name) {
  if (value.is(Kind::undefined)) undefined_error(value);
  if (auto found = python_attribute(budget, value, name)) return *found;
  if (value.is(Kind::dict)) {
    if (const Value* found = value.dict().find(name)) return *found;
  }
  return missing(budget, value, make_text(budget, std::string(name)));
}

Value get_item(Budget& budget, const Value& value, const Value& key) {
  if (auto found = subscript(budget, value, key)) return *found;
  if (key.is(Kind::text))
    if (auto found = python_attribute(budget, value, key.text().bytes)) return *found;
  return missing(budget, value, key);
}

Value get_slice(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step) {
  if (value.is(Kind::undefined)) undefined_error(value);
  const bool sequence = is_sequence(value) || value.is(Kind::text) || value.is(Kind::range);
  if (value.is(Kind::dict)) type_error("unhashable type: 'slice'");
  if (!sequence) type_error(std::string("'") + type_name(value) + "' object is not subscriptable");
  const auto bound = [](const Value& v, int64_t otherwise) {
    if (v.is(Kind::none)) return otherwise;
    if (!v.is_integral()) type_error("slice indices must be integers or None or have an __index__ method");
    return v.integer();
  };
  const auto size = static_cast<int64_t>(*size_of(value));
  const int64_t by = bound(step, 1);
  if (by == 0) fail("slice step cannot be zero");
  const auto clip = [&](int64_t i) {
    if (i < 0) i = std::max(i + size, by < 0 ? int64_t{-1} : int64_t{0});
    return std::min(i, by < 0 ? size - 1 : size);
  };
  const int64_t from = start.is(Kind::none) ? (by < 0 ? size - 1 : 0) : clip(bound(start, 0));
  const int64_t to = stop.is(Kind::none) ? (by < 0 ? -1 : size) : clip(bound(stop, 0));
  const Range range(budget, from, to, by);
  const int64_t count = range.size();
  if (value.is(Kind::range)) {
    const Range& r = value.range();
    int64_t stride = 0, first = 0, last = 0;
    if (__builtin_mul_overflow(r.step, by, &stride) || __builtin_mul_overflow(r.step, from, &first) ||
        __builtin_mul_overflow(r.step, to, &last) || __builtin_add_overflow(first, r.start, &first) ||
        __builtin_add_overflow(last, r.start, &last))
      too_large();
    return {Kind::range, std::make_shared<Range>(budget, first, last, stride)};
  }
  if (value.is(Kind::text)) {
    const Text& text = value.text();
    if (by == 1)
      return make_text(budget, std::string(code_points(budget, text, static_cast<size_t>(from),
                                                       static_cast<size_t>(std::max(from, to)))));
    const std::u32string all = to_utf32(text.bytes);
    budget.spend_bytes(4 * all.size());
    std::string out;
    for (int64_t i = 0; i < count; ++i) append_utf8(out, all[static_cast<size_t>(from + i * by)]);
    return make_text(budget, std::move(out));
  }
  budget.spend(static_cast<size_t>(count));
  std::vector<Value> out;
  for (int64_t i = 0; i < count; ++i) push(budget, out, value.list().items[static_cast<size_t>(from + i * by)]);
  return value.is(Kind::list) ? make_list(budget, std::move(out)) : make_tuple(budget, std::move(out));
}

}  // namespace calque::jinja
