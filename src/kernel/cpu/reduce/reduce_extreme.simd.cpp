// Largest and smallest elements, their positions, any and all, compiled once per instruction set. A NaN wins against
// everything, the first one among several.
#include "kernel/cpu/reduce/reduce_table.h"
#include "kernel/cpu/simd/vec_reduce.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

constexpr int64_t extreme_block = 1024;

struct Itself {
  template <class V>
  CALQUE_INLINE V operator()(V x) const {
    return x;
  }
};
struct Magnitude {
  CALQUE_INLINE Vec<float> operator()(Vec<float> x) const { return absolute<float>(x); }
  CALQUE_INLINE Vec<double> operator()(Vec<double> x) const { return absolute<double>(x); }
};
struct Truth {
  CALQUE_INLINE Vec<float> operator()(Vec<float> x) const { return x != 0 ? splat<float>(1) : Vec<float>{}; }
  CALQUE_INLINE Vec<double> operator()(Vec<double> x) const { return x != 0 ? splat<double>(1) : Vec<double>{}; }
  CALQUE_INLINE Vec<int64_t> operator()(Vec<int64_t> x) const { return x != 0 ? splat<int64_t>(1) : Vec<int64_t>{}; }
};

// Where x beats m. A NaN in m stays.
template <bool largest, class V>
CALQUE_INLINE auto beats(V x, V m) {
  if constexpr (largest)
    return (x > m) | (x != x);
  else
    return (x < m) | (x != x);
}
template <bool largest, class V>
CALQUE_INLINE V better(V x, V m) {
  return beats<largest>(x, m) ? x : m;
}
template <bool largest, class C>
CALQUE_INLINE C better_one(C x, C m) {
  return (largest ? x > m : x < m) || is_nan(x) ? x : m;
}

// What loses against everything.
template <class C, bool largest>
CALQUE_INLINE C weakest() {
  if constexpr (std::is_same_v<C, int64_t>)
    return largest ? INT64_MIN : INT64_MAX;
  else
    return static_cast<C>(largest ? -__builtin_inf() : __builtin_inf());
}

template <class Map, bool largest, class S>
CALQUE_INLINE Wide<S> block_best(const S* x, int64_t n) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  const Map map;
  const Vec<C> weak = splat<C>(0) + weakest<C, largest>();
  Vec<C> a[4] = {weak, weak, weak, weak};
  int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step)
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) a[k] = better<largest>(map(load_wide(x + i + k * step)), a[k]);
  for (; i + step <= n; i += step) a[0] = better<largest>(map(load_wide(x + i)), a[0]);
  if (i < n) a[1] = better<largest>(keep_first<C>(map(load_wide_tail(x + i, n - i)), n - i, weak), a[1]);
  const Vec<C> all = better<largest>(better<largest>(a[0], a[1]), better<largest>(a[2], a[3]));
  C parts[step];
  store(parts, all);
  for (int64_t width = step / 2; width > 0; width /= 2)
    for (int64_t k = 0; k < width; ++k) parts[k] = better_one<largest>(parts[k], parts[k + width]);
  return parts[0];
}

template <class C, bool largest>
void best_start(void* state, int64_t width) {
  C* slots = static_cast<C*>(state);
  for (int64_t i = 0; i < width; ++i) slots[i] = weakest<C, largest>();
}
// any starts false, all starts true; a slice without elements keeps that.
template <class C, bool largest>
void truth_start(void* state, int64_t width) {
  C* slots = static_cast<C*>(state);
  for (int64_t i = 0; i < width; ++i) slots[i] = largest ? 0 : 1;
}

template <class Map, bool largest, class S>
void best_run(const void* x, int64_t n, int64_t, void* state, int64_t slot, int64_t, const ReduceParameters&) {
  auto* slots = static_cast<Wide<S>*>(state);
  slots[slot] = better_one<largest>(block_best<Map, largest>(static_cast<const S*>(x), n), slots[slot]);
}

template <class Map, bool largest, class S>
void best_tile(const void* x, int64_t stride, int64_t rows, int64_t columns, int64_t, void* state, int64_t,
               const ReduceParameters&) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  const Map map;
  const S* in = static_cast<const S*>(x);
  C* slots = static_cast<C*>(state);
  const int64_t whole = columns / step * step;
  const auto at = [&](int64_t row, int64_t c) -> Vec<C> {
    const S* from = in + row * stride + c;
    return c < whole ? map(load_wide(from)) : map(load_wide_tail(from, columns - c));
  };
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4)
    for (int64_t c = 0; c < columns; c += step) {
      const Vec<C> four =
          better<largest>(better<largest>(at(r, c), at(r + 1, c)), better<largest>(at(r + 2, c), at(r + 3, c)));
      store(slots + c, better<largest>(four, load(slots + c)));
    }
  for (; r < rows; ++r)
    for (int64_t c = 0; c < columns; c += step) store(slots + c, better<largest>(at(r, c), load(slots + c)));
}

