// Padding, sliding blocks and interpolation.

#include <cmath>

#include "calque/op/aten/activation.h"
#include "calque/op/aten/arange.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/indexing.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/index.h"
#include "calque/op/literal.h"
#include "calque/sym/sym_math.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

using Kind = DecompositionBuilder::Kind;

// Number minus tensor, as torch.rsub decomposes.
Tensor minus(SymInt number, const Tensor& t) { return sub(number_tensor(Scalar(number)), t); }

Tensor reflected(const Tensor& like, SymInt left, SymInt middle, SymInt right) {
  const Tensor index = arange_on(like, Scalar(-left), Scalar(middle + right));
  const SymInt last = middle - SymInt(1);
  return minus(last, abs(minus(last, abs(index))));
}
Tensor replicated(const Tensor& like, SymInt left, SymInt middle, SymInt right) {
  const Tensor index = arange_on(like, Scalar(-left), Scalar(middle + right));
  return clamp(index, Scalar(0), Scalar(middle - SymInt(1)));
}

template <auto index_of>
Tensor padded(const Tensor& a, SymIntList padding) {
  const auto dims = static_cast<int64_t>(padding.size() / 2);
  const int64_t first = a.dim() - dims;
  if (first != 1 && first != 2)
    throw UserError("pad: padding of " + std::to_string(dims) + " dimensions needs an input of " + std::to_string(dims + 1) +
                    " or " + std::to_string(dims + 2) + ", found " + std::to_string(a.dim()));
  Tensor result = a;
  for (int64_t i = 0; i < dims; ++i) {
    const auto at = static_cast<size_t>(2 * (dims - 1 - i));
    std::vector<Tensor> indices(static_cast<size_t>(a.dim()));
    indices[static_cast<size_t>(first + i)] = index_of(a, padding[at], a.sym_size(first + i), padding[at + 1]);
    result = _unsafe_index(result, indices);
  }
  return contiguous(result, a.suggest_memory_format());
}

// Where the elements of the blocks lie along one dimension: kernel by blocks.
Tensor block_indices(const Tensor& like, SymInt size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride) {
  const SymInt reach = size + SymInt(padding * 2) - SymInt(dilation * (kernel - 1));
  const auto range = [&](SymInt end, int64_t step) {
    return arange(Scalar(0), Scalar(end), Scalar(step), DType::int64, std::nullopt, like.device(), false);
  };
  const Tensor blocks = range(reach, stride).unsqueeze(0);
  const Tensor grid = range(SymInt(kernel * dilation), dilation).unsqueeze(-1);
  return blocks + grid;
}

SymInt blocks_along(SymInt size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride) {
  return SymInt(1) + floor_div(size + SymInt(2 * padding - dilation * (kernel - 1) - 1), SymInt(stride));
}

Tensor im2col_of(const Tensor& self, IntList kernel, IntList dilation, IntList padding, IntList stride) {
  const bool batched = self.dim() == 4;
  for (const int64_t d : {-2, -1}) {
    const auto i = static_cast<size_t>(d + 2);
    require(blocks_along(self.sym_size(d), kernel[i], dilation[i], padding[i], stride[i]) > SymInt(0), "im2col",
            "there is no room for a single block");
  }
  const Tensor input = batched ? self : self.unsqueeze(0);
  Tensor rows = block_indices(input, input.sym_size(2), kernel[0], dilation[0], padding[0], stride[0]);
  const Tensor columns = block_indices(input, input.sym_size(3), kernel[1], dilation[1], padding[1], stride[1]);
  const Tensor room = pad(input, SymInts{padding[1], padding[1], padding[0], padding[0]});
  rows = rows.unsqueeze(-1).unsqueeze(-1);
  Tensor output = index(room, TensorList{Tensor(), Tensor(), rows, columns});
  output = permute(output, IntList{0, 1, 2, 4, 3, 5});
  output = reshape(output, SymInts{input.sym_size(0), input.sym_size(1) * SymInt(kernel[0] * kernel[1]),
                                   rows.sym_size(1) * columns.sym_size(1)});
  return batched ? output : output.squeeze(0);
}

