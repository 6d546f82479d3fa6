#include "kernel/cpu/gemm/row_screen.h"

#include <cstring>

#include "kernel/cpu/simd/vec.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

constexpr int width = lanes<float>;

CALQUE_INLINE void store_8_bits(int8_t* p, Vec<float> v) {
#if defined(__AVX512F__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
#else
  for (int i = 0; i < width; ++i) p[i] = static_cast<int8_t>(v[i]);
#endif
}

void pack(const float* row, int64_t size, int8_t* out, int64_t stride, float& scale, float& norm, float& difference) {
  const auto part = [&](int64_t i) { return i + width <= size ? load(row + i) : load_wide_tail(row + i, size - i); };
  Vec<float> largest = {};
  for (int64_t i = 0; i < size; i += width) {
    const Vec<float> v = part(i), magnitude = v < 0 ? -v : v;
    largest = largest < magnitude ? magnitude : largest;
  }
  float most = 0;
  for (int i = 0; i < width; ++i) most = most < largest[i] ? largest[i] : most;
  scale = most / 127;
  const float inverse = scale > 0 ? 1 / scale : 0;
  // Of numbers up to 127, so that no square is lost; a NaN in the row, or an infinity, makes the norms NaN.
  constexpr float whole = 12582912;  // added and taken away: rounds to integers
  Vec<float> squares = {}, apart = {};
  std::memset(out, 0, static_cast<size_t>(stride));
  for (int64_t i = 0; i < size; i += width) {
    const Vec<float> v = part(i) * inverse, q = (v + whole) - whole, d = v - q;
    store_8_bits(out + i, q == q ? q : Vec<float>{});
    squares = fma(v, v, squares);
    apart = fma(d, d, apart);
  }
  norm = __builtin_sqrtf(sum_lanes<float>(squares));
  difference = __builtin_sqrtf(sum_lanes<float>(apart));
}

// Sums of products of 8 and 16 bits in 32 fit for this many numbers: a lane has a quarter of them at most.
constexpr int64_t screen_block = 2048;

#if defined(__AVX512F__) || defined(__AVX2__)
CALQUE_INLINE Vec<int32_t> add_products(Vec<int32_t> sum, const int8_t* p, Vec<int16_t> x) {
#if defined(__AVX512F__)
  const __m512i q = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return sum + reinterpret_cast<Vec<int32_t>>(_mm512_madd_epi16(q, reinterpret_cast<__m512i>(x)));
#else
  const __m256i q = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return sum + reinterpret_cast<Vec<int32_t>>(_mm256_madd_epi16(q, reinterpret_cast<__m256i>(x)));
#endif
}
#else
CALQUE_INLINE Vec<int32_t> add_products(Vec<int32_t> sum, const int8_t* p, Vec<int16_t> x) {
  for (int i = 0; i < lanes<int16_t>; ++i) sum[i / 2] += p[i] * x[i];
  return sum;
}
#endif

// Row after row, so that memory is read in order; what comes is asked for across the borders of pages.
void products(const int8_t* rows, int64_t count, int64_t stride, const int16_t* x, const float* scale, float* out) {
  constexpr int64_t ahead = 8192, step = 64;
  constexpr int parts = step / lanes<int16_t>;
  for (int64_t r = 0; r < count; ++r) {
    const int8_t* row = rows + r * stride;
    Vec<float> total = {};
    for (int64_t begin = 0; begin < stride; begin += screen_block) {
      const int64_t end = stride - begin < screen_block ? stride : begin + screen_block;
      Vec<int32_t> sums[parts] = {};
      for (int64_t i = begin; i < end; i += step) {
        __builtin_prefetch(row + i + ahead);
#pragma GCC unroll 8
        for (int k = 0; k < parts; ++k)
          sums[k] = add_products(sums[k], row + i + k * lanes<int16_t>, load(x + i + k * lanes<int16_t>));
      }
#pragma GCC unroll 8
      for (int k = 0; k < parts; ++k) total += __builtin_convertvector(sums[k], Vec<float>);
    }
    out[r] = sum_lanes<float>(total) * scale[r];
  }
}

}  // namespace

extern const RowScreenKernels row_screen_kernels[] = {{pack, products}};

}  // namespace calque::kernel::CALQUE_ISA
