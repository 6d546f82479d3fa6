// Shape rules of elementwise operators: broadcast sizes, promoted dtype, and strides as PyTorch's TensorIterator lays
// its outputs out.
#pragma once

#include <initializer_list>

#include "calque/op/tensor.h"
#include "calque/tensor/promotion.h"

namespace calque::rule {

// The strides of an output of `sizes` for these inputs: theirs where they agree, in their order of memory otherwise.
SymInts pointwise_strides(const SymInts& sizes, ListRef<const Tensor*> inputs);

// Sizes, strides and device for these inputs (undefined ones are skipped); the caller gives the dtype.
Meta pointwise(const char* op, DType dtype, std::initializer_list<const Tensor*> inputs);

// The same for a tensor and a number, which PyTorch turns into a 0-d tensor: dimensions of size 0 and 1 are laid out otherwise.
Meta pointwise_with_number(const char* op, DType dtype, const Tensor& self);

inline Meta unary(const char* op, const Tensor& self) { return pointwise(op, self.dtype(), {&self}); }
inline Meta unary_float(const char* op, const Tensor& self) { return pointwise(op, float_type(self.dtype()), {&self}); }
inline Meta unary_bool(const char* op, const Tensor& self) { return pointwise(op, DType::bool_, {&self}); }
inline Meta binary(const char* op, const Tensor& a, const Tensor& b) { return pointwise(op, result_type(a, b), {&a, &b}); }
inline Meta binary_float(const char* op, const Tensor& a, const Tensor& b) {
  return pointwise(op, float_type(result_type(a, b)), {&a, &b});
}
inline Meta comparison(const char* op, const Tensor& a, const Tensor& b) { return pointwise(op, DType::bool_, {&a, &b}); }

// Ready-made rules that carry the operator's name: `.compute(rule::Named<"mul">::binary, ...)`.
template <size_t N>
struct OpName {
  char text[N];
  consteval OpName(const char (&s)[N]) {
    for (size_t i = 0; i < N; ++i) text[i] = s[i];
  }
};
template <OpName op>
struct Named {
  static Meta unary(const Tensor& self) { return rule::unary(op.text, self); }
  static Meta unary_float(const Tensor& self) { return rule::unary_float(op.text, self); }
  static Meta unary_bool(const Tensor& self) { return rule::unary_bool(op.text, self); }
  static Meta binary(const Tensor& a, const Tensor& b) { return rule::binary(op.text, a, b); }
  static Meta binary_scalar(const Tensor& a, const Scalar& b) {
    return rule::pointwise_with_number(op.text, result_type(a, b), a);
  }
  static Meta binary_float(const Tensor& a, const Tensor& b) { return rule::binary_float(op.text, a, b); }
  static Meta comparison(const Tensor& a, const Tensor& b) { return rule::comparison(op.text, a, b); }
  static Meta comparison_scalar(const Tensor& a, const Scalar&) {
    return rule::pointwise_with_number(op.text, DType::bool_, a);
  }
};

}  // namespace calque::rule
