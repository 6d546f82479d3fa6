#include "kernel/cpu/index/index.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "calque/base/memory.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/reduce/reduce_ops.h"

namespace calque::kernel {
namespace {

constexpr int64_t block = 512;                   // indices turned into offsets at a time
constexpr int64_t index_grain_bytes = 64 << 10;  // below this a thread is not worth waking

// A run of n elements of the selected tensor beside n of the other one; strides in bytes.
using RunFn = void (*)(char* selected, int64_t selected_stride, char* other, int64_t other_stride, int64_t n,
                       const void* parameter);
// The same where each selected element has an offset of its own.
using PickFn = void (*)(char* selected, const int64_t* offsets, char* other, int64_t other_stride, int64_t n,
                        const void* parameter);
struct Action {
  RunFn run;
  PickFn pick;
};

template <class U>
struct Read {
  using Item = U;
  static constexpr bool copies = true;
  static void element(U& selected, U& other, const void*) { other = selected; }
};
template <class U>
struct Write {
  using Item = U;
  static constexpr bool copies = true;
  static void element(U& selected, U& other, const void*) { selected = other; }
};
template <class T, Put how>
struct Combine {
  using Item = T;
  static constexpr bool copies = false;
  static void element(T& selected, T& other, const void*) {
    if constexpr (how == Put::add)
      selected = reduce_add(selected, other);
    else if constexpr (how == Put::multiply)
      selected = reduce_multiply(selected, other);
    else if constexpr (how == Put::maximum)
      selected = reduce_maximum(selected, other);
    else
      selected = reduce_minimum(selected, other);
  }
};
template <class T>
struct AddScaled {
  using Item = T;
  static constexpr bool copies = false;
  static void element(T& selected, T& other, const void* alpha) {
    using Wide = WideOf<T>;
    const Wide factor = *static_cast<const Wide*>(alpha);
    if constexpr (is_integral_type<T>)
      selected = reduce_add(selected, reduce_multiply(static_cast<T>(factor), other));
    else
      selected = static_cast<T>(static_cast<Wide>(selected) + factor * static_cast<Wide>(other));
  }
};
template <class U>
inline constexpr bool is_read = false;
template <class U>
inline constexpr bool is_read<Read<U>> = true;

template <class A>
void run_action(char* selected, int64_t selected_stride, char* other, int64_t other_stride, int64_t n,
                const void* parameter) {
  using T = typename A::Item;
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  if constexpr (A::copies)
    if (selected_stride == item && other_stride == item) {
      if constexpr (is_read<A>)
        std::memcpy(other, selected, static_cast<size_t>(n * item));
      else
        std::memcpy(selected, other, static_cast<size_t>(n * item));
      return;
    }
  for (int64_t i = 0; i < n; ++i)
    A::element(*reinterpret_cast<T*>(selected + i * selected_stride), *reinterpret_cast<T*>(other + i * other_stride),
               parameter);
}
template <class A>
void pick_action(char* selected, const int64_t* offsets, char* other, int64_t other_stride, int64_t n,
                 const void* parameter) {
  using T = typename A::Item;
  for (int64_t i = 0; i < n; ++i)
    A::element(*reinterpret_cast<T*>(selected + offsets[i]), *reinterpret_cast<T*>(other + i * other_stride), parameter);
}
template <class A>
constexpr Action action_of{&run_action<A>, &pick_action<A>};

// Bytes moved as one: a whole short row may be taken for an element, and is aligned as its own elements are.
template <int n>
struct __attribute__((packed, may_alias)) Bytes {
  unsigned char bytes[n];
};
template <template <class> class A>
Action copy_action(int64_t item) {
  switch (item) {
    case 1: return action_of<A<Bytes<1>>>;
    case 2: return action_of<A<Bytes<2>>>;
    case 4: return action_of<A<Bytes<4>>>;
    case 8: return action_of<A<Bytes<8>>>;
    default: return action_of<A<Bytes<16>>>;
  }
}

// Dimensions that two operands are walked over together; innermost last, merged where both allow it.
struct IndexWalk {
  SmallVector<int64_t, 8> sizes, selected, other;  // strides in bytes
  int64_t count = 1;

