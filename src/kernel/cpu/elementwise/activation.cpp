#include "kernel/cpu/elementwise/activation.h"

#include <string>

#include "calque/base/error.h"
#include "kernel/cpu/elementwise/unary.h"
#include "kernel/cpu/simd/isa_table.h"

namespace calque::kernel {

CALQUE_ISA_ARRAY(ElementRow, activation_table)

namespace {

struct Description {
  const char* name;
  int64_t grain;
};
constexpr Description descriptions[] = {
#define X(name, forms, cost) {#name, ElementLoop::cost},
    CALQUE_ACTIVATION(X)
#undef X
};

void set(ActivationParameters& p, size_t i, Compute compute, DType common, const Scalar& value, bool in_dtype) {
  if (compute == Compute::i64) {
    if (in_dtype)
      dispatch(common, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (is_integral_type<T>) p.i64[i] = static_cast<int64_t>(value.to<T>());
      });
    else
      p.i64[i] = value.to_int();
    return;
  }
  p.f64[i] = value.to_double();
  p.f32[i] = static_cast<float>(p.f64[i]);
  if (in_dtype)
    dispatch(common, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!is_integral_type<T> && !std::is_same_v<T, Complex64> && !std::is_same_v<T, Complex128>)
        p.f32[i] = static_cast<float>(value.to<T>());
    });
}

}  // namespace

void activation(Activation fn, DType common, const TensorBase& self, std::initializer_list<Scalar> parameters, bool in_dtype,
                const TensorBase& out) {
  const Description& d = descriptions[static_cast<size_t>(fn)];
  if (is_float8(common) || is_barebones_unsigned(common) || common == DType::bool_) not_implemented(d.name, common);
  const ElementRow& row = activation_table()[static_cast<size_t>(fn)];
  ElementLoop loop(common);
  const Compute c = loop.compute();
  if (!row.at(c)) not_implemented(d.name, common);
  ActivationParameters p;
  size_t i = 0;
  for (const Scalar& value : parameters) set(p, i++, c, common, value, in_dtype);
  loop.output(out).input(self).run(row, &p, d.grain);
}

}  // namespace calque::kernel
