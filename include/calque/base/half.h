// The 16- and 8-bit floating-point storage types. They hold bits and convert to and from float (round to nearest
// even, NaN kept); arithmetic happens in float. No member beyond the bits: arrays of them are the raw tensor data.
#pragma once

#include <bit>
#include <cstdint>

namespace calque {

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const bool is_nan = (u & 0x7fffffffU) > 0x7f800000U;
    bits = static_cast<uint16_t>(is_nan ? 0x7fc0U : (u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (u >> 16) & 0x8000U;
    const uint32_t magnitude = u & 0x7fffffffU;
    uint32_t out;
    if (magnitude > 0x7f800000U) {
      out = 0x7e00U;
    } else if (magnitude >= 0x47800000U) {  // 65536 and above: infinity
      out = 0x7c00U;
    } else if (magnitude < 0x38800000U) {  // below 2^-14: subnormal; adding 0.5 lines the bits up and rounds
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      out = std::bit_cast<uint32_t>(shifted) - 0x3f000000U;
    } else {
      out = (magnitude + 0xc8000fffU + ((magnitude >> 13) & 1U)) >> 13;
    }
    bits = static_cast<uint16_t>(sign | out);
  }
  explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
    const uint32_t magnitude = bits & 0x7fffU;
    uint32_t out;
    if (magnitude >= 0x7c00U) {
      out = 0x7f800000U | (magnitude & 0x3ffU) << 13;
    } else if (magnitude >= 0x400U) {
      out = (magnitude << 13) + 0x38000000U;
    } else {
      out = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
    }
    return std::bit_cast<float>(sign | out);
  }
};

// An 8-bit float with `mantissa` bits of fraction. `Fn`: finite only (no infinity, one NaN pattern 0x7f per sign);
// `Uz`: additionally no negative zero, 0x80 being the one NaN. `bias` is the exponent's bias.
template <int mantissa, int bias, bool Fn, bool Uz>
struct Float8 {
  uint8_t bits = 0;
  Float8() = default;
  explicit Float8(float value);
  explicit operator float() const;
};

using Float8E4M3FN = Float8<3, 7, true, false>;
using Float8E5M2 = Float8<2, 15, false, false>;
using Float8E4M3FNUZ = Float8<3, 8, true, true>;
using Float8E5M2FNUZ = Float8<2, 16, true, true>;

// An exponent alone: value 2^(bits - 127), 0xff is NaN.
struct Float8E8M0FNU {
  uint8_t bits = 0;
  Float8E8M0FNU() = default;
  explicit Float8E8M0FNU(float value);
  explicit operator float() const;
};

}  // namespace calque
