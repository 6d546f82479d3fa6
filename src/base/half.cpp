#include "calque/base/half.h"

#include <cmath>
#include <limits>

namespace calque {

// Encoding works on integers of "smallest subnormal" units so that rounding to even is one nearbyint.
template <int mantissa, int bias, bool Fn, bool Uz>
Float8<mantissa, bias, Fn, Uz>::Float8(float value) {
  constexpr int exponent_bits = 7 - mantissa;
  constexpr int max_code = Fn ? (Uz ? 0x7f : 0x7e) : ((1 << exponent_bits) - 1) * (1 << mantissa) - 1;  // largest finite
  constexpr uint8_t nan_code = Uz ? 0x80 : 0x7f;
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) {
    bits = static_cast<uint8_t>(Uz ? nan_code : sign | nan_code);
    return;
  }
  const float magnitude = std::fabs(value);
  int code;
  if (std::isinf(magnitude)) {
    code = max_code + 1;
  } else {
    int exponent = 0;
    std::frexp(magnitude, &exponent);                        // magnitude = f * 2^exponent, f in [0.5, 1)
    int unit = std::max(exponent - 1, 1 - bias) - mantissa;  // log2 of the last place
    const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -unit)));
    const int field = unit + mantissa + bias;  // biased exponent, 1 for subnormals
    code = (field - 1) * (1 << mantissa) + steps;
  }
  if (code > max_code) {  // overflow: infinity where there is one, NaN otherwise
    bits = static_cast<uint8_t>(Fn ? (Uz ? nan_code : sign | nan_code) : sign | (max_code + 1));
    return;
  }
  bits = static_cast<uint8_t>(code == 0 && Uz ? 0 : sign | code);
}

template <int mantissa, int bias, bool Fn, bool Uz>
Float8<mantissa, bias, Fn, Uz>::operator float() const {
  constexpr int exponent_max = (1 << (7 - mantissa)) - 1;
  const float sign = bits & 0x80 ? -1.0F : 1.0F;
  const int field = (bits & 0x7f) >> mantissa;
  const int fraction = bits & ((1 << mantissa) - 1);
  if (Uz ? bits == 0x80 : (Fn && (bits & 0x7f) == 0x7f)) return std::numeric_limits<float>::quiet_NaN();
  if (!Fn && field == exponent_max)
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  const int significand = field == 0 ? fraction : fraction + (1 << mantissa);
  const int exponent = std::max(field, 1) - bias - mantissa;
  return sign * std::ldexp(static_cast<float>(significand), exponent);
}

template struct Float8<3, 7, true, false>;
template struct Float8<2, 15, false, false>;
template struct Float8<3, 8, true, true>;
template struct Float8<2, 16, true, true>;

Float8E8M0FNU::Float8E8M0FNU(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = (u >> 23) & 0xffU;
  const uint32_t fraction = u & 0x7fffffU;
  if (exponent == 0xffU) {
    bits = 0xff;
    return;
  }
  // Round the fraction half to even on the exponent's last bit, as PyTorch does.
  const bool round_up =
      exponent == 0 ? fraction > 0x400000U : fraction > 0x400000U || (fraction == 0x400000U && exponent > 0);
  bits = static_cast<uint8_t>(exponent + (round_up ? 1 : 0));
}

Float8E8M0FNU::operator float() const {
  if (bits == 0xff) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, static_cast<int>(bits) - 127);
}

}  // namespace calque
