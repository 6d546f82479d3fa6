// Factories: everything that is filled with one number is full or full_like.

#include <cmath>

#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/sym_math.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/layout.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

using MaybeDType = std::optional<DType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;
using MaybeFormat = std::optional<MemoryFormat>;

// 0 or 1, which is False or True for booleans.
Scalar number_for(DType dtype, bool one) { return dtype == DType::bool_ ? Scalar(one) : Scalar(one ? 1 : 0); }

Tensor filled(SymIntList size, bool one, MaybeDType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory) {
  const DType type = dtype.value_or(default_dtype());
  return full(size, number_for(type, one), type, layout.value_or(Layout::strided), device.value_or(Device()),
              pin_memory.value_or(false));
}
Tensor new_filled(const Tensor& a, SymIntList size, bool one, MaybeDType dtype, MaybeLayout layout, MaybeDevice device,
                  MaybeBool pin_memory) {
  return filled(size, one, dtype.value_or(a.dtype()), layout, device.value_or(a.device()), pin_memory);
}
Tensor filled_like(const Tensor& a, bool one, MaybeDType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory,
                   MaybeFormat format) {
  return full_like(a, number_for(dtype.value_or(a.dtype()), one), dtype, layout, device, pin_memory.value_or(false),
                   format.value_or(MemoryFormat::preserve));
}

// The smallest of the dtypes that PyTorch counts rows with.
DType counting_dtype(SymInt n, SymInt m) {
  if (n.is_symbolic() || m.is_symbolic()) return DType::int64;
  const int64_t most = std::max(n.as_int(), m.as_int());
  return most <= 255 ? DType::uint8 : most <= 65535 ? DType::uint16 : most <= 2147483647 ? DType::int32 : DType::int64;
}

Tensor eye_of(SymInt n, SymInt m, MaybeDType dtype, MaybeDevice device) {
  require(n >= SymInt(0), "eye", "n must not be negative");
  require(m >= SymInt(0), "eye", "m must not be negative");
  const DType counting = counting_dtype(n, m);
  const Device on = device.value_or(Device());
  const Tensor rows = arange(Scalar(n), counting, std::nullopt, on, false);
  const Tensor columns = arange(Scalar(m), counting, std::nullopt, on, false);
  return converted(eq(rows.unsqueeze(-1), columns), dtype.value_or(default_dtype()));
}

Scalar plus(const Scalar& a, const Scalar& b, int sign) {
  if (a.is_floating() || b.is_floating()) {
    const auto as_float = [](const Scalar& s) { return s.is_floating() ? s.sym_float() : sym_float(s.sym_int()); };
    return Scalar(sign > 0 ? as_float(a) + as_float(b) : as_float(a) - as_float(b));
  }
  return Scalar(sign > 0 ? a.sym_int() + b.sym_int() : a.sym_int() - b.sym_int());
}

Tensor linspace_of(const Scalar& start, const Scalar& end, int64_t steps, MaybeDType wanted, MaybeLayout layout,
                   MaybeDevice device, MaybeBool pin_memory) {
  const DType dtype = wanted.value_or(default_dtype());
  const Layout in = layout.value_or(Layout::strided);
  const Device on = device.value_or(Device());
  const bool pinned = pin_memory.value_or(false);
  if (steps == 0) return full(SymIntList{0}, Scalar(0), dtype, in, on, pinned);
  if (steps == 1) return full(SymIntList{steps}, start, dtype, in, on, pinned);
  const Tensor range = arange(Scalar(0), Scalar(steps), std::nullopt, in, on, pinned);
  const DType computation = computation_dtype(is_integral(dtype) ? DType::int64 : dtype);
  const Scalar distance = plus(end, start, -1);
  const double step = (distance.is_floating() ? distance.to_double() : static_cast<double>(distance.to_int())) /
                      static_cast<double>(steps - 1);
  const Tensor first_half = range < Scalar(static_cast<double>(steps) / 2);
  const Tensor from_start = converted(range, computation) * step + start;
  const Tensor back = converted(sub(number_tensor(steps - 1), range), computation) * step;
  const Tensor from_end = sub(number_tensor(end), back);
  return converted(where(first_half, from_start, from_end), dtype);
}

}  // namespace

