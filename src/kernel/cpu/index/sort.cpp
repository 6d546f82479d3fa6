#include "kernel/cpu/index/sort.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/index/sort_keys.h"
#include "kernel/cpu/not_implemented.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(SortTable, sort_table)

namespace {

constexpr int64_t sort_grain = 4096;
constexpr int64_t radix_from = 96;  // shorter lines are sorted by comparison
constexpr int digit_bits = 8;
constexpr size_t digits = size_t{1} << digit_bits;

// A key and where it came from.
template <class K>
struct Entry {
  K key;
  K at;
};
template <class K>
bool key_less(const Entry<K>& a, const Entry<K>& b) {
  return a.key < b.key;
}

// One line along the dimension in each tensor. Bytes.
struct Line {
  const char* source;
  char* values;
  char* indices;
  int64_t source_stride, values_stride, indices_stride;
};

template <class F>
void each_line(const TensorBase& self, int64_t dim, const TensorBase& values, const TensorBase& indices, F&& fn) {
  const auto n = static_cast<size_t>(self.dim());
  const auto along = static_cast<size_t>(dim);
  const int64_t item = self.element_size();
  int64_t lines = 1;
  for (size_t d = 0; d < n; ++d)
    if (d != along) lines *= self.sizes()[d];
  const auto stride = [&](const TensorBase& t, int64_t bytes) { return n == 0 ? bytes : t.strides()[along] * bytes; };
  const int64_t length = n == 0 ? 1 : self.sizes()[along];
  parallel_for(0, lines, std::max<int64_t>(1, sort_grain / std::max<int64_t>(1, length)), [&](int64_t b, int64_t e) {
    fn([&](auto&& line_fn) {
      for (int64_t i = b; i < e; ++i) {
        Line line{static_cast<const char*>(self.data()),
                  static_cast<char*>(values.mutable_data()),
                  static_cast<char*>(indices.mutable_data()),
                  stride(self, item),
                  stride(values, item),
                  stride(indices, 8)};
        int64_t rest = i;
        for (size_t d = n; d-- > 0;) {
          if (d == along) continue;
          const int64_t at = rest % self.sizes()[d];
          rest /= self.sizes()[d];
          line.source += at * self.strides()[d] * item;
          line.values += at * values.strides()[d] * item;
          line.indices += at * indices.strides()[d] * 8;
        }
        line_fn(line);
      }
    });
  });
}

template <class U, class K>
void write_values(const Line& line, const Entry<K>* entries, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<int64_t>(entries[i].at);
    *reinterpret_cast<U*>(line.values + i * line.values_stride) =
        *reinterpret_cast<const U*>(line.source + at * line.source_stride);
    *reinterpret_cast<int64_t*>(line.indices + i * line.indices_stride) = at;
  }
}
template <class K>
void write_line(const Line& line, size_t item, const Entry<K>* entries, int64_t n) {
  switch (item) {
    case 1: return write_values<uint8_t>(line, entries, n);
    case 2: return write_values<uint16_t>(line, entries, n);
    case 4: return write_values<uint32_t>(line, entries, n);
    default: return write_values<uint64_t>(line, entries, n);
  }
}

// Least significant digit first; digits that all keys share are skipped. Returns where the result is.
template <class K>
Entry<K>* radix_sort(Entry<K>* entries, Entry<K>* spare, int64_t n, int bits) {
  constexpr size_t max_passes = sizeof(K);
  const size_t passes = static_cast<size_t>(bits + digit_bits - 1) / digit_bits;
  uint32_t counts[max_passes][digits] = {};
  for (int64_t i = 0; i < n; ++i) {
    K key = entries[i].key;
    for (size_t p = 0; p < passes; ++p) {
      ++counts[p][key & (digits - 1)];
      key = static_cast<K>(key >> digit_bits);
    }
  }
  for (size_t p = 0; p < passes; ++p) {
    const int shift = static_cast<int>(p) * digit_bits;
    uint32_t* count = counts[p];
    if (count[(entries[0].key >> shift) & (digits - 1)] == static_cast<uint32_t>(n)) continue;
    uint32_t sum = 0;
    for (size_t d = 0; d < digits; ++d) {
      const uint32_t c = count[d];
      count[d] = sum;
      sum += c;
    }
    for (int64_t i = 0; i < n; ++i) spare[count[(entries[i].key >> shift) & (digits - 1)]++] = entries[i];
    std::swap(entries, spare);
  }
  return entries;
}

template <class K>
class LineSorter {
 public:
  LineSorter(DType dtype, int64_t n, bool reversed)
      : dtype_(dtype),
        n_(n),
        flip_(reversed ? ~uint64_t{0} : 0),
        keys_(std::make_unique_for_overwrite<K[]>(static_cast<size_t>(n))),
        entries_(std::make_unique_for_overwrite<Entry<K>[]>(static_cast<size_t>(n))) {}

  void sort(const Line& line, bool stable) {
    load(line);
    fill_entries();
    Entry<K>* e = entries_.get();
    if (n_ >= radix_from) {
      if (!spare_) spare_ = std::make_unique_for_overwrite<Entry<K>[]>(static_cast<size_t>(n_));
      e = radix_sort(e, spare_.get(), n_, key_bits(dtype_));
      if (!stable &&
          std::adjacent_find(e, e + n_, [](const Entry<K>& a, const Entry<K>& b) { return a.key == b.key; }) != e + n_) {
        e = entries_.get();
        fill_entries();
        std::sort(e, e + n_, key_less<K>);
      }
    } else if (stable) {
      std::sort(e, e + n_,
                [](const Entry<K>& a, const Entry<K>& b) { return a.key != b.key ? a.key < b.key : a.at < b.at; });
    } else {
      std::sort(e, e + n_, key_less<K>);
    }
    write_line(line, item_size(dtype_), e, n_);
  }

