#include "kernel/cpu/elementwise/binary.h"

#include <string>

#include "calque/base/error.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(ElementRow, binary_table)
CALQUE_ISA_ARRAY(ElementRow, add_scaled_table)
CALQUE_ISA_ARRAY(ElementRow, pow_table)

namespace {

constexpr int64_t grains[] = {
#define X(name, forms, cost) ElementLoop::cost,
    CALQUE_BINARY(X)
#undef X
};

constexpr double pow_exponents[] = {
#define X(exponent, name) exponent,
    CALQUE_POWER(X)
#undef X
};

const ElementRow& find(Binary fn, const ElementLoop& loop, DType common) {
  const ElementRow& row = binary_table()[static_cast<size_t>(fn)];
  if (!row.at(loop.compute()))
    throw UserError(ErrorKind::unsupported_operator,
                    "this elementwise function is not implemented for dtype " + std::string(name(common)));
  return row;
}

template <class A, class B>
void run(Binary fn, DType common, const A& a, const B& b, const TensorBase& out, bool wide) {
  ElementLoop loop(common);
  const ElementRow& row = find(fn, loop, common);
  bool division_by_zero = false;
  bool* fault = &division_by_zero;
  loop.output(out).input(a).input(b);
  if (wide) loop.keep_wide();
  loop.run(row, &fault, grains[static_cast<size_t>(fn)]);
  if (division_by_zero) throw UserError("ZeroDivisionError: integer division or modulo by zero");
}

template <class A, class B>
void run_scaled(DType common, const A& a, const B& b, const Scalar& alpha, bool subtract, const TensorBase& out) {
  if (!alpha.is_complex() && alpha.to_double() == 1)
    return run(subtract ? Binary::sub : Binary::add, common, a, b, out, true);
  ElementLoop loop(common);
  const ElementFn f = add_scaled_table()->at(loop.compute());
  if (!f) throw UserError(ErrorKind::unsupported_operator, "add: not implemented for dtype " + std::string(name(common)));
  const double f64 = alpha.to_double() * (subtract ? -1.0 : 1.0);
  const auto f32 = static_cast<float>(f64);
  const int64_t i64 = loop.compute() == Compute::i64
                          ? (subtract ? static_cast<int64_t>(-static_cast<uint64_t>(alpha.to_int())) : alpha.to_int())
                          : 0;
  const void* parameter = loop.compute() == Compute::f32   ? static_cast<const void*>(&f32)
                          : loop.compute() == Compute::f64 ? static_cast<const void*>(&f64)
                                                           : &i64;
  loop.output(out).input(a).input(b).keep_wide().run(f, parameter);
}

}  // namespace

void binary(Binary fn, DType common, const TensorBase& a, const TensorBase& b, const TensorBase& out) {
  run(fn, common, a, b, out, false);
}
void binary(Binary fn, DType common, const TensorBase& a, const Scalar& b, const TensorBase& out) {
  run(fn, common, a, b, out, false);
}
void binary(Binary fn, DType common, const Scalar& a, const TensorBase& b, const TensorBase& out) {
  run(fn, common, a, b, out, false);
}
void binary_wide(Binary fn, DType common, const TensorBase& a, const TensorBase& b, const TensorBase& out) {
  run(fn, common, a, b, out, true);
}
void binary_wide(Binary fn, DType common, const TensorBase& a, const Scalar& b, const TensorBase& out) {
  run(fn, common, a, b, out, true);
}

void add_scaled(DType common, const TensorBase& a, const TensorBase& b, const Scalar& alpha, bool subtract,
                const TensorBase& out) {
  run_scaled(common, a, b, alpha, subtract, out);
}
void add_scaled(DType common, const TensorBase& a, const Scalar& b, const Scalar& alpha, bool subtract,
                const TensorBase& out) {
  run_scaled(common, a, b, alpha, subtract, out);
}
void add_scaled(DType common, const Scalar& a, const TensorBase& b, const Scalar& alpha, bool subtract,
                const TensorBase& out) {
  run_scaled(common, a, b, alpha, subtract, out);
}

void pow_scalar(DType common, const TensorBase& self, const Scalar& exponent, const TensorBase& out) {
  ElementLoop loop(common);
  if (loop.compute() == Compute::i64 || exponent.is_complex()) return binary(Binary::pow, common, self, exponent, out);
  const double e = exponent.to_double();
  size_t which = 0;
  for (const double special : pow_exponents) {
    if (e == special) {
      loop.output(out).input(self).run(pow_table()[which]);
      return;
    }
    ++which;
  }
  binary(Binary::pow, common, self, exponent, out);
}

}  // namespace calque::kernel