Tensor col2im_of(const Tensor& self, SymIntList output_size, IntList kernel, IntList dilation, IntList padding,
                 IntList stride) {
  const bool batched = self.dim() == 3;
  const SymInt area(kernel[0] * kernel[1]);
  require(self.sym_size(-2) % area == SymInt(0), "col2im", "the channels cannot be divided by the kernel's size");
  SymInts blocks;
  for (size_t i = 0; i < 2; ++i)
    blocks.push_back(blocks_along(output_size[i], kernel[i], dilation[i], padding[i], stride[i]));
  require(self.sym_size(-1) == blocks[0] * blocks[1], "col2im",
          "there are not as many blocks as the output's size asks for");
  Tensor input = batched ? self : self.unsqueeze(0);
  const SymInt batch = input.sym_size(0), channels = floor_div(input.sym_size(1), area);
  input = reshape(input, SymInts{batch, channels, SymInt(kernel[0]), SymInt(kernel[1]), blocks[0], blocks[1]});
  input = permute(input, IntList{0, 1, 2, 4, 3, 5});
  const Tensor rows = unsqueezed_to(block_indices(input, output_size[0], kernel[0], dilation[0], padding[0], stride[0]), 4);
  const Tensor columns = block_indices(input, output_size[1], kernel[1], dilation[1], padding[1], stride[1]);
  const SymInts room{batch, channels, output_size[0] + SymInt(2 * padding[0]), output_size[1] + SymInt(2 * padding[1])};
  Tensor output = new_zeros(input, room, std::nullopt, std::nullopt, std::nullopt, false);
  output = _unsafe_index_put(output, TensorList{Tensor(), Tensor(), rows, columns}, input, true);
  output = pad(output, SymInts{-padding[1], -padding[1], -padding[0], -padding[0]});
  return batched ? output : output.squeeze(0);
}

Scalar scale_of(SymInt in, SymInt out, bool align_corners, std::optional<double> scale) {
  if (align_corners) {
    if (!guard(out > SymInt(1))) return Scalar(0);
    return Scalar((sym_float(in) - SymFloat(1.0)) / (sym_float(out) - SymFloat(1.0)));
  }
  if (scale && *scale > 0) return Scalar(1.0 / *scale);
  return Scalar(sym_true_div(in, out));
}

Tensor upsample_linear_of(const Tensor& input, SymIntList output_size, bool align_corners,
                          const std::vector<std::optional<double>>& scales) {
  const auto dims = static_cast<size_t>(input.dim() - 2);
  const DType dtype = elementwise_dtypes({input}, Kind::int_to_float).result;
  std::vector<Tensor> exact, low, high;
  for (size_t i = 0; i < dims; ++i) {
    const SymInt in = input.sym_size(static_cast<int64_t>(i) + 2), out = output_size[i];
    const Scalar scale = scale_of(in, out, align_corners, scales[i]);
    const Tensor position = converted(arange_on(input, Scalar(out)), dtype);
    Tensor x = align_corners ? position * scale : (position + 0.5) * scale - 0.5;
    x = clamp(x, Scalar(0.0));
    SymInts shape{x.sym_size(0)};
    for (size_t d = i + 1; d < dims; ++d) shape.push_back(1);
    x = reshape(x, shape);
    const Tensor whole = to(x, DType::int64);
    exact.push_back(x);
    low.push_back(whole);
    high.push_back(clamp(whole + 1, std::nullopt, Scalar(in - SymInt(1))));
  }
  std::vector<Tensor> corners;
  for (size_t corner = 0; corner < (size_t{1} << dims); ++corner) {
    std::vector<Tensor> indices(2);
    for (size_t k = 0; k < dims; ++k) indices.push_back((corner >> (dims - 1 - k)) & 1 ? high[k] : low[k]);
    corners.push_back(converted(_unsafe_index(input, indices), dtype));
  }
  for (size_t i = dims; i-- > 0;) {
    const Tensor share = converted(clamp(exact[i] - low[i], Scalar(0.0), Scalar(1.0)), dtype);
    std::vector<Tensor> halves;
    for (size_t c = 0; c < corners.size(); c += 2) halves.push_back(corners[c] + mul(corners[c + 1] - corners[c], share));
    corners = std::move(halves);
  }
  Tensor result = contiguous(corners[0], input.suggest_memory_format());
  return input.is_floating_point() ? result : round(result);
}

Tensor unpooled(const Tensor& self, const Tensor& indices, SymIntList output_size) {
  const auto dims = static_cast<int64_t>(output_size.size());
  const int64_t outer = self.dim() - dims;
  for (int64_t d = 0; d < self.dim(); ++d)
    require(self.sym_size(d) == indices.sym_size(d), "max_unpool", "input and indices have different sizes");
  SymInts shape(self.sym_sizes().begin(), self.sym_sizes().begin() + outer), broadcast = shape;
  SymInt planes = 1, area = 1;
  for (const SymInt s : shape) planes = planes * s;
  for (const SymInt s : output_size) {
    area = area * s;
    shape.push_back(s);
    broadcast.push_back(1);
  }
  for (const SymInt s : shape)
    if (guard(s == SymInt(0))) return new_zeros(self, shape, std::nullopt, std::nullopt, std::nullopt, false);
  const Tensor first = view(arange_on(self, Scalar(planes)), broadcast) * Scalar(area);
  const Tensor flat = reshape(indices + first, SymInts{-1});
  const Tensor output = new_zeros(self, shape, std::nullopt, std::nullopt, std::nullopt, false);
  const Tensor target = reshape(output, SymInts{-1});
  return view(_unsafe_index_put(target, TensorList{flat}, reshape(self, SymInts{-1})), output.sym_sizes());
}

