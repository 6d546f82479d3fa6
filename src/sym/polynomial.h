// Rational numbers, polynomials in one variable over them, and quotients of polynomials: what the constraint solver
// computes with. The variable stands for an integer, so a root that is not rational counts as the middle between its
// neighbours. Anything that leaves 64 bits, and polynomials whose roots are not found, are Unsolvable.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calque/sym/expr.h"

namespace calque {

struct Unsolvable {};

class Rational {
 public:
  Rational(int64_t value = 0) : numerator_(value) {}
  static Rational ratio(int64_t numerator, int64_t denominator);  // the denominator is not zero

  int64_t numerator() const { return numerator_; }
  int64_t denominator() const { return denominator_; }  // positive
  bool is_integer() const { return denominator_ == 1; }
  int sign() const { return numerator_ < 0 ? -1 : numerator_ > 0 ? 1 : 0; }
  int64_t floor() const;
  int64_t ceil() const;
  std::string str() const;  // "5/2"

  friend Rational operator+(Rational a, Rational b);
  friend Rational operator-(Rational a, Rational b);
  friend Rational operator*(Rational a, Rational b);
  friend Rational operator/(Rational a, Rational b);  // b is not zero
  friend bool operator==(Rational a, Rational b) = default;
  friend std::strong_ordering operator<=>(Rational a, Rational b);

 private:
  int64_t numerator_;
  int64_t denominator_ = 1;
};
Rational floor_remainder(Rational a, Rational b);  // Python's %; b is not zero

class Polynomial {
 public:
  Polynomial(Rational constant = 0);
  static Polynomial variable();

  bool is_constant() const { return coefficients_.size() <= 1; }
  size_t degree() const { return coefficients_.empty() ? 0 : coefficients_.size() - 1; }
  bool is_zero() const { return coefficients_.empty(); }
  Rational coefficient(size_t power) const;
  Rational at(Rational x) const;
  struct Root {
    Rational value;
    bool rounded = false;  // not rational; half an integer stands for it
  };
  std::vector<Root> roots() const;  // all real ones that integers can tell apart, ascending, each once
  // This divided by another, if that leaves nothing.
  std::optional<Polynomial> exact_quotient(const Polynomial& divisor) const;

  friend Polynomial operator+(const Polynomial& a, const Polynomial& b);
  friend Polynomial operator-(const Polynomial& a, const Polynomial& b);
  friend Polynomial operator*(const Polynomial& a, const Polynomial& b);
  friend bool operator==(const Polynomial&, const Polynomial&) = default;
  friend auto operator<=>(const Polynomial& a, const Polynomial& b) { return a.coefficients_ <=> b.coefficients_; }

 private:
  void trim();
  std::vector<Rational> coefficients_;  // of x^0, x^1, ...; the last is not zero
};

struct Quotient {
  Polynomial top;
  Polynomial bottom = Rational(1);  // not zero
  Quotient(Polynomial t) : top(std::move(t)) {}
  Quotient(Polynomial t, Polynomial b);
  Rational at(Rational x) const;  // Unsolvable where the bottom is zero
};
Quotient operator+(const Quotient& a, const Quotient& b);
Quotient operator-(const Quotient& a, const Quotient& b);
Quotient operator*(const Quotient& a, const Quotient& b);
Quotient operator/(const Quotient& a, const Quotient& b);

// Values between two ends; no end means unbounded.
struct Interval {
  std::optional<Rational> lower, upper;
  bool lower_open = true, upper_open = true;
  bool lower_rounded = false, upper_rounded = false;  // stands for a root that is not rational
  bool is_empty() const;
  bool contains(Rational x) const;
  bool is_point() const { return lower && upper && *lower == *upper; }
};
Interval intersect(const Interval& a, const Interval& b);

bool sign_satisfies(Comparison comparison, int sign);  // does a number of this sign compare so with zero?
// Where q compares so with zero: intervals, ascending and apart.
std::vector<Interval> solve_comparison(const Quotient& q, Comparison comparison);
std::vector<Interval> intersect(const std::vector<Interval>& a, const std::vector<Interval>& b);

}  // namespace calque
