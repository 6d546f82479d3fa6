#include "kernel/cpu/loss/margin_loss.h"

#include <algorithm>
#include <string>

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

// Calls slope(row, factor, out) for each row and multiplies what it wrote by the gradient.
template <class T, class F>
void slopes_of_rows(const TensorBase& grad, Rows rows, int64_t reduction, const TensorBase& out, F&& slope) {
  const T* g = grad.data_as<T>();
  const bool is_one = reduction != 0 || grad.dim() == 0;
  const T factor = T(1) / static_cast<T>(reduction == 1 ? rows.n * rows.classes : rows.classes);
  T* y = out.mutable_data_as<T>();
  for (int64_t i = 0; i < rows.n; ++i) {
    T* row = y + i * rows.classes;
    std::fill_n(row, rows.classes, T(0));
    slope(i, factor, row);
    for (int64_t j = 0; j < rows.classes; ++j) row[j] *= g[is_one ? 0 : i];
  }
}

void check_class(const char* op, int64_t t, int64_t lowest, int64_t classes) {
  if (t < lowest || t >= classes)
    throw UserError(std::string(op) + ": target out of range: expected a class below " + std::to_string(classes) +
                    ", found " + std::to_string(t));
}

}  // namespace

void multi_margin_loss_backward(const TensorBase& grad, const TensorBase& self, const TensorBase& target, Rows rows,
                                int64_t p, double margin, const TensorBase& weight, int64_t reduction,
                                const TensorBase& out) {
  if (target.dtype() != DType::int64) not_implemented("multi_margin_loss_backward_cpu_kernel", target.dtype());
  dispatch_wide("multi_margin_loss_backward_cpu_kernel", self.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = self.data_as<T>();
    const T* w = weight.defined() ? weight.data_as<T>() : nullptr;
    const int64_t* targets = target.data_as<int64_t>();
    slopes_of_rows<T>(grad, rows, reduction, out, [&](int64_t i, T factor, T* slope) {
      const int64_t t = targets[i];
      check_class("multi_margin_loss_backward", t, 0, rows.classes);
      const T* row = x + i * rows.classes;
      T of_target = 0;
      for (int64_t j = 0; j < rows.classes; ++j) {
        const T z = static_cast<T>(margin) - row[t] + row[j];
        if (j == t || !(z > 0)) continue;
        slope[j] = (p == 1 ? factor : 2 * factor * z) * (w ? w[t] : T(1));
        of_target -= slope[j];
      }
      slope[t] = of_target;
    });
  });
}

void multilabel_margin_loss_backward(const TensorBase& grad, const TensorBase& self, const TensorBase& target, Rows rows,
                                     int64_t reduction, const TensorBase& is_target, const TensorBase& out) {
  if (target.dtype() != DType::int64) not_implemented("multilabel_margin_loss_backward_out_frame", target.dtype());
  dispatch_wide("multilabel_margin_loss_backward_out_frame", self.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = self.data_as<T>();
    const int64_t* targets = target.data_as<int64_t>();
    const T* flags = is_target.data_as<T>();
    for (int64_t i = 0; i < is_target.numel(); ++i)
      if (!(flags[i] >= T(0) && flags[i] <= T(1)))
        throw UserError("multilabel_margin_loss_backward: argument #5 'is_target' is out of range: expected 0 or 1, found " +
                        std::to_string(flags[i]));
    slopes_of_rows<T>(grad, rows, reduction, out, [&](int64_t i, T factor, T* slope) {
      const T* row = x + i * rows.classes;
      const T* flag = flags + i * rows.classes;
      for (int64_t k = 0; k < rows.classes; ++k) {
        const int64_t t = targets[i * rows.classes + k];
        check_class("multilabel_margin_loss_backward", t, -1, rows.classes);
        if (t < 0) break;
        for (int64_t j = 0; j < rows.classes; ++j) {
          if (flag[j] != T(0) || !(T(1) - row[t] + row[j] > 0)) continue;
          slope[t] -= factor;
          slope[j] += factor;
        }
      }
    });
  });
}

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
