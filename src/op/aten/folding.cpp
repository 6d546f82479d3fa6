// Images as columns and back, sampling at a grid, weight norm.
#include "calque/op/aten/folding.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "kernel/cpu/convolution/folding.h"
#include "kernel/cpu/elementwise/copy.h"
#include "kernel/cpu/not_implemented.h"
#include "op/rule/geometry.h"
#include "op/stanza.h"

namespace calque {
namespace {

using kernel::Blocks;

[[noreturn]] void refuse_folding(const char* op, DType d) { kernel::not_implemented(op, d); }
bool is_float(DType d) { return is_floating(d) && !is_float8(d); }

// ---- im2col, col2im -----------------------------------------------------------------------------------------------
struct Pairs {
  int64_t kernel[2], dilation[2], padding[2], stride[2];
};
Pairs pairs(const char* op, IntList kernel, IntList dilation, IntList padding, IntList stride) {
  Pairs p{};
  const auto take = [&](const char* what, IntList from, int64_t* to, int64_t least) {
    if (from.size() != 2)
      throw UserError(std::string(op) + ": It is expected " + what + " equals to 2, but got size " +
                      std::to_string(from.size()));
    for (size_t d = 0; d < 2; ++d) {
      if (from[d] < least)
        throw UserError(std::string(op) + ": " + what + " should be at least " + std::to_string(least) + ", but got " +
                        str(from));
      to[d] = from[d];
    }
  };
  take("kernel_size", kernel, p.kernel, 1);
  take("dilation", dilation, p.dilation, 1);
  take("padding", padding, p.padding, 0);
  take("stride", stride, p.stride, 1);
  return p;
}
SymInt block_count(const Pairs& p, SymInt size, size_t d) {
  return floor_div(size + SymInt(2) * p.padding[d] - SymInt(p.dilation[d]) * (p.kernel[d] - 1) - 1, p.stride[d]) + 1;
}
Blocks blocks(const Pairs& p, int64_t h, int64_t w) {
  Blocks b{};
  for (size_t d = 0; d < 2; ++d) {
    b.kernel[d] = p.kernel[d], b.dilation[d] = p.dilation[d], b.padding[d] = p.padding[d], b.stride[d] = p.stride[d];
    b.image[d] = d == 0 ? h : w;
    b.count[d] = block_count(p, b.image[d], d).as_int();
  }
  return b;
}
Tensor batched(const Tensor& t) { return rule::make(t, rule::unsqueeze("im2col", rule::geometry(t), 0)); }

Meta im2col_rule(const Tensor& self, IntList kernel, IntList dilation, IntList padding, IntList stride) {
  const Pairs p = pairs("im2col", kernel, dilation, padding, stride);
  bool fits = self.dim() == 3 || self.dim() == 4;
  for (int64_t d = self.dim() - 3; d < self.dim() && fits; ++d) fits = check(self.sym_size(d) > 0);
  if (!fits)
    throw UserError(
        "im2col: Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
        "but got: " +
        str(self.sym_sizes()));
  const SymInt h = block_count(p, self.sym_size(-2), 0), w = block_count(p, self.sym_size(-1), 1);
  if (!check(h >= 1) || !check(w >= 1))
    throw UserError("im2col: Given input with spatial size (" + self.sym_size(-2).str() + ", " + self.sym_size(-1).str() +
                    "), kernel_size=" + str(kernel) + ", dilation=" + str(dilation) + ", padding=" + str(padding) +
                    ", calculated shape of the array of sliding blocks as (" + h.str() + ", " + w.str() +
                    "), but its components must be at least one");
  if (!is_float(self.dtype()) && self.dtype() != DType::bool_) refuse_folding("im2col", self.dtype());
  SymInts sizes;
  if (self.dim() == 4) sizes.push_back(self.sym_size(0));
  sizes.push_back(self.sym_size(-3) * (SymInt(p.kernel[0]) * p.kernel[1]));
  sizes.push_back(h * w);
  return rule::contiguous_like(self, sizes);
}
void im2col_kernel(const Tensor& self, IntList kernel, IntList dilation, IntList padding, IntList stride,
                   const Tensor& out) {
  const Blocks b = blocks(pairs("im2col", kernel, dilation, padding, stride), self.size(-2), self.size(-1));
  if (self.dim() == 4)
    kernel::im2col(self, b, out);
  else
    kernel::im2col(batched(self), b, batched(out));
}

Meta col2im_rule(const Tensor& self, SymIntList output_size, IntList kernel, IntList dilation, IntList padding,
                 IntList stride) {
  const Pairs p = pairs("col2im", kernel, dilation, padding, stride);
  if (output_size.size() != 2)
    throw UserError("col2im: It is expected output_size equals to 2, but got size " + std::to_string(output_size.size()));
  bool fits = self.dim() == 2 || self.dim() == 3;
  for (int64_t d = self.dim() - 2; d < self.dim() && fits; ++d) fits = check(self.sym_size(d) > 0);
  if (!fits)
    throw UserError(
        "col2im: Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
        "input, but got: " +
        str(self.sym_sizes()));
  const SymInt taps = SymInt(p.kernel[0]) * p.kernel[1];
  if (!check(self.sym_size(-2) % taps == 0))
    throw UserError(
        "col2im: Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
        "input.size(1)=" +
        self.sym_size(-2).str() + " and kernel_size=" + str(kernel));
  const SymInt h = block_count(p, output_size[0], 0), w = block_count(p, output_size[1], 1);
  if (!check(self.sym_size(-1) == h * w) || !check(h >= 1) || !check(w >= 1))
    throw UserError("col2im: Given output_size=" + str(output_size) + ", kernel_size=" + str(kernel) +
                    ", dilation=" + str(dilation) + ", padding=" + str(padding) + ", stride=" + str(stride) +
                    ", expected size of input's dimension 2 to match the calculated number of sliding blocks " + h.str() +
                    " * " + w.str() + ", but got input.size(2)=" + self.sym_size(-1).str());
  if (!is_float(self.dtype()) && self.dtype() != DType::bool_) refuse_folding("col2im", self.dtype());
  SymInts sizes;
  if (self.dim() == 3) sizes.push_back(self.sym_size(0));
  sizes.push_back(floor_div(self.sym_size(-2), taps));
  sizes.push_back(output_size[0]);
  sizes.push_back(output_size[1]);
  return rule::contiguous_like(self, sizes);
}
void col2im_kernel(const Tensor& self, SymIntList output_size, IntList kernel, IntList dilation, IntList padding,
                   IntList stride, const Tensor& out) {
  const Blocks b =
      blocks(pairs("col2im", kernel, dilation, padding, stride), output_size[0].as_int(), output_size[1].as_int());
  if (self.dim() == 3)
    kernel::col2im(self, b, out);
  else
    kernel::col2im(batched(self), b, batched(out));
}

// ---- grid_sampler -------------------------------------------------------------------------------------------------
void check_grid(const Tensor& input, const Tensor& grid) {
  const std::string op = "grid_sampler(): ";
  if (input.dim() != grid.dim() || !check(input.sym_size(0) == grid.sym_size(0)))
    throw UserError(op + "expected grid and input to have same batch size, but got input with sizes " +
                    str(input.sym_sizes()) + " and grid with sizes " + str(grid.sym_sizes()));
  if (!check(grid.sym_size(-1) == input.dim() - 2))
    throw UserError(op + "expected grid to have size " + std::to_string(input.dim() - 2) +
                    " in last dimension, but got grid with sizes " + str(grid.sym_sizes()));
  for (int64_t d = 2; d < input.dim(); ++d)
    if (!check(input.sym_size(d) > 0))
      throw UserError(op + "expected input to have non-empty spatial dimensions, but input has sizes " +
                      str(input.sym_sizes()));
  if (input.dtype() != grid.dtype())
    throw UserError(op + "expected grid of input's dtype " + std::string(name(input.dtype())) + ", found " +
                    std::string(name(grid.dtype())));
}
Meta grid_rule(const Tensor& input, const Tensor& grid, int64_t, int64_t, bool) {
  check_grid(input, grid);
  if (input.dim() != 4)
    throw UserError("grid_sampler_2d(): expected 4D input and grid, but got input with sizes " + str(input.sym_sizes()));
  if (!is_float(input.dtype())) refuse_folding("grid_sampler_2d", input.dtype());
  return rule::contiguous_like(input, {input.sym_size(0), input.sym_size(1), grid.sym_size(1), grid.sym_size(2)});
}
void check_modes(const char* op, int64_t mode, int64_t padding) {
  if (mode < 0 || mode > 2)
    throw UserError(std::string(op) + "(): interpolation_mode must be 0, 1 or 2, found " + std::to_string(mode));
  if (padding < 0 || padding > 2)
    throw UserError(std::string(op) + "(): padding_mode must be 0, 1 or 2, found " + std::to_string(padding));
}
void grid_kernel(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners,
                 const Tensor& out) {
  check_modes("grid_sampler_2d", mode, padding);
  kernel::grid_sample(input, grid, static_cast<kernel::GridMode>(mode), static_cast<kernel::GridPadding>(padding),
                      align_corners, out);
}

Meta grid_3d_rule(const Tensor& input, const Tensor& grid, int64_t mode, int64_t, bool) {
  check_grid(input, grid);
  if (input.dim() != 5)
    throw UserError("grid_sampler_3d(): expected 5D input and grid, but got input with sizes " + str(input.sym_sizes()));
  if (mode == 2) throw UserError("grid_sampler(): bicubic interpolation only supports 4D input");
  if (!is_float(input.dtype())) refuse_folding("grid_sampler_3d", input.dtype());
  return rule::contiguous_like(input,
                               {input.sym_size(0), input.sym_size(1), grid.sym_size(1), grid.sym_size(2), grid.sym_size(3)});
}
void grid_3d_kernel(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners,
                    const Tensor& out) {
  check_modes("grid_sampler_3d", mode, padding);
  kernel::grid_sample_3d(input, grid, static_cast<kernel::GridMode>(mode), static_cast<kernel::GridPadding>(padding),
                         align_corners, out);
}

template <int spatial>
std::array<Meta, 2> grid_back_rule(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t mode,
                                   int64_t padding, bool align_corners, PairMask mask) {
  const Meta forward = spatial == 2 ? grid_rule(input, grid, mode, padding, align_corners)
                                    : grid_3d_rule(input, grid, mode, padding, align_corners);
  if (!rule::equal_sizes(grad.sym_sizes(), forward.sizes))
    throw UserError("grid_sampler_" + std::to_string(spatial) + "d_backward: expected grad_output of sizes " +
                    str(SymIntList(forward.sizes)) + ", found " + str(grad.sym_sizes()));
  const auto like = [](const Tensor& t, bool wanted) {
    Meta m = rule::contiguous_like(t, SymInts(t.sym_sizes().begin(), t.sym_sizes().end()));
    m.undefined = !wanted;
    return m;
  };
  return {like(input, mask[0]), like(grid, true)};
}
template <int spatial>
void grid_back_kernel(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                      bool align_corners, PairMask, const Tensor& grad_input, const Tensor& grad_grid) {
  check_modes(spatial == 2 ? "grid_sampler_2d_backward" : "grid_sampler_3d_backward", mode, padding);
  kernel::grid_sample_backward(grad, input, grid, static_cast<kernel::GridMode>(mode),
                               static_cast<kernel::GridPadding>(padding), align_corners, grad_input, grad_grid);
}
template <int spatial>
TensorVector of_grid_sampler(const Gradients& g) {
  const int64_t mode = g.integer("interpolation_mode"), padding = g.integer("padding_mode");
  const bool align = g.flag("align_corners");
  const PairMask mask{g.needs("input"), g.needs("grid")};
  auto [input, grid] = spatial == 2 ? grid_sampler_2d_backward(g.grad(), g["input"], g["grid"], mode, padding, align, mask)
                                    : grid_sampler_3d_backward(g.grad(), g["input"], g["grid"], mode, padding, align, mask);
  return {input, grid};
}

// ---- weight norm --------------------------------------------------------------------------------------------------
Tensor norm_except_dim_body(const Tensor& v, int64_t pow, int64_t dim) {
  const auto norm_over = [&](const Tensor& x, int64_t d) {
    return call("aten::norm.ScalarOpt_dim", {x, pow, list({d})}).to_tensor();
  };
  if (dim == -1) return call("aten::norm.Scalar", {v, pow}).to_tensor();
  SymInts sizes(static_cast<size_t>(v.dim()), 1);
  if (dim == 0) {
    sizes[0] = v.sym_size(0);
    return view(norm_over(view(v.contiguous(), {v.sym_size(0), -1}), 1), sizes);
  }
  if (dim == v.dim() - 1) {
    sizes[static_cast<size_t>(dim)] = v.sym_size(dim);
    return view(norm_over(view(v.contiguous(), {-1, v.sym_size(dim)}), 0), sizes);
  }
  return transpose(norm_except_dim(transpose(v, 0, dim), pow, 0), 0, dim);
}
Tensor weight_norm_body(const Tensor& v, const Tensor& g, int64_t dim) {
  if (v.device() != g.device())
    throw UserError("_weight_norm: expected v and g to be on the same device, found " + v.device().str() + " and " +
                    g.device().str());
  const Tensor dense_v = v.contiguous(), dense_g = g.contiguous();
  if (dim == 0 || dim == v.dim() - 1) return std::get<0>(_weight_norm_interface(dense_v, dense_g, dim));
  return mul(dense_v, div(dense_g, norm_except_dim(dense_v, 2, dim)));
}
std::array<Meta, 2> weight_norm_rule(const Tensor& v, const Tensor& g, int64_t dim) {
  if (dim != 0 && dim != v.dim() - 1)
    throw UserError("_weight_norm_interface: fused kernels can only be applied for first or last dim, found dim " +
                    std::to_string(dim));
  if (!is_float(v.dtype())) refuse_folding("_weight_norm_interface", v.dtype());
  if (v.dtype() != g.dtype())
    throw UserError("_weight_norm_interface: expected g of v's dtype " + std::string(name(v.dtype())) + ", found " +
                    std::string(name(g.dtype())));
  bool fits = g.dim() == v.dim();
  for (int64_t d = 0; d < v.dim() && fits; ++d) fits = check(g.sym_size(d) == (d == dim ? v.sym_size(d) : SymInt(1)));
  if (!fits)
    throw UserError("_weight_norm_interface: expected g of v's size in dimension " + std::to_string(dim) +
                    " and 1 elsewhere, found " + str(g.sym_sizes()) + " for " + str(v.sym_sizes()));
  Meta norm = g.meta();
  norm.dtype = v.dtype() == DType::float64 ? DType::float64 : DType::float32;
  return {rule::contiguous_like(v, SymInts(v.sym_sizes().begin(), v.sym_sizes().end())), norm};
}
void weight_norm_kernel(const Tensor& v, const Tensor& g, int64_t dim, const Tensor& out, const Tensor& norm) {
  Tensor dense = v;
  if (!v.is_contiguous()) {
    dense = make_tensor(rule::contiguous_like(v, SymInts(v.sym_sizes().begin(), v.sym_sizes().end())));
    kernel::copy(v, dense);
  }
  kernel::weight_norm(dense, g, dim, out, norm);
}

std::array<Meta, 2> weight_norm_back_rule(const Tensor& grad, const Tensor& v, const Tensor& g, const Tensor& norms,
                                          int64_t dim) {
  const std::string op = "_weight_norm_interface_backward: ";
  if (dim != 0 && dim != v.dim() - 1)
    throw UserError(op + "fused kernels can only be applied for first or last dim, found dim " + std::to_string(dim));
  if (!rule::equal_sizes(grad.sym_sizes(), v.sym_sizes()) || !rule::equal_sizes(norms.sym_sizes(), g.sym_sizes()))
    throw UserError(op + "expected a gradient of v's sizes " + str(v.sym_sizes()) + " and norms of g's sizes " +
                    str(g.sym_sizes()) + ", found " + str(grad.sym_sizes()) + " and " + str(norms.sym_sizes()));
  weight_norm_rule(v, g, dim);
  const DType wide = v.dtype() == DType::float64 ? DType::float64 : DType::float32;
  if (norms.dtype() != wide)
    throw UserError(op + "expected norms of dtype " + std::string(name(wide)) + ", found " +
                    std::string(name(norms.dtype())));
  const auto dense = [](const Tensor& t) {
    return rule::contiguous_like(t, SymInts(t.sym_sizes().begin(), t.sym_sizes().end()));
  };
  return {dense(v), dense(g)};
}
void weight_norm_back_kernel(const Tensor& grad, const Tensor& v, const Tensor& g, const Tensor& norms, int64_t dim,
                             const Tensor& grad_v, const Tensor& grad_g) {
  kernel::weight_norm_backward(grad, v, g, norms, dim, grad_v, grad_g);
}
// With operators that have gradients themselves where the pass is recorded.
TensorVector of_weight_norm(const Gradients& g) {
  if (!g.grad().defined()) return {};
  const int64_t dim = g.integer("dim");
  const Tensor v = g["v"], length = g["g"], grad = g.grad().contiguous();
  if (!grad_enabled()) {
    auto [of_v, of_g] = _weight_norm_interface_backward(grad, v, length, g["result1"], dim);
    return {of_v, of_g};
  }
  const Tensor norm = g["result1"];  // a constant, as PyTorch has it
  std::vector<int64_t> others;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != dim) others.push_back(d);
  const Tensor along = (grad * v).sum(others, true);
  return {(length / norm) * (grad - v * (along / (norm * norm))), along / norm};
}

}  // namespace

