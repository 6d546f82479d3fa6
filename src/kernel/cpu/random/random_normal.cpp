// normal_ and log_normal_: PyTorch's two ways to draw, chosen by size and layout.
#include "kernel/cpu/random/box_muller.h"
#include "kernel/cpu/random/random.h"
#include "kernel/cpu/random/random_fill.h"

namespace calque {
namespace {

constexpr int block = box_muller_block;

// At least 16 contiguous elements. A size that is no multiple of 16 draws 16 more for its last 16 elements. float32 and
// float64 draw a uniform for every element first, the 16-bit types only for whole blocks.
template <class T>
void normal_fill(T* data, int64_t n, double mean, double std, Generator& g) {
  using C = Compute<T>;
  static const BoxMuller& box_muller = best_box_muller();
  C buffer[block];
  const auto one_block = [&](int64_t at) {
    for (C& u : buffer) u = draw_unit<C>(g);
    if constexpr (std::same_as<C, double>)
      box_muller.f64(buffer, mean, std);
    else
      box_muller.f32(buffer, static_cast<float>(mean), static_cast<float>(std));
    for (int i = 0; i < block; ++i) data[at + i] = static_cast<T>(buffer[i]);
  };
  int64_t i = 0;
  for (; i + block <= n; i += block) one_block(i);
  if (i == n) return;
  if constexpr (std::same_as<T, C>)
    for (; i < n; ++i) draw_unit<C>(g);
  one_block(n - block);
}

}  // namespace

void normal_kernel(const TensorBase& out, double mean, double std, Generator* generator) {
  require(std >= 0, "normal_", "std >= 0", std);
  if (out.numel() == 0) return;
  const bool complex = is_complex(out.dtype());
  const FillWalk walk = complex ? make_component_walk(out, "normal_") : make_fill_walk(out, "normal_");
  if (complex) std /= std::sqrt(2.0);
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  dispatch_floating(to_real(out.dtype()), "normal_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out.mutable_data());
    if (walk.numel >= block && out.is_contiguous())
      normal_fill(data, walk.numel, mean, std, g);
    else
      fill(data, walk, [&] { return from_double<T>(std::fma(draw_normal(g), std, mean)); });
  });
}

void log_normal_kernel(const TensorBase& out, double mean, double std, Generator* generator) {
  require(std > 0, "log_normal_", "std > 0", std);
  if (out.numel() == 0) return;
  const FillWalk walk = make_fill_walk(out, "log_normal_");
  Generator& g = or_default(generator);
  const std::lock_guard lock(g.mutex());
  dispatch_floating(out.dtype(), "log_normal_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill(static_cast<T*>(out.mutable_data()), walk,
         [&] { return from_double<T>(std::exp(std::fma(draw_normal(g), std, mean))); });
  });
}

}  // namespace calque
