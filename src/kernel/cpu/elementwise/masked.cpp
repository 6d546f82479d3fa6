#include "kernel/cpu/elementwise/masked.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"

namespace calque::kernel {
namespace {

constexpr int64_t masked_grain = 65536;

// 1 in every byte that is not 0: a bool may be any byte.
uint64_t true_bytes(uint64_t word) {
  constexpr uint64_t low = 0x7f7f7f7f7f7f7f7fULL;
  return (((word & low) + low) | word) >> 7 & 0x0101010101010101ULL;
}

int64_t count_bytes(const uint8_t* p, int64_t n) {
  int64_t total = 0;
  for (int64_t at = 0; at < n;) {
    const int64_t end = std::min(n, at + 255 * 8);
    uint64_t lanes = 0;  // eight counters of a byte each
    for (; at + 8 <= end; at += 8) {
      uint64_t word;
      std::memcpy(&word, p + at, 8);
      lanes += true_bytes(word);
    }
    for (int i = 0; i < 8; ++i) total += static_cast<int64_t>(lanes >> (8 * i) & 255);
    for (; at < end; ++at) total += p[at] != 0 ? 1 : 0;
  }
  return total;
}

// Calls fn(position) for each true byte of [begin, end) in order.
template <class F>
void each_true(const uint8_t* p, int64_t begin, int64_t end, F&& fn) {
  int64_t i = begin;
  for (; i + 8 <= end; i += 8) {
    uint64_t word;
    std::memcpy(&word, p + i, 8);
    if (word == 0) continue;
    for (int64_t j = i; j < i + 8; ++j)
      if (p[j]) fn(j);
  }
  for (; i < end; ++i)
    if (p[i]) fn(i);
}

const uint8_t* bytes_of(const TensorBase& mask) { return static_cast<const uint8_t*>(mask.data()); }

// Calls fn(begin, end, true elements before begin) on chunks of the mask.
template <class F>
void each_chunk(const TensorBase& mask, F&& fn) {
  const int64_t n = mask.numel();
  const int64_t chunks = std::max<int64_t>(1, parallel_chunks(n, masked_grain));
  std::vector<int64_t> before(static_cast<size_t>(chunks) + 1, 0);
  const auto start = [&](int64_t c) { return n * c / chunks; };
  const uint8_t* p = bytes_of(mask);
  if (chunks > 1)
    parallel_for(0, chunks, 1, [&](int64_t b, int64_t e) {
      for (int64_t c = b; c < e; ++c)
        before[static_cast<size_t>(c) + 1] = count_bytes(p + start(c), start(c + 1) - start(c));
    });
  for (size_t c = 1; c < before.size(); ++c) before[c] += before[c - 1];
  parallel_for(0, chunks, 1, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c) fn(start(c), start(c + 1), before[static_cast<size_t>(c)]);
  });
}

struct Wide16 {
  uint64_t words[2];
};
template <class F>
void by_item_size(size_t item, F&& fn) {
  switch (item) {
    case 1: return fn(uint8_t{});
    case 2: return fn(uint16_t{});
    case 4: return fn(uint32_t{});
    case 8: return fn(uint64_t{});
    default: return fn(Wide16{});
  }
}

}  // namespace

TensorBase as_mask(const TensorBase& t, IntList sizes) {
  const bool same = std::equal(t.sizes().begin(), t.sizes().end(), sizes.begin(), sizes.end());
  if (same && t.dtype() == DType::bool_ && t.is_contiguous()) return t;
  TensorBase out = make_tensor(sizes, DType::bool_);
  copy(t, out);
  return out;
}

int64_t count_true(const TensorBase& mask) {
  const int64_t n = mask.numel();
  const uint8_t* p = bytes_of(mask);
  const int64_t chunks = std::max<int64_t>(1, parallel_chunks(n, masked_grain));
  std::vector<int64_t> counts(static_cast<size_t>(chunks));
  parallel_for(0, chunks, 1, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c)
      counts[static_cast<size_t>(c)] = count_bytes(p + n * c / chunks, n * (c + 1) / chunks - n * c / chunks);
  });
  int64_t total = 0;
  for (const int64_t c : counts) total += c;
  return total;
}

