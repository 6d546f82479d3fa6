#include "kernel/cpu/elementwise/slope.h"

#include "kernel/cpu/elementwise/activation.h"
#include "kernel/cpu/elementwise/unary.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(ElementRow, slope_table)

namespace {

struct SlopeFacts {
  const char* name;
  int64_t grain;
};
constexpr SlopeFacts slope_facts[] = {
#define X(name, forms, cost) {#name "_backward", ElementLoop::cost},
    CALQUE_SLOPE(X)
#undef X
};

}  // namespace

void slope(Slope fn, DType common, std::initializer_list<const TensorBase*> inputs, std::initializer_list<double> parameters,
           const TensorBase& out) {
  const SlopeFacts& facts = slope_facts[static_cast<size_t>(fn)];
  if (is_float8(common) || is_barebones_unsigned(common) || common == DType::bool_) not_implemented(facts.name, common);
  const ElementRow& row = slope_table()[static_cast<size_t>(fn)];
  ElementLoop loop(common);
  if (!row.at(loop.compute())) not_implemented(facts.name, common);
  ActivationParameters p;
  size_t i = 0;
  for (const double value : parameters) {
    p.f64[i] = value;
    p.f32[i] = static_cast<float>(value);
    p.i64[i++] = loop.compute() == Compute::i64 ? static_cast<int64_t>(value) : 0;
  }
  loop.output(out);
  for (const TensorBase* input : inputs) loop.input(*input);
  loop.run(row, &p, facts.grain);
}

}  // namespace calque::kernel
