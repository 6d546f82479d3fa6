#include "calque/base/crc32.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace calque {
namespace {

// Sixteen bytes a step: tables[k][b] is the checksum of byte b followed by k zero bytes.
constexpr auto tables = [] {
  std::array<std::array<uint32_t, 256>, 16> t{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1U) != 0 ? 0xEDB88320U ^ (c >> 1) : c >> 1;
    t[0][b] = c;
  }
  for (size_t k = 1; k < 16; ++k)
    for (size_t b = 0; b < 256; ++b) t[k][b] = t[0][t[k - 1][b] & 255U] ^ (t[k - 1][b] >> 8);
  return t;
}();

#if defined(__x86_64__)
// Carry-less multiplication folds 64 bytes at a time; the constants are powers of x modulo the polynomial (Gopal and others,
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction"). `bytes` is a multiple of 16, at least 64.
__attribute__((target("pclmul,sse4.1"))) uint32_t folded(const unsigned char* p, size_t bytes, uint32_t crc) {
  const auto load = [](const unsigned char* at) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  };
  const auto fold = [](__m128i x, __m128i by, __m128i next) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11)), next);
  };
  __m128i a = _mm_xor_si128(load(p), _mm_cvtsi32_si128(static_cast<int>(crc)));
  __m128i b = load(p + 16);
  __m128i c = load(p + 32);
  __m128i d = load(p + 48);
  const __m128i by_64_bytes = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  for (p += 64, bytes -= 64; bytes >= 64; p += 64, bytes -= 64) {
    a = fold(a, by_64_bytes, load(p));
    b = fold(b, by_64_bytes, load(p + 16));
    c = fold(c, by_64_bytes, load(p + 32));
    d = fold(d, by_64_bytes, load(p + 48));
  }
  const __m128i by_16_bytes = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  a = fold(a, by_16_bytes, b);
  a = fold(a, by_16_bytes, c);
  a = fold(a, by_16_bytes, d);
  for (; bytes >= 16; p += 16, bytes -= 16) a = fold(a, by_16_bytes, load(p));
  // 128 bits to 64, to 32, then Barrett's reduction.
  const __m128i low_words = _mm_setr_epi32(-1, 0, -1, 0);
  a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_16_bytes, 0x10));
  a = _mm_xor_si128(_mm_srli_si128(a, 4),
                    _mm_clmulepi64_si128(_mm_and_si128(a, low_words), _mm_set_epi64x(0, 0x163cd6124), 0x00));
  const __m128i polynomial = _mm_set_epi64x(0x1f7011641, 0x1db710641);
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(a, low_words), polynomial, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_words), polynomial, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(a, quotient), 1));
}
#endif

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t c = ~before;
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
#if defined(__x86_64__)
  static const bool can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  if (can_fold && left >= 64) {
    c = folded(p, left / 16 * 16, c);
    p += left / 16 * 16;
    left %= 16;
  }
#endif
  for (; left >= 16; p += 16, left -= 16) {
    uint32_t w[4];
    std::memcpy(w, p, 16);
    w[0] ^= c;
    c = 0;
    for (size_t i = 0; i < 4; ++i)
      for (size_t j = 0; j < 4; ++j) c ^= tables[15 - 4 * i - j][w[i] >> (8 * j) & 255U];
  }
  for (; left > 0; ++p, --left) c = tables[0][(c ^ *p) & 255U] ^ (c >> 8);
  return ~c;
}

}  // namespace calque