template <class C, bool largest>
void best_merge(void* into, const void* from, int64_t width) {
  C* a = static_cast<C*>(into);
  const C* b = static_cast<const C*>(from);
  for (int64_t i = 0; i < width; ++i) a[i] = better_one<largest>(b[i], a[i]);
}
template <class C>
void best_finish(const void* state, int64_t width, const ReduceParameters&, void* values, void*) {
  std::memcpy(values, state, static_cast<size_t>(width) * sizeof(C));
}

template <class C, class Map, bool largest>
constexpr ReduceRow best_row() {
  ReduceRow r;
  r.components = 1;
  if constexpr (std::is_same_v<Map, Truth>)
    r.start = &truth_start<C, largest>;
  else
    r.start = &best_start<C, largest>;
  r.run[held_as_computed] = &best_run<Map, largest, C>;
  r.tile[held_as_computed] = &best_tile<Map, largest, C>;
  if constexpr (std::is_same_v<C, float>) {
    r.run[held_bfloat16] = &best_run<Map, largest, BFloat16>;
    r.tile[held_bfloat16] = &best_tile<Map, largest, BFloat16>;
    r.run[held_float16] = &best_run<Map, largest, Half>;
    r.tile[held_float16] = &best_tile<Map, largest, Half>;
  }
  r.merge = &best_merge<C, largest>;
  r.finish = &best_finish<C>;
  return r;
}

// ---- positions ----------------------------------------------------------------------------------------------------
// Two arrays: the best value and, 8 bytes each, its position; -1 while there is none.
template <class C>
CALQUE_INLINE int64_t* positions(void* state, int64_t width) {
  return reinterpret_cast<int64_t*>(static_cast<char*>(state) + width * 8);
}
template <class C>
CALQUE_INLINE const int64_t* positions(const void* state, int64_t width) {
  return reinterpret_cast<const int64_t*>(static_cast<const char*>(state) + width * 8);
}

template <class C, bool largest>
void arg_start(void* state, int64_t width) {
  best_start<C, largest>(state, width);
  int64_t* at = positions<C>(state, width);
  for (int64_t i = 0; i < width; ++i) at[i] = -1;
}

template <class C, bool largest>
CALQUE_INLINE void offer(C value, int64_t position, C* best, int64_t* at) {
  const bool nan = is_nan(value);
  const bool has_nan = is_nan(*best);
  const bool wins = *at < 0 || (!has_nan && (nan || (largest ? value > *best : value < *best))) ||
                    (position < *at && (value == *best || (nan && has_nan)));
  if (!wins) return;
  *best = value;
  *at = position;
}

template <class S>
CALQUE_INLINE int64_t find_first(const S* x, int64_t n, Wide<S> value) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  const bool nan = is_nan(value);
  const Vec<C> wanted = splat<C>(0) + value;
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    const Vec<C> v = load_wide(x + i);
    if (any_lane(nan ? v != v : v == wanted)) break;
  }
  for (; i < n; ++i) {
    C one;
    if constexpr (std::is_same_v<C, S>)
      one = x[i];
    else
      one = widen(x[i]);
    if (nan ? is_nan(one) : one == value) return i;
  }
  return 0;
}

template <bool largest, class S>
void arg_run(const void* x, int64_t n, int64_t first, void* state, int64_t slot, int64_t width, const ReduceParameters&) {
  using C = Wide<S>;
  const S* in = static_cast<const S*>(x);
  C* best = static_cast<C*>(state) + slot;
  int64_t* at = positions<C>(state, width) + slot;
  for (int64_t i = 0; i < n; i += extreme_block) {
    const int64_t count = n - i < extreme_block ? n - i : extreme_block;
    const C value = block_best<Itself, largest>(in + i, count);
    // Looking for the place costs as much as the search for the value: only when it matters.
    const bool wins =
        *at < 0 || (largest ? value > *best : value < *best) || is_nan(value) || (value == *best && first + i < *at);
    if (wins) offer<C, largest>(value, first + i + find_first(in + i, count, value), best, at);
  }
}

