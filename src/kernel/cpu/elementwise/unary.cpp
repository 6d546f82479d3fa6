#include "kernel/cpu/elementwise/unary.h"

#include <algorithm>
#include <array>
#include <string>

#include "calque/base/error.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(ElementRow, unary_table)

namespace {

struct UnaryFacts {
  const char* name;
  int64_t grain;
};
constexpr UnaryFacts unary_facts[] = {
#define X(name, forms, cost) {#name, ElementLoop::cost},
    CALQUE_UNARY(X)
#undef X
};

// The few functions that PyTorch has for dtypes which otherwise are only stored.
bool takes_storage_dtype(Unary fn, DType d) {
  constexpr std::array takes_unsigned = {Unary::isinf, Unary::isfinite, Unary::isposinf, Unary::isneginf, Unary::signbit};
  return fn == Unary::isnan || (std::ranges::find(takes_unsigned, fn) != takes_unsigned.end() && is_barebones_unsigned(d)) ||
         (fn == Unary::abs && is_float8(d));
}

}  // namespace

void unary(Unary fn, DType common, const TensorBase& self, const TensorBase& out) {
  const UnaryFacts& d = unary_facts[static_cast<size_t>(fn)];
  if ((is_float8(common) || is_barebones_unsigned(common)) && !takes_storage_dtype(fn, common))
    not_implemented(d.name, common);
  const ElementRow& row = unary_table()[static_cast<size_t>(fn)];
  ElementLoop loop(common);
  if (!row.at(loop.compute())) not_implemented(d.name, common);
  loop.output(out).input(self).run(row, nullptr, d.grain);
}

}  // namespace calque::kernel
