#include "kernel/cpu/binary.h"

#include <string>

#include "calque/base/error.h"
#include "kernel/cpu/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(BinaryRow, binary_table)
CALQUE_ISA_ARRAY(BinaryRow, add_scaled_table)

namespace {

ElementFn choose(const BinaryRow& row, Compute c) { return c == Compute::f32 ? row.f32 : c == Compute::f64 ? row.f64 : c == Compute::i64 ? row.i64 : nullptr; }

bool is_expensive(Binary fn) {
  switch (fn) {
    case Binary::pow:
    case Binary::atan2:
    case Binary::fmod:
    case Binary::remainder:
    case Binary::div_floor:
    case Binary::xlogy:
    case Binary::hypot:
    case Binary::logaddexp:
    case Binary::logaddexp2:
      return true;
    default:
      return false;
  }
}

template <class A, class B>
void run(Binary fn, DType common, const A& a, const B& b, const Tensor& out) {
  ElementLoop loop(common);
  const ElementFn f = choose(binary_table()[static_cast<size_t>(fn)], loop.compute());
  if (!f) throw UserError(ErrorKind::unsupported_operator, "this elementwise function is not implemented for " + std::string(name(common)));
  bool division_by_zero = false;
  bool* fault = &division_by_zero;
  loop.output(out).input(a).input(b).run(f, &fault, is_expensive(fn) ? ElementLoop::expensive : ElementLoop::cheap);
  if (division_by_zero) throw UserError("ZeroDivisionError: integer division or modulo by zero");
}

}  // namespace

void binary(Binary fn, DType common, const Tensor& a, const Tensor& b, const Tensor& out) { run(fn, common, a, b, out); }
void binary(Binary fn, DType common, const Tensor& a, const Scalar& b, const Tensor& out) { run(fn, common, a, b, out); }
void binary(Binary fn, DType common, const Scalar& a, const Tensor& b, const Tensor& out) { run(fn, common, a, b, out); }

void add_scaled(DType common, const Tensor& a, const Tensor& b, const Scalar& alpha, bool subtract, const Tensor& out) {
  if (alpha.equals(Scalar(1)) || (alpha.is_boolean() && alpha.to_bool())) return binary(subtract ? Binary::sub : Binary::add, common, a, b, out);
  ElementLoop loop(common);
  const ElementFn f = choose(add_scaled_table()[0], loop.compute());
  if (!f) throw UserError(ErrorKind::unsupported_operator, "add: not implemented for " + std::string(name(common)));
  const float f32 = static_cast<float>(alpha.is_complex() ? 0 : alpha.to_double()) * (subtract ? -1.0F : 1.0F);
  const double f64 = alpha.to_double() * (subtract ? -1.0 : 1.0);
  const int64_t i64 = loop.compute() == Compute::i64 ? (subtract ? -alpha.to_int() : alpha.to_int()) : 0;
  const void* parameter = loop.compute() == Compute::f32 ? static_cast<const void*>(&f32) : loop.compute() == Compute::f64 ? static_cast<const void*>(&f64) : &i64;
  loop.output(out).input(a).input(b).run(f, parameter);
}

}  // namespace calque::kernel
