#include "calque/op/operators.h"

#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/unary.h"
#include "calque/op/mode.h"

namespace calque {
namespace {

// What a function mode makes of `python(a, b)`, or else what `otherwise` calls; both see the line of the expression.
template <class A, class B, class F>
Tensor written(const char* python, const std::source_location& where, const A& a, const B& b, F&& otherwise) {
  const CallSite site(where);
  const CallSiteScope scope(site);
  if (modes_active()) [[unlikely]]
    if (const auto traced = offer_function(python, {Value(a), Value(b)})) return traced->to_tensor();
  return otherwise();
}

// Python's a & b is an operator of its own, which comes down to bitwise_and: who sees composite operators sees it.
template <class B, class F>
Tensor in_python(const char* packet, const Tensor& a, const B& b, F&& otherwise) {
  if (!modes_active()) return otherwise();
  return call(packet + std::string(std::is_same_v<B, Tensor> ? ".Tensor" : ".Scalar"), {a, b}).to_tensor();
}

}  // namespace

// Tensor and tensor; tensor and number: what Python's operators call.
#define CALQUE_BINARY(SYMBOL, PYTHON, CALL, CALL_NUMBER)                              \
  Tensor operator SYMBOL(const TensorArg& x, const Tensor& b) {                       \
    const Tensor& a = x;                                                              \
    return written("operator." PYTHON, x.where(), a, b, [&] { return CALL; });        \
  }                                                                                   \
  Tensor operator SYMBOL(const TensorArg& x, const Scalar& b) {                       \
    const Tensor& a = x;                                                              \
    return written("operator." PYTHON, x.where(), a, b, [&] { return CALL_NUMBER; }); \
  }
// Number and tensor.
#define CALQUE_REFLECTED(SYMBOL, PYTHON, CALL)                                 \
  Tensor operator SYMBOL(const Scalar& a, const TensorArg& x) {                \
    const Tensor& b = x;                                                       \
    return written("operator." PYTHON, x.where(), a, b, [&] { return CALL; }); \
  }
CALQUE_BINARY(+, "add", add(a, b), add(a, wrapped_scalar(b)))
CALQUE_BINARY(-, "sub", sub(a, b), sub(a, wrapped_scalar(b)))
CALQUE_BINARY(*, "mul", mul(a, b), mul(a, wrapped_scalar(b)))
CALQUE_BINARY(/, "truediv", div(a, b), div(a, wrapped_scalar(b)))
CALQUE_BINARY(%, "mod", remainder(a, b), remainder(a, b))
CALQUE_BINARY(&, "and_", in_python("aten::__and__", a, b, [&] { return bitwise_and(a, b); }),
              in_python("aten::__and__", a, b, [&] { return bitwise_and(a, b); }))
CALQUE_BINARY(|, "or_", in_python("aten::__or__", a, b, [&] { return bitwise_or(a, b); }),
              in_python("aten::__or__", a, b, [&] { return bitwise_or(a, b); }))
CALQUE_BINARY(^, "xor", in_python("aten::__xor__", a, b, [&] { return bitwise_xor(a, b); }),
              in_python("aten::__xor__", a, b, [&] { return bitwise_xor(a, b); }))
CALQUE_BINARY(==, "eq", eq(a, b), eq(a, b))
CALQUE_BINARY(!=, "ne", ne(a, b), ne(a, b))
CALQUE_BINARY(<, "lt", lt(a, b), lt(a, b))
CALQUE_BINARY(<=, "le", le(a, b), le(a, b))
CALQUE_BINARY(>, "gt", gt(a, b), gt(a, b))
CALQUE_BINARY(>=, "ge", ge(a, b), ge(a, b))
CALQUE_REFLECTED(+, "add", add(b, wrapped_scalar(a)))
CALQUE_REFLECTED(-, "sub", rsub(b, a))
CALQUE_REFLECTED(*, "mul", mul(b, wrapped_scalar(a)))
CALQUE_REFLECTED(/, "truediv", mul(reciprocal(b), wrapped_scalar(a)))
CALQUE_REFLECTED(%, "mod", remainder(a, b))
CALQUE_REFLECTED(&, "and_", bitwise_and(b, a))
CALQUE_REFLECTED(|, "or_", bitwise_or(b, a))
CALQUE_REFLECTED(^, "xor", bitwise_xor(b, a))
CALQUE_REFLECTED(==, "eq", eq(b, a))
CALQUE_REFLECTED(!=, "ne", ne(b, a))
CALQUE_REFLECTED(<, "lt", gt(b, a))
CALQUE_REFLECTED(<=, "le", ge(b, a))
CALQUE_REFLECTED(>, "gt", lt(b, a))
CALQUE_REFLECTED(>=, "ge", le(b, a))
#undef CALQUE_REFLECTED

CALQUE_BINARY(+=, "iadd", add_(a, b), add_(a, wrapped_scalar(b)))
CALQUE_BINARY(-=, "isub", sub_(a, b), sub_(a, wrapped_scalar(b)))
CALQUE_BINARY(*=, "imul", mul_(a, b), mul_(a, wrapped_scalar(b)))
CALQUE_BINARY(/=, "itruediv", div_(a, b), div_(a, wrapped_scalar(b)))
#undef CALQUE_BINARY

#define CALQUE_UNARY(SYMBOL, PYTHON, CALL)                                                               \
  Tensor operator SYMBOL(const TensorArg& x) {                                                           \
    const CallSite site(x.where());                                                                      \
    const CallSiteScope scope(site);                                                                     \
    if (modes_active()) [[unlikely]]                                                                     \
      if (const auto traced = offer_function("operator." PYTHON, {x.get()})) return traced->to_tensor(); \
    return CALL(x.get());                                                                                \
  }
CALQUE_UNARY(-, "neg", neg)
CALQUE_UNARY(~, "invert", bitwise_not)
#undef CALQUE_UNARY

}  // namespace calque
