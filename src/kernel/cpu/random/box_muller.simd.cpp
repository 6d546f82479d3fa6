// float32 uses the single-precision logarithm, sine and cosine that PyTorch uses here (Cephes' approximations, fused
// where its build fuses them), so that samples agree to the bit and not just nearly: close to a zero of the sine a
// better approximation would be many ulp away from PyTorch's.
#include "kernel/cpu/random/box_muller.h"

#include <cstdint>

namespace calque::CALQUE_ISA {
namespace {

constexpr int pairs = box_muller_block / 2;
constexpr double pi = 3.141592653589793238462643383279502884;

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// Cephes logf for normal x in (0, 1]. The significand is brought to [sqrt(1/2), sqrt(2)), ln 2 is applied in two parts.
inline float log_unit(float x) {
  const int32_t bits = __builtin_bit_cast(int32_t, x);
  const float m = __builtin_bit_cast(float, (bits & 0x007fffff) | 0x3f000000);
  const bool low = m < 0.707106781186547524F;
  const float exponent = static_cast<float>((bits >> 23) - 126) - (low ? 1.0F : 0.0F);
  const float f = (m - 1.0F) + (low ? m : 0.0F);
  const float f2 = f * f;
  float y = 7.0376836292E-2F;
  y = fused(y, f, -1.1514610310E-1F);
  y = fused(y, f, 1.1676998740E-1F);
  y = fused(y, f, -1.2420140846E-1F);
  y = fused(y, f, 1.4249322787E-1F);
  y = fused(y, f, -1.6668057665E-1F);
  y = fused(y, f, 2.0000714765E-1F);
  y = fused(y, f, -2.4999993993E-1F);
  y = fused(y, f, 3.3333331174E-1F);
  y = fused(y * f, f2, exponent * -2.12194440e-4F);
  y = fused(f2, -0.5F, y);
  return fused(exponent, 0.693359375F, f + y);
}

// Cephes sinf and cosf for x >= 0: reduction by multiples of pi/4 in three parts, one polynomial for each.
inline void sincos(float x, float& sine, float& cosine) {
  const int32_t octant = (static_cast<int32_t>(x * 1.27323954473516F) + 1) & ~1;
  const float k = static_cast<float>(octant);
  x = fused(k, -0.78515625F, x);
  x = fused(k, -2.4187564849853515625e-4F, x);
  x = fused(k, -3.77489497744594108e-8F, x);
  const float z = x * x;
  float c = fused(2.443315711809948E-005F, z, -1.388731625493765E-003F);
  c = fused(c, z, 4.166664568298827E-002F);
  c = fused(c * z, z, z * -0.5F) + 1.0F;
  float s = fused(-1.9515295891E-4F, z, 8.3321608736E-3F);
  s = fused(s, z, -1.6666654611E-1F);
  s = fused(s * z, x, x);
  const bool swap = (octant & 2) != 0;
  const uint32_t sine_sign = static_cast<uint32_t>(octant & 4) << 29;
  const uint32_t cosine_sign = static_cast<uint32_t>(~(octant - 2) & 4) << 29;
  sine = __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, swap ? c : s) ^ sine_sign);
  cosine = __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, swap ? s : c) ^ cosine_sign);
}

void transform_f32(float* data, float mean, float std) {
  for (int i = 0; i < pairs; ++i) {
    const float radius = __builtin_sqrtf(-2.0F * log_unit(1.0F - data[i]));
    float sine;
    float cosine;
    sincos(static_cast<float>(2.0 * pi) * data[i + pairs], sine, cosine);
    data[i] = fused(radius * cosine, std, mean);
    data[i + pairs] = fused(radius * sine, std, mean);
  }
}

void transform_f64(double* data, double mean, double std) {
  for (int i = 0; i < pairs; ++i) {
    const double radius = __builtin_sqrt(-2.0 * __builtin_log(1.0 - data[i]));
    const double theta = 2.0 * pi * data[i + pairs];
    data[i] = __builtin_fma(radius * __builtin_cos(theta), std, mean);
    data[i + pairs] = __builtin_fma(radius * __builtin_sin(theta), std, mean);
  }
}

}  // namespace

const BoxMuller box_muller = {transform_f32, transform_f64};

}  // namespace calque::CALQUE_ISA