  void add(int64_t size, int64_t s, int64_t o) {
    count *= size;
    if (size == 1) return;
    if (!sizes.empty() && selected.back() == s * size && other.back() == o * size) {
      sizes.back() *= size;
      selected.back() = s;
      other.back() = o;
      return;
    }
    sizes.push_back(size);
    selected.push_back(s);
    other.push_back(o);
  }
  void at(int64_t position, int64_t& s, int64_t& o) const {
    s = o = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      const int64_t i = position % sizes[d];
      position /= sizes[d];
      s += i * selected[d];
      o += i * other[d];
    }
  }
};

// The byte offsets that index tensors stand for, on demand.
class Offsets {
 public:
  Offsets(const TensorBase& self, const Selection& where) : op_(where.op), wraps_(where.wraps), first_(where.first) {
    const int64_t item = self.element_size();
    for (size_t k = 0; k < where.tensors.size(); ++k) {
      const auto d = static_cast<size_t>(where.first) + k;
      held_.push_back(as_index(*where.tensors[k], where.sizes));
      data_.push_back(held_.back().data_as<int64_t>());
      sizes_.push_back(self.sizes()[d]);
      strides_.push_back(self.strides()[d] * item);
    }
  }
  void fill(int64_t begin, int64_t n, int64_t* to) const {
    for (size_t k = 0; k < data_.size(); ++k) {
      const int64_t* index = data_[k] + begin;
      const int64_t size = sizes_[k];
      const int64_t stride = strides_[k];
      const int64_t lowest = wraps_ ? -size : 0;
      bool bad = false;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t v = index[i];
        bad |= v < lowest || v >= size;
        // Unsigned, because an index that is refused below may overflow.
        const uint64_t offset = static_cast<uint64_t>(v < 0 ? v + size : v) * static_cast<uint64_t>(stride);
        to[i] = static_cast<int64_t>(k == 0 ? offset : static_cast<uint64_t>(to[i]) + offset);
      }
      if (bad) refuse(index, n, k);
    }
  }

 private:
  [[noreturn]] void refuse(const int64_t* index, int64_t n, size_t k) const {
    const int64_t size = sizes_[k];
    int64_t v = 0;
    for (int64_t i = 0; i < n; ++i) {
      v = index[i];
      if (v >= size || v < (wraps_ ? -size : 0)) break;
    }
    throw UserError(std::string(op_) + ": index " + std::to_string(v) + " is out of bounds for dimension " +
                    std::to_string(first_ + static_cast<int64_t>(k)) + " with size " + std::to_string(size));
  }

  const char* op_;
  bool wraps_;
  int64_t first_;
  std::vector<TensorBase> held_;
  SmallVector<const int64_t*, 4> data_;
  SmallVector<int64_t, 4> sizes_, strides_;
};

// One selection between `self` and `other`, which has the sizes [before..., index sizes..., after...].
class IndexEngine {
 public:
  IndexEngine(const TensorBase& self, const Selection& where, const TensorBase& other)
      : offsets_(self, where), item_(self.element_size()) {
    const auto first = static_cast<size_t>(where.first);
    const size_t replaced = where.sizes.size();
    const IntList s = self.strides();
    const IntList o = other.strides();
    for (size_t d = 0; d < first; ++d) before_.add(self.sizes()[d], s[d] * item_, o[d] * item_);
    for (size_t d = 0; d < replaced; ++d) indexed_.add(where.sizes[d], 0, o[first + d] * item_);
    for (size_t d = first + where.tensors.size(), at = first + replaced; d < s.size(); ++d, ++at)
      after_.add(self.sizes()[d], s[d] * item_, o[at] * item_);
    selected_ = static_cast<char*>(const_cast<void*>(self.data()));
    other_ = static_cast<char*>(const_cast<void*>(other.data()));
  }
  // Several adjacent elements that move together are one wider element. Only for copies.
  void widen() {
    if (after_.sizes.size() != 1 || after_.selected[0] != item_ || after_.other[0] != item_) return;
    const int64_t bytes = after_.sizes[0] * item_;
    if (bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16) return;
    item_ = bytes;
    after_ = IndexWalk();
  }
  int64_t item() const { return item_; }
  bool empty() const { return before_.count == 0 || indexed_.count == 0 || after_.count == 0; }

  void read(const Action& action) {
    action_ = action;
    const int64_t inner = std::max<int64_t>(1, after_.count * item_);
    if (indexed_.count >= before_.count)
      parallel_for(0, indexed_.count, grain(before_.count * inner),
                   [&](int64_t b, int64_t e) { run(0, before_.count, b, e, 0, outer_after()); });
    else
      parallel_for(0, before_.count, grain(indexed_.count * inner),
                   [&](int64_t b, int64_t e) { run(b, e, 0, indexed_.count, 0, outer_after()); });
  }
  // Equal indices must be written one after another: threads share the other dimensions only.
  void write(const Action& action, const void* parameter) {
    action_ = action;
    parameter_ = parameter;
    const int64_t inner = std::max<int64_t>(1, after_.count * item_);
    if (before_.count >= num_threads() || after_.sizes.empty())
      parallel_for(0, before_.count, grain(indexed_.count * inner),
                   [&](int64_t b, int64_t e) { run(b, e, 0, indexed_.count, 0, outer_after()); });
    else
      parallel_for(0, outer_after(), grain(before_.count * indexed_.count * inner / outer_after()),
                   [&](int64_t b, int64_t e) { run(0, before_.count, 0, indexed_.count, b, e); });
  }

