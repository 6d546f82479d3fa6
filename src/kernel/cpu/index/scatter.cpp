#include "kernel/cpu/index/scatter.h"

#include <algorithm>
#include <limits>
#include <string>

#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/elementwise/fill.h"
#include "kernel/cpu/reduce/reduce_ops.h"

namespace calque::kernel {
namespace {

constexpr int64_t scatter_grain = 16384;

// n elements of `other` and as many of the indexed tensor, each moved by its index along the dimension. Bytes.
struct ScatterRow {
  char* indexed;
  int64_t indexed_stride;
  int64_t dim_stride;
  int64_t dim_size;
  const char* index;
  int64_t index_stride;
  char* other;
  int64_t other_stride;
  int64_t n;
};
// The first position whose index is outside, or n.
using RowFn = int64_t (*)(const ScatterRow& row);

template <class A>
int64_t run_row(const ScatterRow& row) {
  using T = typename A::Item;
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  const ScatterRow r = row;
  // Along the last dimension of dense tensors: the strides are known, and the loop is short.
  if (r.indexed_stride == 0 && r.dim_stride == item && r.index_stride == 8 && r.other_stride == item) {
    T* const indexed = reinterpret_cast<T*>(r.indexed);
    T* const other = reinterpret_cast<T*>(r.other);
    const auto* const index = reinterpret_cast<const int64_t*>(r.index);
    for (int64_t i = 0; i < r.n; ++i) {
      const int64_t at = index[i];
      if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(r.dim_size)) [[unlikely]]
        return i;
      A::element(indexed[at], other[i]);
    }
    return r.n;
  }
  for (int64_t i = 0; i < r.n; ++i) {
    const int64_t at = *reinterpret_cast<const int64_t*>(r.index + i * r.index_stride);
    if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(r.dim_size)) [[unlikely]]
      return i;
    A::element(*reinterpret_cast<T*>(r.indexed + i * r.indexed_stride + at * r.dim_stride),
               *reinterpret_cast<T*>(r.other + i * r.other_stride));
  }
  return r.n;
}
template <class U>
struct ScatterRead {
  using Item = U;
  static void element(U& indexed, U& other) { other = indexed; }
};
template <class U>
struct ScatterWrite {
  using Item = U;
  static void element(U& indexed, U& other) { indexed = other; }
};
template <class T, Put how>
struct ScatterCombine {
  using Item = T;
  static void element(T& indexed, T& other) {
    if constexpr (how == Put::add)
      indexed = reduce_add(indexed, other);
    else if constexpr (how == Put::multiply)
      indexed = reduce_multiply(indexed, other);
    else if constexpr (how == Put::maximum)
      indexed = reduce_maximum(indexed, other);
    else
      indexed = reduce_minimum(indexed, other);
  }
};
struct WideElement {
  uint64_t words[2];
};
template <template <class> class A>
RowFn copy_row(int64_t item) {
  switch (item) {
    case 1: return &run_row<A<uint8_t>>;
    case 2: return &run_row<A<uint16_t>>;
    case 4: return &run_row<A<uint32_t>>;
    case 8: return &run_row<A<uint64_t>>;
    default: return &run_row<A<WideElement>>;
  }
}

RowFn write_row(const char* op, DType d, Put how) {
  if (how == Put::assign) return copy_row<ScatterWrite>(static_cast<int64_t>(item_size(d)));
  return dispatch(d, [&](auto tag) -> RowFn {
    using T = typename decltype(tag)::type;
    if constexpr (is_number<T>) {
      switch (how) {
        case Put::assign: break;
        case Put::add: return &run_row<ScatterCombine<T, Put::add>>;
        case Put::multiply: return &run_row<ScatterCombine<T, Put::multiply>>;
        case Put::maximum: return &run_row<ScatterCombine<T, Put::maximum>>;
        case Put::minimum: return &run_row<ScatterCombine<T, Put::minimum>>;
      }
    }
    throw UserError(ErrorKind::unsupported_operator,
                    std::string(op) + ": not implemented for '" + std::string(name(d)) + "'");
  });
}

// The dimensions walked over; innermost last, merged where all three operands allow it.
struct ScatterWalk {
  SmallVector<int64_t, 8> sizes, indexed, index, other;
  int64_t count = 1;

  void add(int64_t size, int64_t a, int64_t b, int64_t c) {
    count *= size;
    if (size == 1) return;
    if (!sizes.empty() && indexed.back() == a * size && index.back() == b * size && other.back() == c * size) {
      sizes.back() *= size;
      indexed.back() = a;
      index.back() = b;
      other.back() = c;
      return;
    }
    sizes.push_back(size);
    indexed.push_back(a);
    index.push_back(b);
    other.push_back(c);
  }
  // Takes the innermost dimension out.
  void pop(int64_t& size, int64_t& a, int64_t& b, int64_t& c) {
    size = 1;
    a = b = c = 0;
    if (sizes.empty()) return;
    size = sizes.back(), a = indexed.back(), b = index.back(), c = other.back();
    count = size == 0 ? 0 : count / size;
    sizes.pop_back(), indexed.pop_back(), index.pop_back(), other.pop_back();
  }
  void at(int64_t position, ScatterRow& row) const {
    for (size_t d = sizes.size(); d-- > 0;) {
      const int64_t i = position % sizes[d];
      position /= sizes[d];
      row.indexed += i * indexed[d];
      row.index += i * index[d];
      row.other += i * other[d];
    }
  }
};

