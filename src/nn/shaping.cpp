#include "calque/nn/shaping.h"

#include "calque/nn/functional.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/shaping.h"
#include "calque/op/aten/views.h"
#include "calque/tensor/number_text.h"

namespace calque {

using nn_detail::sym;
using nn_detail::tuple_text;

Tensor Flatten::forward(const Tensor& input) { return flatten(input, start_dim, end_dim); }
std::string Flatten::extra_repr() const {
  return "start_dim=" + std::to_string(start_dim) + ", end_dim=" + std::to_string(end_dim);
}

Tensor Unflatten::forward(const Tensor& input) { return unflatten(input, dim, sym(unflattened_size)); }
std::string Unflatten::extra_repr() const {
  return "dim=" + std::to_string(dim) + ", unflattened_size=" + tuple_text(unflattened_size);
}

Tensor PixelShuffle::forward(const Tensor& input) { return pixel_shuffle(input, upscale_factor); }
Tensor PixelUnshuffle::forward(const Tensor& input) { return pixel_unshuffle(input, downscale_factor); }
Tensor ChannelShuffle::forward(const Tensor& input) { return channel_shuffle(input, groups); }

Tensor Upsample::forward(const Tensor& input) {
  return functional::interpolate(input, {.size = options.size,
                                         .scale_factor = options.scale_factor,
                                         .mode = options.mode,
                                         .align_corners = options.align_corners,
                                         .recompute_scale_factor = options.recompute_scale_factor});
}

std::string Upsample::extra_repr() const {
  std::string out;
  if (options.scale_factor) {
    const std::vector<double>& factors = *options.scale_factor;
    out = "scale_factor=";
    if (factors.size() == 1)
      out += python_repr(factors[0]);
    else {
      out += "(";
      for (size_t i = 0; i < factors.size(); ++i) out += (i ? ", " : "") + python_repr(factors[i]);
      out += ")";
    }
  } else {
    out = "size=" + (options.size ? options.size->str() : "None");
  }
  return out + ", mode='" + options.mode + "'";
}

PadBase::PadBase(size_t dims, const Sizes& padding) : padding(padding.expanded(2 * dims, "padding")) {}

Tensor PadBase::pad_with(const Tensor& input, const char* mode, std::optional<double> value) const {
  return pad(input, sym(padding), mode, value);
}

static std::string constant_text(const std::vector<int64_t>& padding, double value) {
  return "padding=" + tuple_text(padding) + ", value=" + python_repr(value);
}
std::string ConstantPad1d::extra_repr() const { return constant_text(padding, value); }
std::string ConstantPad2d::extra_repr() const { return constant_text(padding, value); }
std::string ConstantPad3d::extra_repr() const { return constant_text(padding, value); }

Tensor Unfold::forward(const Tensor& input) { return functional::unfold(input, kernel_size, dilation, padding, stride); }
std::string Unfold::extra_repr() const {
  return "kernel_size=" + kernel_size.str() + ", dilation=" + dilation.str() + ", padding=" + padding.str() +
         ", stride=" + stride.str();
}

Tensor Fold::forward(const Tensor& input) {
  return functional::fold(input, output_size, kernel_size, dilation, padding, stride);
}
std::string Fold::extra_repr() const {
  return "output_size=" + output_size.str() + ", kernel_size=" + kernel_size.str() + ", dilation=" + dilation.str() +
         ", padding=" + padding.str() + ", stride=" + stride.str();
}

Tensor CosineSimilarity::forward(const Tensor& x1, const Tensor& x2) { return cosine_similarity(x1, x2, dim, eps); }
Tensor PairwiseDistance::forward(const Tensor& x1, const Tensor& x2) { return pairwise_distance(x1, x2, p, eps, keepdim); }

}  // namespace calque
