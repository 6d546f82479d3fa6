#include "kernel/cpu/shaping/shaping.h"

#include <algorithm>
#include <cstring>

#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"

namespace calque::kernel {
namespace {

constexpr int64_t shaping_grain_bytes = 128 << 10;

// Calls fn(source offset, destination offset) in elements for each index of all but the last two (or one) dimensions.
struct Outer {
  SmallVector<int64_t, 8> sizes, from, to;
  int64_t count = 1;
  void add(int64_t size, int64_t f, int64_t t) {
    sizes.push_back(size);
    from.push_back(f);
    to.push_back(t);
    count *= size;
  }
  void at(int64_t i, int64_t& f, int64_t& t) const {
    f = t = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      const int64_t index = i % sizes[d];
      i /= sizes[d];
      f += index * from[d];
      t += index * to[d];
    }
  }
};

template <class T>
void reverse_lines(const TensorBase& self, const TensorBase& out, size_t last, uint64_t dims) {
  Outer outer;
  int64_t start = 0;
  for (size_t d = 0; d < static_cast<size_t>(out.dim()); ++d) {
    const bool reversed = dims >> d & 1U;
    if (reversed) start += (self.sizes()[d] - 1) * self.strides()[d];
    if (d != last) outer.add(out.sizes()[d], reversed ? -self.strides()[d] : self.strides()[d], out.strides()[d]);
  }
  const int64_t n = out.sizes()[last];
  const T* from = static_cast<const T*>(self.data()) + start;
  T* to = static_cast<T*>(out.mutable_data());
  const int64_t grain = std::max<int64_t>(1, shaping_grain_bytes / (n * static_cast<int64_t>(sizeof(T))));
  parallel_for(0, outer.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t f, t;
      outer.at(i, f, t);
      const T* source = from + f;
      T* line = to + t;
      for (int64_t k = 0; k < n; ++k) line[k] = source[-k];
    }
  });
}

}  // namespace

void flip(const TensorBase& self, uint64_t dims, const TensorBase& out) {
  if (out.numel() == 0) return;
  const auto n = static_cast<size_t>(out.dim());
  for (size_t d = 0; d < n; ++d) {
    if (!(dims >> d & 1U) || out.sizes()[d] < 8 || out.strides()[d] != 1 || self.strides()[d] != 1) continue;
    switch (out.element_size()) {
      case 1: return reverse_lines<uint8_t>(self, out, d, dims);
      case 2: return reverse_lines<uint16_t>(self, out, d, dims);
      case 4: return reverse_lines<uint32_t>(self, out, d, dims);
      case 8: return reverse_lines<uint64_t>(self, out, d, dims);
      default: break;
    }
  }
  // Walking backwards is a negative stride; what lies inside a reversed dimension is copied as it is.
  SymInts strides = self.impl().strides;
  int64_t start = self.storage_offset();
  for (size_t d = 0; d < n; ++d) {
    if (!(dims >> d & 1U)) continue;
    start += (self.sizes()[d] - 1) * self.strides()[d];
    strides[d] = -self.strides()[d];
  }
  copy(make_reversed_view(self, self.impl().sizes, strides, start), out);
}

namespace {

// The two halves of each rolled dimension change places: every combination of halves is one copy.
void roll_from(size_t d, const TensorBase& self, IntList shifts, const TensorBase& out) {
  while (d < shifts.size() && shifts[d] == 0) ++d;
  if (d == shifts.size()) {
    copy(self, out);
    return;
  }
  const auto part = [&](const TensorBase& t, int64_t start, int64_t length) {
    SymInts sizes = t.impl().sizes;
    sizes[d] = length;
    return make_view(t, sizes, t.impl().strides, t.storage_offset() + start * t.strides()[d]);
  };
  const int64_t moved = shifts[d];
  const int64_t rest = self.sizes()[d] - moved;
  roll_from(d + 1, part(self, rest, moved), shifts, part(out, 0, moved));
  roll_from(d + 1, part(self, 0, rest), shifts, part(out, moved, rest));
}

}  // namespace

void roll(const TensorBase& self, IntList shifts, const TensorBase& out) {
  if (out.numel() != 0) roll_from(0, self, shifts, out);
}