void register_folding(Library& aten);
void register_folding(Library& aten) {
  aten.def("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor")
      .python("torch._C._nn.im2col")
      .compute(im2col_rule, im2col_kernel)
      .out("im2col.out")
      .tags(Tag::any_out, Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        const SymIntList sizes = g.sizes("self");
        return g.grad().col2im({sizes[sizes.size() - 2], sizes.back()}, g.integers("kernel_size"), g.integers("dilation"),
                               g.integers("padding"), g.integers("stride"));
      });
  aten.def(
          "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) "
          "-> Tensor")
      .python("torch._C._nn.col2im")
      .compute(col2im_rule, col2im_kernel)
      .out("col2im.out")
      .tags(Tag::any_out, Tag::core, Tag::strided_out)
      .gradient("self", "", [](const Gradients& g) {
        return g.grad().im2col(g.integers("kernel_size"), g.integers("dilation"), g.integers("padding"),
                               g.integers("stride"));
      });
  aten.def(
          "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
          "Tensor")
      .tags(Tag::autocast_float32)
      .compute(grid_rule, grid_kernel)
      .out("grid_sampler_2d.out")
      .tags(Tag::dense_out, Tag::core, Tag::strided_out)
      .gradient("input grid", "input grid", of_grid_sampler<2>);
  aten.def(
          "grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int "
          "padding_mode, "
          "bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)")
      .compute(grid_back_rule<2>, grid_back_kernel<2>)
      .out("grid_sampler_2d_backward.out")
      .tags(Tag::dense_out);
  aten.def(
          "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
          "Tensor")
      .tags(Tag::autocast_float32)
      .compute(grid_3d_rule, grid_3d_kernel)
      .out("grid_sampler_3d.out")
      .tags(Tag::dense_out, Tag::strided_out)
      .gradient("input grid", "input grid", of_grid_sampler<3>);
  aten.def(
          "grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int "
          "padding_mode, "
          "bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)")
      .compute(grid_back_rule<3>, grid_back_kernel<3>)
      .out("grid_sampler_3d_backward.out")
      .tags(Tag::dense_out);
  aten.def("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor")
      .tags(Tag::autocast_float32)
      .composite([](const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
        if (input.dim() == 0 || grid.dim() == 0)
          throw UserError("grid_sampler(): Dimension specified as 0 but tensor has no dimensions");
        check_grid(input, grid);
        if (input.dim() == 5) return grid_sampler_3d(input, grid, mode, padding, align_corners);
        return grid_sampler_2d(input, grid, mode, padding, align_corners);
      });
  aten.def("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor").composite(norm_except_dim_body);
  aten.def("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor").composite(weight_norm_body);
  aten.def("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)")
      .compute(weight_norm_rule, weight_norm_kernel)
      .out("_weight_norm_interface.out")
      .tags(Tag::dense_out)
      .gradient("v g", "v g result1", of_weight_norm)
      .no_gradient("result1");
  aten.def(
          "_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> "
          "(Tensor, Tensor)")
      .compute(weight_norm_back_rule, weight_norm_back_kernel)
      .out("_weight_norm_interface_backward.out")
      .tags(Tag::dense_out);
}

}  // namespace calque
