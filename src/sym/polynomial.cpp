#include "sym/polynomial.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace calque {

namespace {

constexpr int64_t largest_searched = 1000000;  // rational roots are sought among divisors of numbers up to this

int64_t add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw Unsolvable{};
  return r;
}

int64_t multiply(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw Unsolvable{};
  return r;
}

int64_t magnitude(int64_t v) {
  if (v == INT64_MIN) throw Unsolvable{};
  return v < 0 ? -v : v;
}

std::optional<int64_t> exact_root(int64_t v) {
  if (v < 0) return std::nullopt;
  const auto r = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(v))));
  for (int64_t x = std::max<int64_t>(0, r - 1); x <= r + 1; ++x)
    if (x <= 3037000499 && x * x == v) return x;
  return std::nullopt;
}

// The integer just below a root of a quadratic that is not rational: the sign changes between it and the next. None where
// both roots lie between the same two integers.
std::optional<int64_t> integer_below_root(const Polynomial& p, int sign) {
  const auto real = [](Rational r) { return static_cast<double>(r.numerator()) / static_cast<double>(r.denominator()); };
  const double a = real(p.coefficient(2)), b = real(p.coefficient(1)), c = real(p.coefficient(0));
  const double root = (-b + static_cast<double>(sign) * std::sqrt(b * b - 4 * a * c)) / (2 * a);
  if (!(std::fabs(root) < 1e15)) throw Unsolvable{};
  const auto near = static_cast<int64_t>(std::floor(root));
  for (const int64_t k : {near, near - 1, near + 1})
    if (p.at(k).sign() * p.at(k + 1).sign() < 0) return k;
  return std::nullopt;
}

std::vector<int64_t> divisors(int64_t v) {
  v = magnitude(v);
  if (v > largest_searched) throw Unsolvable{};
  std::vector<int64_t> out;
  for (int64_t d = 1; d <= v; ++d)
    if (v % d == 0) out.push_back(d);
  return out;
}

}  // namespace

Rational Rational::ratio(int64_t numerator, int64_t denominator) {
  if (denominator == 0) throw Unsolvable{};
  const int64_t g = std::gcd(magnitude(numerator), magnitude(denominator));
  Rational out(numerator / g);
  out.denominator_ = denominator / g;
  if (out.denominator_ < 0) {
    out.denominator_ = -out.denominator_;
    out.numerator_ = -out.numerator_;
  }
  return out;
}

int64_t Rational::floor() const {
  const int64_t q = numerator_ / denominator_;
  return numerator_ < 0 && numerator_ % denominator_ != 0 ? q - 1 : q;
}

int64_t Rational::ceil() const { return is_integer() ? numerator_ : floor() + 1; }

std::string Rational::str() const {
  return std::to_string(numerator_) + (is_integer() ? "" : "/" + std::to_string(denominator_));
}

Rational operator+(Rational a, Rational b) {
  return Rational::ratio(add(multiply(a.numerator_, b.denominator_), multiply(b.numerator_, a.denominator_)),
                         multiply(a.denominator_, b.denominator_));
}
Rational operator-(Rational a, Rational b) { return a + b * Rational(-1); }
Rational operator*(Rational a, Rational b) {
  return Rational::ratio(multiply(a.numerator_, b.numerator_), multiply(a.denominator_, b.denominator_));
}
Rational operator/(Rational a, Rational b) {
  return Rational::ratio(multiply(a.numerator_, b.denominator_), multiply(a.denominator_, b.numerator_));
}
std::strong_ordering operator<=>(Rational a, Rational b) { return (a - b).numerator_ <=> 0; }

Rational floor_remainder(Rational a, Rational b) { return a - b * Rational((a / b).floor()); }

Polynomial::Polynomial(Rational constant) {
  if (constant.sign() != 0) coefficients_ = {constant};
}

Polynomial Polynomial::variable() {
  Polynomial out;
  out.coefficients_ = {0, 1};
  return out;
}

Rational Polynomial::coefficient(size_t power) const {
  return power < coefficients_.size() ? coefficients_[power] : Rational(0);
}

Rational Polynomial::at(Rational x) const {
  Rational out = 0;
  for (size_t i = coefficients_.size(); i-- > 0;) out = out * x + coefficients_[i];
  return out;
}

void Polynomial::trim() {
  while (!coefficients_.empty() && coefficients_.back().sign() == 0) coefficients_.pop_back();
}

