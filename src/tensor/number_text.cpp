#include "calque/tensor/number_text.h"

#include <charconv>
#include <cmath>

namespace calque {
namespace {

// Python's rule: exponents from -4 to 15 are written out, others in scientific form with at least two digits.
std::string shortest(double value, bool keep_point) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string text(buffer, end);
  const size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed_end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  std::string fixed(buffer, fixed_end);
  if (keep_point && fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

}  // namespace

std::string python_repr(double value) { return shortest(value, true); }

std::string python_repr(std::complex<double> value) {
  const std::string imag = shortest(value.imag(), false) + "j";
  if (value.real() == 0 && !std::signbit(value.real())) return imag;
  const bool has_sign = imag[0] == '-';
  return "(" + shortest(value.real(), false) + (has_sign ? "" : "+") + imag + ")";
}

}  // namespace calque