struct Strides {
  int64_t indexed, index, other;
};

class ScatterEngine {
 public:
  ScatterEngine(const char* op, const TensorBase& indexed, int64_t dim, const TensorBase& index, const void* other,
                IntList other_strides, int64_t item)
      : op_(op), dim_(dim), index_(index.dtype() == DType::int64 ? index : as_index(index, index.sizes())) {
    const auto n = static_cast<size_t>(index_.dim());
    for (size_t d = 0; d < n; ++d) {
      const bool along = static_cast<int64_t>(d) == dim;
      const Strides s{indexed.dim() == 0 ? 0 : indexed.strides()[d] * item, index_.strides()[d] * 8,
                      other_strides.empty() ? 0 : other_strides[d] * item};
      if (along) {
        along_ = {0, s.index, s.other};
        length_ = index_.sizes()[d];
      } else {
        rest_.add(index_.sizes()[d], s.indexed, s.index, s.other);
      }
      all_.add(index_.sizes()[d], along ? 0 : s.indexed, s.index, s.other);
      if (along && d + 1 == n) along_is_last_ = true;
    }
    row_.indexed = static_cast<char*>(const_cast<void*>(indexed.data()));
    row_.index = static_cast<const char*>(index_.data());
    row_.other = static_cast<char*>(const_cast<void*>(other));
    row_.dim_stride = indexed.dim() == 0 ? 0 : indexed.strides()[static_cast<size_t>(dim)] * item;
    row_.dim_size = indexed.dim() == 0 ? 1 : indexed.sizes()[static_cast<size_t>(dim)];
  }

  void read(RowFn fn) {
    int64_t n;
    Strides s;
    all_.pop(n, s.indexed, s.index, s.other);
    each_row(all_, n, s, 1, {0, 0, 0}, fn);
  }
  // Elements that may meet in one place differ along the dimension only: it is never split, and walked in order.
  void write(RowFn fn) {
    if (along_is_last_ || rest_.sizes.empty()) {
      const int64_t total = rest_.count;
      parallel_for(0, total, std::max<int64_t>(1, scatter_grain / std::max<int64_t>(1, length_)), [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) run(rest_, i, 0, length_, along_, fn);
      });
      return;
    }
    int64_t n;
    Strides s;
    rest_.pop(n, s.indexed, s.index, s.other);
    each_row(rest_, n, s, length_, along_, fn);
  }

 private:
  void run(const ScatterWalk& walk, int64_t position, int64_t begin, int64_t end, Strides s, RowFn fn) const {
    ScatterRow row = row_;
    walk.at(position, row);
    finish(row, begin, end, s, fn);
  }
  void finish(ScatterRow row, int64_t begin, int64_t end, Strides s, RowFn fn) const {
    row.indexed += begin * s.indexed;
    row.index += begin * s.index;
    row.other += begin * s.other;
    row.indexed_stride = s.indexed;
    row.index_stride = s.index;
    row.other_stride = s.other;
    row.n = end - begin;
    const int64_t done = fn(row);
    if (done != row.n)
      throw UserError(
          std::string(op_) + ": index " + std::to_string(*reinterpret_cast<const int64_t*>(row.index + done * s.index)) +
          " is out of bounds for dimension " + std::to_string(dim_) + " with size " + std::to_string(row.dim_size));
  }
  // Rows of n elements for each position of `outer`, `repeat` of them one after another.
  void each_row(const ScatterWalk& outer, int64_t n, Strides s, int64_t repeat, Strides step, RowFn fn) const {
    const auto rows = [&](int64_t position, int64_t begin, int64_t end) {
      ScatterRow row = row_;
      outer.at(position, row);
      for (int64_t j = 0; j < repeat; ++j) {
        finish(row, begin, end, s, fn);
        row.index += step.index;
        row.other += step.other;
      }
    };
    if (outer.count >= num_threads())
      parallel_for(0, outer.count, std::max<int64_t>(1, scatter_grain / std::max<int64_t>(1, n * repeat)),
                   [&](int64_t b, int64_t e) {
                     for (int64_t i = b; i < e; ++i) rows(i, 0, n);
                   });
    else
      parallel_for(0, n, std::max<int64_t>(1, scatter_grain / std::max<int64_t>(1, outer.count * repeat)),
                   [&](int64_t b, int64_t e) {
                     for (int64_t i = 0; i < outer.count; ++i) rows(i, b, e);
                   });
  }

  const char* op_;
  int64_t dim_;
  TensorBase index_;
  ScatterWalk all_, rest_;
  Strides along_{};
  int64_t length_ = 1;
  bool along_is_last_ = false;
  ScatterRow row_{};
};