 private:
  static int64_t grain(int64_t bytes_each) {
    return std::max<int64_t>(1, index_grain_bytes / std::max<int64_t>(1, bytes_each));
  }
  int64_t outer_after() const { return after_.sizes.empty() ? 1 : after_.sizes[0]; }

  void run(int64_t before_begin, int64_t before_end, int64_t begin, int64_t end, int64_t after_begin,
           int64_t after_end) const {
    int64_t offsets[block];
    for (int64_t at = begin; at < end; at += block) {
      const int64_t n = std::min(block, end - at);
      offsets_.fill(at, n, offsets);
      for (int64_t b = before_begin; b < before_end; ++b) {
        int64_t s, o;
        before_.at(b, s, o);
        if (after_.sizes.empty())
          run_elements(selected_ + s, other_ + o, offsets, at, n);
        else
          run_slices(selected_ + s, other_ + o, offsets, at, n, after_begin, after_end);
      }
    }
  }
  void run_elements(char* selected, char* other, const int64_t* offsets, int64_t at, int64_t n) const {
    if (indexed_.sizes.size() <= 1) {
      const int64_t stride = indexed_.sizes.empty() ? 0 : indexed_.other[0];
      action_.pick(selected, offsets, other + at * stride, stride, n, parameter_);
      return;
    }
    const int64_t row = indexed_.sizes.back();
    for (int64_t i = 0; i < n;) {
      int64_t s, o;
      indexed_.at(at + i, s, o);
      const int64_t m = std::min(n - i, row - (at + i) % row);
      action_.pick(selected, offsets + i, other + o, indexed_.other.back(), m, parameter_);
      i += m;
    }
  }
  void run_slices(char* selected, char* other, const int64_t* offsets, int64_t at, int64_t n, int64_t begin,
                  int64_t end) const {
    for (int64_t i = 0; i < n; ++i) {
      int64_t s, o;
      indexed_.at(at + i, s, o);
      run_after(selected + offsets[i], other + o, 0, begin, end);
    }
  }
  void run_after(char* selected, char* other, size_t d, int64_t begin, int64_t end) const {
    const int64_t s = after_.selected[d];
    const int64_t o = after_.other[d];
    if (d + 1 == after_.sizes.size()) {
      action_.run(selected + begin * s, s, other + begin * o, o, end - begin, parameter_);
      return;
    }
    for (int64_t i = begin; i < end; ++i) run_after(selected + i * s, other + i * o, d + 1, 0, after_.sizes[d + 1]);
  }

  Offsets offsets_;
  int64_t item_;
  IndexWalk before_, indexed_, after_;
  char* selected_;
  char* other_;
  Action action_{};
  const void* parameter_ = nullptr;
};

TensorBase expanded(const TensorBase& values, const SymInts& sizes, const char* op) {
  const SymIntList own = values.sym_sizes();
  SymInts strides(sizes.size(), 0);
  if (own.size() > sizes.size())
    throw UserError(std::string(op) + ": shape mismatch: values of sizes " + str(own) + " cannot be broadcast to " +
                    str(SymIntList(sizes)));
  const size_t lead = sizes.size() - own.size();
  for (size_t d = 0; d < own.size(); ++d) {
    const int64_t size = own[d].as_int();
    if (size != 1 && size != sizes[lead + d].as_int())
      throw UserError(std::string(op) + ": shape mismatch: values of sizes " + str(own) + " cannot be broadcast to " +
                      str(SymIntList(sizes)));
    if (size != 1) strides[lead + d] = values.sym_strides()[d];
  }
  return make_view(values, sizes, strides, values.sym_storage_offset());
}

// Whether some element would be written twice. When the answer would cost much, yes.
bool has_duplicates(const TensorBase& self, const Selection& where) {
  int64_t range = 1;
  int64_t count = 1;
  for (const int64_t s : where.sizes) count *= s;
  for (size_t k = 0; k < where.tensors.size(); ++k) range *= self.sizes()[static_cast<size_t>(where.first) + k];
  if (count > range || range > (int64_t{1} << 24)) return true;
  CountedVector<bool> seen(static_cast<size_t>(range));
  std::vector<TensorBase> held;
  for (const TensorBase* t : where.tensors) held.push_back(as_index(*t, where.sizes));
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (size_t k = 0; k < held.size(); ++k) {
      const int64_t size = self.sizes()[static_cast<size_t>(where.first) + k];
      const int64_t v = held[k].data_as<int64_t>()[i];
      if (v < -size || v >= size) return false;  // refused where it is used
      at = at * size + (v < 0 ? v + size : v);
    }
    if (seen[static_cast<size_t>(at)]) return true;
    seen[static_cast<size_t>(at)] = true;
  }
  return false;
}

