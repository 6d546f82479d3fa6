#include "kernel/cpu/elementwise/ternary.h"

#include "calque/base/error.h"
#include "kernel/cpu/elementwise/binary.h"
#include "kernel/cpu/elementwise/unary.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(ElementRow, ternary_table)
CALQUE_ISA_ARRAY(ElementRow, gated_table)

namespace {

constexpr const char* names[] = {
#define X(name, forms) #name,
    CALQUE_TERNARY(X)
#undef X
};

ElementFn kernel_for(Ternary fn, DType common, Compute c) {
  const bool stored_only = is_float8(common) || is_barebones_unsigned(common);
  const ElementFn f = ternary_table()[static_cast<size_t>(fn)].at(c);
  if (!f || (stored_only && fn != Ternary::where)) not_implemented(names[static_cast<size_t>(fn)], common);
  return f;
}

struct GatedFacts {
  const char* name;
  int64_t grain;
};
constexpr GatedFacts gated_facts[] = {
#define X(name, cost) {#name, ElementLoop::cost},
    CALQUE_GATED(X)
#undef X
};

void gated(Gated fn, DType dtype, ElementLoop& loop) {
  const GatedFacts& facts = gated_facts[static_cast<size_t>(fn)];
  const ElementFn f = gated_table()[static_cast<size_t>(fn)].at(loop.compute());
  if (!f || is_float8(dtype)) not_implemented(facts.name, dtype);
  loop.run(f, nullptr, facts.grain);
}

}  // namespace

void ternary(Ternary fn, DType common, const TensorBase& a, const TensorBase& b, const TensorBase& c, const Scalar& value,
             const TensorBase& out) {
  ElementLoop loop(common);
  const ElementFn f = kernel_for(fn, common, loop.compute());
  const double f64 = value.is_complex() ? 0 : value.to_double();
  const float f32 = static_cast<float>(f64);
  const int64_t i64 = loop.compute() == Compute::i64 ? value.to_int() : 0;
  const void* parameter = loop.compute() == Compute::f32   ? static_cast<const void*>(&f32)
                          : loop.compute() == Compute::f64 ? static_cast<const void*>(&f64)
                                                           : &i64;
  loop.output(out).input(a).input(b).input(c).run(f, parameter);
}

void ternary(Ternary fn, DType common, const TensorBase& a, const TensorBase& b, const Scalar& c, const TensorBase& out) {
  // A weight keeps its compute precision; a 0-d tensor of that type carries it.
  const DType wide = common == DType::float64 ? DType::float64 : DType::float32;
  ElementLoop loop(is_reduced_float(common) ? wide : common);
  const ElementFn f = kernel_for(fn, common, loop.compute());
  loop.output(out).input(a).input(b).input(c).run(f, nullptr);
}

void masked_fill(const TensorBase& self, const TensorBase& mask, const TensorBase& value, const TensorBase& out) {
  ElementLoop loop(self.dtype());
  loop.output(out).input(mask).input(value).input(self).run(kernel_for(Ternary::where, self.dtype(), loop.compute()));
}
void masked_fill(const TensorBase& self, const TensorBase& mask, const Scalar& value, const TensorBase& out) {
  ElementLoop loop(self.dtype());
  loop.output(out).input(mask).input(value).input(self).run(kernel_for(Ternary::where, self.dtype(), loop.compute()));
}

void prelu(const TensorBase& self, const TensorBase& weight, const TensorBase& out) {
  ElementLoop loop(self.dtype());
  loop.output(out).input(self).input(weight);
  gated(Gated::prelu, self.dtype(), loop);
}

void glu(const TensorBase& a, const TensorBase& b, const TensorBase& out) {
  ElementLoop loop(a.dtype());
  loop.output(out).input(a).input(b);
  gated(Gated::glu, a.dtype(), loop);
}

void log_sigmoid_forward(const TensorBase& self, const TensorBase& output, const TensorBase& buffer) {
  ElementLoop loop(self.dtype());
  loop.output(output).output(buffer).input(self);
  gated(Gated::log_sigmoid, self.dtype(), loop);
}

void scale_masked(const TensorBase& input, const TensorBase& mask, double scale, const TensorBase& out) {
  binary(Binary::mul, input.dtype(), input, mask, out);
  ElementLoop loop(is_reduced_float(out.dtype()) ? DType::float32 : out.dtype());
  const ElementFn f = gated_table()[static_cast<size_t>(Gated::scale)].at(loop.compute());
  if (!f) not_implemented("native_dropout", out.dtype());
  loop.output(out).input(out).input(Scalar(scale)).run(f);
}

}  // namespace calque::kernel
