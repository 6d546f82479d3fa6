#include "kernel/cpu/shaping/joining.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"

namespace calque::kernel {
namespace {

constexpr int64_t joining_grain_bytes = 128 << 10;

// Dimensions from the slowest of `out` to the fastest.
using Order = SmallVector<size_t, 8>;
Order memory_order(const TensorBase& out) {
  Order order(static_cast<size_t>(out.dim()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [strides = out.strides()](size_t a, size_t b) { return strides[a] > strides[b]; });
  return order;
}

bool is_dense_in(const TensorBase& t, const Order& order) {
  int64_t expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t d = order[i];
    if (t.sizes()[d] == 1) continue;
    if (t.strides()[d] != expected) return false;
    expected *= t.sizes()[d];
  }
  return true;
}

// One input of a dense cat: `bytes` of it lie in each row of the output, from `offset` on.
struct Piece {
  const char* data;
  int64_t offset;
  int64_t bytes;
};

// Rows of short pieces: a call of memcpy would cost more than the bytes.
template <class T>
void copy_short(const Piece& p, char* out, int64_t row_bytes, int64_t begin, int64_t end) {
  const auto n = p.bytes / static_cast<int64_t>(sizeof(T));
  const T* from = reinterpret_cast<const T*>(p.data) + begin * n;
  char* to = out + begin * row_bytes + p.offset;
  if (n == 1) {
    for (int64_t r = begin; r < end; ++r, to += row_bytes) *reinterpret_cast<T*>(to) = *from++;
    return;
  }
  for (int64_t r = begin; r < end; ++r, to += row_bytes)
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(to)[i] = *from++;
}

void cat_short(const std::vector<Piece>& pieces, char* out, int64_t rows, int64_t row_bytes, size_t item) {
  parallel_for(0, rows, std::max<int64_t>(1, joining_grain_bytes / row_bytes), [&](int64_t begin, int64_t end) {
    const int64_t block =
        std::max<int64_t>(1, (16 << 10) / row_bytes);  // the inputs take turns within the first-level cache
    for (int64_t b = begin; b < end; b += block) {
      const int64_t e = std::min(end, b + block);
      for (const Piece& p : pieces) {
        if (item >= 8 && item % 8 == 0)
          copy_short<uint64_t>(p, out, row_bytes, b, e);
        else if (item == 4)
          copy_short<uint32_t>(p, out, row_bytes, b, e);
        else if (item == 2)
          copy_short<uint16_t>(p, out, row_bytes, b, e);
        else
          copy_short<uint8_t>(p, out, row_bytes, b, e);
      }
    }
  });
}

void cat_long(const std::vector<Piece>& pieces, char* out, int64_t rows, int64_t row_bytes) {
  parallel_for(0, rows * row_bytes, joining_grain_bytes, [&](int64_t begin, int64_t end) {
    int64_t row = begin / row_bytes;
    int64_t at = begin % row_bytes;
    size_t k = 0;
    while (pieces[k].offset + pieces[k].bytes <= at) ++k;
    for (int64_t done = begin; done < end;) {
      const Piece& p = pieces[k];
      const int64_t skip = at - p.offset;
      const int64_t n = std::min(p.bytes - skip, end - done);
      std::memcpy(out + done, p.data + row * p.bytes + skip, static_cast<size_t>(n));
      done += n;
      at += n;
      if (++k == pieces.size()) {
        k = 0;
        at = 0;
        ++row;
      }
    }
  });
}

// All inputs dense in the order of a dense output: bytes.
bool cat_dense(const std::vector<const TensorBase*>& inputs, size_t dim, const TensorBase& out) {
  const Order order = memory_order(out);
  if (!is_dense_in(out, order)) return false;
  for (const TensorBase* t : inputs)
    if (t->dtype() != out.dtype() || !is_dense_in(*t, order)) return false;
  const size_t place = static_cast<size_t>(std::find(order.begin(), order.end(), dim) - order.begin());
  int64_t rows = 1;
  int64_t inner = out.element_size();
  for (size_t i = 0; i < place; ++i) rows *= out.sizes()[order[i]];
  for (size_t i = place + 1; i < order.size(); ++i) inner *= out.sizes()[order[i]];
  std::vector<Piece> pieces;
  pieces.reserve(inputs.size());
  int64_t row_bytes = 0;
  int64_t longest = 0;
  for (const TensorBase* t : inputs) {
    const int64_t bytes = t->sizes()[dim] * inner;
    pieces.push_back({static_cast<const char*>(t->data()), row_bytes, bytes});
    row_bytes += bytes;
    longest = std::max(longest, bytes);
  }
  auto* to = static_cast<char*>(out.mutable_data());
  if (rows > 1 && longest <= 32)
    cat_short(pieces, to, rows, row_bytes, static_cast<size_t>(out.element_size()));
  else
    cat_long(pieces, to, rows, row_bytes);
  return true;
}

}  // namespace

void cat(ListRef<const TensorBase*> tensors, int64_t dim, const TensorBase& out) {
  const auto d = static_cast<size_t>(dim);
  std::vector<const TensorBase*> inputs;
  inputs.reserve(tensors.size());
  for (const TensorBase* t : tensors)
    if (t->numel() != 0) inputs.push_back(t);
  if (inputs.empty()) return;
  if (cat_dense(inputs, d, out)) return;
  int64_t start = 0;
  for (const TensorBase* t : inputs) {
    SymInts sizes = out.impl().sizes;
    sizes[d] = t->size(dim);
    copy(*t, make_view(out, sizes, out.impl().strides, out.storage_offset() + start * out.strides()[d]));
    start += t->size(dim);
  }
}

void repeat(const TensorBase& self, const TensorBase& out) {
  if (out.numel() == 0) return;
  // Each dimension of out as (repeats, size): self is broadcast over the repeats.
  const auto n = static_cast<size_t>(out.dim());
  const size_t lead = n - static_cast<size_t>(self.dim());
  SymInts sizes, from, to;
  for (size_t d = 0; d < n; ++d) {
    const int64_t size = d < lead ? 1 : self.sizes()[d - lead];
    const int64_t repeats = out.sizes()[d] / size;
    if (repeats != 1) {
      sizes.push_back(repeats);
      from.push_back(0);
      to.push_back(out.strides()[d] * size);
    }
    if (size != 1) {
      sizes.push_back(size);
      from.push_back(self.strides()[d - lead]);
      to.push_back(out.strides()[d]);
    }
  }
  copy(make_view(self, sizes, from, self.storage_offset()), make_view(out, sizes, to, out.storage_offset()));
}

namespace {

template <class T>
void fill_indices(const TensorBase& repeats, const TensorBase& out) {
  const T* counts = repeats.data_as<T>();
  const int64_t stride = repeats.dim() ? repeats.strides()[0] : 0;
  T* to = out.mutable_data_as<T>();
  for (int64_t i = 0; i < repeats.numel(); ++i)
    for (T k = 0; k < counts[i * stride]; ++k) *to++ = static_cast<T>(i);
}

template <class T>
int64_t total(const TensorBase& repeats) {
  const T* counts = repeats.data_as<T>();
  const int64_t stride = repeats.dim() ? repeats.strides()[0] : 0;
  SymInt sum = 0;  // checked: repeats are data
  for (int64_t i = 0; i < repeats.numel(); ++i) {
    if (counts[i * stride] < 0)
      throw UserError("repeat_interleave: repeats can not be negative, found " + std::to_string(counts[i * stride]) +
                      " at index " + std::to_string(i));
    sum += counts[i * stride];
  }
  return sum.as_int();
}

}  // namespace

void repeat_indices(const TensorBase& repeats, const TensorBase& out) {
  if (out.numel() == 0) return;
  if (repeats.dtype() == DType::int32)
    fill_indices<int32_t>(repeats, out);
  else
    fill_indices<int64_t>(repeats, out);
}

int64_t repeat_total(const TensorBase& repeats) {
  if (repeats.numel() == 0) return 0;
  return repeats.dtype() == DType::int32 ? total<int32_t>(repeats) : total<int64_t>(repeats);
}

}  // namespace calque::kernel