void nonzero(const TensorBase& mask, const TensorBase& out, int64_t fill_value) {
  const int64_t rows = out.sizes()[0];
  const auto dims = static_cast<size_t>(mask.dim());
  if (rows == 0 || dims == 0) return;
  auto* to = out.mutable_data_as<int64_t>();
  const int64_t down = out.strides()[0];
  const int64_t across = out.strides()[1];
  const IntList sizes = mask.sizes();
  int64_t filled = 0;
  if (mask.numel() > 0)
    each_chunk(mask, [&](int64_t begin, int64_t end, int64_t before) {
      int64_t* row = to + before * down;
      int64_t left = rows - before;
      if (dims == 1) {
        each_true(bytes_of(mask), begin, end, [&](int64_t i) {
          if (left-- <= 0) return;
          *row = i;
          row += down;
        });
      } else {
        const int64_t last = sizes[dims - 1];
        int64_t line = -1;  // the line of the last dimension whose coordinates `prefix` holds
        SmallVector<int64_t, 8> prefix(dims - 1);
        each_true(bytes_of(mask), begin, end, [&](int64_t i) {
          if (left-- <= 0) return;
          const int64_t l = i / last;
          if (l != line) {
            line = l;
            int64_t rest = l;
            for (size_t d = dims - 1; d-- > 0;) {
              prefix[d] = rest % sizes[d];
              rest /= sizes[d];
            }
          }
          for (size_t d = 0; d + 1 < dims; ++d) row[static_cast<int64_t>(d) * across] = prefix[d];
          row[static_cast<int64_t>(dims - 1) * across] = i - l * last;
          row += down;
        });
      }
      if (end == mask.numel()) filled = rows - std::max<int64_t>(left, 0);
    });
  for (int64_t r = filled; r < rows; ++r)
    for (size_t d = 0; d < dims; ++d) to[r * down + static_cast<int64_t>(d) * across] = fill_value;
}

TensorBase nonzero(const TensorBase& t) {
  const TensorBase mask = as_mask(t, t.sizes());
  const int64_t n = count_true(mask);
  TensorBase out = make_tensor(Meta{{n, t.dim()}, {1, n}, DType::int64, t.device()});
  nonzero(mask, out);
  return out;
}

void masked_select(const TensorBase& self, const TensorBase& mask, const TensorBase& out) {
  TensorBase from = self;
  const bool same = std::equal(self.sizes().begin(), self.sizes().end(), mask.sizes().begin(), mask.sizes().end());
  if (!same || !self.is_contiguous()) {
    from = make_tensor(mask.sizes(), self.dtype());
    copy(self, from);
  }
  by_item_size(item_size(self.dtype()), [&](auto unit) {
    using U = decltype(unit);
    const U* values = static_cast<const U*>(from.data());
    U* to = static_cast<U*>(out.mutable_data());
    each_chunk(mask, [&](int64_t begin, int64_t end, int64_t before) {
      U* next = to + before;
      each_true(bytes_of(mask), begin, end, [&](int64_t i) { *next++ = values[i]; });
    });
  });
}

void masked_scatter(const TensorBase& mask, const TensorBase& source, const TensorBase& out) {
  const int64_t count = count_true(mask);
  if (source.numel() < count)
    throw UserError("masked_scatter: Number of elements of source < number of ones in mask: source has " +
                    std::to_string(source.numel()) + ", the mask needs " + std::to_string(count));
  TensorBase from = source;
  if (!source.is_contiguous()) {
    from = make_tensor(source.sizes(), source.dtype());
    copy(source, from);
  }
  by_item_size(item_size(out.dtype()), [&](auto unit) {
    using U = decltype(unit);
    const U* values = static_cast<const U*>(from.data());
    U* to = static_cast<U*>(out.mutable_data());
    each_chunk(mask, [&](int64_t begin, int64_t end, int64_t before) {
      const U* next = values + before;
      each_true(bytes_of(mask), begin, end, [&](int64_t i) { to[i] = *next++; });
    });
  });
}

}  // namespace calque::kernel
