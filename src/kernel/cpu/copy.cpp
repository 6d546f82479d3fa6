#include "kernel/cpu/copy.h"

#include <algorithm>
#include <cstring>

#include "calque/base/thread.h"
#include "kernel/cpu/convert.h"
#include "kernel/cpu/element_loop.h"

namespace calque::kernel {
namespace {

constexpr int64_t grain_bytes = 128 << 10;

// Same dtype, both dense in the same order: bytes.
bool copy_dense(const Tensor& src, const Tensor& dst) {
  const bool same_layout = std::equal(src.sizes().begin(), src.sizes().end(), dst.sizes().begin(), dst.sizes().end()) &&
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

// The walk for copies: dimensions in the destination's order, merged, then 2-d tiles where the source's fast
// dimension is another than the destination's.
struct Walk {
  SmallVector<int64_t, 8> sizes, from, to;  // bytes; innermost last
};

Walk make_walk(const Tensor& src, const Tensor& dst) {
  const auto n = static_cast<size_t>(dst.dim());
  const auto src_item = static_cast<int64_t>(item_size(src.dtype())), item = static_cast<int64_t>(item_size(dst.dtype()));
  const size_t lead = n - static_cast<size_t>(src.dim());
  SmallVector<size_t, 8> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  const IntList dst_strides = dst.strides();
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return dst_strides[a] > dst_strides[b]; });
  Walk w;
  for (const size_t d : order) {
    const int64_t size = dst.sizes()[d];
    if (size == 1) continue;
    const int64_t from = d < lead || src.sizes()[d - lead] == 1 ? 0 : src.strides()[d - lead] * src_item;
    const int64_t to = dst_strides[d] * item;
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
  if (w.sizes.empty()) {
    w.sizes.push_back(1);
    w.from.push_back(0);
    w.to.push_back(0);
  }
  return w;
}

template <class T>
void copy_row(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n) {
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  if (from_stride == item && to_stride == item) {
    std::memcpy(to, from, static_cast<size_t>(n * item));
  } else if (to_stride == item && from_stride == 0) {
    std::fill_n(reinterpret_cast<T*>(to), n, *reinterpret_cast<const T*>(from));
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(to + i * to_stride) = *reinterpret_cast<const T*>(from + i * from_stride);
  }
}

// rows x columns where the destination runs along columns and the source along rows, in tiles that both caches like.
template <class T>
void copy_tiles(const char* from, int64_t from_row, int64_t from_column, char* to, int64_t to_row, int64_t to_column, int64_t rows, int64_t columns) {
  constexpr int64_t tile = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += tile) {
    const int64_t r1 = std::min(rows, r0 + tile);
    for (int64_t c0 = 0; c0 < columns; c0 += tile) {
      const int64_t c1 = std::min(columns, c0 + tile);
      for (int64_t r = r0; r < r1; ++r)
        for (int64_t c = c0; c < c1; ++c)
          *reinterpret_cast<T*>(to + r * to_row + c * to_column) = *reinterpret_cast<const T*>(from + r * from_row + c * from_column);
    }
  }
}

template <class T>
void copy_strided(const Tensor& src, const Tensor& dst) {
  Walk w = make_walk(src, dst);
  const char* from = static_cast<const char*>(src.data());
  char* to = static_cast<char*>(dst.mutable_data());
  const size_t last = w.sizes.size() - 1;
  // The dimension in which the source is fastest, if that is not the innermost one.
  size_t fast = last;
  for (size_t d = 0; d < w.sizes.size(); ++d)
    if (w.from[d] != 0 && (w.from[fast] == 0 || w.from[d] < w.from[fast]) && w.sizes[d] >= 4) fast = d;
  const bool tiled = fast != last && w.from[last] != 0 && w.sizes[last] >= 4 && w.from[fast] == static_cast<int64_t>(sizeof(T));
  if (tiled && fast + 1 != last) {  // bring the pair together; order among the others is free
    const auto move = [&](SmallVector<int64_t, 8>& v) { std::rotate(v.begin() + fast, v.begin() + fast + 1, v.begin() + last); };
    move(w.sizes);
    move(w.from);
    move(w.to);
    fast = last - 1;
  }
  const size_t inner = tiled ? 2 : 1;
  int64_t outer = 1;
  for (size_t d = 0; d < w.sizes.size() - inner; ++d) outer *= w.sizes[d];
  const int64_t rows = tiled ? w.sizes[last - 1] : 1;
  const int64_t inner_bytes = rows * w.sizes[last] * static_cast<int64_t>(sizeof(T));
  const auto run = [&](int64_t begin, int64_t end, int64_t row_begin, int64_t row_end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i;
      const char* f = from;
      char* t = to;
      for (size_t d = w.sizes.size() - inner; d-- > 0;) {
        const int64_t index = rest % w.sizes[d];
        rest /= w.sizes[d];
        f += index * w.from[d];
        t += index * w.to[d];
      }
      if (tiled)
        copy_tiles<T>(f + row_begin * w.from[last - 1], w.from[last - 1], w.from[last], t + row_begin * w.to[last - 1], w.to[last - 1], w.to[last],
                      row_end - row_begin, w.sizes[last]);
      else
        copy_row<T>(f + row_begin * w.from[last], w.from[last], t + row_begin * w.to[last], w.to[last], row_end - row_begin);
    }
  };
  const int64_t unit = tiled ? rows : w.sizes[last];
  if (outer >= num_threads() || unit < 2)
    parallel_for(0, outer, std::max<int64_t>(1, grain_bytes / std::max<int64_t>(1, inner_bytes)), [&](int64_t b, int64_t e) { run(b, e, 0, unit); });
  else
    parallel_for(0, unit, std::max<int64_t>(1, grain_bytes * unit / std::max<int64_t>(1, inner_bytes * outer)), [&](int64_t b, int64_t e) { run(0, outer, b, e); });
}

