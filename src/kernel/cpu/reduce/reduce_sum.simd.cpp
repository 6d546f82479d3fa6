// Sums, norms, products and variances, compiled once per instruction set.
#include "kernel/cpu/reduce/reduce_table.h"
#include "kernel/cpu/simd/vec_math.h"
#include "kernel/cpu/simd/vec_reduce.h"

namespace calque::kernel::CALQUE_ISA {
namespace {

// Elements (or, in a tile, 64 rows) added in the compute type before they go to double; as many in a lane for every width of
// registers, so that narrow ones are no less exact.
constexpr int64_t sum_block = 64 * lanes<float>;
constexpr int64_t block_rows = 64;

// ---- what is added up ---------------------------------------------------------------------------------------------
template <class C>
CALQUE_INLINE Vec<C> ones_where(Mask<C> mask) {
  return mask ? splat<C>(1) : Vec<C>{};
}
struct Plain {
  explicit Plain(const ReduceParameters&) {}
  template <class V>
  CALQUE_INLINE V operator()(V x) const {
    return x;
  }
};
struct NanAsZero {
  explicit NanAsZero(const ReduceParameters&) {}
  template <class V>
  CALQUE_INLINE V operator()(V x) const {
    return x == x ? x : V{};
  }
};
struct NonZero {
  explicit NonZero(const ReduceParameters&) {}
  CALQUE_INLINE Vec<float> operator()(Vec<float> x) const { return ones_where<float>(x != 0); }
  CALQUE_INLINE Vec<double> operator()(Vec<double> x) const { return ones_where<double>(x != 0); }
  CALQUE_INLINE Vec<int64_t> operator()(Vec<int64_t> x) const { return ones_where<int64_t>(x != 0); }
};
struct Absolute {
  explicit Absolute(const ReduceParameters&) {}
  CALQUE_INLINE Vec<float> operator()(Vec<float> x) const { return absolute<float>(x); }
  CALQUE_INLINE Vec<double> operator()(Vec<double> x) const { return absolute<double>(x); }
};
struct Square {
  explicit Square(const ReduceParameters&) {}
  template <class V>
  CALQUE_INLINE V operator()(V x) const {
    return x * x;
  }
};
struct Power {
  explicit Power(const ReduceParameters& p) : exponent(p.p) {}
  CALQUE_INLINE Vec<float> operator()(Vec<float> x) const {
    return v_pow(absolute<float>(x), splat<float>(static_cast<float>(exponent)));
  }
  CALQUE_INLINE Vec<double> operator()(Vec<double> x) const { return v_pow(absolute<double>(x), splat<double>(exponent)); }
  double exponent;
};

// ---- accumulators of sums -----------------------------------------------------------------------------------------
// float: one double. double: a double and the error of its additions. int64: itself, wrapping.
template <class C>
constexpr int sum_components = std::is_same_v<C, double> ? 2 : 1;

CALQUE_INLINE void add_to(float x, double* state, int64_t) { *state += static_cast<double>(x); }
CALQUE_INLINE void add_to(double x, double* state, int64_t width) {
  const double sum = state[0] + x;
  const double part = sum - state[0];
  state[width] += (state[0] - (sum - part)) + (x - part);
  state[0] = sum;
}
CALQUE_INLINE void add_to(int64_t x, int64_t* state, int64_t) {
  *state = static_cast<int64_t>(static_cast<uint64_t>(*state) + static_cast<uint64_t>(x));
}

template <class C>
using SumSlot = std::conditional_t<std::is_same_v<C, int64_t>, int64_t, double>;

template <class C>
CALQUE_INLINE Vec<C> plus(Vec<C> a, Vec<C> b) {
  if constexpr (std::is_same_v<C, int64_t>)
    return reinterpret_cast<Vec<C>>(reinterpret_cast<Vec<uint64_t>>(a) + reinterpret_cast<Vec<uint64_t>>(b));
  else
    return a + b;
}
template <class C>
CALQUE_INLINE C lanes_total(Vec<C> v) {
  if constexpr (std::is_same_v<C, int64_t>)
    return static_cast<int64_t>(sum_lanes<uint64_t>(reinterpret_cast<Vec<uint64_t>>(v)));
  else
    return sum_lanes<C>(v);
}

template <class Map, class S>
CALQUE_INLINE Wide<S> block_sum(const S* x, int64_t n, const Map& map) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  Vec<C> a[4] = {};
  int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    Vec<C> v[4];
    if constexpr (std::is_same_v<S, BFloat16>) {
      load_pairs(x + i, v[0], v[1]);
      load_pairs(x + i + 2 * step, v[2], v[3]);
    } else {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) v[k] = load_wide(x + i + k * step);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) a[k] = plus<C>(a[k], map(v[k]));
  }
  for (int k = 0; i + step <= n; i += step, ++k) a[k & 3] = plus<C>(a[k & 3], map(load_wide(x + i)));
  if (i < n) a[3] = plus<C>(a[3], keep_first<C>(map(load_wide_tail(x + i, n - i)), n - i, Vec<C>{}));
  return lanes_total<C>(plus<C>(plus<C>(a[0], a[1]), plus<C>(a[2], a[3])));
}