Polynomial operator+(const Polynomial& a, const Polynomial& b) {
  Polynomial out;
  for (size_t i = 0; i < std::max(a.coefficients_.size(), b.coefficients_.size()); ++i)
    out.coefficients_.push_back(a.coefficient(i) + b.coefficient(i));
  out.trim();
  return out;
}

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
  Polynomial out;
  if (a.is_zero() || b.is_zero()) return out;
  out.coefficients_.resize(a.coefficients_.size() + b.coefficients_.size() - 1);
  for (size_t i = 0; i < a.coefficients_.size(); ++i)
    for (size_t j = 0; j < b.coefficients_.size(); ++j)
      out.coefficients_[i + j] = out.coefficients_[i + j] + a.coefficients_[i] * b.coefficients_[j];
  out.trim();
  return out;
}

Polynomial operator-(const Polynomial& a, const Polynomial& b) { return a + b * Polynomial(Rational(-1)); }

std::optional<Polynomial> Polynomial::exact_quotient(const Polynomial& divisor) const {
  Polynomial rest = *this, out;
  while (!rest.is_zero() && rest.degree() >= divisor.degree()) {
    Polynomial part;
    part.coefficients_.resize(rest.degree() - divisor.degree() + 1);
    part.coefficients_.back() = rest.coefficients_.back() / divisor.coefficients_.back();
    out = out + part;
    rest = rest - part * divisor;
  }
  if (!rest.is_zero()) return std::nullopt;
  return out;
}

std::vector<Polynomial::Root> Polynomial::roots() const {
  std::vector<Root> out;
  Polynomial p = *this;
  if (p.is_constant()) return out;
  const auto divide_out = [&](Rational root) {
    const Polynomial factor = Polynomial::variable() - Polynomial(root);
    bool found = false;
    while (!p.is_constant()) {
      const std::optional<Polynomial> q = p.exact_quotient(factor);
      if (!q) break;
      p = *q;
      found = true;
    }
    if (found) out.push_back({root});
    return found;
  };
  divide_out(0);
  while (p.degree() > 2) {  // a rational root's parts divide the outer coefficients
    int64_t common = 1;
    for (const Rational& c : p.coefficients_) common = multiply(common / std::gcd(common, c.denominator()), c.denominator());
    const std::vector<int64_t> tops = divisors((p.coefficients_.front() * Rational(common)).numerator());
    const std::vector<int64_t> bottoms = divisors((p.coefficients_.back() * Rational(common)).numerator());
    bool found = false;
    for (size_t i = 0; i < tops.size() && !found; ++i)
      for (size_t j = 0; j < bottoms.size() && !found; ++j)
        for (const int64_t sign : {1, -1}) {
          const Rational candidate = Rational::ratio(sign * tops[i], bottoms[j]);
          if (p.at(candidate).sign() == 0) found = divide_out(candidate);
          if (found) break;
        }
    if (!found) throw Unsolvable{};
  }
  if (p.degree() == 1) out.push_back({p.coefficient(0) * Rational(-1) / p.coefficient(1)});
  if (p.degree() == 2) {
    const Rational a = p.coefficient(2), b = p.coefficient(1), c = p.coefficient(0);
    const Rational discriminant = b * b - Rational(4) * a * c;
    if (discriminant.sign() >= 0) {
      const std::optional<int64_t> top = exact_root(discriminant.numerator()),
                                   bottom = exact_root(discriminant.denominator());
      for (const int sign : {-1, 1}) {
        if (top && bottom)
          out.push_back({(Rational(sign) * Rational::ratio(*top, *bottom) - b) / (Rational(2) * a)});
        else if (const std::optional<int64_t> below = integer_below_root(p, sign))
          out.push_back({Rational::ratio(add(multiply(2, *below), 1), 2), true});
      }
    }
  }
  std::ranges::sort(out, {}, &Root::value);
  const auto same = std::ranges::unique(out, {}, &Root::value);
  out.erase(same.begin(), same.end());
  return out;
}

Quotient::Quotient(Polynomial t, Polynomial b) : top(std::move(t)), bottom(std::move(b)) {
  if (bottom.is_zero()) throw Unsolvable{};
  if (const std::optional<Polynomial> q = top.exact_quotient(bottom)) {
    top = *q;
    bottom = Rational(1);
  }
}

Rational Quotient::at(Rational x) const {
  const Rational b = bottom.at(x);
  if (b.sign() == 0) throw Unsolvable{};
  return top.at(x) / b;
}

