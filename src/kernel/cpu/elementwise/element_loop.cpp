#include "kernel/cpu/elementwise/element_loop.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/move.h"
#include "kernel/cpu/require.h"

namespace calque::kernel {
namespace {

constexpr int64_t short_piece = 256;
constexpr int64_t long_row = 64;  // rows from here on are walked one by one, shorter ones are gathered together

constexpr bool is_native(DType d) { return d == DType::float32 || d == DType::float64 || d == DType::int64; }

}  // namespace

ElementLoop::Operand& ElementLoop::add(const TensorBase* tensor, bool is_output) {
  internal_assert(count_ < max_operands, "too many operands in an elementwise loop");
  Operand& o = operands_[count_++];
  o.tensor = tensor;
  o.is_output = is_output;
  o.constant = false;
  o.wide = false;
  return o;
}

ElementLoop& ElementLoop::output(const TensorBase& t) {
  const IntList sizes = t.sizes();
  if (count_ == 0) {
    sizes_.assign(sizes.begin(), sizes.end());
    numel_ = t.numel();
  }
  if (count_ > 0) require_sizes("an elementwise loop", "an output", t, {sizes_.data(), sizes_.size()});
  Operand& o = add(&t, true);
  o.dtype = t.dtype();
  o.data = numel_ ? static_cast<char*>(t.mutable_data()) : nullptr;
  flat_ = flat_ && t.is_contiguous();
  return *this;
}

ElementLoop& ElementLoop::input(const TensorBase& t) {
  Operand& o = add(&t, false);
  o.dtype = t.dtype();
  o.data = numel_ ? static_cast<char*>(const_cast<void*>(t.data())) : nullptr;
  const IntList sizes = t.sizes();
  o.constant = t.numel() == 1;
  const bool same = std::equal(sizes.begin(), sizes.end(), sizes_.begin(), sizes_.end());
  if (!same) require_broadcast("an elementwise loop", "an input", t, {sizes_.data(), sizes_.size()});
  flat_ = flat_ && (o.constant || (same && t.is_contiguous()));
  return *this;
}

ElementLoop& ElementLoop::input(const Scalar& s) {
  // Kept as the number it is (double or int64) and brought to `common` like any other operand: it may wrap or round.
  Operand& o = add(nullptr, false);
  if (s.is_complex()) {
    o.dtype = DType::complex128;
    *reinterpret_cast<Complex128*>(o.value) = s.to_complex();
  } else if (s.is_floating()) {
    o.dtype = DType::float64;
    *reinterpret_cast<double*>(o.value) = s.to_double();
  } else {
    o.dtype = DType::int64;
    *reinterpret_cast<int64_t*>(o.value) = s.to_int();
  }
  o.data = o.value;
  o.constant = true;
  return *this;
}

ElementLoop& ElementLoop::keep_wide() {
  Operand& o = operands_[count_ - 1];
  o.wide = o.constant;
  return *this;
}

// Nothing but contiguous operands of one shape: one long row, and no question left to ask.
void ElementLoop::plan_flat() {
  sizes_.clear();
  sizes_.push_back(numel_);
  for (int k = 0; k < count_; ++k) {
    Operand& o = operands_[k];
    o.native = o.dtype == common_ && (direct_ || is_native(o.dtype));
    o.flat = !o.constant;
    o.strides.clear();
    o.strides.push_back(o.constant ? 0 : static_cast<int64_t>(item_size(o.dtype)));
  }
}

void ElementLoop::plan() {
  const int n = static_cast<int>(sizes_.size());
  for (int k = 0; k < count_; ++k) {
    Operand& o = operands_[k];
    o.strides.clear();
    o.strides.resize(sizes_.size(), 0);
    if (!o.tensor) continue;
    const IntList own_sizes = o.tensor->sizes();
    const IntList own_strides = o.tensor->strides();
    const int64_t item = o.tensor->element_size();
    const size_t lead = sizes_.size() - own_sizes.size();
    for (size_t d = 0; d < own_sizes.size(); ++d) o.strides[lead + d] = own_sizes[d] == 1 ? 0 : own_strides[d] * item;
  }
  // Iterate in the order of memory: by the first operand whose strides tell two dimensions apart.
  SmallVector<int, 8> order(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
  const auto outer_first = [&](int a, int b) {
    for (int k = 0; k < count_; ++k) {
      const int64_t sa = operands_[k].strides[static_cast<size_t>(a)];
      const int64_t sb = operands_[k].strides[static_cast<size_t>(b)];
      if (sa == 0 || sb == 0 || sa == sb) continue;
      return sa > sb;
    }
    return false;
  };
  for (size_t i = 1; i < order.size(); ++i)  // insertion sort: the comparison is no strict weak order
    for (size_t j = i; j > 0 && outer_first(order[j], order[j - 1]); --j) std::swap(order[j], order[j - 1]);

  SmallVector<int64_t, 8> sizes;
  SmallVector<int64_t, 8> strides[max_operands];
  for (const int dim : order) {
    const auto d = static_cast<size_t>(dim);
    if (sizes_[d] == 1) continue;
    bool merges = !sizes.empty();
    for (int k = 0; k < count_ && merges; ++k) merges = strides[k].back() == operands_[k].strides[d] * sizes_[d];
    if (merges) {
      sizes.back() *= sizes_[d];
      for (int k = 0; k < count_; ++k) strides[k].back() = operands_[k].strides[d];
    } else {
      sizes.push_back(sizes_[d]);
      for (int k = 0; k < count_; ++k) strides[k].push_back(operands_[k].strides[d]);
    }
  }
  if (sizes.empty()) {
    sizes.push_back(1);
    for (int k = 0; k < count_; ++k) strides[k].push_back(0);
  }
  sizes_ = sizes;
  for (int k = 0; k < count_; ++k) {
    Operand& o = operands_[k];
    o.strides = strides[k];
    o.native = o.dtype == common_ && (direct_ || is_native(o.dtype));
    const auto item = static_cast<int64_t>(item_size(o.dtype));
    o.constant = !o.is_output && std::all_of(o.strides.begin(), o.strides.end(), [](int64_t stride) { return stride == 0; });
    o.flat = numel_ == 1;
    if (!o.flat && !o.constant) {
      int64_t expected = item;
      o.flat = true;
      for (size_t d = sizes_.size(); d-- > 0;) {
        o.flat = o.flat && o.strides[d] == expected;
        expected *= sizes_[d];
      }
    }
  }
}

namespace {

// Walks the row segments of the linear range [position, position + n): fn(byte offset, segment length, elements before).
template <class F>
void each_segment(const SmallVector<int64_t, 8>& sizes, const SmallVector<int64_t, 8>& strides, int64_t position, int64_t n,
                  F&& fn) {
  const size_t dims = sizes.size();
  const size_t last = dims - 1;
  SmallVector<int64_t, 8> index(dims);
  int64_t rest = position;
  int64_t offset = 0;
  for (size_t d = dims; d-- > 0;) {
    index[d] = rest % sizes[d];
    rest /= sizes[d];
    offset += index[d] * strides[d];
  }
  int64_t done = 0;
  while (true) {
    const int64_t length = std::min(sizes[last] - index[last], n - done);
    fn(offset, length, done);
    done += length;
    if (done == n) return;
    offset -= index[last] * strides[last];
    index[last] = 0;
    for (size_t d = last; d-- > 0;) {
      offset += strides[d];
      if (++index[d] < sizes[d]) break;
      offset -= index[d] * strides[d];
      index[d] = 0;
    }
  }
}

}  // namespace

// n elements, `stride` bytes apart, into what the loop works on. What a 16-bit loop works on is moved as it is.
void ElementLoop::load_run(const Operand& o, const char* from, int64_t stride, void* to, int64_t n) const {
  if (direct_) {
    auto* t = static_cast<uint16_t*>(to);
    if (stride == 0)
      fill16(t, n, *reinterpret_cast<const uint16_t*>(from));
    else
      for (int64_t i = 0; i < n; ++i) t[i] = *reinterpret_cast<const uint16_t*>(from + i * stride);
    return;
  }
  load_fn(o.dtype, compute_)(from, stride, to, n);
  if (o.dtype != common_ && !o.wide)
    if (const NormalizeFn normalize = normalize_fn(common_)) normalize(to, n);
}

void ElementLoop::store_run(const Operand& o, void* from, char* to, int64_t stride, int64_t n) const {
  if (direct_) {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<uint16_t*>(to + i * stride) = static_cast<const uint16_t*>(from)[i];
    return;
  }
  if (o.dtype != common_)
    if (const NormalizeFn normalize = normalize_fn(common_)) normalize(from, n);
  store_fn(compute_, o.dtype)(from, to, stride, n);
}

void ElementLoop::run_range(int64_t begin, int64_t end, ElementFn fn, const void* parameters) const {
  alignas(64) std::byte buffers[max_operands][chunk * 16];
  void* arrays[max_operands];
  const int64_t limit = std::min(compute_ == Compute::c128 ? chunk : chunk * 2, end - begin);
  bool all_flat = true;
  bool constants = false;
  for (int k = 0; k < count_; ++k) {
    const Operand& o = operands_[k];
    if (o.constant) {
      constants = true;
      arrays[k] = buffers[k];
      load_run(o, o.data, 0, buffers[k], limit);
    } else if (!(o.flat && o.native)) {
      all_flat = false;
    }
  }
  if (all_flat && !constants) {
    for (int k = 0; k < count_; ++k)
      arrays[k] = operands_[k].data + begin * static_cast<int64_t>(item_size(operands_[k].dtype));
    fn(arrays, end - begin, parameters);
  } else if (!all_flat && sizes_.size() > 1 && sizes_.back() >= long_row) {
    run_rows(begin, end, limit, fn, parameters, arrays, buffers);
  } else {
    run_blocks(begin, end, limit, fn, parameters, arrays, buffers);
  }
}

// Long rows one by one, in pieces of at most `limit`; the outer dimensions turn like an odometer. A value that is the same
// along the row is spread once a row, over a short piece that all pieces of the row then read.
void ElementLoop::run_rows(int64_t begin, int64_t end, int64_t limit, ElementFn fn, const void* parameters, void** arrays,
                           Buffer* buffers) const {
  const size_t outer = sizes_.size() - 1;
  const int64_t row = sizes_.back();
  SmallVector<int64_t, 8> index(outer);
  const char* line[max_operands];
  int64_t advance[max_operands];  // bytes an element, of what is read and written where it lies
  bool converts = false;
  for (int k = 0; k < count_; ++k) {
    const Operand& o = operands_[k];
    const int64_t stride = o.strides[outer];
    line[k] = o.data;
    const bool in_place = !o.constant && o.native && stride == static_cast<int64_t>(item_size(o.dtype));
    advance[k] = in_place ? stride : 0;
    if (o.constant || in_place) continue;
    if (o.is_output || stride != 0)
      converts = true;
    else
      limit = std::min(limit, short_piece);
  }
  int64_t rest = begin / row;
  for (size_t d = outer; d-- > 0;) {
    index[d] = rest % sizes_[d];
    rest /= sizes_[d];
    for (int k = 0; k < count_; ++k) line[k] += index[d] * operands_[k].strides[d];
  }
  int64_t in_row = begin % row;
  for (int64_t at = begin; at < end;) {
    const int64_t length = std::min(end - at, row - in_row);
    for (int k = 0; k < count_; ++k) {
      const Operand& o = operands_[k];
      if (advance[k] != 0)
        arrays[k] = const_cast<char*>(line[k] + in_row * advance[k]);
      else if (!o.constant)
        arrays[k] = buffers[k];
      if (!o.constant && !o.is_output && o.strides[outer] == 0) load_run(o, line[k], 0, buffers[k], std::min(limit, length));
    }
    for (int64_t done = 0, n; done < length; done += n) {
      n = std::min(limit, length - done);
      const auto place = [&](int k) { return line[k] + (in_row + done) * operands_[k].strides[outer]; };
      for (int k = 0; converts && k < count_; ++k) {
        const Operand& o = operands_[k];
        if (advance[k] == 0 && !o.constant && !o.is_output && o.strides[outer] != 0)
          load_run(o, place(k), o.strides[outer], buffers[k], n);
      }
      fn(arrays, n, parameters);
      for (int k = 0; converts && k < count_ && operands_[k].is_output; ++k)
        if (advance[k] == 0)
          store_run(operands_[k], buffers[k], const_cast<char*>(place(k)), operands_[k].strides[outer], n);
      for (int k = 0; k < count_; ++k) arrays[k] = static_cast<char*>(arrays[k]) + n * advance[k];
    }
    at += length;
    in_row = 0;
    for (size_t d = outer; d-- > 0;) {
      const bool turns_over = ++index[d] == sizes_[d];
      const int64_t steps = turns_over ? 1 - sizes_[d] : 1;
      for (int k = 0; k < count_; ++k) line[k] += steps * operands_[k].strides[d];
      if (!turns_over) break;
      index[d] = 0;
    }
  }
}

// Short rows, or one long row that needs converting: blocks of `limit` elements, gathered over as many rows as they span.
void ElementLoop::run_blocks(int64_t begin, int64_t end, int64_t limit, ElementFn fn, const void* parameters, void** arrays,
                             Buffer* buffers) const {
  const int64_t width = direct_ ? 2 : compute_size(compute_);
  for (int64_t at = begin; at < end; at += limit) {
    const int64_t n = std::min(limit, end - at);
    for (int k = 0; k < count_; ++k) {
      const Operand& o = operands_[k];
      if (o.constant) continue;
      if (o.native && o.flat) {
        arrays[k] = o.data + at * static_cast<int64_t>(item_size(o.dtype));
        continue;
      }
      arrays[k] = buffers[k];
      if (o.is_output) continue;
      each_segment(sizes_, o.strides, at, n, [&](int64_t offset, int64_t length, int64_t done) {
        load_run(o, o.data + offset, o.strides.back(), &buffers[k][done * width], length);
      });
    }
    fn(arrays, n, parameters);
    for (int k = 0; k < count_ && operands_[k].is_output; ++k) {
      const Operand& o = operands_[k];
      if (arrays[k] != buffers[k]) continue;
      each_segment(sizes_, o.strides, at, n, [&](int64_t offset, int64_t length, int64_t done) {
        store_run(o, &buffers[k][done * width], o.data + offset, o.strides.back(), length);
      });
    }
  }
}

bool ElementLoop::all_are(DType d) const {
  return common_ == d && std::all_of(operands_, operands_ + count_, [&](const Operand& o) { return o.dtype == d; });
}

void ElementLoop::run(const ElementRow& row, const void* parameters, int64_t grain) {
  direct_ = row.bf16 && all_are(DType::bfloat16);
  run(direct_ ? row.bf16 : row.at(compute_), parameters, grain);
}

bool ElementLoop::all_in_place() const {
  return std::all_of(operands_, operands_ + count_,
                     [&](const Operand& o) { return !o.constant && o.dtype == common_ && (direct_ || is_native(o.dtype)); });
}

void ElementLoop::run(ElementFn fn, const void* parameters, int64_t grain) {
  if (!fn) [[unlikely]]  // no formula for this dtype
    throw UserError(ErrorKind::unsupported_operator,
                    "this elementwise function is not implemented for dtype " + std::string(name(common_)));
  if (numel_ == 0) return;
  if (flat_ && all_in_place()) {  // by far the most calls: nothing to plan, nothing to convert
    const auto item = static_cast<int64_t>(item_size(common_));
    parallel_for(0, numel_, grain, [&](int64_t b, int64_t e) {
      void* arrays[max_operands];
      for (int k = 0; k < count_; ++k) arrays[k] = operands_[k].data + b * item;
      fn(arrays, e - b, parameters);
    });
    return;
  }
  if (flat_)
    plan_flat();
  else
    plan();
  if (numel_ < 2 * grain) {
    run_range(0, numel_, fn, parameters);
    return;
  }
  parallel_for(0, numel_, grain, [&](int64_t b, int64_t e) { run_range(b, e, fn, parameters); });
}

}  // namespace calque::kernel