template <class Map, class S>
void sum_run(const void* x, int64_t n, int64_t, void* state, int64_t slot, int64_t width, const ReduceParameters& p) {
  const Map map(p);
  const S* in = static_cast<const S*>(x);
  for (int64_t i = 0; i < n; i += sum_block)
    add_to(block_sum(in + i, n - i < sum_block ? n - i : sum_block, map), static_cast<SumSlot<Wide<S>>*>(state) + slot,
           width);
}

// Rows are added eight at a time as a tree, sixty-four of them in the compute type, then folded into the accumulators.
template <class Map, class S>
void sum_tile(const void* x, int64_t stride, int64_t rows, int64_t columns, int64_t, void* state, int64_t width,
              const ReduceParameters& p) {
  using C = Wide<S>;
  constexpr int64_t step = lanes<C>;
  const Map map(p);
  const S* in = static_cast<const S*>(x);
  alignas(64) C sums[reduce_tile_width];
  const int64_t whole = columns / step * step;
  for (int64_t r0 = 0; r0 < rows; r0 += block_rows) {
    const int64_t count = rows - r0 < block_rows ? rows - r0 : block_rows;
    int64_t r = 0;
    bool fresh = true;
    const auto at = [&](int64_t row, int64_t c) -> Vec<C> {
      const S* from = in + (r0 + row) * stride + c;
      return c < whole ? map(load_wide(from)) : map(load_wide_tail(from, columns - c));
    };
    for (; r + 8 <= count; r += 8) {
      for (int64_t c = 0; c < columns; c += step) {
        Vec<C> total = plus<C>(plus<C>(plus<C>(at(r, c), at(r + 1, c)), plus<C>(at(r + 2, c), at(r + 3, c))),
                               plus<C>(plus<C>(at(r + 4, c), at(r + 5, c)), plus<C>(at(r + 6, c), at(r + 7, c))));
        if (!fresh) total = plus<C>(total, load(sums + c));
        store(sums + c, total);
      }
      fresh = false;
    }
    for (; r < count; ++r) {
      for (int64_t c = 0; c < columns; c += step) {
        const Vec<C> one = at(r, c);
        store(sums + c, fresh ? one : plus<C>(one, load(sums + c)));
      }
      fresh = false;
    }
    auto* slots = static_cast<SumSlot<C>*>(state);
    for (int64_t c = 0; c < columns; ++c) add_to(sums[c], slots + c, width);
  }
}

template <class C>
void sum_start(void* state, int64_t width) {
  std::memset(state, 0, static_cast<size_t>(width * sum_components<C> * 8));
}
template <class C>
void sum_merge(void* into, const void* from, int64_t width) {
  auto* a = static_cast<SumSlot<C>*>(into);
  const auto* b = static_cast<const SumSlot<C>*>(from);
  for (int64_t i = 0; i < width; ++i) {
    if constexpr (std::is_same_v<C, float>) {
      a[i] += b[i];
    } else {
      add_to(b[i], a + i, width);
      if constexpr (std::is_same_v<C, double>) a[width + i] += b[width + i];
    }
  }
}

enum class After { nothing, divide, root, root_p };

CALQUE_INLINE float total_of(const double* slot, int64_t, float) { return static_cast<float>(*slot); }
CALQUE_INLINE double total_of(const double* slot, int64_t width, double) {
  const double error = slot[width];
  // An infinite sum leaves no meaningful error behind.
  return error - error == 0 ? slot[0] + error : slot[0];
}
CALQUE_INLINE int64_t total_of(const int64_t* slot, int64_t, int64_t) { return *slot; }