// Sums and products of 16-bit floats are kept in float32 while they grow.
template <class F>
bool in_float32(const TensorBase& self, const Selection& where, const TensorBase& values, F&& combine) {
  if (!is_reduced_float(self.dtype()) || !has_duplicates(self, where)) return false;
  const TensorBase wide = as_float32(self);
  combine(wide, as_float32(values));
  copy(wide, self);
  return true;
}

SymInts selected_sizes(const TensorBase& self, const Selection& where) {
  SymInts sizes;
  const SymIntList own = self.sym_sizes();
  for (int64_t d = 0; d < where.first; ++d) sizes.push_back(own[static_cast<size_t>(d)]);
  for (const int64_t s : where.sizes) sizes.push_back(s);
  for (size_t d = static_cast<size_t>(where.first) + where.tensors.size(); d < own.size(); ++d) sizes.push_back(own[d]);
  return sizes;
}

template <class F>
void with_numbers(const char* op, DType d, F&& fn) {
  dispatch(d, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_number<T>)
      fn(tag);
    else
      throw UserError(ErrorKind::unsupported_operator,
                      std::string(op) + ": not implemented for '" + std::string(name(d)) + "'");
  });
}

}  // namespace

TensorBase as_index(const TensorBase& index, IntList sizes) {
  const bool same = std::equal(index.sizes().begin(), index.sizes().end(), sizes.begin(), sizes.end());
  if (same && index.dtype() == DType::int64 && index.is_contiguous()) return index;
  TensorBase out = make_tensor(sizes, DType::int64);
  copy(index, out);
  return out;
}

TensorBase flattened(const TensorBase& t) {
  const SymInt n = t.numel();
  if (t.is_contiguous()) return make_view(t, {n}, {1}, t.sym_storage_offset());
  TensorBase out = make_tensor(t.sizes(), t.dtype());
  copy(t, out);
  return make_view(out, {n}, {1}, 0);
}

TensorBase as_float32(const TensorBase& t) {
  TensorBase out = make_tensor(t.sizes(), DType::float32);
  copy(t, out);
  return out;
}

void select_elements(const TensorBase& self, const Selection& where, const TensorBase& out) {
  IndexEngine engine(self, where, out);
  if (engine.empty()) return;
  engine.widen();
  engine.read(copy_action<Read>(engine.item()));
}

void put_elements(const TensorBase& self, const Selection& where, const TensorBase& values, Put how) {
  if ((how == Put::add || how == Put::multiply) &&
      in_float32(self, where, values, [&](const TensorBase& s, const TensorBase& v) { put_elements(s, where, v, how); }))
    return;
  const TensorBase source = expanded(values, selected_sizes(self, where), where.op);
  IndexEngine engine(self, where, source);
  if (engine.empty()) return;
  if (how == Put::assign) {
    engine.widen();
    engine.write(copy_action<Write>(engine.item()), nullptr);
    return;
  }
  with_numbers(where.op, self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (how) {
      case Put::assign: break;
      case Put::add: return engine.write(action_of<Combine<T, Put::add>>, nullptr);
      case Put::multiply: return engine.write(action_of<Combine<T, Put::multiply>>, nullptr);
      case Put::maximum: return engine.write(action_of<Combine<T, Put::maximum>>, nullptr);
      case Put::minimum: return engine.write(action_of<Combine<T, Put::minimum>>, nullptr);
    }
  });
}

void add_elements(const TensorBase& self, const Selection& where, const TensorBase& values, const Scalar& alpha) {
  if (!alpha.is_floating() && alpha.to_int() == 1) return put_elements(self, where, values, Put::add);
  if (in_float32(self, where, values, [&](const TensorBase& s, const TensorBase& v) { add_elements(s, where, v, alpha); }))
    return;
  const TensorBase source = expanded(values, selected_sizes(self, where), where.op);
  IndexEngine engine(self, where, source);
  if (engine.empty()) return;
  with_numbers(where.op, self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Wide = WideOf<T>;
    const Wide factor =
        std::is_floating_point_v<Wide> ? static_cast<Wide>(alpha.to_double()) : static_cast<Wide>(alpha.to_int());
    engine.write(action_of<AddScaled<T>>, &factor);
  });
}

}  // namespace calque::kernel
