// Unpooling by the places that max pooling found, fractional max pooling, and two relatives of convolution and sampling.
#include "kernel/cpu/pooling/unpooling.h"
#include "calque/base/error.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/pooling_gradients.h"
#include "calque/op/aten/zeros.h"
#include "kernel/cpu/elementwise/copy.h"
#include "op/gradient/formulas.h"
#include "op/gradient/pooling.h"
#include "op/rule/geometry.h"
#include "op/rule/pooling.h"
#include "op/stanza.h"

namespace calque {
namespace {

Tensor pool_in_order(const Tensor& t) {
  if (t.is_contiguous()) return t;
  const Tensor out = make_tensor(t.sizes(), t.dtype());
  kernel::copy(t, out);
  return out;
}
int64_t planes_of(const Tensor& self, int64_t spatial) {
  int64_t planes = 1;
  for (int64_t d = 0; d < self.dim() - spatial; ++d) planes *= self.size(d);
  return planes;
}
void check_plane_dims(const char* op, const Tensor& self, int64_t spatial) {
  if (self.dim() != spatial + 1 && self.dim() != spatial + 2)
    throw UserError(std::string(op) + ": expected " + std::to_string(spatial + 1) + "D or " + std::to_string(spatial + 2) +
                    "D tensor, but got: " + str(self.sym_sizes()));
  for (int64_t d = self.dim() - spatial - 1; d < self.dim(); ++d)
    if ((d > 0 || self.dim() == spatial + 2) && guard_or(self.sym_size(d) == 0, false))
      throw UserError(std::string(op) + ": expected input to have non-zero size for non-batch dimensions, but got " +
                      str(self.sym_sizes()) + " with dimension " + std::to_string(d) + " being empty");
}

// ---- unpooling ------------------------------------------------------------------------------------------------------
template <int spatial>
constexpr const char* unpool_name = spatial == 2 ? "max_unpool2d" : "max_unpool3d";

template <int spatial>
Meta unpool_meta(const Tensor& self, const Tensor& indices, SymIntList output_size) {
  const char* op = unpool_name<spatial>;
  if (output_size.size() != spatial)
    throw UserError(std::string(op) + ": there should be exactly " +
                    (spatial == 2 ? "two elements (height, width)" : "three elements (depth, height, width)") +
                    " in output_size, but got " + std::to_string(output_size.size()) + " elements");
  if (indices.dtype() != DType::int64)
    throw UserError(std::string(op) +
                    ": elements in indices should be type int64 but got: " + std::string(name(indices.dtype())));
  check_plane_dims(op, self, spatial);
  if (!rule::equal_sizes(self.sym_sizes(), indices.sym_sizes()))
    throw UserError(std::string(op) + ": expected shape of indices to be same as that of the input tensor (" +
                    str(self.sym_sizes()) + ") but got indices tensor with shape: " + str(indices.sym_sizes()));
  SymInts sizes(self.sym_sizes().begin(), self.sym_sizes().end() - spatial);
  for (const SymInt s : output_size) sizes.push_back(s);
  return rule::pooled(self, std::move(sizes), spatial, spatial == 2);
}
void unpool_into(const char* op, const Tensor& self, const Tensor& indices, int64_t spatial, const Tensor& out) {
  if (out.is_contiguous())
    return kernel::max_unpool(op, pool_in_order(self), pool_in_order(indices), planes_of(self, spatial), out);
  const Tensor dense = make_tensor(out.sizes(), out.dtype());
  kernel::max_unpool(op, pool_in_order(self), pool_in_order(indices), planes_of(self, spatial), dense);
  kernel::copy(dense, out);
}
Meta unpool2_rule(const Tensor& self, const Tensor& indices, SymIntList output_size) {
  return unpool_meta<2>(self, indices, output_size);
}
void unpool2_kernel(const Tensor& self, const Tensor& indices, SymIntList, const Tensor& out) {
  unpool_into("max_unpool2d", self, indices, 2, out);
}
Meta unpool3_rule(const Tensor& self, const Tensor& indices, SymIntList output_size, IntList stride, IntList padding) {
  for (const auto& [what, list] : {std::pair("stride", stride), std::pair("padding", padding)})
    if (list.size() != 3)
      throw UserError(std::string("max_unpool3d: there should be exactly three elements (depth, height, width) in ") + what +
                      ", but got: " + std::to_string(list.size()) + " elements");
  const Meta m = unpool_meta<3>(self, indices, output_size);
  for (const int64_t s : stride)
    if (s <= 0) throw UserError("max_unpool3d: strides should be greater than zero, but got stride: " + str(stride));
  return m;
}
void unpool3_kernel(const Tensor& self, const Tensor& indices, SymIntList, IntList, IntList, const Tensor& out) {
  unpool_into("max_unpool3d", self, indices, 3, out);
}

// ---- fractional max pooling -----------------------------------------------------------------------------------------
void check_samples(const std::string& op, const Tensor& self, int64_t spatial, const Tensor& random_samples) {
  const bool batched = self.dim() == spatial + 2;
  const SymInt n = batched ? self.sym_size(0) : SymInt(1);
  const SymInt channels = self.sym_size(batched ? 1 : 0);
  if (!guard(random_samples.sym_size(0) >= n))
    throw UserError(op + ": expect _random_samples.size(0) no less then input batch size");
  if (!guard(random_samples.sym_size(1) == channels))
    throw UserError(op + ": expect _random_samples.size(1) equals to input channel size");
  if (!guard(random_samples.sym_size(2) == spatial))
    throw UserError(op + ": expect _random_samples.size(2) equals to " + std::to_string(spatial));
}
template <int spatial>
std::array<Meta, 2> fractional_rule(const Tensor& self, IntList kernel_size, IntList output_size,
                                    const Tensor& random_samples) {
  const std::string op = spatial == 2 ? "fractional_max_pool2d" : "fractional_max_pool3d";
  if (kernel_size.size() != spatial)
    throw UserError(op + ": kernel_size must either be a single Int or tuple of Ints, found " + str(kernel_size));
  if (output_size.size() != spatial)
    throw UserError(op + ": output_size must either be a single Int or tuple of Ints, found " + str(output_size));
  check_plane_dims(op.c_str(), self, spatial);
  if (random_samples.dtype() != self.dtype())
    throw UserError(op + ": expect _random_samples to have the same dtype as input, found " +
                    std::string(name(random_samples.dtype())));
  if (random_samples.dim() != 3)
    throw UserError(op + ": expect _random_samples to have 3 dimensions, got " + std::to_string(random_samples.dim()));
  if (spatial == 2) check_samples(op, self, spatial, random_samples);  // PyTorch's rule for volumes has no guard for it
  SymInts sizes(self.sym_sizes().begin(), self.sym_sizes().end() - spatial);
  for (int d = 0; d < spatial; ++d) {
    const auto i = static_cast<size_t>(d);
    const SymInt in = self.sym_size(self.dim() - spatial + d);
    if (!guard(SymInt(output_size[i]) + kernel_size[i] - 1 <= in))
      throw UserError(op + ": pool size " + std::to_string(kernel_size[i]) + " too large relative to input size " +
                      in.str() + " in dimension " + std::to_string(d));
    sizes.push_back(output_size[i]);
  }
  Meta places = rule::contiguous_like(self, sizes);
  places.dtype = DType::int64;
  return {rule::contiguous_like(self, sizes), places};
}
template <int spatial>
void fractional_kernel(const Tensor& self, IntList kernel_size, IntList output_size, const Tensor& random_samples,
                       const Tensor& out, const Tensor& indices) {
  if (spatial == 3) check_samples("fractional_max_pool3d", self, spatial, random_samples);
  const std::span<const int64_t> sizes(self.sizes().end() - spatial, spatial);
  const Tensor dense = out.is_contiguous() ? out : Tensor(make_tensor(out.sizes(), out.dtype()));
  const Tensor places = indices.is_contiguous() ? indices : Tensor(make_tensor(indices.sizes(), indices.dtype()));
  kernel::fractional_max_pool(spatial == 2 ? "fractional_max_pool2d_out_frame" : "fractional_max_pool3d_out_frame",
                              pool_in_order(self), pool_in_order(random_samples), sizes,
                              {kernel_size.data(), kernel_size.size()}, {output_size.data(), output_size.size()},
                              spatial == 2, planes_of(self, spatial), dense, places);
  if (!out.is_contiguous()) kernel::copy(dense, out);
  if (!indices.is_contiguous()) kernel::copy(places, indices);
}

// ---- convolution over time first ------------------------------------------------------------------------------------
Meta conv_tbc_rule(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  const char* op = "conv_tbc";
  if (self.dim() != 3)
    throw UserError(std::string(op) + ": input must have 3 dims: time, batch, in_channel, found " + str(self.sym_sizes()));
  if (weight.dim() != 3)
    throw UserError(std::string(op) + ": weight tensor must have 3 dims: kernel_width, in_channels, out_channels, found " +
                    str(weight.sym_sizes()));
  if (bias.dim() != 1) throw UserError(std::string(op) + ": bias must be 1-D, found " + str(bias.sym_sizes()));
  if (!guard(self.sym_size(2) == weight.sym_size(1)))
    throw UserError(std::string(op) + ": input dim 2 (input channels) is not == dim 1 in the weight tensor");
  if (!guard(weight.sym_size(2) == bias.sym_size(0)))
    throw UserError(std::string(op) + ": bias size must equal dim 2 in the weight tensor (output channels)");
  const SymInt length = self.sym_size(0) + SymInt(2) * pad - weight.sym_size(0) + 1;
  if (guard_or(length < 0, false))
    throw UserError(std::string(op) + ": trying to create tensor with negative dimension " + length.str());
  return rule::contiguous_like(self, SymInts{length, self.sym_size(1), weight.sym_size(2)});
}
void conv_tbc_kernel(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad, const Tensor& out) {
  kernel::copy(bias.expand(SymInts(out.sym_sizes().begin(), out.sym_sizes().end())), out);
  const int64_t in_length = self.size(0);
  const int64_t out_length = out.size(0);
  for (int64_t k = 0; k < weight.size(0); ++k) {
    const int64_t from = std::max<int64_t>(0, k - pad);
    const int64_t to = std::max<int64_t>(0, pad - k);
    const int64_t n = std::min(in_length - from, out_length - to);
    if (n <= 0) continue;
    const Tensor part = out.narrow(0, to, n).view({n * self.size(1), weight.size(2)});
    part.addmm_(self.narrow(0, from, n).reshape({n * self.size(1), self.size(2)}), weight.select(0, k));
  }
}

// A product at each step of the kernel, and its gradients.
TensorVector of_conv_tbc(const Gradients& g) {
  const Tensor self = g["self"], weight = g["weight"];
  const Tensor& grad = g.grad();
  const int64_t pad = g.integer("pad");
  const SymInt in_length = self.sym_size(0), out_length = grad.sym_size(0);
  const Tensor of_self = zeros_like(self), of_weight = zeros_like(weight);
  const int64_t steps = weight.sym_size(0).guard_int();
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t from = std::max<int64_t>(0, k - pad), to = std::max<int64_t>(0, pad - k);
    const SymInt n = sym_min(in_length - from, out_length - to);
    if (!guard(n > 0)) continue;
    const Tensor part = grad.narrow(0, to, n).reshape({n * grad.sym_size(1), grad.sym_size(2)});
    const Tensor input = self.narrow(0, from, n).reshape({n * self.sym_size(1), self.sym_size(2)});
    of_self.narrow(0, from, n).add_(part.mm(weight.select(0, k).t()).view({n, self.sym_size(1), self.sym_size(2)}));
    of_weight.select(0, k).add_(input.t().mm(part));
  }
  return {of_self, of_weight, grad.sum({0, 1}, false)};
}

// ---- grids of affine maps -------------------------------------------------------------------------------------------
// From -1 to 1, at the pixels' centres unless corners are aligned.
Tensor steps(const Tensor& theta, int64_t n, bool align_corners) {
  if (n <= 1) return full({n}, 0, theta.dtype());
  const Tensor line = linspace(-1, 1, n, theta.dtype());
  return align_corners ? line : line * (static_cast<double>(n - 1)) / static_cast<double>(n);
}
// The pixels' coordinates with a 1 behind them, made as PyTorch makes them: [batch, sizes..., spatial + 1].
Tensor affine_base(const Tensor& grad, SymIntList size, bool align_corners) {
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  SymInts sizes(size.begin() + 1, size.end());
  sizes[0] = size[0];
  sizes.push_back(spatial + 1);
  const Tensor base = empty(sizes, grad.dtype(), Layout::strided, grad.device());
  for (int64_t k = 0; k < spatial; ++k) {  // the last dimension of the picture is the first coordinate
    const int64_t n = size[static_cast<size_t>(spatial + 1 - k)].guard_int();
    Tensor line = n <= 1 ? full({n}, 0, grad.dtype()) : linspace(-1, 1, n, grad.dtype());
    if (n > 1 && !align_corners) line = gradient::over(gradient::times(line, n - 1), n);
    for (int64_t i = 0; i < k; ++i) line.unsqueeze_(-1);
    base.select(-1, k).copy_(line);
  }
  base.select(-1, spatial).fill_(1);
  return base;
}
Tensor of_affine_grid(const Gradients& g) {
  const SymInts size = g.sym_ints("size");
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  const Tensor base = affine_base(g.grad(), size, g.flag("align_corners"));
  const SymInt points = product(SymIntList(size.data() + 2, static_cast<size_t>(spatial)));
  const Tensor seen = base.view({size[0], points, spatial + 1}).transpose(1, 2);
  return seen.bmm(g.grad().reshape({size[0], points, spatial})).transpose(1, 2);
}
Meta affine_grid_rule(const Tensor& theta, SymIntList size, bool) {
  const size_t spatial = size.size() - 2;
  if (size.size() != 4 && size.size() != 5)
    throw UserError("affine_grid_generator: needs 4d (spatial) or 5d (volumetric) inputs, found a size of " +
                    std::to_string(size.size()) + " dimensions");
  if (theta.dim() != 3 || !guard(theta.sym_size(0) == size[0]) ||
      !guard(theta.sym_size(2) == static_cast<int64_t>(spatial) + 1))
    throw UserError("affine_grid_generator: expected theta of sizes [" + size[0].str() + ", " + std::to_string(spatial) +
                    ", " + std::to_string(spatial + 1) + "], found " + str(theta.sym_sizes()));
  SymInts sizes{size[0]};
  for (size_t d = 2; d < size.size(); ++d) sizes.push_back(size[d]);
  sizes.push_back(static_cast<int64_t>(spatial));
  return rule::contiguous_like(theta, sizes);
}
void affine_grid_kernel(const Tensor& theta, SymIntList size, bool align_corners, const Tensor& out) {
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  SymInts sizes(out.sym_sizes().begin(), out.sym_sizes().end());
  sizes.back() = spatial + 1;
  const Tensor base = make_tensor(rule::contiguous_like(theta, sizes));
  int64_t points = 1;
  for (int64_t d = 0; d < spatial; ++d) {  // the last dimension of the picture is the first coordinate
    const int64_t n = out.size(1 + d);
    points *= n;
    SymInts shape(static_cast<size_t>(spatial - d), 1);
    shape[0] = n;
    base.select(-1, spatial - 1 - d).copy_(steps(theta, n, align_corners).view(shape), false);
  }
  base.select(-1, spatial).fill_(1);
  const int64_t batch = out.size(0);
  kernel::copy(base.view({batch, points, spatial + 1})
                   .bmm(theta.transpose(1, 2))
                   .view(SymInts(out.sym_sizes().begin(), out.sym_sizes().end())),
               out);
}

}  // namespace

