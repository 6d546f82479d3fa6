#include "kernel/cpu/elementwise/copy.h"

#include <algorithm>
#include <cstring>

#include "calque/base/thread.h"
#include "kernel/cpu/dispatch_among.h"
#include "kernel/cpu/elementwise/convert.h"
#include "kernel/cpu/elementwise/move.h"
#include "kernel/cpu/require.h"

namespace calque::kernel {
namespace {

constexpr bool is_compute_type(DType d) {
  return d == DType::float32 || d == DType::float64 || d == DType::int64 || d == DType::complex128;
}
constexpr int64_t grain_bytes = 128 << 10;

// Same dtype, both dense in the same order: bytes.
bool copy_dense(const TensorBase& src, const TensorBase& dst) {
  const bool same_layout =
      std::equal(src.sizes().begin(), src.sizes().end(), dst.sizes().begin(), dst.sizes().end()) &&
      ((src.is_contiguous() && dst.is_contiguous()) ||
       (std::equal(src.strides().begin(), src.strides().end(), dst.strides().begin(), dst.strides().end()) &&
        src.is_non_overlapping_and_dense()));
  if (!same_layout) return false;
  const auto* from = static_cast<const std::byte*>(src.data());
  auto* to = static_cast<std::byte*>(dst.mutable_data());
  if (from == to) return true;
  parallel_for(0, static_cast<int64_t>(dst.nbytes()), grain_bytes,
               [&](int64_t b, int64_t e) { std::memcpy(to + b, from + b, static_cast<size_t>(e - b)); });
  return true;
}

// Both operands' dimensions in the destination's order, merged where they can be; strides in bytes, innermost last.
struct Walk {
  SmallVector<int64_t, 8> sizes, from, to;

  void swap_down(size_t d, size_t to_position) {  // moves dimension d inwards; the order among the others stays
    for (SmallVector<int64_t, 8>* v : {&sizes, &from, &to})
      std::rotate(v->begin() + d, v->begin() + d + 1, v->begin() + to_position + 1);
  }
};

Walk make_walk(const TensorBase& src, const TensorBase& dst) {
  const auto n = static_cast<size_t>(dst.dim());
  const int64_t from_item = src.element_size(), to_item = dst.element_size();
  const size_t lead = n - static_cast<size_t>(src.dim());
  SmallVector<size_t, 8> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  const IntList dst_strides = dst.strides();
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return dst_strides[a] > dst_strides[b]; });
  Walk w;
  for (const size_t d : order) {
    const int64_t size = dst.sizes()[d];
    if (size == 1) continue;
    const int64_t from = d < lead || src.sizes()[d - lead] == 1 ? 0 : src.strides()[d - lead] * from_item;
    const int64_t to = dst_strides[d] * to_item;
    if (!w.sizes.empty() && w.from.back() == from * size && w.to.back() == to * size) {
      w.sizes.back() *= size;
      w.from.back() = from;
      w.to.back() = to;
    } else {
      w.sizes.push_back(size);
      w.from.push_back(from);
      w.to.push_back(to);
    }
  }
  while (w.sizes.size() < 2) {  // so that there is always a row of rows
    w.sizes.insert(w.sizes.begin(), 1);
    w.from.insert(w.from.begin(), 0);
    w.to.insert(w.to.begin(), 0);
  }
  return w;
}

