// random_, randint's ranges and randperm.
#include "calque/base/warning.h"
#include "kernel/cpu/random/random.h"
#include "kernel/cpu/random/random_fill.h"

namespace calque {
namespace {

constexpr int64_t int64_lowest = std::numeric_limits<int64_t>::min();
constexpr int64_t int64_largest = std::numeric_limits<int64_t>::max();

template <class T>
T from_int64(int64_t value) {
  if constexpr (is_half_like<T>)
    return static_cast<T>(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// The integer that `value` becomes when stored as T. Beyond int64 (also infinity): the lowest, as x86 converts.
template <class T>
int64_t rounded(int64_t value) {
  const auto stored = static_cast<double>(static_cast<Compute<T>>(from_int64<T>(value)));
  return stored >= -0x1p63 && stored < 0x1p63 ? static_cast<int64_t>(stored) : int64_lowest;
}

// Distance between neighbouring Ts around `value`.
template <class T>
int64_t spacing(int64_t value) {
  const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  int log2 = -1;
  for (uint64_t m = magnitude; m != 0; m >>= 1) ++log2;
  return int64_t{1} << std::max(log2 - significand_bits<T> + 1, 0);
}

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// A float dtype cannot hold every integer: the bounds move inwards to values whose neighbours still round into
// [from, to).
template <class T>
int64_t move_from(int64_t from) {
  const int64_t above = wrapping_add(from, 1);
  const int64_t stored = rounded<T>(above);
  return stored < from ? wrapping_add(stored, spacing<T>(above)) : from;
}
template <class T>
int64_t move_to(int64_t to) {
  const int64_t below = wrapping_add(to, -1);
  const int64_t stored = rounded<T>(below);
  return stored >= to ? wrapping_add(stored, -spacing<T>(below)) : to;
}

std::string range_text(int64_t from, int64_t to) {
  return "from = " + std::to_string(from) + ", to = " + std::to_string(to);
}

// Each bound must be a value of the dtype; a float dtype that skips integers there is worth a warning.
template <class T>
void check_bound(const char* what, int64_t value, DType dtype) {
  bool inside = true;
  if constexpr (std::same_as<T, Half>)
    inside = value >= -65504 && value <= 65504;
  else if constexpr (std::same_as<T, uint64_t>)
    inside = value >= 0;
  else if constexpr (is_integral_type<T>)
    inside = value >= static_cast<int64_t>(std::numeric_limits<T>::lowest()) &&
             value <= static_cast<int64_t>(std::numeric_limits<T>::max());
  if (!inside)
    throw UserError(std::string("random_: ") + what + " = " + std::to_string(value) + " is out of bounds for " +
                    std::string(name(dtype)));
  if constexpr (is_kernel_float<T>) {
    constexpr int64_t exact = int64_t{1} << significand_bits<T>;
    if (value < -exact || value > exact)
      warn(std::string("random_: ") + what + " = " + std::to_string(value) + " is out of bounds [-(2^" +
           std::to_string(significand_bits<T>) + "), 2^" + std::to_string(significand_bits<T>) + "]; " +
           std::string(name(dtype)) + " holds every integer only within this range");
  }
}

template <class T>
void fill_range(const TensorBase& out, uint64_t range, int64_t base, Generator* generator) {
  if (out.numel() == 0) return;
  const FillWalk walk = make_fill_walk(out, "random_");
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  T* data = static_cast<T*>(out.mutable_data());
  const auto place = [base](uint64_t offset) { return from_int64<T>(wrapping_add(base, static_cast<int64_t>(offset))); };
  // Wide ranges take 64 bits, so that the remainder stays close to even.
  if (range >= 1ULL << 28) {
    fill(data, walk, [&] { return place(g.random64() % range); });
  } else {
    const auto narrow = static_cast<uint32_t>(range);
    fill(data, walk, [&] { return place(g.random() % narrow); });
  }
}

template <class T>
void fill_all_bits(const TensorBase& out, Generator* generator) {
  const FillWalk walk = make_fill_walk(out, "random_");
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  fill(static_cast<T*>(out.mutable_data()), walk, [&] { return from_int64<T>(static_cast<int64_t>(g.random64())); });
}

template <class T>
void random_range(const TensorBase& out, int64_t from, std::optional<int64_t> to, Generator* generator) {
  if (to) {
    if (from >= *to) throw UserError("random_: expected from < to, found " + range_text(from, *to));
    if constexpr (is_kernel_float<T>) {
      from = move_from<T>(from);
      to = move_to<T>(*to);
      if (from >= *to)
        throw UserError("random_: no " + std::string(name(out.dtype())) + " lies in the range, found " +
                        range_text(from, *to) + " after rounding");
    }
    check_bound<T>("from", from, out.dtype());
    check_bound<T>("to - 1", wrapping_add(*to, -1), out.dtype());
    fill_range<T>(out, static_cast<uint64_t>(*to) - static_cast<uint64_t>(from), from, generator);
    return;
  }
  int64_t last = 0;
  if constexpr (is_kernel_float<T>) {
    last = int64_t{1} << significand_bits<T>;
    from = move_from<T>(from);
    if (from >= last)
      throw UserError("random_: expected from below the last exact integer, found " + range_text(from, last));
  } else if constexpr (std::same_as<T, uint64_t>) {
    last = -1;  // beyond int64: refused below, as PyTorch does
  } else {
    last = static_cast<int64_t>(std::numeric_limits<T>::max());
  }
  check_bound<T>("from", from, out.dtype());
  check_bound<T>("to - 1", last, out.dtype());
  fill_range<T>(out, static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1, from, generator);
}

template <class T>
void permute(T* data, int64_t n, int64_t step, Generator& g) {
  // Beyond this a 32-bit draw's remainder would be visibly uneven.
  constexpr int64_t small = std::numeric_limits<uint32_t>::max() / 20;
  if (n < small) {
    for (int64_t i = 0; i < n; ++i) data[i * step] = from_int64<T>(i);
    for (int64_t i = 0; i < n - 1; ++i)
      std::swap(data[i * step], data[(i + static_cast<int64_t>(g.random() % static_cast<uint32_t>(n - i))) * step]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto z = static_cast<int64_t>(g.random64() % static_cast<uint64_t>(i + 1));
    data[i * step] = from_int64<T>(i);
    std::swap(data[i * step], data[z * step]);
  }
}

}  // namespace

void random_kernel(const TensorBase& out, Generator* generator) {
  if (out.numel() == 0) return;
  const FillWalk walk = make_fill_walk(out, "random_");
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  dispatch_numbers<true>(out.dtype(), "random_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out.mutable_data());
    if constexpr (std::same_as<T, Bool>) {
      fill(data, walk, [&] { return (g.random() & 1U) != 0; });
    } else if constexpr (is_kernel_float<T>) {
      constexpr uint64_t range = (1ULL << significand_bits<T>)+1;
      fill(data, walk, [&] {
        if constexpr (std::same_as<T, double>)
          return static_cast<double>(g.random64() % range);
        else
          return from_int64<T>(static_cast<int64_t>(g.random() % range));
      });
    } else {
      constexpr uint64_t mask = static_cast<uint64_t>(std::numeric_limits<T>::max());
      fill(data, walk, [&] { return static_cast<T>((sizeof(T) == 8 ? g.random64() : g.random()) & mask); });
    }
  });
}

void random_from_to_kernel(const TensorBase& out, int64_t from, std::optional<int64_t> to, Generator* generator) {
  const DType dtype = out.dtype();
  if (!to && from == int64_lowest) {
    if (out.numel() == 0) return;
    dispatch(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::same_as<T, int64_t> || (is_kernel_float<T> && !std::same_as<T, Half>))
        fill_all_bits<T>(out, generator);
      else
        refuse_dtype("random_ (all 64 bits)", dtype, "int64, bfloat16, float32 or float64");
    });
    return;
  }
  dispatch(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_integral_type<T> || is_kernel_float<T>)
      random_range<T>(out, from, to, generator);
    else
      refuse_dtype("random_", dtype, "bool, an integer or a 16- to 64-bit float");
  });
}

void randperm_kernel(const TensorBase& out, Generator* generator) {
  if (out.dim() != 1) throw UserError("randperm: expected a 1-d output, found sizes " + str(out.sizes()));
  const int64_t n = out.numel();
  const int64_t step = out.stride(0);
  dispatch_numbers<false>(out.dtype(), "randperm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    // The last value must be exact; bfloat16 alone is not held to that, by PyTorch's example.
    int64_t most = int64_largest;
    if constexpr (is_integral_type<T> && sizeof(T) < 8)
      most = static_cast<int64_t>(std::numeric_limits<T>::max()) + 1;
    else if constexpr (is_kernel_float<T> && !std::same_as<T, BFloat16>)
      most = (int64_t{1} << significand_bits<T>)+1;
    if (n > most)
      throw UserError("randperm: n = " + std::to_string(n) + " is more than " + std::string(name(out.dtype())) +
                      " can count; expected at most " + std::to_string(most));
    if (n == 0) return;
    Generator& g = or_default(generator);
    const std::lock_guard lock(g.mutex());
    permute(static_cast<T*>(out.mutable_data()), n, step, g);
  });
}

}  // namespace calque