// Positions from -1 to 1 along one dimension of `rank`.
Tensor grid_along(const Tensor& theta, SymInt size, size_t dim, size_t rank, bool align_corners) {
  SymInts shape(rank, SymInt(1));
  Tensor positions;
  const int64_t steps = size.guard_int();
  if (steps <= 1) {
    positions = tensor(Scalar(0), theta.dtype());
  } else {
    const double a = align_corners ? 1.0 : static_cast<double>(steps - 1) / static_cast<double>(steps);
    const Scalar end = align_corners ? Scalar(1) : Scalar(a), start = align_corners ? Scalar(-1) : Scalar(-a);
    positions = linspace(start, end, steps, theta.dtype(), std::nullopt, theta.device(), false);
  }
  shape[dim] = size;
  return view(positions, shape);
}

Tensor affine_grid(const Tensor& theta, SymIntList size, bool align_corners) {
  const size_t dims = size.size() - 2;  // of the image
  if (dims != 2 && dims != 3)
    throw UserError("affine_grid_generator: expects sizes of 4 or 5 dimensions, found " + std::to_string(size.size()));
  const auto coordinates = static_cast<int64_t>(dims + 1);
  // x is the last dimension of the image and the first coordinate.
  std::vector<Tensor> parts;
  for (size_t k = 0; k < dims; ++k)
    parts.push_back(grid_along(theta, size[size.size() - 1 - k], dims - 1 - k, dims + 1, align_corners));
  parts.push_back(ones(SymInts(dims + 1, SymInt(1)), theta.dtype(), std::nullopt, theta.device(), false));
  for (size_t k = 0; k < parts.size(); ++k)
    parts[k] = pad(parts[k], SymInts{SymInt(static_cast<int64_t>(k)), SymInt(coordinates - 1 - static_cast<int64_t>(k))},
                   "constant", 0.0);
  Tensor base = parts[0];
  for (size_t k = 1; k < parts.size(); ++k) base = base + parts[k];
  const Tensor left = view(base, SymInts{-1, coordinates, 1});
  const Tensor grid = sum(left * mT(theta).unsqueeze(1), IntList{-2});
  SymInts shape{size[0]};
  for (size_t k = 2; k < size.size(); ++k) shape.push_back(size[k]);
  shape.push_back(SymInt(static_cast<int64_t>(dims)));
  return view(grid, shape);
}

}  // namespace

void decompose_resampling(DecompositionBuilder& table) {
  for (const char* name : {"reflection_pad1d", "reflection_pad2d", "reflection_pad3d"})
    table.add_cast(name, [](const Tensor& self, SymIntList padding) -> Tensor { return padded<reflected>(self, padding); });
  for (const char* name : {"replication_pad1d", "replication_pad2d", "replication_pad3d"})
    table.add_cast(name, [](const Tensor& self, SymIntList padding) -> Tensor { return padded<replicated>(self, padding); });
  table.add("max_unpool2d", [](const Tensor& self, const Tensor& indices, SymIntList output_size) -> Tensor {
    return unpooled(self, indices, output_size);
  });
  table.add("max_unpool3d",
            [](const Tensor& self, const Tensor& indices, SymIntList output_size, IntList, IntList) -> Tensor {
              return unpooled(self, indices, output_size);
            });
  table.add_cast("affine_grid_generator", [](const Tensor& theta, SymIntList size, bool align_corners) -> Tensor {
    return affine_grid(theta, size, align_corners);
  });
  table.add("im2col",
            [](const Tensor& self, IntList kernel_size, IntList dilation, IntList padding, IntList stride) -> Tensor {
              return im2col_of(self, kernel_size, dilation, padding, stride);
            });
  table.add_cast(
      "col2im",
      [](const Tensor& self, SymIntList output_size, IntList kernel_size, IntList dilation, IntList padding,
         IntList stride) -> Tensor { return col2im_of(self, output_size, kernel_size, dilation, padding, stride); });
  table.add_cast("upsample_linear1d",
                 [](const Tensor& self, SymIntList output_size, bool align_corners, std::optional<double> scales) -> Tensor {
                   return upsample_linear_of(self, output_size, align_corners, {scales});
                 });
}

}  // namespace calque