// Between uint64 and floats, which int64, the compute type of integers, would take for negative numbers from 2^63 on.
template <class From, class To>
void convert_rows(const Tensor& src, const Tensor& dst) {
  const Walk w = make_walk(src, dst);
  const size_t last = w.sizes.size() - 1;
  const int64_t row = w.sizes[last], outer = dst.numel() / row;
  parallel_for(0, outer, std::max<int64_t>(1, grain_bytes / (row * 8)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i;
      const char* f = static_cast<const char*>(src.data());
      char* t = static_cast<char*>(dst.mutable_data());
      for (size_t d = last; d-- > 0;) {
        const int64_t index = rest % w.sizes[d];
        rest /= w.sizes[d];
        f += index * w.from[d];
        t += index * w.to[d];
      }
      for (int64_t k = 0; k < row; ++k) {
        const From x = *reinterpret_cast<const From*>(f + k * w.from[last]);
        To& y = *reinterpret_cast<To*>(t + k * w.to[last]);
        if constexpr (std::is_same_v<To, uint64_t>) {
          double wide;
          if constexpr (std::is_arithmetic_v<From>) wide = x;
          else wide = static_cast<float>(x);
          y = wide >= 0x1p63 ? static_cast<uint64_t>(wide) : static_cast<uint64_t>(static_cast<int64_t>(wide));
        } else if constexpr (std::is_arithmetic_v<To>) {
          y = static_cast<To>(x);
        } else {
          y = To(static_cast<float>(x));
        }
      }
    }
  });
}
bool copy_uint64(const Tensor& src, const Tensor& dst) {
  const bool reads = src.dtype() == DType::uint64;
  if (!reads && dst.dtype() != DType::uint64) return false;
  switch (reads ? dst.dtype() : src.dtype()) {
    case DType::float64: return (reads ? convert_rows<uint64_t, double> : convert_rows<double, uint64_t>)(src, dst), true;
    case DType::float32: return (reads ? convert_rows<uint64_t, float> : convert_rows<float, uint64_t>)(src, dst), true;
    case DType::float16: return (reads ? convert_rows<uint64_t, Half> : convert_rows<Half, uint64_t>)(src, dst), true;
    case DType::bfloat16: return (reads ? convert_rows<uint64_t, BFloat16> : convert_rows<BFloat16, uint64_t>)(src, dst), true;
    default: return false;
  }
}

void copy_array(void* const* arrays, int64_t n, const void* width) {
  if (arrays[0] != arrays[1]) std::memcpy(arrays[0], arrays[1], static_cast<size_t>(n * *static_cast<const int64_t*>(width)));
}

}  // namespace

void copy(const Tensor& src, const Tensor& dst) {
  if (dst.numel() == 0) return;
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
  if (copy_uint64(src, dst)) return;
  // The source's own compute type loses nothing; the store casts.
  const Compute c = compute_type(src.dtype());
  const int64_t width = compute_size(c);
  ElementLoop loop(src.dtype());
  loop.output(dst).input(src).run(&copy_array, &width);
}

}  // namespace calque::kernel
