// Sliding blocks of images laid out as columns (im2col) and columns summed back into images (col2im), grid sampling, and the
// scaling of weight norm. Tensors of any strides; shapes are not checked here.
#pragma once

#include <cstdint>

#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

struct Blocks {  // height, width
  int64_t kernel[2], dilation[2], padding[2], stride[2];
  int64_t image[2], count[2];  // sizes of the image, number of blocks
};

// image [n, c, h, w], columns [n, c * kh * kw, blocks].
void im2col(const TensorBase& image, const Blocks& blocks, const TensorBase& columns);
void col2im(const TensorBase& columns, const Blocks& blocks, const TensorBase& image);

enum class GridMode : uint8_t { bilinear, nearest, bicubic };
enum class GridPadding : uint8_t { zeros, border, reflection };
// input [n, c, h, w], grid [n, oh, ow, 2] (x, y in -1 .. 1), out [n, c, oh, ow].
void grid_sample(const TensorBase& input, const TensorBase& grid, GridMode mode, GridPadding padding, bool align_corners,
                 const TensorBase& out);
// The same in space: input [n, c, d, h, w], grid [n, od, oh, ow, 3] (x, y, z), out [n, c, od, oh, ow]; no bicubic.
void grid_sample_3d(const TensorBase& input, const TensorBase& grid, GridMode mode, GridPadding padding, bool align_corners,
                    const TensorBase& out);

// out = v * g / norm, norm over all dimensions but `dim`.
void weight_norm(const TensorBase& v, const TensorBase& g, int64_t dim, const TensorBase& out, const TensorBase& norm);

// Its gradients, from the norms that it left.
void weight_norm_backward(const TensorBase& grad, const TensorBase& v, const TensorBase& g, const TensorBase& norms,
                          int64_t dim, const TensorBase& grad_v, const TensorBase& grad_g);

// The gradients of grid_sample and grid_sample_3d; an undefined one is not computed.
void grid_sample_backward(const TensorBase& grad, const TensorBase& input, const TensorBase& grid, GridMode mode,
                          GridPadding padding, bool align_corners, const TensorBase& grad_input,
                          const TensorBase& grad_grid);

}  // namespace calque::kernel
