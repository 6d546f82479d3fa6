// A number argument of an operator: bool, integer, floating (each possibly symbolic) or complex. Like a Python number it
// has a kind but no width.
#pragma once

#include <complex>
#include <concepts>
#include <string>
#include <type_traits>

#include "calque/sym/sym_int.h"
#include "calque/tensor/dtype.h"

namespace calque {

class Scalar {
 public:
  enum class Kind : uint8_t { boolean, integer, floating, complex };

  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool v) : kind_(Kind::boolean), int_(v) {}
  template <class T>
    requires(std::integral<T> && !std::same_as<T, bool>)
  Scalar(T v) : kind_(Kind::integer), int_(static_cast<int64_t>(v)) {
    if constexpr (std::same_as<T, uint64_t>) is_uint64_ = static_cast<int64_t>(v) < 0;
  }
  template <std::floating_point T>
  Scalar(T v) : kind_(Kind::floating), real_(static_cast<double>(v)) {}
  Scalar(std::complex<double> v) : kind_(Kind::complex), real_(v.real()), imag_(v.imag()) {}
  Scalar(SymBool v) : kind_(Kind::boolean), int_(!v.is_symbolic() && v.plain()), expr_(v.expr()) {}
  Scalar(SymInt v) : kind_(Kind::integer), int_(v) {}
  Scalar(SymFloat v) : kind_(Kind::floating), real_(v.is_symbolic() ? 0 : v.as_float()), expr_(v.expr()) {}

  Kind kind() const { return kind_; }
  bool is_boolean() const { return kind_ == Kind::boolean; }
  bool is_integral(bool include_bool) const { return kind_ == Kind::integer || (include_bool && is_boolean()); }
  bool is_floating() const { return kind_ == Kind::floating; }
  bool is_complex() const { return kind_ == Kind::complex; }
  bool is_symbolic() const { return expr_ != nullptr || (kind_ == Kind::integer && int_.is_symbolic()); }

  SymBool sym_bool() const { return expr_ ? SymBool(expr_) : SymBool(int_.as_int() != 0); }  // of a bool
  SymInt sym_int() const { return expr_ ? truth_as_int() : int_; }                           // of a bool or an integer
  SymFloat sym_float() const { return expr_ ? SymFloat(expr_) : SymFloat(to_double()); }

  // Conversions as static_cast would do; a symbolic value is a UserError. `to<T>` checks that integers and floats fit
  // into T and names the value when they do not.
  double to_double() const;
  int64_t to_int() const;
  bool to_bool() const;
  std::complex<double> to_complex() const;
  template <class T>
  T to() const;  // T is an element type, or bool

  bool equals(const Scalar& other) const;
  std::string str() const;  // Python's repr
  // bool, int64, the default dtype, or the complex one: what a 0-d tensor made of it would have.
  DType dtype() const;

 private:
  SymInt truth_as_int() const;  // of a symbolic bool

  Kind kind_;
  bool is_uint64_ = false;
  SymInt int_ = 0;
  double real_ = 0;
  double imag_ = 0;
  const Expr* expr_ = nullptr;  // of a symbolic bool or float
};

template <>
inline bool Scalar::to<bool>() const {
  return to_bool();
}

}  // namespace calque
