// How two results are compared; the policy is described in docs and in tools/opcheck/README.md.

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "op/opcheck_support.h"

namespace calque::opcheck {
namespace {

template <class T>
double as_double(T v) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(v);
  else
    return static_cast<double>(static_cast<float>(v));
}

// The bits as an integer whose order is the order of the values, so that a difference counts representable steps.
template <class T, class Bits>
int64_t ordered(T v) {
  const auto bits = std::bit_cast<Bits>(v);
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  const auto magnitude = static_cast<int64_t>(bits & static_cast<Bits>(~sign));
  return (bits & sign) ? -magnitude : magnitude;
}

template <class T>
int64_t steps_between(T a, T b) {
  int64_t x, y;
  if constexpr (sizeof(T) == 2) {
    x = ordered<T, uint16_t>(a);
    y = ordered<T, uint16_t>(b);
  } else if constexpr (sizeof(T) == 4) {
    x = ordered<T, uint32_t>(a);
    y = ordered<T, uint32_t>(b);
  } else {
    x = ordered<T, uint64_t>(a);
    y = ordered<T, uint64_t>(b);
  }
  int64_t d;
  if (__builtin_sub_overflow(x, y, &d)) return std::numeric_limits<int64_t>::max();
  return d < 0 ? -d : d;
}

template <class T>
bool is_nan(T v) {
  return std::isnan(as_double(v));
}

template <class T>
T rounded(double v) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(v);
  else
    return T(static_cast<float>(v));
}

// One float element under the pointwise policy.
template <class T>
bool pointwise_equal(T got, T expected, const double* reference, bool signed_zeros, int64_t ulps) {
  const bool known = reference != nullptr;
  if (is_nan(got)) return is_nan(expected) || (known && std::isnan(*reference));
  const double g = as_double(got), e = as_double(expected);
  // What float64 gives is never wrong, even where PyTorch's kernel strays.
  if (is_nan(expected) || (known && std::isinf(*reference)))
    return g == e || (known && g == as_double(rounded<T>(*reference)));
  if (g == e) return !signed_zeros || std::signbit(g) == std::signbit(e);
  const int64_t steps = steps_between(got, expected);
  if constexpr (sizeof(T) >= 4) {
    if (steps <= ulps) return true;
    return known && std::isfinite(*reference) && std::abs(g - *reference) <= std::abs(e - *reference);
  } else {
    if (!known || !std::isfinite(*reference)) return false;
    // Results that float32 arithmetic cannot tell apart may round to either neighbour; the correctly rounded one is
    // always right.
    const double r = *reference;
    if (steps_between(rounded<T>(r), got) == 0) return true;
    if (steps > 1) return false;
    const double middle = (g + e) / 2;
    const float f = std::abs(static_cast<float>(r));
    const double ulp =
        static_cast<double>(std::nextafter(f, std::numeric_limits<float>::infinity())) - static_cast<double>(f);
    return std::abs(r - middle) <= 2 * ulp;
  }
}

// Visits elements in logical order with their index and position in each of two geometries.
template <class F>
void for_each_pair(const Elements& a, const Elements& b, F&& fn) {
  const size_t n = a.sizes.size();
  const int64_t total = a.numel();
  if (total == 0) return;
  std::vector<int64_t> index(n, 0);
  int64_t x = a.offset, y = b.offset;
  for (int64_t i = 0; i < total; ++i) {
    if (!fn(i, x, y)) return;
    for (size_t d = n; d-- > 0;) {
      x += a.strides[d];
      y += b.strides[d];
      if (++index[d] < a.sizes[d]) break;
      x -= a.strides[d] * a.sizes[d];
      y -= b.strides[d] * b.sizes[d];
      index[d] = 0;
    }
  }
}

template <class T>
T load(const Elements& e, int64_t at) {
  T v;
  std::memcpy(&v, e.data + static_cast<size_t>(at) * sizeof(T), sizeof(T));
  return v;
}