// Calls plane(from, to, rows, columns) for every stretch of the last-but-one dimension, on all threads. What a plane does with
// its rows (the innermost dimension) is its affair. Where rows are fewer than threads and long, they are cut.
template <class F>
void each_plane(const Walk& w, const TensorBase& src, const TensorBase& dst, F&& plane) {
  const auto* from = static_cast<const char*>(src.data());
  auto* to = static_cast<char*>(dst.mutable_data());
  const size_t row_dim = w.sizes.size() - 2;
  const int64_t rows = w.sizes[row_dim];
  int64_t total = rows;
  for (size_t d = 0; d < row_dim; ++d) total *= w.sizes[d];
  const int64_t row_bytes = w.sizes.back() * std::max(src.element_size(), dst.element_size());
  if (total < num_threads() && row_bytes >= 2 * grain_bytes) {
    for (int64_t r = 0; r < total; ++r) {
      int64_t rest = r;
      const char* f = from;
      char* t = to;
      for (size_t d = row_dim + 1; d-- > 0;) {
        const int64_t index = rest % w.sizes[d];
        rest /= w.sizes[d];
        f += index * w.from[d];
        t += index * w.to[d];
      }
      parallel_for(0, w.sizes.back(), grain_bytes / 8,
                   [&](int64_t b, int64_t e) { plane(f + b * w.from.back(), t + b * w.to.back(), 1, e - b); });
    }
    return;
  }
  // Chunks of planes where there are enough, of rows where not; 16 rows fill the lines of a transposing copy.
  const int64_t unit = rows >= 32 ? 16 : 1;
  const int64_t grain = std::max<int64_t>(1, grain_bytes / std::max<int64_t>(1, row_bytes * unit));
  parallel_for(0, (total + unit - 1) / unit, grain, [&](int64_t begin, int64_t end) {
    int64_t at = begin * unit;
    const int64_t stop = std::min(end * unit, total);
    while (at < stop) {
      int64_t rest = at / rows;
      const int64_t row = at % rows;
      const int64_t count = std::min(rows - row, stop - at);
      const char* f = from + row * w.from[row_dim];
      char* t = to + row * w.to[row_dim];
      for (size_t d = row_dim; d-- > 0;) {
        const int64_t index = rest % w.sizes[d];
        rest /= w.sizes[d];
        f += index * w.from[d];
        t += index * w.to[d];
      }
      plane(f, t, count, w.sizes.back());
      at += count;
    }
  });
}

template <class T>
void copy_row(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n) {
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  if (to_stride == item && from_stride == 0)
    std::fill_n(reinterpret_cast<T*>(to), n, *reinterpret_cast<const T*>(from));
  else if (to_stride == item)
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<T*>(to + i * item) = *reinterpret_cast<const T*>(from + i * from_stride);
  else
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<T*>(to + i * to_stride) = *reinterpret_cast<const T*>(from + i * from_stride);
}

template <class T>
void copy_strided(const TensorBase& src, const TensorBase& dst) {
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  Walk w = make_walk(src, dst);
  const size_t last = w.sizes.size() - 1;
  const TransposeFn transpose = transpose_fn(item);
  if (transpose && w.to[last] == item && w.from[last] > item && w.sizes[last] >= 4)
    for (size_t d = 0; d < last; ++d)
      if (w.from[d] == item && w.sizes[d] >= 4) {  // the source runs along d, the destination along the last dimension
        w.swap_down(d, last - 1);
        each_plane(w, src, dst, [&](const char* from, char* to, int64_t rows, int64_t columns) {
          transpose(from, w.from[last], to, w.to[last - 1], rows, columns);
        });
        return;
      }
  const bool whole_rows = w.from[last] == item && w.to[last] == item;
  each_plane(w, src, dst, [&](const char* from, char* to, int64_t rows, int64_t columns) {
    if (whole_rows)
      copy_rows(from, w.from[last - 1], to, w.to[last - 1], rows, columns * item);
    else
      for (int64_t r = 0; r < rows; ++r)
        copy_row<T>(from + r * w.from[last - 1], w.from[last], to + r * w.to[last - 1], w.to[last], columns);
  });
}

