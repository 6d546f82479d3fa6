// Numbers in a row: arange, linspace, logspace.
#include "kernel/cpu/elementwise/fill.h"
#include "op/rule/factory.h"
#include "op/stanza.h"

namespace calque {
namespace {

SymInt arange_length(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype) {
  if (start.is_integral(true) && end.is_integral(true) && step.is_integral(true)) {
    const SymInt a = start.sym_int();
    const SymInt b = end.sym_int();
    const SymInt s = step.sym_int();
    if (guard(s == 0)) throw UserError("arange: step must be nonzero");
    if (guard(s > 0) ? !check(a <= b) : !check(b <= a))
      throw UserError("arange: upper bound and lower bound inconsistent with step sign (start " + a.str() + ", end " +
                      b.str() + ", step " + s.str() + ")");
    const bool up = guard(s > 0);
    return up ? floor_div(b - a + s - 1, s) : floor_div(a - b - s - 1, -s);
  }
  const double a = start.to_double();
  const double b = end.to_double();
  const double s = step.to_double();
  if (s == 0) throw UserError("arange: step must be nonzero");
  if (!std::isfinite(a) || !std::isfinite(b))
    throw UserError("arange: unsupported range: " + start.str() + " -> " + end.str());
  if ((s > 0 && b < a) || (s < 0 && b > a))
    throw UserError("arange: upper bound and lower bound inconsistent with step sign (start " + start.str() + ", end " +
                    end.str() + ", step " + step.str() + ")");
  // Integer results count in integers when the bounds are asked for as such.
  if (dtype == DType::int64) {
    const int64_t i = start.to_int();
    const int64_t j = end.to_int();
    const int64_t k = step.to_int();
    if (k == 0) throw UserError("arange: step must be nonzero");
    const double count = std::ceil(static_cast<double>((SymInt(j) - i).as_int()) / static_cast<double>(k));
    return count < 0x1p63 ? static_cast<int64_t>(count) : INT64_MAX;
  }
  const double n = std::ceil((b - a) / s);
  if (!(n >= 0 && n < 9e18))
    throw UserError("arange: invalid size, possible overflow (start " + start.str() + ", end " + end.str() + ", step " +
                    step.str() + ")");
  return static_cast<int64_t>(n);
}
Meta arange_rule(const Scalar& start, const Scalar& end, const Scalar& step, OptDType dtype, OptLayout layout,
                 OptDevice device, OptBool pin) {
  const bool integers = start.is_integral(true) && end.is_integral(true) && step.is_integral(true);
  const DType d = dtype.value_or(integers ? DType::int64 : default_dtype());
  const SymInt n = arange_length(start, end, step, d);
  return rule::factory("arange", SymIntList(&n, 1), d, layout, device, pin);
}
Meta linspace_rule(const char* op, int64_t steps, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin) {
  if (steps < 0) throw UserError(std::string(op) + ": number of steps must be non-negative, found " + std::to_string(steps));
  const SymInt n = steps;
  return rule::factory(op, SymIntList(&n, 1), dtype, layout, device, pin);
}

}  // namespace

void register_arange(Library& aten);
void register_arange(Library& aten) {
  aten.def(
          "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
          "-> Tensor")
      .compute([](const Scalar& end, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return arange_rule(0, end, 1, d, l, v, p); },
               [](const Scalar&, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) { kernel::arange(0, 1, out); });
  aten.def(
          "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
          "bool? pin_memory=None) -> Tensor")
      .compute([](const Scalar& start, const Scalar& end, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return arange_rule(start, end, 1, d, l, v, p); },
               [](const Scalar& start, const Scalar&, OptDType, OptLayout, OptDevice, OptBool, const Tensor& out) {
                 kernel::arange(start, 1, out);
               });
  aten.def(
          "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
          "Device? device=None, bool? pin_memory=None) -> Tensor")
      .compute(arange_rule, [](const Scalar& start, const Scalar&, const Scalar& step, OptDType, OptLayout, OptDevice,
                               OptBool, const Tensor& out) { kernel::arange(start, step, out); })
      .tags(Tag::core);
  aten.def(
          "linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor")
      .compute([](const Scalar&, const Scalar&, int64_t steps, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return linspace_rule("linspace", steps, d, l, v, p); },
               [](const Scalar& start, const Scalar& end, int64_t, OptDType, OptLayout, OptDevice, OptBool,
                  const Tensor& out) { kernel::linspace(start, end, out); });
  aten.def(
          "logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, "
          "Device? device=None, bool? pin_memory=None) -> Tensor")
      .compute([](const Scalar&, const Scalar&, int64_t steps, double, OptDType d, OptLayout l, OptDevice v,
                  OptBool p) { return linspace_rule("logspace", steps, d, l, v, p); },
               [](const Scalar& start, const Scalar& end, int64_t, double base, OptDType, OptLayout, OptDevice, OptBool,
                  const Tensor& out) { kernel::logspace(start, end, base, out); });
}

}  // namespace calque
