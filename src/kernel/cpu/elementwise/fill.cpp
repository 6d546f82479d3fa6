#include "kernel/cpu/elementwise/fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"

namespace calque::kernel {
namespace {

// A 1-d result of any stride, element i given by f(i).
template <class T, class F>
void generate(const TensorBase& out, F&& f) {
  T* data = static_cast<T*>(out.mutable_data());
  const int64_t n = out.numel();
  const int64_t stride = out.dim() ? out.stride(0) : 1;
  parallel_for(0, n, 32768, [&](int64_t b, int64_t e) {
    if (stride == 1)
      for (int64_t i = b; i < e; ++i) data[i] = f(i);
    else
      for (int64_t i = b; i < e; ++i) data[i * stride] = f(i);
  });
}

template <class T>
inline constexpr bool is_sixteen_bit = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class F>
void dispatch_number(const TensorBase& out, const char* op, F&& fn) {
  dispatch(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_arithmetic_type<T> || is_sixteen_bit<T>)
      fn(tag);
    else
      throw UserError(ErrorKind::unsupported_operator,
                      std::string(op) + ": not implemented for dtype " + std::string(name(out.dtype())));
  });
}

}  // namespace

void fill(const TensorBase& out, const Scalar& value) {
  if (out.numel() == 0) return;
  dispatch(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T x = value.to<T>();
    if (!out.is_non_overlapping_and_dense()) {
      copy(wrapped_scalar(value, out.dtype()), out);
      return;
    }
    T* data = static_cast<T*>(out.mutable_data());
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &x, sizeof(T));
    const bool uniform = std::all_of(bytes, bytes + sizeof(T), [&](unsigned char c) { return c == bytes[0]; });
    parallel_for(0, out.numel(), 65536, [&](int64_t b, int64_t e) {
      if (uniform) {
        std::memset(static_cast<void*>(data + b), bytes[0], static_cast<size_t>(e - b) * sizeof(T));
        return;
      }
      // The first piece as C++ does it, copies of it by the widest registers of this machine.
      constexpr int64_t piece = 8192 / sizeof(T);
      std::fill(data + b, data + std::min(e, b + piece), x);
      for (int64_t i = b + piece; i < e; i += piece)
        std::memcpy(static_cast<void*>(data + i), static_cast<const void*>(data + b),
                    static_cast<size_t>(std::min(piece, e - i)) * sizeof(T));
    });
  });
}

void arange(const Scalar& start, const Scalar& step, const TensorBase& out) {
  dispatch_number(out, "arange", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Bool>) {
      throw UserError(ErrorKind::unsupported_operator, "arange: not implemented for dtype bool");
    } else if constexpr (is_integral_type<T>) {
      const int64_t first = start.to_int();
      const int64_t by = step.to_int();
      const auto at = [=](int64_t i) {
        return static_cast<T>(static_cast<uint64_t>(first) + static_cast<uint64_t>(by) * static_cast<uint64_t>(i));
      };
      if (out.dim() && out.stride(0) != 1) return generate<T>(out, at);
      T* data = static_cast<T*>(out.mutable_data());
      parallel_for(0, out.numel(), 32768, [&](int64_t b, int64_t e) {  // by steps: 64-bit products are slow in vectors
        using U = std::make_unsigned_t<T>;
        auto value = static_cast<U>(at(b));
        const auto step = static_cast<U>(by);
        T* const p = data;
        for (int64_t i = b; i < e; ++i, value = static_cast<U>(value + step)) p[i] = static_cast<T>(value);
      });
    } else if constexpr (is_sixteen_bit<T>) {
      const auto first = static_cast<float>(start.to_double());
      const auto by = static_cast<float>(step.to_double());
      generate<T>(out, [=](int64_t i) { return T(first + by * static_cast<float>(i)); });
    } else {
      const double first = start.to_double();
      const double by = step.to_double();
      generate<T>(out, [=](int64_t i) {
        return static_cast<T>(std::fma(by, static_cast<double>(i), first));
      });  // near zero, an error of the product would show
    }
  });
}

// From both ends towards the middle, so that the last element is exactly `end`.
void linspace(const Scalar& start, const Scalar& end, const TensorBase& out) {
  const int64_t n = out.numel();
  dispatch_number(out, "linspace", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<is_sixteen_bit<T>, float, std::conditional_t<is_integral_type<T>, double, T>>;
    if constexpr (std::is_same_v<T, Bool>) {
      throw UserError(ErrorKind::unsupported_operator, "linspace: not implemented for dtype bool");
    } else {
      const C first = is_integral_type<T> ? static_cast<C>(start.to_int()) : static_cast<C>(start.to_double());
      const C last = is_integral_type<T> ? static_cast<C>(end.to_int()) : static_cast<C>(end.to_double());
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
        // Rounded once: the step has a tail, and no product is rounded before it is added.
        const double a = start.to_double(), b = end.to_double(), gaps = static_cast<double>(n - 1);
        const double span = b - a, back = span + a;
        const double span_tail = (b - back) + ((back - span) - a);
        const double by = n > 1 ? span / gaps : 0;
        const double by_tail = n > 1 && std::isfinite(by) ? (std::fma(-by, gaps, span) + span_tail) / gaps : 0;
        generate<T>(out, [=](int64_t i) {
          const auto up = static_cast<double>(i), down = static_cast<double>(n - 1 - i);
          return static_cast<T>(i < n / 2 ? std::fma(by, up, a) + by_tail * up : std::fma(-by, down, b) - by_tail * down);
        });
      } else {
        const C step = n > 1 ? (last - first) / static_cast<C>(n - 1) : C(0);
        generate<T>(out, [=](int64_t i) {
          return T(i < n / 2 ? first + step * static_cast<C>(i) : last - step * static_cast<C>(n - 1 - i));
        });
      }
      if (n == 1) generate<T>(out, [=](int64_t) { return T(first); });
    }
  });
}

void logspace(const Scalar& start, const Scalar& end, double base, const TensorBase& out) {
  const int64_t n = out.numel();
  dispatch_number(out, "logspace", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_same_v<T, double> || is_integral_type<T>, double, float>;
    // Integers begin and end at integer powers, as in linspace.
    const C first = is_integral_type<T> ? static_cast<C>(start.to_int()) : static_cast<C>(start.to_double());
    const C last = is_integral_type<T> ? static_cast<C>(end.to_int()) : static_cast<C>(end.to_double());
    const C step = n > 1 ? (last - first) / static_cast<C>(n - 1) : C(0);
    const C b = static_cast<C>(base);
    if constexpr (std::is_same_v<T, Bool>)
      throw UserError(ErrorKind::unsupported_operator, "logspace: not implemented for dtype bool");
    else
      generate<T>(out, [=](int64_t i) {
        return T(
            std::pow(b, i < n / 2 || n == 1 ? first + step * static_cast<C>(i) : last - step * static_cast<C>(n - 1 - i)));
      });
  });
}

void eye(const TensorBase& out) {
  fill(out, 0);
  const int64_t n = std::min(out.size(0), out.size(1));
  const int64_t step = out.stride(0) + out.stride(1);
  dispatch(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T one = Scalar(1).to<T>();
    if (n == 0) return;
    T* data = static_cast<T*>(out.mutable_data());
    for (int64_t i = 0; i < n; ++i) data[i * step] = one;
  });
}

}  // namespace calque::kernel