  void topk(const Line& line, int64_t k, bool sorted) {
    if (k == 0) return;
    load(line);
    Entry<K>* e = entries_.get();
    if (k * 64 <= n_) {
      // std::partial_sort, but for the elements that cannot enter the heap: those are passed over many at a time.
      for (int64_t i = 0; i < k; ++i) e[i] = {keys_[static_cast<size_t>(i)], static_cast<K>(i)};
      std::make_heap(e, e + k, key_less<K>);
      for (int64_t i = next_below(k, e[0].key); i < n_; i = next_below(i + 1, e[0].key)) {
        e[k] = {keys_[static_cast<size_t>(i)], static_cast<K>(i)};
        std::pop_heap(e, e + k + 1, key_less<K>);
      }
      std::sort_heap(e, e + k, key_less<K>);
    } else {
      fill_entries();
      std::nth_element(e, e + k - 1, e + n_, key_less<K>);
      if (sorted) std::sort(e, e + k - 1, key_less<K>);
    }
    write_line(line, item_size(dtype_), e, k);
  }

  // Hoare's selection with the median of three, moving elements as PyTorch's does: it decides which of equals is found.
  void kth(const Line& line, int64_t k) {
    load(line);
    fill_entries();
    Entry<K>* e = entries_.get();
    int64_t left = 0;
    int64_t right = n_ - 1;
    const auto order = [&](int64_t a, int64_t b) {
      if (e[a].key > e[b].key) std::swap(e[a], e[b]);
    };
    while (right > left) {
      if (right == left + 1) {
        order(left, right);
        break;
      }
      std::swap(e[left + (right - left) / 2], e[left + 1]);
      order(left + 1, right);
      order(left, right);
      order(left + 1, left);
      const K pivot = e[left].key;
      int64_t i = left + 1;
      int64_t j = right;
      while (true) {
        do ++i;
        while (pivot > e[i].key);
        do --j;
        while (e[j].key > pivot);
        if (j < i) break;
        std::swap(e[i], e[j]);
      }
      std::swap(e[left], e[j]);
      if (j <= k) left = i;
      if (j >= k) right = j - 1;
    }
    write_line(line, item_size(dtype_), e + k, 1);
  }

 private:
  void load(const Line& line) {
    sort_table()->keys[static_cast<size_t>(dtype_)](line.source, line.source_stride, keys_.get(), n_, flip_);
  }
  void fill_entries() {
    for (int64_t i = 0; i < n_; ++i) entries_[static_cast<size_t>(i)] = {keys_[static_cast<size_t>(i)], static_cast<K>(i)};
  }
  int64_t next_below(int64_t begin, K limit) const {
    if constexpr (sizeof(K) == 4)
      return sort_table()->next_below_32(keys_.get(), begin, n_, limit);
    else
      return sort_table()->next_below_64(keys_.get(), begin, n_, limit);
  }

  DType dtype_;
  int64_t n_;
  uint64_t flip_;
  std::unique_ptr<K[]> keys_;
  std::unique_ptr<Entry<K>[]> entries_, spare_;
};

// fn(sorter, line) for every line, with the key type of the dtype.
template <class F>
void sort_lines(const TensorBase& self, int64_t dim, bool reversed, const TensorBase& values, const TensorBase& indices,
                F&& fn) {
  if (self.numel() == 0) return;
  if (!sort_table()->keys[static_cast<size_t>(self.dtype())]) not_implemented("sort", self.dtype());
  const int64_t n = self.dim() == 0 ? 1 : self.sizes()[static_cast<size_t>(dim)];
  if (n > UINT32_MAX) throw UserError("sort: a dimension of " + std::to_string(n) + " elements is too long to sort");
  each_line(self, dim, values, indices, [&](auto&& lines) {
    if (key_bits(self.dtype()) == 64) {
      LineSorter<uint64_t> sorter(self.dtype(), n, reversed);
      lines([&](const Line& line) { fn(sorter, line); });
    } else {
      LineSorter<uint32_t> sorter(self.dtype(), n, reversed);
      lines([&](const Line& line) { fn(sorter, line); });
    }
  });
}

}  // namespace

void check_sortable(const char* op, DType d) {
  if (!sort_table()->keys[static_cast<size_t>(d)])
    throw UserError(ErrorKind::unsupported_operator,
                    std::string(op) + ": not implemented for '" + std::string(name(d)) + "'");
}

void sort(const TensorBase& self, int64_t dim, bool descending, bool stable, const TensorBase& values,
          const TensorBase& indices) {
  // Long ascending vectors of integers PyTorch sorts by radix, which keeps equal elements in order.
  stable = stable || (self.dim() == 1 && !descending && is_integral(self.dtype(), false) && self.numel() >= 32768);
  sort_lines(self, dim, descending, values, indices, [=](auto& sorter, const Line& line) { sorter.sort(line, stable); });
}
void topk(const TensorBase& self, int64_t k, int64_t dim, bool largest, bool sorted, const TensorBase& values,
          const TensorBase& indices) {
  sort_lines(self, dim, largest, values, indices, [=](auto& sorter, const Line& line) { sorter.topk(line, k, sorted); });
}
void kthvalue(const TensorBase& self, int64_t k, int64_t dim, const TensorBase& values, const TensorBase& indices) {
  sort_lines(self, dim, false, values, indices, [=](auto& sorter, const Line& line) { sorter.kth(line, k - 1); });
}

}  // namespace calque::kernel