namespace {

template <class T>
void cut(const TensorBase& self, int64_t k, bool lower, const TensorBase& out) {
  Outer outer;
  const auto n = static_cast<size_t>(out.dim());
  const int64_t rows = out.sizes()[n - 2];
  const int64_t columns = out.sizes()[n - 1];
  for (size_t d = 0; d + 1 < n; ++d) outer.add(out.sizes()[d], self.strides()[d], out.strides()[d]);
  const int64_t from_step = self.strides()[n - 1];
  const int64_t to_step = out.strides()[n - 1];
  const T* from = static_cast<const T*>(self.data());
  T* to = static_cast<T*>(out.mutable_data());
  const int64_t grain = std::max<int64_t>(1, shaping_grain_bytes / (columns * static_cast<int64_t>(sizeof(T))));
  parallel_for(0, outer.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t f, t;
      outer.at(i, f, t);
      // Columns on the diagonal's near side: [0, edge) below it, [edge, columns) above.
      const int64_t row = i % rows;
      const int64_t edge = std::clamp<int64_t>(lower ? row + k + 1 : row + k, 0, columns);
      const int64_t kept_begin = lower ? 0 : edge;
      const int64_t kept_end = lower ? edge : columns;
      const T* source = from + f;
      T* line = to + t;
      if (from_step == 1 && to_step == 1) {
        std::fill(line, line + kept_begin, T{});
        if (source != line && kept_end > kept_begin)
          std::memcpy(line + kept_begin, source + kept_begin, static_cast<size_t>(kept_end - kept_begin) * sizeof(T));
        std::fill(line + kept_end, line + columns, T{});
      } else {
        for (int64_t c = 0; c < columns; ++c)
          line[c * to_step] = c >= kept_begin && c < kept_end ? source[c * from_step] : T{};
      }
    }
  });
}

}  // namespace

void triangle(const TensorBase& self, int64_t k, bool lower, const TensorBase& out) {
  if (out.numel() == 0) return;
  // Beyond the corners the diagonal's place no longer matters, and sums with it must not overflow.
  const int64_t reach = out.size(-1) + out.size(-2);
  k = std::clamp(k, -reach, reach);
  switch (out.element_size()) {
    case 1: return cut<uint8_t>(self, k, lower, out);
    case 2: return cut<uint16_t>(self, k, lower, out);
    case 4: return cut<uint32_t>(self, k, lower, out);
    case 8: return cut<uint64_t>(self, k, lower, out);
    default: return cut<Complex128>(self, k, lower, out);
  }
}

namespace {

struct Span {
  int64_t begin, end;
};
// The columns of a row that belong to the triangle.
Span kept_columns(int64_t row, int64_t columns, int64_t k, bool lower) {
  if (lower) return {0, std::clamp<int64_t>(row + k + 1, 0, columns)};
  return {std::clamp<int64_t>(row + k, 0, columns), columns};
}

template <class T>
void write_indices(int64_t rows, int64_t columns, int64_t k, bool lower, const TensorBase& out) {
  T* row_numbers = out.mutable_data_as<T>();
  T* column_numbers = row_numbers + out.strides()[0];
  const int64_t step = out.strides()[1];
  int64_t at = 0;
  // Rows that have none are not looked at: there may be very many.
  const int64_t first = lower ? std::clamp<int64_t>(-k, 0, rows) : 0;
  const int64_t last = lower ? rows : std::clamp<int64_t>(columns - k, 0, rows);
  for (int64_t r = first; r < last; ++r) {
    const Span s = kept_columns(r, columns, k, lower);
    for (int64_t c = s.begin; c < s.end; ++c, at += step) {
      row_numbers[at] = static_cast<T>(r);
      column_numbers[at] = static_cast<T>(c);
    }
  }
}

}  // namespace

int64_t triangle_count(int64_t rows, int64_t columns, int64_t k, bool lower) {
  const int64_t reach = (SymInt(rows) + columns).as_int();
  k = std::clamp(k, -reach, reach);
  const auto half = [](SymInt n) { return floor_div(n, 2); };
  // Rows with some but not all columns form an arithmetic series. SymInts, because numbers of this size may overflow.
  if (lower) {
    const int64_t first = std::clamp<int64_t>(-k, 0, rows);  // first row that has a column
    const int64_t full = std::clamp<int64_t>((SymInt(columns) - k - 1).as_int(), first, rows);  // first row that has all
    return (half(SymInt(full - first) * (SymInt(first) + k + 1 + full + k)) + SymInt(rows - full) * columns).as_int();
  }
  const int64_t partial = std::clamp<int64_t>(-k, 0, rows);                                 // first row without some column
  const int64_t none = std::clamp<int64_t>((SymInt(columns) - k).as_int(), partial, rows);  // first row without any
  return (SymInt(partial) * columns +
          half(SymInt(none - partial) * (SymInt(columns) - partial - k + columns - none + 1 - k)))
      .as_int();
}

void triangle_indices(int64_t rows, int64_t columns, int64_t k, bool lower, const TensorBase& out) {
  if (out.numel() == 0) return;
  const int64_t reach = rows + columns;
  k = std::clamp(k, -reach, reach);
  if (out.dtype() == DType::int32)
    write_indices<int32_t>(rows, columns, k, lower, out);
  else
    write_indices<int64_t>(rows, columns, k, lower, out);
}

}  // namespace calque::kernel
