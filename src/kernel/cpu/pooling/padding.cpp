#include "kernel/cpu/pooling/padding.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"

namespace calque::kernel {
namespace {

TensorBase part(const TensorBase& t, size_t dim, int64_t start, int64_t length) {
  SymInts sizes = t.impl().sizes;
  sizes[dim] = length;
  return make_view(t, sizes, t.impl().strides, t.storage_offset() + start * t.strides()[dim]);
}

}  // namespace

void pad_constant(const TensorBase& inside, IntList begin, const Scalar& value, const TensorBase& out) {
  const TensorBase number = wrapped_scalar(value, out.dtype());
  TensorBase rest = out;  // what is left after the slabs of the dimensions so far
  for (size_t d = 0; d < begin.size(); ++d) {
    const int64_t length = inside.sizes()[d];
    const int64_t end = begin[d] + length;
    if (begin[d] > 0) copy(number, part(rest, d, 0, begin[d]));
    if (end < out.sizes()[d]) copy(number, part(rest, d, end, out.sizes()[d] - end));
    rest = part(rest, d, begin[d], length);
  }
  copy(inside, rest);
}

namespace {

// Which element of a dimension of `size` lies at position i of the padded one.
int64_t source(Border border, int64_t i, int64_t before, int64_t size) {
  int64_t at = i - before;
  if (border == Border::replication) return std::clamp<int64_t>(at, 0, size - 1);
  if (at < 0) at = -at;
  return at >= size ? 2 * (size - 1) - at : at;
}

struct Dimension {
  int64_t size;
  int64_t from;  // stride in bytes
  int64_t to;
  std::vector<int64_t> map;        // byte offset into the source for each position; empty when nothing is padded
  int64_t plain_begin, plain_end;  // positions between which the source advances by one
};

template <class T>
void copy_line(const Dimension& d, const char* from, char* to) {
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  const auto put = [&](int64_t i, int64_t offset) {
    *reinterpret_cast<T*>(to + i * d.to) = *reinterpret_cast<const T*>(from + offset);
  };
  int64_t begin = 0;
  int64_t end = d.size;
  if (!d.map.empty()) {
    begin = d.plain_begin;
    end = d.plain_end;
    for (int64_t i = 0; i < begin; ++i) put(i, d.map[static_cast<size_t>(i)]);
    for (int64_t i = end; i < d.size; ++i) put(i, d.map[static_cast<size_t>(i)]);
  }
  if (begin >= end) return;
  const int64_t first = d.map.empty() ? 0 : d.map[static_cast<size_t>(begin)];
  if (d.from == item && d.to == item)
    std::memcpy(to + begin * item, from + first, static_cast<size_t>((end - begin) * item));
  else
    for (int64_t i = begin; i < end; ++i) put(i, first + (i - begin) * d.from);
}

template <class T>
void pad_lines(const std::vector<Dimension>& dims, const char* from, char* to) {
  const Dimension& line = dims.back();
  int64_t lines = 1;
  for (size_t d = 0; d + 1 < dims.size(); ++d) lines *= dims[d].size;
  parallel_for(0, lines, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, line.size)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i;
      const char* f = from;
      char* t = to;
      for (size_t k = dims.size() - 1; k-- > 0;) {
        const Dimension& d = dims[k];
        const int64_t index = rest % d.size;
        rest /= d.size;
        f += d.map.empty() ? index * d.from : d.map[static_cast<size_t>(index)];
        t += index * d.to;
      }
      copy_line<T>(line, f, t);
    }
  });
}

}  // namespace