template <class C, After after>
void sum_finish(const void* state, int64_t width, const ReduceParameters& p, void* values, void*) {
  const auto* slots = static_cast<const SumSlot<C>*>(state);
  C* out = static_cast<C*>(values);
  for (int64_t i = 0; i < width; ++i) {
    const C total = total_of(slots + i, width, C{});
    if constexpr (after == After::nothing)
      out[i] = total;
    else if constexpr (after == After::divide)
      out[i] = total / static_cast<C>(p.count);
    else if constexpr (after == After::root)
      out[i] = std::is_same_v<C, float> ? static_cast<C>(__builtin_sqrtf(static_cast<float>(total)))
                                        : static_cast<C>(__builtin_sqrt(static_cast<double>(total)));
    else
      out[i] = static_cast<C>(__builtin_pow(static_cast<double>(total), 1.0 / p.p));
  }
}

template <class C, class Map, After after>
constexpr ReduceRow sum_row() {
  ReduceRow r;
  r.components = sum_components<C>;
  r.start = &sum_start<C>;
  r.run[held_as_computed] = &sum_run<Map, C>;
  r.tile[held_as_computed] = &sum_tile<Map, C>;
  if constexpr (std::is_same_v<C, float>) {
    r.run[held_bfloat16] = &sum_run<Map, BFloat16>;
    r.tile[held_bfloat16] = &sum_tile<Map, BFloat16>;
    r.run[held_float16] = &sum_run<Map, Half>;
    r.tile[held_float16] = &sum_tile<Map, Half>;
  }
  r.merge = &sum_merge<C>;
  r.finish = &sum_finish<C, after>;
  return r;
}

// ---- products -----------------------------------------------------------------------------------------------------
template <class C>
CALQUE_INLINE Vec<C> times(Vec<C> a, Vec<C> b) {
  if constexpr (std::is_same_v<C, int64_t>)
    return reinterpret_cast<Vec<C>>(reinterpret_cast<Vec<uint64_t>>(a) * reinterpret_cast<Vec<uint64_t>>(b));
  else
    return a * b;
}
template <class C>
CALQUE_INLINE C times_one(C a, C b) {
  if constexpr (std::is_same_v<C, int64_t>)
    return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}
template <class C>
void prod_start(void* state, int64_t width) {
  C* slots = static_cast<C*>(state);
  for (int64_t i = 0; i < width; ++i) slots[i] = 1;
}
template <class C>
void prod_run(const void* x, int64_t n, int64_t, void* state, int64_t slot, int64_t, const ReduceParameters&) {
  const C* in = static_cast<const C*>(x);
  constexpr int64_t step = lanes<C>;
  Vec<C> a = splat<C>(1);
  Vec<C> b = splat<C>(1);
  int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    a = times<C>(a, load(in + i));
    b = times<C>(b, load(in + i + step));
  }
  a = times<C>(a, b);
  C total = static_cast<C*>(state)[slot];
  for (int k = 0; k < step; ++k) total = times_one<C>(total, a[k]);
  for (; i < n; ++i) total = times_one<C>(total, in[i]);
  static_cast<C*>(state)[slot] = total;
}
template <class C>
void prod_tile(const void* x, int64_t stride, int64_t rows, int64_t columns, int64_t, void* state, int64_t,
               const ReduceParameters&) {
  const C* in = static_cast<const C*>(x);
  C* slots = static_cast<C*>(state);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) slots[c] = times_one<C>(slots[c], in[r * stride + c]);
}
template <class C>
void prod_merge(void* into, const void* from, int64_t width) {
  C* a = static_cast<C*>(into);
  const C* b = static_cast<const C*>(from);
  for (int64_t i = 0; i < width; ++i) a[i] = times_one<C>(a[i], b[i]);
}
template <class C>
void prod_finish(const void* state, int64_t width, const ReduceParameters&, void* values, void*) {
  std::memcpy(values, state, static_cast<size_t>(width) * sizeof(C));
}
template <class C>
constexpr ReduceRow prod_row() {
  ReduceRow r;
  r.components = 1;
  r.start = &prod_start<C>;
  r.run[held_as_computed] = &prod_run<C>;
  r.tile[held_as_computed] = &prod_tile<C>;
  r.merge = &prod_merge<C>;
  r.finish = &prod_finish<C>;
  return r;
}