// A reduction's neutral value in this dtype.
Scalar neutral(ScatterReduction reduction, DType d) {
  switch (reduction) {
    case ScatterReduction::sum:
    case ScatterReduction::mean: return 0;
    case ScatterReduction::prod: return 1;
    case ScatterReduction::amax:
    case ScatterReduction::amin: break;
  }
  const bool low = reduction == ScatterReduction::amax;
  if (is_floating(d)) return low ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return dispatch(d, [&](auto tag) -> Scalar {
    using T = typename decltype(tag)::type;
    if constexpr (is_integral_type<T>)
      return low ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
    else
      return 0;
  });
}

Put put_of(ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::sum:
    case ScatterReduction::mean: return Put::add;
    case ScatterReduction::prod: return Put::multiply;
    case ScatterReduction::amax: return Put::maximum;
    case ScatterReduction::amin: return Put::minimum;
  }
  throw InternalError("a reduction without an operation");
}

// self /= count, whole numbers rounding down; a count of 0 leaves the element alone.
void divide_by_counts(const TensorBase& self, const TensorBase& counts) {
  const TensorBase dense = make_tensor(self.sizes(), self.dtype());
  copy(self, dense);
  const int64_t n = dense.numel();
  const int64_t* count = counts.data_as<int64_t>();
  dispatch(self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_number<T> && !std::is_same_v<T, Bool>) {
      T* x = dense.mutable_data_as<T>();
      for (int64_t i = 0; i < n; ++i) {
        if (count[i] <= 1) continue;
        if constexpr (is_integral_type<T>) {
          const auto value = static_cast<int64_t>(x[i]);
          int64_t q = value / count[i];
          if (value % count[i] < 0) --q;
          x[i] = static_cast<T>(q);
        } else {
          using Wide = WideOf<T>;
          x[i] = static_cast<T>(static_cast<Wide>(x[i]) / static_cast<Wide>(count[i]));
        }
      }
    }
  });
  copy(dense, self);
}

TensorBase counts_for(const TensorBase& self, bool include_self) {
  TensorBase counts = make_tensor(self.sizes(), DType::int64);
  fill(counts, include_self ? 1 : 0);
  return counts;
}

}  // namespace

void gather(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& out) {
  if (index.numel() == 0) return;
  ScatterEngine("gather", self, dim, index, out.data(), out.strides(), self.element_size())
      .read(copy_row<ScatterRead>(self.element_size()));
}

void scatter(const char* op, const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src, Put how) {
  if (index.numel() == 0) return;
  if (is_reduced_float(self.dtype()) && (how == Put::add || how == Put::multiply)) {
    const TensorBase wide = as_float32(self);
    scatter(op, wide, dim, index, as_float32(src), how);
    copy(wide, self);
    return;
  }
  ScatterEngine(op, self, dim, index, src.data(), src.strides(), self.element_size())
      .write(write_row(op, self.dtype(), how));
}

void scatter(const char* op, const TensorBase& self, int64_t dim, const TensorBase& index, const Scalar& value, Put how) {
  if (index.numel() == 0) return;
  const TensorBase one = make_tensor(IntList(), self.dtype());
  fill(one, value);
  ScatterEngine(op, self, dim, index, one.data(), IntList(), self.element_size()).write(write_row(op, self.dtype(), how));
}

void scatter_reduce(const char* op, const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
                    ScatterReduction reduction, bool include_self) {
  if (index.numel() == 0) return;
  if (is_reduced_float(self.dtype()) && reduction != ScatterReduction::amax && reduction != ScatterReduction::amin) {
    const TensorBase wide = as_float32(self);
    scatter_reduce(op, wide, dim, index, as_float32(src), reduction, include_self);
    copy(wide, self);
    return;
  }
  if (!include_self) scatter(op, self, dim, index, neutral(reduction, self.dtype()), Put::assign);
  scatter(op, self, dim, index, src, put_of(reduction));
  if (reduction != ScatterReduction::mean) return;
  const TensorBase counts = counts_for(self, include_self);
  scatter(op, counts, dim, index, Scalar(1), Put::add);
  divide_by_counts(self, counts);
}

void index_reduce(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& source,
                  ScatterReduction reduction, bool include_self) {
  if (index.numel() == 0) return;
  if (is_reduced_float(self.dtype()) && (reduction == ScatterReduction::mean || reduction == ScatterReduction::prod)) {
    const TensorBase wide = as_float32(self);
    index_reduce(wide, dim, index, as_float32(source), reduction, include_self);
    copy(wide, self);
    return;
  }
  const int64_t n = index.numel();
  const TensorBase* const tensors[] = {&index};
  const Selection where{"index_reduce", dim, {tensors, 1}, IntList(&n, 1), false};
  const auto one = [](DType d, const Scalar& value) {
    TensorBase t = make_tensor(IntList(), d);
    fill(t, value);
    return t;
  };
  if (!include_self) put_elements(self, where, one(self.dtype(), neutral(reduction, self.dtype())), Put::assign);
  put_elements(self, where, source, put_of(reduction));
  if (reduction != ScatterReduction::mean) return;
  const TensorBase counts = counts_for(self, include_self);
  put_elements(counts, where, one(DType::int64, 1), Put::add);
  divide_by_counts(self, counts);
}

}  // namespace calque::kernel