void decompose_factories(DecompositionBuilder& table) {
  table.add("zeros",
            [](SymIntList size, MaybeDType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory) -> Tensor {
              return filled(size, false, dtype, layout, device, pin_memory);
            });
  table.add("ones",
            [](SymIntList size, MaybeDType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory) -> Tensor {
              return filled(size, true, dtype, layout, device, pin_memory);
            });
  table.add("new_zeros",
            [](const Tensor& a, SymIntList size, MaybeDType dtype, MaybeLayout layout, MaybeDevice device,
               MaybeBool pin_memory) -> Tensor { return new_filled(a, size, false, dtype, layout, device, pin_memory); });
  table.add("new_ones",
            [](const Tensor& a, SymIntList size, MaybeDType dtype, MaybeLayout layout, MaybeDevice device,
               MaybeBool pin_memory) -> Tensor { return new_filled(a, size, true, dtype, layout, device, pin_memory); });
  table.add("new_full",
            [](const Tensor& a, SymIntList size, const Scalar& value, MaybeDType dtype, MaybeLayout layout,
               MaybeDevice device, MaybeBool pin_memory) -> Tensor {
              return full(size, value, dtype.value_or(a.dtype()), layout.value_or(Layout::strided),
                          device.value_or(a.device()), pin_memory.value_or(false));
            });
  table.add("new_empty",
            [](const Tensor& a, SymIntList size, MaybeDType dtype, MaybeLayout layout, MaybeDevice device,
               MaybeBool pin_memory) -> Tensor {
              return empty(size, dtype.value_or(a.dtype()), layout.value_or(Layout::strided), device.value_or(a.device()),
                           pin_memory.value_or(false));
            });
  table.add("zeros_like",
            [](const Tensor& a, MaybeDType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory,
               MaybeFormat format) -> Tensor { return filled_like(a, false, dtype, layout, device, pin_memory, format); });
  table.add("ones_like",
            [](const Tensor& a, MaybeDType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory,
               MaybeFormat format) -> Tensor { return filled_like(a, true, dtype, layout, device, pin_memory, format); });
  table.add("empty_like",
            [](const Tensor& a, MaybeDType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory,
               MaybeFormat format) -> Tensor {
              const DType type = dtype.value_or(a.dtype());
              const Layout in = layout.value_or(Layout::strided);
              const Device on = device.value_or(a.device());
              if (format.value_or(MemoryFormat::preserve) != MemoryFormat::preserve)
                return empty(a.sym_sizes(), type, in, on, pin_memory.value_or(false), format);
              return empty_permuted(a.sym_sizes(), physical_order(a), type, in, on, pin_memory.value_or(false));
            });
  table.add("zero",
            [](const Tensor& self) -> Tensor { return zeros_like(self, std::nullopt, std::nullopt, std::nullopt, false); });
  table.add("fill.Scalar", [](const Tensor& self, const Scalar& value) -> Tensor {
    return full_like(self, value, std::nullopt, std::nullopt, std::nullopt, false);
  });
  table.add("fill.Tensor", [](const Tensor& self, const Tensor& value) -> Tensor {
    require(SymBool(value.dim() == 0), "fill", "the value must have no dimensions");
    return copy(self, value);
  });
  table.add("arange",
            [](const Scalar& end, MaybeDType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory) -> Tensor {
              return arange(Scalar(0), end, Scalar(1), dtype, layout.value_or(Layout::strided), device,
                            pin_memory.value_or(false));
            });
  table.add("arange.start",
            [](const Scalar& start, const Scalar& end, MaybeDType dtype, MaybeLayout layout, MaybeDevice device,
               MaybeBool pin_memory) -> Tensor {
              return arange(start, end, Scalar(1), dtype, layout.value_or(Layout::strided), device,
                            pin_memory.value_or(false));
            });
  table.add("eye", [](SymInt n, MaybeDType dtype, MaybeLayout, MaybeDevice device, MaybeBool) -> Tensor {
    return eye_of(n, n, dtype, device);
  });
  table.add("eye.m", [](SymInt n, SymInt m, MaybeDType dtype, MaybeLayout, MaybeDevice device, MaybeBool) -> Tensor {
    return eye_of(n, m, dtype, device);
  });
  table.add(
      "linspace",
      [](const Scalar& start, const Scalar& end, int64_t steps, MaybeDType dtype, MaybeLayout layout, MaybeDevice device,
         MaybeBool pin_memory) -> Tensor { return linspace_of(start, end, steps, dtype, layout, device, pin_memory); });
  table.add("logspace",
            [](const Scalar& start, const Scalar& end, int64_t steps, double base, MaybeDType wanted, MaybeLayout layout,
               MaybeDevice device, MaybeBool pin_memory) -> Tensor {
              const DType dtype = wanted.value_or(default_dtype());
              const bool whole = is_integral(dtype, false);
              const Tensor exponents =
                  linspace(whole ? Scalar(start.to_int()) : start, whole ? Scalar(end.to_int()) : end, steps, DType::float64,
                           layout.value_or(Layout::strided), device.value_or(Device()), pin_memory.value_or(false));
              return converted(pow(base == 10 ? Scalar(10) : Scalar(base), exponents), dtype);
            });
  table.add("bernoulli", [](const Tensor& self, Generator* generator) -> Tensor {
    const Tensor p = generator ? rand(self.sym_sizes(), generator, DType::float32, std::nullopt, self.device(), false)
                               : rand(self.sym_sizes(), DType::float32, std::nullopt, self.device(), false);
    return converted(lt(p, self), self.dtype());
  });
}

}  // namespace calque