Quotient operator+(const Quotient& a, const Quotient& b) {
  if (a.bottom == b.bottom) return {a.top + b.top, a.bottom};
  return {a.top * b.bottom + b.top * a.bottom, a.bottom * b.bottom};
}
Quotient operator-(const Quotient& a, const Quotient& b) { return a + Quotient(b.top * Polynomial(Rational(-1)), b.bottom); }
Quotient operator*(const Quotient& a, const Quotient& b) { return {a.top * b.top, a.bottom * b.bottom}; }
Quotient operator/(const Quotient& a, const Quotient& b) { return {a.top * b.bottom, a.bottom * b.top}; }

bool Interval::is_empty() const {
  if (!lower || !upper) return false;
  return *lower > *upper || (*lower == *upper && (lower_open || upper_open));
}

bool Interval::contains(Rational x) const {
  if (lower && (x < *lower || (x == *lower && lower_open))) return false;
  return !(upper && (x > *upper || (x == *upper && upper_open)));
}

Interval intersect(const Interval& a, const Interval& b) {
  Interval out = a;
  if (b.lower && (!out.lower || *b.lower > *out.lower)) {
    out.lower = b.lower;
    out.lower_open = b.lower_open;
    out.lower_rounded = b.lower_rounded;
  } else if (b.lower && *b.lower == *out.lower) {
    out.lower_open |= b.lower_open;
  }
  if (b.upper && (!out.upper || *b.upper < *out.upper)) {
    out.upper = b.upper;
    out.upper_open = b.upper_open;
    out.upper_rounded = b.upper_rounded;
  } else if (b.upper && *b.upper == *out.upper) {
    out.upper_open |= b.upper_open;
  }
  return out;
}

std::vector<Interval> intersect(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::vector<Interval> out;
  for (const Interval& x : a)
    for (const Interval& y : b)
      if (const Interval both = intersect(x, y); !both.is_empty()) out.push_back(both);
  return out;
}

namespace {

struct End {
  Rational value;
  bool rounded;
  bool is_pole;
};

std::vector<End> ends_of(const Quotient& q) {
  std::vector<End> out;
  for (const Polynomial::Root& r : q.top.roots()) out.push_back({r.value, r.rounded, false});
  for (const Polynomial::Root& r : q.bottom.roots()) out.push_back({r.value, r.rounded, true});
  std::ranges::sort(
      out, [](const End& a, const End& b) { return a.value != b.value ? a.value < b.value : a.is_pole && !b.is_pole; });
  const auto same = std::ranges::unique(out, {}, &End::value);
  out.erase(same.begin(), same.end());
  return out;
}

// An integer between the two if there is one: at others a rounded end may be on the wrong side.
Rational between(const std::optional<Rational>& from, const std::optional<Rational>& to) {
  if (from && to) {
    const Rational next = from->floor() + 1;
    return next < *to ? next : (*from + *to) / Rational(2);
  }
  if (from) return from->floor() + 1;
  return to ? Rational(to->ceil() - 1) : Rational(0);
}

}  // namespace

bool sign_satisfies(Comparison comparison, int sign) {
  switch (comparison) {
    case Comparison::equal: return sign == 0;
    case Comparison::unequal: return sign != 0;
    case Comparison::less: return sign < 0;
    case Comparison::less_equal: return sign <= 0;
    case Comparison::greater: return sign > 0;
    case Comparison::greater_equal: return sign >= 0;
  }
  return false;
}

std::vector<Interval> solve_comparison(const Quotient& q, Comparison comparison) {
  const std::vector<End> ends = ends_of(q);
  const auto sign_at = [&](Rational x) { return q.top.at(x).sign() * q.bottom.at(x).sign(); };
  // The line falls into open stretches and the ends between them; neighbours that hold are joined.
  std::vector<Interval> out;
  bool joined = false;
  for (size_t i = 0; i <= ends.size(); ++i) {
    const End* from = i == 0 ? nullptr : &ends[i - 1];
    const End* to = i == ends.size() ? nullptr : &ends[i];
    const auto value = [](const End* e) { return e == nullptr ? std::nullopt : std::optional(e->value); };
    if (sign_satisfies(comparison, sign_at(between(value(from), value(to))))) {
      if (!joined) out.push_back({value(from), {}, true, true, from != nullptr && from->rounded, false});
      out.back().upper = value(to);
      out.back().upper_open = true;
      out.back().upper_rounded = to != nullptr && to->rounded;
      joined = true;
    } else {
      joined = false;
    }
    if (to == nullptr) break;
    if (to->rounded || to->is_pole || !sign_satisfies(comparison, 0)) {
      joined = false;
    } else if (joined) {
      out.back().upper_open = false;
    } else {
      out.push_back({to->value, to->value, false, false, false, false});
      joined = true;
    }
  }
  return out;
}

}  // namespace calque
