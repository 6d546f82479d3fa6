#include "kernel/cpu/reduce/softmax.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "calque/base/error.h"
#include "calque/base/thread.h"
#include "kernel/cpu/elementwise/convert.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/not_implemented.h"
#include "kernel/cpu/reduce/reduce.h"
#include "kernel/cpu/reduce/softmax_table.h"
#include "kernel/cpu/scratch.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(SoftmaxRow, softmax_table)

namespace {

constexpr int64_t softmax_grain = 8192;  // elements

const SoftmaxRow& find_row(DType d, const char* what) { return float_row(softmax_table(), d, what); }

struct Shape {
  int64_t outer = 1, n = 1, inner = 1;
};
Shape split_at(const TensorBase& t, int64_t dim) {
  Shape s;
  for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? s.outer : d == dim ? s.n : s.inner) *= t.size(d);
  return s;
}

}  // namespace

void softmax(const TensorBase& self, int64_t dim, bool is_log, const TensorBase& out) {
  if (self.numel() == 0) return;
  const SoftmaxRow& row = find_row(self.dtype(), is_log ? "log_softmax_lastdim_kernel_impl" : "softmax_lastdim_kernel_impl");
  if (out.dtype() != self.dtype()) {  // half_to_float: computed on the widened input
    const TensorBase wide = make_tensor(self.sizes(), out.dtype());
    copy(self, wide);
    return softmax(wide, dim, is_log, out);
  }
  const TensorBase in = contiguous_as(self, self.dtype());
  const Shape s = split_at(self, dim);
  const auto item = static_cast<int64_t>(item_size(self.dtype()));
  const char* x = static_cast<const char*>(in.data());
  char* y = static_cast<char*>(out.mutable_data());
  if (s.inner == 1) {
    parallel_for(0, s.outer, std::max<int64_t>(1, softmax_grain / s.n), [&](int64_t b, int64_t e) {
      void* buffer = is_reduced_float(self.dtype()) ? scratch<float>(Scratch::reduction, static_cast<size_t>(s.n)) : nullptr;
      for (int64_t i = b; i < e; ++i) row.run(x + i * s.n * item, y + i * s.n * item, s.n, is_log, buffer);
    });
    return;
  }
  constexpr int64_t width = softmax_tile_width;
  const int64_t tiles = (s.inner + width - 1) / width;
  parallel_for(0, s.outer * tiles, std::max<int64_t>(1, softmax_grain / (s.n * std::min(width, s.inner))),
               [&](int64_t b, int64_t e) {
                 for (int64_t i = b; i < e; ++i) {
                   const int64_t column = i % tiles * width;
                   const int64_t offset = (i / tiles * s.n * s.inner + column) * item;
                   row.tile(x + offset, y + offset, s.n, s.inner, std::min(width, s.inner - column), is_log);
                 }
               });
}

namespace {

template <class C>
void backward(const TensorBase& grad, const TensorBase& output, int64_t dim, bool is_log, const TensorBase& out) {
  const TensorBase g = contiguous_as(grad, dtype_v<C>);
  const TensorBase o = contiguous_as(output, dtype_v<C>);
  const bool direct = out.dtype() == dtype_v<C> && out.is_contiguous();
  const TensorBase result = direct ? out : make_tensor(out.sizes(), dtype_v<C>);
  const Shape s = split_at(output, dim);
  const C* gp = g.data_as<C>();
  const C* op = o.data_as<C>();
  C* rp = result.mutable_data_as<C>();
  parallel_for(0, s.outer * s.inner, std::max<int64_t>(1, softmax_grain / std::max<int64_t>(1, s.n)),
               [&](int64_t b, int64_t e) {
                 for (int64_t i = b; i < e; ++i) {
                   const int64_t base = i / s.inner * s.n * s.inner + i % s.inner;
                   double total = 0;
                   for (int64_t k = 0; k < s.n; ++k) {
                     const int64_t at = base + k * s.inner;
                     total += static_cast<double>(is_log ? gp[at] : gp[at] * op[at]);
                   }
                   const C sum = static_cast<C>(total);
                   for (int64_t k = 0; k < s.n; ++k) {
                     const int64_t at = base + k * s.inner;
                     rp[at] = is_log ? gp[at] - std::exp(op[at]) * sum : (gp[at] - sum) * op[at];
                   }
                 }
               });
  if (!direct) copy(result, out);
}

}  // namespace

void softmax_backward(const TensorBase& grad, const TensorBase& output, int64_t dim, bool is_log, const TensorBase& out) {
  find_row(grad.dtype(), is_log ? "log_softmax_backward_lastdim_kernel_impl" : "softmax_backward_lastdim_kernel_impl");
  if (output.numel() == 0) return;
  if (output.dtype() == DType::float64)
    backward<double>(grad, output, dim, is_log, out);
  else
    backward<float>(grad, output, dim, is_log, out);
}

void logsumexp(const TensorBase& self, uint64_t dims, const TensorBase& out) {
  const SoftmaxRow& row = find_row(out.dtype(), "logsumexp");
  if (out.numel() == 0) return;
  // The reduced dimensions last, contiguous.
  SymInts sizes, strides;
  int64_t n = 1;
  for (const bool reduced : {false, true})
    for (int64_t d = 0; d < self.dim(); ++d)
      if ((dims >> d & 1U) == (reduced ? 1U : 0U)) {
        sizes.push_back(self.sym_size(d));
        strides.push_back(self.sym_stride(d));
        if (reduced) n *= self.size(d);
      }
  const TensorBase turned = make_view(self, sizes, strides, self.sym_storage_offset());
  TensorBase x = turned;
  if (!turned.is_contiguous() || self.dtype() != out.dtype()) {
    x = make_tensor(turned.sizes(), out.dtype());
    copy(turned, x);
  }
  const StoreFn store = store_fn(Compute::f64, out.dtype());
  const auto item = out.element_size();
  const char* from = n ? static_cast<const char*>(x.data()) : nullptr;
  char* to = static_cast<char*>(out.mutable_data());
  parallel_for(0, out.numel(), std::max<int64_t>(1, softmax_grain / std::max<int64_t>(1, n)), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const double value = row.logsumexp(from + i * n * item, n);
      store(&value, to + i * item, item, 1);
    }
  });
}

void zero_masked_slices(const TensorBase& self, int64_t dim, const TensorBase& out) {
  if (self.numel() == 0) return;
  TensorBase most = self;
  if (self.dim()) {
    SmallVector<int64_t, 8> sizes(self.sizes().begin(), self.sizes().end());
    sizes[static_cast<size_t>(dim)] = 1;
    most = make_tensor(sizes, self.dtype());
    reduce(Reduction::amax, self.dtype(), self, uint64_t{1} << dim, most);
  }
  const TensorBase wide = contiguous_as(most, DType::float64);
  const double* m = wide.data_as<double>();
  const Shape s = split_at(self, dim);
  const auto item = static_cast<int64_t>(item_size(out.dtype()));
  char* y = static_cast<char*>(out.mutable_data());
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      if (!(std::isinf(m[o * s.inner + i]) && m[o * s.inner + i] < 0)) continue;
      for (int64_t k = 0; k < s.n; ++k) std::memset(y + ((o * s.n + k) * s.inner + i) * item, 0, static_cast<size_t>(item));
    }
}

}  // namespace calque::kernel
