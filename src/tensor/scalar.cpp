#include "calque/tensor/scalar.h"

#include <cmath>
#include <limits>

#include "calque/base/error.h"
#include "calque/sym/data_answers.h"
#include "calque/sym/sym_math.h"
#include "calque/tensor/finfo.h"
#include "calque/tensor/number_text.h"

namespace calque {
namespace {

// Would PyTorch's checked conversion refuse this value for T? Unsigned targets accept negative integers down to -max
// because they wrap; a float may overflow to infinity only from an infinity.
template <class T>
bool overflows(const Scalar& s) {
  if constexpr (std::is_same_v<T, Bool>) {
    return false;
  } else if constexpr (is_integral_type<T>) {
    if (s.is_floating()) {
      const double d = s.to_double();
      if (std::isnan(d) || std::isinf(d)) return true;
      return d < static_cast<double>(std::numeric_limits<T>::lowest()) ||
             d > static_cast<double>(std::numeric_limits<T>::max());
    }
    const int64_t i = s.to_int();
    if constexpr (std::is_unsigned_v<T>) {
      if constexpr (sizeof(T) == 8) return false;
      const auto max = static_cast<int64_t>(std::numeric_limits<T>::max());
      return i > max || i < -max;
    } else {
      return i < static_cast<int64_t>(std::numeric_limits<T>::lowest()) ||
             i > static_cast<int64_t>(std::numeric_limits<T>::max());
    }
  } else {
    return false;
  }
}

template <class T>
T convert(const Scalar& s) {
  if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
    const std::complex<double> c = s.to_complex();
    return T(static_cast<typename T::value_type>(c.real()), static_cast<typename T::value_type>(c.imag()));
  } else if constexpr (std::is_same_v<T, Bool>) {
    return s.to_bool();
  } else if constexpr (is_integral_type<T>) {
    return static_cast<T>(s.to_int());
  } else if constexpr (std::is_same_v<T, double>) {
    return s.to_double();
  } else if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(s.to_double());
  } else {
    return T(static_cast<float>(s.to_double()));
  }
}

}  // namespace

SymInt Scalar::truth_as_int() const { return calque::sym_int(SymBool(expr_)); }

double Scalar::to_double() const {
  switch (kind_) {
    case Kind::boolean: return to_bool() ? 1 : 0;
    case Kind::integer:
      return is_uint64_ ? static_cast<double>(static_cast<uint64_t>(int_.as_int())) : static_cast<double>(int_.as_int());
    case Kind::floating:
      if (expr_) return SymFloat(expr_).as_float();
      return real_;
    case Kind::complex:
      if (imag_ != 0)
        throw UserError("cannot convert the complex number " + str() + " to a real one: its imaginary part is not zero");
      return real_;
  }
  throw InternalError("scalar kind outside its enumeration");
}

int64_t Scalar::to_int() const {
  if (kind_ == Kind::boolean) return to_bool() ? 1 : 0;
  if (kind_ == Kind::integer) return int_.as_int();
  const double d = to_double();
  if (!(d >= -0x1p63 && d < 0x1p63)) throw UserError("cannot convert " + str() + " to an integer without overflow");
  return static_cast<int64_t>(d);
}

bool Scalar::to_bool() const {
  if (kind_ == Kind::boolean) {
    bool known = int_.as_int() != 0;
    if (expr_ && !SymBool(expr_).is_known(known)) {
      if (const std::optional<DataAnswer> answer = ask_data(SymBool(expr_))) return std::get<bool>(*answer);
      throw UserError(ErrorKind::data_dependent, "a plain bool was needed, but the value is symbolic: " + str());
    }
    return known;
  }
  if (kind_ == Kind::complex) return real_ != 0 || imag_ != 0;
  return kind_ == Kind::integer ? int_.as_int() != 0 : to_double() != 0;
}

std::complex<double> Scalar::to_complex() const {
  return kind_ == Kind::complex ? std::complex<double>(real_, imag_) : std::complex<double>(to_double(), 0);
}

template <class T>
T Scalar::to() const {
  bool refused = overflows<T>(*this);
  if constexpr (!is_integral_type<T> && !std::is_same_v<T, Complex64> && !std::is_same_v<T, Complex128>) {
    const double d = to_double();
    refused = std::isfinite(d) && std::fabs(d) > largest_finite(dtype_v<T>);
  }
  if (refused)
    throw UserError("value " + str() + " cannot be converted to " + std::string(name(dtype_v<T>)) + " without overflow");
  return convert<T>(*this);
}
#define X(name, type, category, number) template type Scalar::to<type>() const;
CALQUE_DTYPES(X)
#undef X

bool Scalar::equals(const Scalar& other) const {
  if (is_symbolic() || other.is_symbolic())
    return kind_ == other.kind_ && expr_ == other.expr_ && identical(int_, other.int_);
  if (is_complex() || other.is_complex()) return to_complex() == other.to_complex();
  if (is_floating() || other.is_floating()) return to_double() == other.to_double();
  return is_boolean() == other.is_boolean() && identical(int_, other.int_);
}

std::string Scalar::str() const {
  switch (kind_) {
    case Kind::boolean: return sym_bool().str();
    case Kind::integer: return is_uint64_ ? std::to_string(static_cast<uint64_t>(int_.as_int())) : int_.str();
    case Kind::floating: return expr_ ? SymFloat(expr_).str() : python_repr(real_);
    case Kind::complex: return python_repr(std::complex<double>(real_, imag_));
  }
  throw InternalError("scalar kind outside its enumeration");
}

DType Scalar::dtype() const {
  switch (kind_) {
    case Kind::boolean: return DType::bool_;
    case Kind::integer: return is_uint64_ ? DType::uint64 : DType::int64;
    case Kind::floating: return default_dtype();
    case Kind::complex: return default_dtype() == DType::float64 ? DType::complex128 : DType::complex64;
  }
  throw InternalError("scalar kind outside its enumeration");
}

}  // namespace calque