// ---- variance: number, mean and sum of squared deviations, in double ---------------------------------------------
CALQUE_INLINE void combine(double* slot, int64_t width, double n, double mean, double squares) {
  if (n == 0) return;
  const double before = slot[0];
  const double total = before + n;
  const double delta = mean - slot[width];
  slot[0] = total;
  slot[width] += before == 0 ? delta : delta * (n / total);
  slot[2 * width] += squares + (before == 0 ? 0 : delta * delta * (before * n / total));
}
void variance_start(void* state, int64_t width) { std::memset(state, 0, static_cast<size_t>(width * 3 * 8)); }
void variance_run(const void* x, int64_t n, int64_t, void* state, int64_t slot, int64_t width, const ReduceParameters&) {
  const double* in = static_cast<const double*>(x);
  for (int64_t i = 0; i < n; i += sum_block) {
    const int64_t count = n - i < sum_block ? n - i : sum_block;
    // Sums of distances from the first value: equal values have no variance.
    const double first = in[i] - in[i] == 0 ? in[i] : 0;
    const Vec<double> origin = splat<double>(first);
    const double mean =
        first + block_sum(in + i, count, [origin](Vec<double> v) { return v - origin; }) / static_cast<double>(count);
    const Vec<double> center = splat<double>(mean);
    const auto squared = [center](Vec<double> v) { return (v - center) * (v - center); };
    combine(static_cast<double*>(state) + slot, width, static_cast<double>(count), mean, block_sum(in + i, count, squared));
  }
}
void variance_tile(const void* x, int64_t stride, int64_t rows, int64_t columns, int64_t, void* state, int64_t width,
                   const ReduceParameters&) {
  const double* in = static_cast<const double*>(x);
  alignas(64) double mean[reduce_tile_width];
  alignas(64) double squares[reduce_tile_width];
  alignas(64) double first[reduce_tile_width];
  for (int64_t r0 = 0; r0 < rows; r0 += block_rows) {
    const int64_t count = rows - r0 < block_rows ? rows - r0 : block_rows;
    for (int64_t c = 0; c < columns; ++c) {
      const double v = in[r0 * stride + c];
      first[c] = v - v == 0 ? v : 0;
      mean[c] = squares[c] = 0;
    }
    for (int64_t r = 0; r < count; ++r)
      for (int64_t c = 0; c < columns; ++c) mean[c] += in[(r0 + r) * stride + c] - first[c];
    for (int64_t c = 0; c < columns; ++c) mean[c] = first[c] + mean[c] / static_cast<double>(count);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const double d = in[(r0 + r) * stride + c] - mean[c];
        squares[c] += d * d;
      }
    for (int64_t c = 0; c < columns; ++c)
      combine(static_cast<double*>(state) + c, width, static_cast<double>(count), mean[c], squares[c]);
  }
}
void variance_merge(void* into, const void* from, int64_t width) {
  const double* b = static_cast<const double*>(from);
  for (int64_t i = 0; i < width; ++i) combine(static_cast<double*>(into) + i, width, b[i], b[width + i], b[2 * width + i]);
}
void variance_finish(const void* state, int64_t width, const ReduceParameters& p, void* values, void* second) {
  const double* s = static_cast<const double*>(state);
  double* out = static_cast<double*>(values);
  double* mean = static_cast<double*>(second);
  for (int64_t i = 0; i < width; ++i) {
    const double divisor = s[i] > p.p ? s[i] - p.p : 0;
    const double v = s[2 * width + i] / divisor;
    out[i] = p.root ? __builtin_sqrt(v) : v;
    mean[i] = s[i] == 0 ? __builtin_nan("") : s[width + i];
  }
}
constexpr ReduceRow variance_row() {
  ReduceRow r;
  r.components = 3;
  r.two_results = true;
  r.start = &variance_start;
  r.run[held_as_computed] = &variance_run;
  r.tile[held_as_computed] = &variance_tile;
  r.merge = &variance_merge;
  r.finish = &variance_finish;
  return r;
}

}  // namespace

#define FLOATS(Map, after) \
  sum_row<float, Map, After::after>(), sum_row<double, Map, After::after>(), ReduceRow {}
#define ALL(Map, after) \
  sum_row<float, Map, After::after>(), sum_row<double, Map, After::after>(), sum_row<int64_t, Map, After::after>()
#define PRODUCT ReduceRow{}, prod_row<double>(), prod_row<int64_t>()
#define VARIANCE \
  ReduceRow{}, variance_row(), ReduceRow {}

#define SUM(...) __VA_ARGS__
#define EXTREME CALQUE_NO_REDUCTION_ROWS

extern const ReduceRow reduce_sum_table[];
// Float, double and int64 of each.
const ReduceRow reduce_sum_table[] = {CALQUE_REDUCTION(CALQUE_REDUCTION_ROWS)};

}  // namespace calque::kernel::CALQUE_ISA

#undef FLOATS
#undef ALL
#undef PRODUCT
#undef VARIANCE
#undef SUM
#undef EXTREME
