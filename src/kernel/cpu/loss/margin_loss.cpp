#include "kernel/cpu/loss/margin_loss.h"

#include <algorithm>

#include "calque/base/error.h"
#include "kernel/cpu/not_implemented.h"

namespace calque::kernel {
namespace {

template <class F>
void dispatch_wide(const char* op, DType dtype, F&& fn) {
  if (dtype == DType::float32) return fn(float{});
  if (dtype == DType::float64) return fn(double{});
  not_implemented(op, dtype);
}

// Writes one loss a row, or their sum or mean.
template <class T, class F>
void reduce_rows(Rows rows, int64_t reduction, T* out, F&& row_loss) {
  T total = 0;
  for (int64_t i = 0; i < rows.n; ++i) {
    const T loss = row_loss(i);
    if (reduction == 0)
      out[i] = loss;
    else
      total += loss;
  }
  if (reduction == 1) total /= static_cast<T>(rows.n);
  if (reduction != 0) out[0] = total;
}

}  // namespace

void multi_margin_loss(const TensorBase& self, const TensorBase& target, Rows rows, int64_t p, double margin,
                       const TensorBase& weight, int64_t reduction, const TensorBase& out) {
  dispatch_wide("multi_margin_loss_cpu_kernel", self.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = self.data_as<T>();
    const T* w = weight.defined() ? weight.data_as<T>() : nullptr;
    const int64_t* targets = target.data_as<int64_t>();
    reduce_rows(rows, reduction, out.mutable_data_as<T>(), [&](int64_t i) {
      const int64_t t = targets[i];
      if (t < 0 || t >= rows.classes)
        throw UserError("multi_margin_loss: target out of range: expected a class below " + std::to_string(rows.classes) +
                        ", found " + std::to_string(t));
      const T* row = x + i * rows.classes;
      T sum = 0;
      for (int64_t j = 0; j < rows.classes; ++j) {
        const T z = static_cast<T>(margin) - row[t] + row[j];
        if (j == t || !(z > 0)) continue;
        const T h = p == 1 ? z : z * z;
        sum += w ? h * w[t] : h;
      }
      return sum / static_cast<T>(rows.classes);
    });
  });
}

void multilabel_margin_loss(const TensorBase& self, const TensorBase& target, Rows rows, int64_t reduction,
                            const TensorBase& out, const TensorBase& is_target) {
  dispatch_wide("multilabel_margin_loss_forward_out_frame", self.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = self.data_as<T>();
    const int64_t* targets = target.data_as<int64_t>();
    T* flags = is_target.mutable_data_as<T>();
    const int64_t count = rows.n * rows.classes;
    for (int64_t i = 0; i < count; ++i)
      if (targets[i] < -1 || targets[i] >= rows.classes)
        throw UserError("multilabel_margin_loss: target is out of range: expected -1 or a class below " +
                        std::to_string(rows.classes) + ", found " + std::to_string(targets[i]));
    std::fill_n(flags, count, T(0));
    reduce_rows(rows, reduction, out.mutable_data_as<T>(), [&](int64_t i) {
      const T* row = x + i * rows.classes;
      const int64_t* own = targets + i * rows.classes;
      T* flag = flags + i * rows.classes;
      const int64_t* end = std::find(own, own + rows.classes, int64_t{-1});
      for (const int64_t* t = own; t != end; ++t) flag[*t] = 1;
      T sum = 0;
      for (const int64_t* t = own; t != end; ++t)
        for (int64_t j = 0; j < rows.classes; ++j) {
          const T z = T(1) - row[*t] + row[j];
          if (flag[j] == T(0) && z > 0) sum += z;
        }
      return sum / static_cast<T>(rows.classes);
    });
  });
}

}  // namespace calque::kernel