// Between dtypes by way of the source's compute type, which loses nothing; where one side is that type already, in one step.
void copy_cast(const TensorBase& src, const TensorBase& dst) {
  const Compute c = compute_type(src.dtype());
  const LoadFn load = load_fn(src.dtype(), c);
  const StoreFn store = store_fn(c, dst.dtype());
  const bool loaded = is_compute_type(src.dtype()), stored = is_compute_type(dst.dtype()) && compute_type(dst.dtype()) == c;
  const int64_t width = compute_size(c);
  const Walk w = make_walk(src, dst);
  const size_t last = w.sizes.size() - 1;
  const int64_t from_step = w.from[last], to_step = w.to[last];
  each_plane(w, src, dst, [&](const char* from, char* to, int64_t rows, int64_t columns) {
    constexpr int64_t chunk = 512;
    alignas(64) std::byte buffer[chunk * 16];
    for (int64_t r = 0; r < rows; ++r) {
      const char* f = from + r * w.from[last - 1];
      char* t = to + r * w.to[last - 1];
      if (loaded && from_step == width) {
        store(f, t, to_step, columns);
      } else if (stored && to_step == width) {
        load(f, from_step, t, columns);
      } else {
        for (int64_t at = 0; at < columns; at += chunk) {
          const int64_t n = std::min(chunk, columns - at);
          load(f + at * from_step, from_step, buffer, n);
          store(buffer, t + at * to_step, to_step, n);
        }
      }
    }
  });
}

// Between uint64 and floats, which int64, the compute type of integers, would take for negative numbers from 2^63 on.
template <class From, class To>
void convert_uint64(const TensorBase& src, const TensorBase& dst) {
  const Walk w = make_walk(src, dst);
  const size_t last = w.sizes.size() - 1;
  each_plane(w, src, dst, [&](const char* from, char* to, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < columns; ++i) {
        const From x = *reinterpret_cast<const From*>(from + r * w.from[last - 1] + i * w.from[last]);
        To& y = *reinterpret_cast<To*>(to + r * w.to[last - 1] + i * w.to[last]);
        if constexpr (std::is_same_v<To, uint64_t>) {
          double wide;
          if constexpr (is_arithmetic_type<From>)
            wide = x;
          else
            wide = static_cast<float>(x);
          y = wide >= 0x1p63 ? static_cast<uint64_t>(wide) : static_cast<uint64_t>(static_cast<int64_t>(wide));
        } else if constexpr (is_arithmetic_type<To>) {
          y = static_cast<To>(x);
        } else {
          y = To(static_cast<float>(x));
        }
      }
  });
}
bool copy_uint64(const TensorBase& src, const TensorBase& dst) {
  const bool reads = src.dtype() == DType::uint64;
  if (!reads && dst.dtype() != DType::uint64) return false;
  return dispatch_if_among<float, double, Half, BFloat16>(reads ? dst.dtype() : src.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    reads ? convert_uint64<uint64_t, T>(src, dst) : convert_uint64<T, uint64_t>(src, dst);
  });
}

}  // namespace

void copy(const TensorBase& src, const TensorBase& dst) {
  if (dst.numel() == 0) return;
  const IntList from = src.sizes(), to = dst.sizes();
  if (!std::equal(from.begin(), from.end(), to.begin(), to.end())) require_broadcast("copy", "the source", src, to);
  if (src.dtype() == dst.dtype()) {
    if (copy_dense(src, dst)) return;
    switch (item_size(src.dtype())) {
      case 1: return copy_strided<uint8_t>(src, dst);
      case 2: return copy_strided<uint16_t>(src, dst);
      case 4: return copy_strided<uint32_t>(src, dst);
      case 8: return copy_strided<uint64_t>(src, dst);
      default: return copy_strided<Complex128>(src, dst);
    }
  }
  if (!copy_uint64(src, dst)) copy_cast(src, dst);
}

TensorBase contiguous_as(const TensorBase& t, DType dtype) {
  if (t.dtype() == dtype && t.is_contiguous()) return t;
  const TensorBase out = make_tensor(t.sizes(), dtype);
  copy(t, out);
  return out;
}

}  // namespace calque::kernel
