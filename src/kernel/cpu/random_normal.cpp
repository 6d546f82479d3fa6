// normal_: PyTorch's two ways to draw, chosen by size and layout, and its single-precision logarithm, sine and cosine
// (Cephes' approximations, evaluated in the same order) so that float32 samples agree to the bit and not just nearly:
// near a zero of the sine a better approximation would be many ulp away.
#include <bit>
#include <numbers>

#include "kernel/cpu/random.h"
#include "kernel/cpu/random_fill.h"

namespace calque {
namespace {

constexpr int half_block = 8;
constexpr int block = 2 * half_block;

// Cephes logf for normal x in (0, 1]. The significand is brought to [sqrt(1/2), sqrt(2)), ln 2 is applied in two parts.
inline float log_unit(float x) {
  const int32_t bits = std::bit_cast<int32_t>(x);
  float exponent = static_cast<float>((bits >> 23) - 126);
  const float m = std::bit_cast<float>((bits & 0x007fffff) | 0x3f000000);
  const bool low = m < 0.707106781186547524F;
  exponent -= low ? 1.0F : 0.0F;
  const float f = (m - 1.0F) + (low ? m : 0.0F);
  const float f2 = f * f;
  float y = 7.0376836292E-2F;
  y = y * f - 1.1514610310E-1F;
  y = y * f + 1.1676998740E-1F;
  y = y * f - 1.2420140846E-1F;
  y = y * f + 1.4249322787E-1F;
  y = y * f - 1.6668057665E-1F;
  y = y * f + 2.0000714765E-1F;
  y = y * f - 2.4999993993E-1F;
  y = y * f + 3.3333331174E-1F;
  y = y * f * f2;
  y = y + exponent * -2.12194440e-4F;
  y = y - f2 * 0.5F;
  return (f + y) + exponent * 0.693359375F;
}

// Cephes sinf and cosf for x >= 0: reduction by multiples of pi/4 in three parts, one polynomial for each.
inline void sincos_unit(float x, float& sine, float& cosine) {
  int32_t octant = static_cast<int32_t>(x * 1.27323954473516F);
  octant = (octant + 1) & ~1;
  const float k = static_cast<float>(octant);
  x = ((x - k * 0.78515625F) - k * 2.4187564849853515625e-4F) - k * 3.77489497744594108e-8F;
  const float z = x * x;
  float c = 2.443315711809948E-005F;
  c = c * z - 1.388731625493765E-003F;
  c = c * z + 4.166664568298827E-002F;
  c = c * z * z;
  c = (c - z * 0.5F) + 1.0F;
  float s = -1.9515295891E-4F;
  s = s * z + 8.3321608736E-3F;
  s = s * z - 1.6666654611E-1F;
  s = s * z * x + x;
  const bool swap = (octant & 2) != 0;
  const uint32_t sine_sign = static_cast<uint32_t>(octant & 4) << 29;
  const uint32_t cosine_sign = static_cast<uint32_t>(~(octant - 2) & 4) << 29;
  sine = std::bit_cast<float>(std::bit_cast<uint32_t>(swap ? c : s) ^ sine_sign);
  cosine = std::bit_cast<float>(std::bit_cast<uint32_t>(swap ? s : c) ^ cosine_sign);
}

// mean + value * std in one rounding. With mean 0 the product's rounding is the only one anyway.
template <class C>
void scale(C* data, C mean, C std) {
  if (mean == 0) {
    for (int i = 0; i < block; ++i) data[i] = data[i] * std + mean;
  } else {
    for (int i = 0; i < block; ++i) data[i] = std::fma(data[i], std, mean);
  }
}

// Box-Muller on 16 uniforms in place: element i is paired with i + 8.
void box_muller(float* data, float mean, float std) {
  for (int i = 0; i < half_block; ++i) {
    const float radius = std::sqrt(-2.0F * log_unit(1.0F - data[i]));
    float sine;
    float cosine;
    sincos_unit(static_cast<float>(2.0 * std::numbers::pi) * data[i + half_block], sine, cosine);
    data[i] = radius * cosine;
    data[i + half_block] = radius * sine;
  }
  scale(data, mean, std);
}

void box_muller(double* data, double mean, double std) {
  for (int i = 0; i < half_block; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - data[i]));
    const double theta = 2.0 * std::numbers::pi * data[i + half_block];
    data[i] = radius * std::cos(theta);
    data[i + half_block] = radius * std::sin(theta);
  }
  scale(data, mean, std);
}

// At least 16 contiguous elements. A size that is no multiple of 16 draws 16 more for its last 16 elements. float32 and
// float64 draw a uniform for every element first, the 16-bit types only for whole blocks.
template <class T>
void normal_fill(T* data, int64_t n, double mean, double std, Generator& g) {
  using C = Compute<T>;
  C buffer[block];
  const auto one_block = [&](int64_t at) {
    for (C& u : buffer) u = draw_unit<C>(g);
    box_muller(buffer, static_cast<C>(mean), static_cast<C>(std));
    for (int i = 0; i < block; ++i) data[at + i] = static_cast<T>(buffer[i]);
  };
  int64_t i = 0;
  for (; i + block <= n; i += block) one_block(i);
  if (i == n) return;
  if constexpr (std::same_as<T, C>)
    for (; i < n; ++i) draw_unit<C>(g);
  one_block(n - block);
}

}  // namespace

void normal_kernel(const Tensor& out, double mean, double std, Generator* generator) {
  if (!(std >= 0)) throw UserError("normal_: expected std >= 0, found std = " + std::to_string(std));
  if (out.numel() == 0) return;
  const bool complex = is_complex(out.dtype());
  const FillWalk walk = complex ? make_component_walk(out, "normal_") : make_fill_walk(out, "normal_");
  if (complex) std /= std::sqrt(2.0);
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  dispatch_floating(to_real(out.dtype()), "normal_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out.mutable_data());
    if (walk.numel >= block && out.is_contiguous())
      normal_fill(data, walk.numel, mean, std, g);
    else
      fill(data, walk, [&] { return from_double<T>(draw_normal(g) * std + mean); });
  });
}

void log_normal_kernel(const Tensor& out, double mean, double std, Generator* generator) {
  if (!(std > 0)) throw UserError("log_normal_: expected std > 0, found std = " + std::to_string(std));
  if (out.numel() == 0) return;
  const FillWalk walk = make_fill_walk(out, "log_normal_");
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  dispatch_floating(out.dtype(), "log_normal_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill(static_cast<T*>(out.mutable_data()), walk,
         [&] { return from_double<T>(std::exp(draw_normal(g) * std + mean)); });
  });
}

}  // namespace calque