double load_reference(std::string_view reference, int64_t i) {
  double v;
  std::memcpy(&v, reference.data() + static_cast<size_t>(i) * sizeof(double), sizeof(double));
  return v;
}

template <class T>
std::string text(T v) {
  if constexpr (std::is_integral_v<T>)
    return fmt::format("{}", v);
  else
    return fmt::format("{:.9g}", as_double(v));
}

template <class T>
std::optional<std::string> compare_bits(const Elements& got, const Elements& expected, bool signed_zeros = true) {
  std::optional<std::string> wrong;
  for_each_pair(got, expected, [&](int64_t i, int64_t x, int64_t y) {
    const T g = load<T>(got, x), e = load<T>(expected, y);
    if (std::memcmp(&g, &e, sizeof(T)) == 0) return true;
    if constexpr (!std::is_integral_v<T>) {
      if (is_nan(g) && is_nan(e)) return true;
      if (!signed_zeros && as_double(g) == 0 && as_double(e) == 0) return true;
    }
    wrong = fmt::format("element {}: got {}, PyTorch {}", i, text(g), text(e));
    return false;
  });
  return wrong;
}

template <class T>
std::optional<std::string> compare_pointwise(const Elements& got, const Elements& expected, std::string_view reference,
                                             bool signed_zeros, int64_t ulps) {
  std::optional<std::string> wrong;
  for_each_pair(got, expected, [&](int64_t i, int64_t x, int64_t y) {
    const T g = load<T>(got, x), e = load<T>(expected, y);
    double r = 0;
    if (!reference.empty()) r = load_reference(reference, i);
    if (pointwise_equal(g, e, reference.empty() ? nullptr : &r, signed_zeros, ulps)) return true;
    wrong = fmt::format("element {}: got {}, PyTorch {} ({} ulp apart)", i, text(g), text(e), steps_between(g, e));
    if (!reference.empty()) *wrong += fmt::format(", float64 {:.17g}", r);
    return false;
  });
  return wrong;
}

template <class T>
std::optional<std::string> compare_accumulate(const Elements& got, const Elements& expected, std::string_view reference,
                                              const std::string& id, std::map<std::string, ErrorSum>* errors) {
  std::optional<std::string> wrong;
  double square = 0, ours = 0, theirs = 0;
  int64_t count = 0;
  constexpr double largest = sizeof(T) == 2 ? 65504.0 * 0.98 : 3.3e38;
  for_each_pair(got, expected, [&](int64_t i, int64_t x, int64_t y) {
    const T g = load<T>(got, x), e = load<T>(expected, y);
    const double gv = as_double(g), ev = as_double(e);
    const double r = reference.empty() ? ev : load_reference(reference, i);
    if (!std::isfinite(ev) || !std::isfinite(gv)) {
      const bool same = (std::isnan(ev) && std::isnan(gv)) || ev == gv;
      // At the edge of overflow either side may fall over it.
      const bool edge = !std::isnan(ev) && !std::isnan(gv) && std::abs(r) > largest && std::signbit(ev) == std::signbit(gv);
      if (same || edge) return true;
      wrong = fmt::format("element {}: got {}, PyTorch {}", i, text(g), text(e));
      return false;
    }
    if (!std::isfinite(r)) return true;
    square += r * r;
    ours += (gv - r) * (gv - r);
    theirs += (ev - r) * (ev - r);
    ++count;
    return true;
  });
  if (wrong || count == 0) return wrong;
  const double scale = std::sqrt(square / static_cast<double>(count));
  if (scale == 0) {
    if (ours > theirs)
      return fmt::format("the result should be 0, got an RMS of {:.3g}", std::sqrt(ours / static_cast<double>(count)));
    return std::nullopt;
  }
  const double c = std::sqrt(ours / static_cast<double>(count)) / scale;
  const double p = std::sqrt(theirs / static_cast<double>(count)) / scale;
  const double limit = gross_limit(got.dtype);
  if (c > limit && c > 4 * p)
    return fmt::format("relative RMS error {:.3g}, PyTorch's {:.3g}, limit of a single case {:.3g}", c, p, limit);
  if (errors != nullptr && !reference.empty()) {
    ErrorSum& sum = (*errors)[std::string(name(got.dtype))];
    ++sum.inputs;
    sum.calque += c * c;
    sum.pytorch += p * p;
    const double excess = c - 1.5 * p;
    if (excess > sum.worst) {
      sum.worst = excess;
      sum.worst_id = id;
    }
  }
  return std::nullopt;
}

}  // namespace