void register_unpooling(Library& aten);
void register_unpooling(Library& aten) {
  aten.def("max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.max_unpool2d")
      .compute(unpool2_rule, unpool2_kernel)
      .out("max_unpool2d.out(out)")
      .tags(Tag::restrides_out)
      .gradient("self", "indices", gradient::of_placed<2>);
  aten.def("max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.max_unpool3d")
      .compute(unpool3_rule, unpool3_kernel)
      .out("max_unpool3d.out(out)")
      .gradient("self", "indices", gradient::of_placed<3>);
  aten.def(
          "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, "
          "Tensor)")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.fractional_max_pool2d")
      .compute(fractional_rule<2>, fractional_kernel<2>)
      .out("fractional_max_pool2d.output(output, indices)")
      .gradient("self", "self result1",
                [](const Gradients& g) {
                  return fractional_max_pool2d_backward(g.grad(), g["self"], g.integers("kernel_size"),
                                                        g.integers("output_size"), g["result1"]);
                })
      .no_gradient("result1");
  aten.def(
          "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, "
          "Tensor)")
      .tags(Tag::autocast_float32)
      .python("torch._C._nn.fractional_max_pool3d")
      .compute(fractional_rule<3>, fractional_kernel<3>)
      .out("fractional_max_pool3d.output(output, indices)")
      .gradient("self", "self result1",
                [](const Gradients& g) {
                  return fractional_max_pool3d_backward(g.grad(), g["self"], g.integers("kernel_size"),
                                                        g.integers("output_size"), g["result1"]);
                })
      .no_gradient("result1");
  aten.def("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor")
      .python_alias("torch.nn.functional.conv_tbc", "torch.conv_tbc")
      .tags(Tag::autocast_lower)
      .python("torch.conv_tbc")
      .compute(conv_tbc_rule, conv_tbc_kernel)
      .out("conv_tbc.out(out)")
      .gradient("self weight bias", "self weight", of_conv_tbc);
  aten.def("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor")
      .python("torch.affine_grid_generator")
      .compute(affine_grid_rule, affine_grid_kernel)
      .out("affine_grid_generator.out(out)")
      .gradient("theta", "", of_affine_grid);
}

}  // namespace calque