template <bool largest, class S>
void arg_tile(const void* x, int64_t stride, int64_t rows, int64_t columns, int64_t first, void* state, int64_t width,
              const ReduceParameters&) {
  using C = Wide<S>;
  using I = MaskInt<C>;
  constexpr int64_t step = lanes<C>;
  constexpr int64_t most_rows = int64_t{1} << 30;  // positions within a call are as wide as the elements
  const S* in = static_cast<const S*>(x);
  C* best = static_cast<C*>(state);
  int64_t* at = positions<C>(state, width);
  alignas(64) C value[reduce_tile_width];
  alignas(64) I row_of[reduce_tile_width];
  const int64_t whole = columns / step * step;
  for (int64_t r0 = 0; r0 < rows; r0 += most_rows) {
    const int64_t count = rows - r0 < most_rows ? rows - r0 : most_rows;
    const auto load_at = [&](int64_t row, int64_t c) -> Vec<C> {
      const S* from = in + (r0 + row) * stride + c;
      return c < whole ? load_wide(from) : load_wide_tail(from, columns - c);
    };
    for (int64_t c = 0; c < columns; c += step) {
      store(value + c, load_at(0, c));
      store(row_of + c, Vec<I>{});
    }
    int64_t r = 1;
    const auto step_rows = [&](auto size) {
      constexpr int64_t n = decltype(size)::value;
      for (int64_t c = 0; c < columns; c += step) {
        Vec<C> v = load(value + c);
        Vec<I> where = load(row_of + c);
#pragma GCC unroll 4
        for (int64_t k = 0; k < n; ++k) {
          const Vec<C> y = load_at(r + k, c);
          auto wins = largest ? y > v : y < v;
          if constexpr (std::is_floating_point_v<C>) wins |= (y != y) & (v == v);
          v = wins ? y : v;
          where = wins ? splat<I>(static_cast<I>(r + k)) : where;
        }
        store(value + c, v);
        store(row_of + c, where);
      }
      r += n;
    };
    while (r + 4 <= count) step_rows(std::integral_constant<int64_t, 4>{});
    while (r < count) step_rows(std::integral_constant<int64_t, 1>{});
    for (int64_t c = 0; c < columns; ++c)
      offer<C, largest>(value[c], first + r0 + static_cast<int64_t>(row_of[c]), best + c, at + c);
  }
}

template <class C, bool largest>
void arg_merge(void* into, const void* from, int64_t width) {
  C* best = static_cast<C*>(into);
  int64_t* at = positions<C>(into, width);
  const C* value = static_cast<const C*>(from);
  const int64_t* position = positions<C>(from, width);
  for (int64_t i = 0; i < width; ++i)
    if (position[i] >= 0) offer<C, largest>(value[i], position[i], best + i, at + i);
}
template <class C>
void arg_finish(const void* state, int64_t width, const ReduceParameters&, void* values, void* second) {
  std::memcpy(values, state, static_cast<size_t>(width) * sizeof(C));
  std::memcpy(second, positions<C>(state, width), static_cast<size_t>(width) * 8);
}

template <class C, bool largest>
constexpr ReduceRow arg_row() {
  ReduceRow r;
  r.components = 2;
  r.two_results = true;
  r.start = &arg_start<C, largest>;
  r.run[held_as_computed] = &arg_run<largest, C>;
  r.tile[held_as_computed] = &arg_tile<largest, C>;
  if constexpr (std::is_same_v<C, float>) {
    r.run[held_bfloat16] = &arg_run<largest, BFloat16>;
    r.tile[held_bfloat16] = &arg_tile<largest, BFloat16>;
    r.run[held_float16] = &arg_run<largest, Half>;
    r.tile[held_float16] = &arg_tile<largest, Half>;
  }
  r.merge = &arg_merge<C, largest>;
  r.finish = &arg_finish<C>;
  return r;
}

}  // namespace

#define BEST(Map, largest) \
  best_row<float, Map, largest>(), best_row<double, Map, largest>(), best_row<int64_t, Map, largest>()
#define BEST_FLOATS(Map, largest) \
  best_row<float, Map, largest>(), best_row<double, Map, largest>(), ReduceRow {}
#define ARG(largest) arg_row<float, largest>(), arg_row<double, largest>(), arg_row<int64_t, largest>()

#define EXTREME(...) __VA_ARGS__
#define SUM CALQUE_NO_REDUCTION_ROWS

extern const ReduceRow reduce_extreme_table[];
// Float, double and int64 of each.
const ReduceRow reduce_extreme_table[] = {CALQUE_REDUCTION(CALQUE_REDUCTION_ROWS)};

}  // namespace calque::kernel::CALQUE_ISA

#undef BEST
#undef BEST_FLOATS
#undef ARG
#undef EXTREME
#undef SUM