int64_t Elements::numel() const {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

Check check_from_name(std::string_view name) {
  if (name == "pointwise") return Check::pointwise;
  if (name == "accumulate") return Check::accumulate;
  if (name == "meta" || name == "random") return Check::meta;
  return Check::exact;
}

double half_ulp(DType dtype) {
  if (dtype == DType::float64) return 0x1p-53;
  if (dtype == DType::float16) return 0x1p-11;
  return dtype == DType::bfloat16 ? 0x1p-8 : 0x1p-24;
}

double gross_limit(DType dtype) {
  if (dtype == DType::float64) return 1e-12;
  if (dtype == DType::float16) return 2e-2;
  return dtype == DType::bfloat16 ? 1e-1 : 1e-4;
}

std::optional<Elements> narrowed(const Elements& e, DType dtype, std::string& bytes) {
  Elements out{nullptr, dtype, e.sizes, std::vector<int64_t>(e.sizes.size()), 0};
  int64_t running = 1;
  for (size_t d = e.sizes.size(); d-- > 0;) {
    out.strides[d] = running;
    running *= e.sizes[d];
  }
  bool exact = true;
  dispatch(e.dtype, [&](auto from) {
    dispatch(dtype, [&](auto to) {
      using F = typename decltype(from)::type;
      using T = typename decltype(to)::type;
      if constexpr ((std::is_same_v<F, double> || std::is_same_v<F, float>)&&(
                        std::is_same_v<T, float> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)) {
        bytes.resize(static_cast<size_t>(e.numel()) * sizeof(T));
        for_each_pair(e, out, [&](int64_t, int64_t x, int64_t y) {
          const F wide = load<F>(e, x);
          const T narrow = rounded<T>(static_cast<double>(wide));
          exact = exact && (is_nan(wide) || as_double(narrow) == static_cast<double>(wide));
          std::memcpy(bytes.data() + static_cast<size_t>(y) * sizeof(T), &narrow, sizeof(T));
          return exact;
        });
      } else {
        exact = false;
      }
    });
  });
  out.data = bytes.data();
  return exact ? std::optional(out) : std::nullopt;
}

std::optional<std::string> compare(const Elements& got, const Elements& expected, std::string_view reference, Check check,
                                   const std::string& id, std::map<std::string, ErrorSum>* errors, bool signed_zeros,
                                   int64_t ulps) {
  if (check == Check::meta) return std::nullopt;
  return dispatch(got.dtype, [&](auto tag) -> std::optional<std::string> {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return compare_bits<uint8_t>(got, expected);
    } else if constexpr (std::is_integral_v<T>) {
      return compare_bits<T>(got, expected);
    } else if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
      // Twice as many real numbers, one step apart.
      const auto parts = [](Elements e) {
        for (int64_t& s : e.strides) s *= 2;
        e.offset *= 2;
        e.sizes.push_back(2);
        e.strides.push_back(1);
        e.dtype = std::is_same_v<T, Complex64> ? DType::float32 : DType::float64;
        return e;
      };
      return compare(parts(got), parts(expected), {}, check, id, nullptr);
    } else if constexpr (sizeof(T) == 1) {
      return compare_bits<uint8_t>(got, expected);
    } else {
      switch (check) {
        case Check::exact: return compare_bits<T>(got, expected, signed_zeros);
        case Check::pointwise: return compare_pointwise<T>(got, expected, reference, signed_zeros, ulps);
        case Check::accumulate: return compare_accumulate<T>(got, expected, reference, id, errors);
        case Check::meta: break;
      }
      return std::nullopt;
    }
  });
}

}  // namespace calque::opcheck