void pad_border(Border border, const TensorBase& self, IntList pad, const TensorBase& out) {
  if (out.numel() == 0) return;
  const int64_t item = out.element_size();
  const auto n = static_cast<size_t>(out.dim());
  std::vector<Dimension> dims(n);
  for (size_t k = 0; k < n; ++k) {
    Dimension& d = dims[k];
    d.size = out.sizes()[k];
    d.from = self.strides()[k] * item;
    d.to = out.strides()[k] * item;
    const size_t from_last = n - 1 - k;
    if (2 * from_last >= pad.size()) continue;
    const int64_t before = pad[2 * from_last];
    const int64_t size = self.sizes()[k];
    d.plain_begin = std::clamp<int64_t>(before, 0, d.size);
    d.plain_end = std::clamp<int64_t>(before + size, d.plain_begin, d.size);
    for (int64_t i = 0; i < d.size; ++i) d.map.push_back(source(border, i, before, size) * d.from);
  }
  std::stable_sort(dims.begin(), dims.end(), [](const Dimension& a, const Dimension& b) { return a.to > b.to; });
  const auto* from = static_cast<const char*>(self.data());
  auto* to = static_cast<char*>(out.mutable_data());
  switch (item) {
    case 1: return pad_lines<uint8_t>(dims, from, to);
    case 2: return pad_lines<uint16_t>(dims, from, to);
    case 4: return pad_lines<uint32_t>(dims, from, to);
    case 8: return pad_lines<uint64_t>(dims, from, to);
    default: return pad_lines<Complex128>(dims, from, to);
  }
}

namespace {

// One plane: `dims` dimensions of the result, each with the place that a position of the padded one comes from.
template <class C>
void add_planes(const TensorBase& from, const std::vector<std::vector<int64_t>>& places, const TensorBase& to) {
  const size_t dims = places.size();
  int64_t in_plane = 1, out_plane = 1;
  for (size_t d = 0; d < dims; ++d) {
    in_plane *= static_cast<int64_t>(places[d].size());
    out_plane *= to.sizes()[to.sizes().size() - dims + d];
  }
  const int64_t planes = out_plane == 0 ? 0 : to.numel() / out_plane, width = static_cast<int64_t>(places.back().size());
  const int64_t lines = width == 0 ? 0 : in_plane / width, out_width = to.sizes().back();
  const C* source_data = from.data_as<C>();
  C* sums = to.mutable_data_as<C>();
  parallel_for(0, planes, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, in_plane)), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane)
      for (int64_t line = 0; line < lines; ++line) {
        int64_t rest = line, at = 0, step = out_width;
        for (size_t d = dims - 1; d-- > 0;) {
          at += places[d][static_cast<size_t>(rest % static_cast<int64_t>(places[d].size()))] * step;
          rest /= static_cast<int64_t>(places[d].size());
          step *= to.sizes()[to.sizes().size() - dims + d];
        }
        const C* g = source_data + plane * in_plane + line * width;
        C* s = sums + plane * out_plane + at;
        for (int64_t i = 0; i < width; ++i) s[places.back()[static_cast<size_t>(i)]] += g[i];
      }
  });
}

}  // namespace

void pad_border_backward(Border border, const TensorBase& grad_output, IntList pad, const TensorBase& grad_input) {
  const DType wide = grad_input.dtype() == DType::float64 ? DType::float64 : DType::float32;
  const bool direct = grad_input.dtype() == wide && grad_input.is_contiguous();
  const TensorBase sums = direct ? grad_input : make_tensor(grad_input.sizes(), wide);
  copy(wrapped_scalar(Scalar(0), wide), sums);
  if (grad_output.numel() != 0) {
    const size_t dims = pad.size() / 2, n = static_cast<size_t>(grad_input.dim());
    std::vector<std::vector<int64_t>> places(dims);
    for (size_t d = 0; d < dims; ++d)
      for (int64_t i = 0; i < grad_output.sizes()[n - dims + d]; ++i)
        places[d].push_back(source(border, i, pad[2 * (dims - 1 - d)], grad_input.sizes()[n - dims + d]));
    const TensorBase from = contiguous_as(grad_output, wide);
    if (wide == DType::float64)
      add_planes<double>(from, places, sums);
    else
      add_planes<float>(from, places, sums);
  }
  if (!direct) copy(sums, grad_input);
}

}  // namespace calque::kernel
