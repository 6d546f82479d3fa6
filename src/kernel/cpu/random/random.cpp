#include "kernel/cpu/random/random.h"

#include <numbers>

#include "calque/tensor/finfo.h"
#include "kernel/cpu/random/random_fill.h"

namespace calque {
namespace {

// A fill of one float64 draw for each element.
template <class Draw>
void fill_floating(const TensorBase& out, const char* op, Generator* generator, Draw&& draw) {
  const FillWalk walk = make_fill_walk(out, op);
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  dispatch_floating(out.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill(static_cast<T*>(out.mutable_data()), walk, [&] { return from_double<T>(draw(draw_unit<double>(g))); });
  });
}

void check_uniform_bounds(DType dtype, double from, double to) {
  const double limit = largest_finite(dtype);
  for (const auto& [what, value] : {std::pair{"from", from}, std::pair{"to", to}})
    if (!(value >= -limit && value <= limit))
      throw UserError(std::string("uniform_: ") + what + " = " + short_text(value) + " is out of bounds for " +
                      std::string(name(dtype)));
  if (!(from <= to))
    throw UserError("uniform_: expected a range [from, to), found from = " + short_text(from) + " > to = " + short_text(to));
  if (!(to - from <= limit))
    throw UserError("uniform_: to - from exceeds the largest " + std::string(name(dtype)) +
                    ", found from = " + short_text(from) + ", to = " + short_text(to));
}

}  // namespace

void uniform_kernel(const TensorBase& out, double from, double to, Generator* generator) {
  const bool complex = is_complex(out.dtype());
  const DType dtype = to_real(out.dtype());
  if (complex && out.numel() == 0) return;
  dispatch_floating(dtype, "uniform_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    check_uniform_bounds(dtype, from, to);
    if (out.numel() == 0) return;
    const FillWalk walk = complex ? make_component_walk(out, "uniform_") : make_fill_walk(out, "uniform_");
    Generator& g = or_default(generator);
    const std::lock_guard lock(g.mutex());
    const C low = static_cast<C>(from);
    const C span = static_cast<C>(to) - low;
    const T low_out = static_cast<T>(low);
    const C high = static_cast<C>(static_cast<T>(static_cast<C>(to)));
    fill(static_cast<T*>(out.mutable_data()), walk, [&] {
      const C unit = draw_unit<C>(g);
      const T value = static_cast<T>(low == 0 ? unit * span : std::fma(unit, span, low));
      // Rounding may have reached the excluded bound.
      return static_cast<C>(value) == high ? low_out : value;
    });
  });
}

void exponential_kernel(const TensorBase& out, double lambda, Generator* generator) {
  require(lambda > 0, "exponential_", "lambda > 0", lambda);
  if (out.numel() == 0) return;
  fill_floating(out, "exponential_", generator, [=](double u) { return -1.0 / lambda * std::log1p(-u); });
}

void cauchy_kernel(const TensorBase& out, double median, double sigma, Generator* generator) {
  require(sigma > 0, "cauchy_", "sigma > 0", sigma);
  if (!is_floating(out.dtype())) refuse_dtype("cauchy_", out.dtype(), "a floating-point dtype");
  if (out.numel() == 0) return;
  fill_floating(out, "cauchy_", generator,
                [=](double u) { return std::fma(sigma, std::tan(std::numbers::pi * (u - 0.5)), median); });
}

void geometric_kernel(const TensorBase& out, double p, Generator* generator) {
  require(p > 0 && p < 1, "geometric_", "p in (0, 1)", p);
  if (out.numel() == 0) return;
  const FillWalk walk = make_fill_walk(out, "geometric_");
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  dispatch_numbers<false>(out.dtype(), "geometric_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill(static_cast<T*>(out.mutable_data()), walk,
         [&] { return from_double<T>(std::ceil(std::log(draw_unit<double>(g)) / std::log1p(-p))); });
  });
}

void bernoulli_kernel(const TensorBase& out, double p, Generator* generator) {
  require(p >= 0 && p <= 1, "bernoulli_", "p in [0, 1]", p);
  if (out.numel() == 0) return;
  const FillWalk walk = make_fill_walk(out, "bernoulli_");
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  dispatch_numbers<true>(out.dtype(), "bernoulli_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T one = from_double<T>(1);
    fill(static_cast<T*>(out.mutable_data()), walk, [&] { return draw_unit<double>(g) < p ? one : T{}; });
  });
}

void bernoulli_kernel(const TensorBase& out, const TensorBase& p, Generator* generator) {
  if (out.numel() == 0) return;
  const FillWalk walk = make_fill_walk(out, "bernoulli_", &p);
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  const int64_t n = walk.sizes[0];
  const int64_t out_step = walk.out_strides[0];
  const int64_t in_step = walk.in_strides[0];
  const auto run = [&](auto* data, const auto* probabilities) {
    using T = std::remove_pointer_t<decltype(data)>;
    using C = Compute<std::remove_const_t<std::remove_pointer_t<decltype(probabilities)>>>;
    const T one = from_double<T>(1);
    for_each_row(walk, [&](int64_t out_at, int64_t in_at) {
      for (int64_t i = 0; i < n; ++i) {
        const C chance = static_cast<C>(probabilities[in_at + i * in_step]);
        if (!(chance >= 0 && chance <= 1)) require(false, "bernoulli_", "every p in [0, 1]", static_cast<double>(chance));
        data[out_at + i * out_step] = draw_unit<C>(g) < chance ? one : T{};
      }
    });
  };
  dispatch_numbers<true>(out.dtype(), "bernoulli_", [&](auto tag) {
    auto* data = static_cast<typename decltype(tag)::type*>(out.mutable_data());
    dispatch_floating(p.dtype(), "bernoulli_ (argument p)",
                      [&](auto p_tag) { run(data, static_cast<const typename decltype(p_tag)::type*>(p.data())); });
  });
}

void dropout_mask_kernel(const TensorBase& out, double p, Generator* generator) {
  require(p >= 0 && p < 1, "dropout", "p in [0, 1)", p);
  if (out.numel() == 0) return;
  const FillWalk walk = make_fill_walk(out, "dropout");
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  dispatch_floating(out.dtype(), "dropout", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    const T kept = static_cast<T>(C{1} / static_cast<C>(1.0 - p));
    fill(static_cast<T*>(out.mutable_data()), walk, [&] { return draw_unit<double>(g) < 1.0 - p ? kept : T{}; });
  });
}

}  // namespace calque
