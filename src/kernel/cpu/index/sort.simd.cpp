// Sorting keys and the scan of topk, compiled once per instruction set.
#include "kernel/cpu/index/sort_keys.h"
#include "kernel/cpu/simd/vec.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

template <class T>
constexpr bool is_wide = sizeof(T) == 8;
template <class T>
using KeyOf = std::conditional_t<is_wide<T>, uint64_t, uint32_t>;

// Sign and magnitude, `bits` wide, to unsigned order; `infinity` is the largest magnitude that is a number.
template <class U>
CALQUE_INLINE U float_key(U x, U infinity) {
  constexpr U sign = static_cast<U>(U{1} << (sizeof(U) * 8 - 1));
  const U magnitude = static_cast<U>(x & static_cast<U>(~sign));
  const U above = static_cast<U>(magnitude | sign);
  const U below = static_cast<U>(sign - magnitude);
  const U key = (x & sign) != 0 ? below : above;
  return magnitude > infinity ? static_cast<U>(~U{0}) : key;
}

template <class T>
CALQUE_INLINE KeyOf<T> key_of(T x) {
  if constexpr (std::is_same_v<T, float>) {
    uint32_t b;
    std::memcpy(&b, &x, 4);
    return float_key<uint32_t>(b, 0x7f800000U);
  } else if constexpr (std::is_same_v<T, double>) {
    uint64_t b;
    std::memcpy(&b, &x, 8);
    return float_key<uint64_t>(b, 0x7ff0000000000000U);
  } else if constexpr (std::is_same_v<T, Half>) {
    uint16_t b;
    std::memcpy(&b, &x, 2);
    return float_key<uint16_t>(b, 0x7c00U);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    uint16_t b;
    std::memcpy(&b, &x, 2);
    return float_key<uint16_t>(b, 0x7f80U);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return x ? 1U : 0U;
  } else if constexpr (std::is_signed_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<U>(static_cast<U>(x) ^ static_cast<U>(U{1} << (sizeof(U) * 8 - 1)));
  } else {
    return x;
  }
}

template <class T>
void keys_loop(const void* source, int64_t stride, void* to, int64_t n, uint64_t flip) {
  using K = KeyOf<T>;
  K* keys = static_cast<K*>(to);
  constexpr int bits = std::is_same_v<T, Bool> ? 1 : static_cast<int>(sizeof(T)) * 8;
  const K mask = static_cast<K>(flip & (~uint64_t{0} >> (64 - bits)));
  if (stride == static_cast<int64_t>(sizeof(T))) {
    const T* p = static_cast<const T*>(source);
    for (int64_t i = 0; i < n; ++i) keys[i] = key_of(p[i]) ^ mask;
    return;
  }
  const char* p = static_cast<const char*>(source);
  for (int64_t i = 0; i < n; ++i) keys[i] = key_of(*reinterpret_cast<const T*>(p + i * stride)) ^ mask;
}

template <class K>
CALQUE_INLINE int64_t next_below(const K* keys, int64_t begin, int64_t n, K limit) {
  constexpr int64_t step = 64;
  int64_t i = begin;
  for (; i + step <= n; i += step) {
    K any = 0;
    for (int64_t j = 0; j < step; ++j) any |= keys[i + j] < limit ? K{1} : K{0};
    if (any) break;
  }
  for (; i < n; ++i)
    if (keys[i] < limit) return i;
  return n;
}
int64_t next_below_32(const uint32_t* keys, int64_t begin, int64_t n, uint32_t limit) {
  return next_below(keys, begin, n, limit);
}
int64_t next_below_64(const uint64_t* keys, int64_t begin, int64_t n, uint64_t limit) {
  return next_below(keys, begin, n, limit);
}

template <class T>
constexpr KeyFn keys_for() {
  if constexpr (is_arithmetic_type<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return &keys_loop<T>;
  else
    return nullptr;
}

}  // namespace

extern const SortTable sort_table[];
const SortTable sort_table[] = {{
    {
#define X(name, type, category, number) keys_for<type>(),
        CALQUE_DTYPES(X)
#undef X
    },
    &next_below_32,
    &next_below_64,
}};

}  // namespace calque::kernel::CALQUE_ISA
