// torch.nn.functional: embeddings, dropout, normalization, activations, shapes.
#include "calque/nn/functional.h"

#include <cmath>

#include "calque/base/warning.h"
#include "calque/nn/backends.h"
#include "calque/nn/convert.h"
#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/dropout.h"
#include "calque/op/aten/embedding.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/folding.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/padding.h"
#include "calque/op/aten/pooling.h"
#include "calque/op/aten/random.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/upsample.h"
#include "calque/op/mode.h"
#include "calque/sym/sym_math.h"
#include "calque/tensor/number_text.h"

namespace calque::functional {

using nn_detail::sym;

// ---- embeddings, dropout, normalization -----------------------------------------------------------------------------

Tensor embedding(const Tensor& input, const Tensor& weight, std::optional<int64_t> padding_idx,
                 std::optional<double> max_norm, double norm_type, bool scale_grad_by_freq, bool sparse) {
  if (modes_active())
    if (const auto traced = offer_function("torch.nn.functional.embedding", {input, weight},
                                           {{"padding_idx", to_value(padding_idx)},
                                            {"max_norm", to_value(max_norm)},
                                            {"norm_type", to_value(norm_type)},
                                            {"scale_grad_by_freq", to_value(scale_grad_by_freq)},
                                            {"sparse", to_value(sparse)}}))
      return traced->to_tensor();
  SymInt padding = padding_idx.value_or(-1);
  if (padding_idx) {
    const SymInt count = weight.sym_size(0);
    if (!guard(padding < count) || !guard(padding >= -count))
      throw UserError("embedding: Padding_idx must be within num_embeddings");
    if (*padding_idx < 0) padding = padding + count;
  }
  Tensor indices = input;
  if (max_norm) {
    indices = indices.contiguous();
    embedding_renorm_(weight.detach(), indices, *max_norm, norm_type);
  }
  return calque::embedding(weight, indices, padding, scale_grad_by_freq, sparse);
}

static void check_probability(double p) {
  if (p < 0 || p > 1) throw UserError("dropout probability has to be between 0 and 1, but got " + python_repr(p));
}

Tensor dropout(const Tensor& input, double p, bool training, bool inplace) {
  check_probability(p);
  return inplace ? calque::dropout_(input, p, training) : calque::dropout(input, p, training);
}

static Tensor channel_dropout(const Tensor& input, double p, bool training, bool inplace) {
  check_probability(p);
  return inplace ? feature_dropout_(input, p, training) : feature_dropout(input, p, training);
}

Tensor dropout1d(const Tensor& input, double p, bool training, bool inplace) {
  const int64_t dims = input.dim();
  if (dims != 2 && dims != 3)
    throw UserError("dropout1d: Expected 2D or 3D input, but received a " + std::to_string(dims) + "D input.");
  if (dims == 3) return channel_dropout(input, p, training, inplace);
  return channel_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0);
}

Tensor dropout2d(const Tensor& input, double p, bool training, bool inplace) {
  const int64_t dims = input.dim();
  if (dims != 3 && dims != 4)
    warn("dropout2d: Received a " + std::to_string(dims) + "-D input to dropout2d, which is deprecated");
  if (dims == 3)
    warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired");
  return channel_dropout(input, p, training, inplace);
}

Tensor dropout3d(const Tensor& input, double p, bool training, bool inplace) {
  const int64_t dims = input.dim();
  if (dims != 4 && dims != 5)
    warn("dropout3d: Received a " + std::to_string(dims) + "-D input to dropout3d, which is deprecated");
  if (dims == 5) return channel_dropout(input, p, training, inplace);
  return channel_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0);
}

Tensor alpha_dropout(const Tensor& input, double p, bool training, bool inplace) {
  check_probability(p);
  return inplace ? calque::alpha_dropout_(input, p, training) : calque::alpha_dropout(input, p, training);
}

Tensor feature_alpha_dropout(const Tensor& input, double p, bool training, bool inplace) {
  check_probability(p);
  return inplace ? calque::feature_alpha_dropout_(input, p, training) : calque::feature_alpha_dropout(input, p, training);
}

// Statistics of one value per channel mean nothing.
static void check_values_per_channel(SymIntList sizes) {
  SymInt values = sizes[0];
  for (size_t d = 2; d < sizes.size(); ++d) values = values * sizes[d];
  if (guard_or(values == 1, false))
    throw UserError("Expected more than 1 value per channel when training, got input size torch.Size(" + str(sizes) + ")");
}

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, bool training, double momentum, double eps) {
  if (modes_active())
    if (const auto traced = offer_function("torch.nn.functional.batch_norm", {input, running_mean, running_var},
                                           {{"weight", to_value(weight)},
                                            {"bias", to_value(bias)},
                                            {"training", to_value(training)},
                                            {"momentum", to_value(momentum)},
                                            {"eps", to_value(eps)}}))
      return traced->to_tensor();
  if (training) check_values_per_channel(input.sym_sizes());
  return calque::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled());
}

Tensor instance_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                     const Tensor& bias, bool use_input_stats, double momentum, double eps) {
  if (use_input_stats) {
    SymInt values = 1;
    for (int64_t d = 2; d < input.dim(); ++d) values = values * input.sym_size(d);
    if (guard_or(values == 1, false))
      throw UserError("Expected more than 1 spatial element when training, got input size torch.Size(" +
                      str(input.sym_sizes()) + ")");
  }
  return calque::instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps,
                               cudnn_enabled());
}

Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  if (input.dim() < 2)
    throw UserError("Expected at least 2 dimensions for input tensor but received " + std::to_string(input.dim()));
  SymInts sizes{floor_div(input.sym_size(0) * input.sym_size(1), num_groups), num_groups};
  for (int64_t d = 2; d < input.dim(); ++d) sizes.push_back(input.sym_size(d));
  check_values_per_channel(sizes);
  return calque::group_norm(input, num_groups, weight, bias, eps, cudnn_enabled());
}

Tensor local_response_norm(const Tensor& input, int64_t size, double alpha, double beta, double k) {
  const int64_t dims = input.dim();
  if (dims < 3) throw UserError("Expected 3D or higher dimensionality input (got " + std::to_string(dims) + " dimensions)");
  if (guard_or(input.sym_numel() == 0, false)) return input;
  Tensor div = input.mul(input);
  if (dims == 3) {
    div = div.unsqueeze(1);
    div = calque::pad(div, {0, 0, size / 2, (size - 1) / 2});
    div = avg_pool2d(div, {size, 1}, {1, 1}).squeeze(1);
  } else {
    div = div.view({input.sym_size(0), 1, input.sym_size(1), input.sym_size(2), -1});
    div = calque::pad(div, {0, 0, 0, 0, size / 2, (size - 1) / 2});
    div = avg_pool3d(div, {size, 1, 1}, {1, 1, 1}).squeeze(1);
    div = div.view(input.sym_sizes());
  }
  div = div.mul(alpha).add(k).pow(beta);
  return input / div;
}

Tensor normalize(const Tensor& input, double p, int64_t dim, double eps) {
  if (modes_active())
    if (const auto traced = offer_function("torch.nn.functional.normalize", {input},
                                           {{"p", to_value(p)}, {"dim", to_value(dim)}, {"eps", to_value(eps)}}))
      return traced->to_tensor();
  const Tensor norm = linalg_vector_norm(input, p, {dim}, true).clamp_min(eps).expand_as(input);
  return input / norm;
}

// ---- activations ----------------------------------------------------------------------------------------------------

static int64_t guessed_dim(const char* name, std::optional<int64_t> dim, const Tensor& input) {
  if (dim) return *dim;
  warn(std::string("Implicit dimension choice for ") + name +
       " has been deprecated. Change the call to include dim=X as an argument.");
  return input.dim() == 0 || input.dim() == 1 || input.dim() == 3 ? 0 : 1;
}

Tensor softmax(const Tensor& input, std::optional<int64_t> dim, std::optional<DType> dtype) {
  if (modes_active())
    if (const auto traced =
            offer_function("torch.nn.functional.softmax", {input}, {{"dim", to_value(dim)}, {"dtype", to_value(dtype)}}))
      return traced->to_tensor();
  return calque::softmax(input, guessed_dim("softmax", dim, input), dtype);
}

Tensor log_softmax(const Tensor& input, std::optional<int64_t> dim, std::optional<DType> dtype) {
  if (modes_active())
    if (const auto traced =
            offer_function("torch.nn.functional.log_softmax", {input}, {{"dim", to_value(dim)}, {"dtype", to_value(dtype)}}))
      return traced->to_tensor();
  return calque::log_softmax(input, guessed_dim("log_softmax", dim, input), dtype);
}

Tensor softmin(const Tensor& input, std::optional<int64_t> dim, std::optional<DType> dtype) {
  return calque::softmax(neg(input), guessed_dim("softmin", dim, input), dtype);
}

Tensor gumbel_softmax(const Tensor& logits, double tau, bool hard, int64_t dim) {
  const Tensor gumbels =
      exponential_(empty_like(logits, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::contiguous))
          .log()
          .neg();
  const Tensor soft = calque::softmax((logits + gumbels) / Scalar(tau), dim);
  if (!hard) return soft;
  const Tensor index = std::get<1>(max(soft, dim, true));
  const Tensor one = zeros_like(logits, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::contiguous)
                         .scatter_(dim, index, 1.0);
  return one - soft.detach() + soft;
}

Tensor softsign(const Tensor& input) { return input / (input.abs() + Scalar(1)); }

Tensor tanhshrink(const Tensor& input) { return input - input.tanh(); }

// ---- shapes ---------------------------------------------------------------------------------------------------------

Tensor interpolate(const Tensor& input, const InterpolateOptions& options) {
  const std::string mode(options.mode);
  const auto dims = static_cast<size_t>(std::max<int64_t>(input.dim() - 2, 0));
  const bool linear = mode == "linear" || mode == "bilinear" || mode == "bicubic" || mode == "trilinear";
  if (!linear && options.align_corners)
    throw UserError(
        "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear");
  if (options.size && options.scale_factor) throw UserError("only one of size or scale_factor should be defined");
  if (!options.size && !options.scale_factor) throw UserError("either size or scale_factor should be defined");
  if (options.recompute_scale_factor.value_or(false) && options.size)
    throw UserError("recompute_scale_factor is not meaningful with an explicit size.");
  std::optional<SymInts> size;
  std::optional<std::vector<double>> scales;
  if (options.size) {
    size = sym(options.size->expanded(dims, "interpolate: size"));
  } else {
    scales = options.scale_factor;
    if (scales->size() == 1) scales->resize(dims, scales->front());
    if (scales->size() != dims)
      throw UserError(
          "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions "
          "of " +
          str(SymIntList(input.sym_sizes().data() + 2, dims)) + " and " + std::to_string(scales->size()) + " scale factors");
    if (mode == "area" || options.recompute_scale_factor.value_or(false)) {
      size.emplace();
      for (size_t d = 0; d < dims; ++d)
        size->push_back(trunc_to_int(sym_float(input.sym_size(static_cast<int64_t>(d) + 2)) * (*scales)[d]));
      scales.reset();
    }
  }
  if (options.antialias && !((mode == "bilinear" || mode == "bicubic") && dims == 2))
    throw UserError("Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input");
  OptionalList<SymInt> out = std::nullopt;
  if (size) out = *size;
  std::optional<ListRef<double>> factors;
  if (scales) factors = *scales;
  const bool corners = options.align_corners.value_or(false);
  if (mode == "nearest" && dims == 1) return upsample_nearest1d(input, out, factors);
  if (mode == "nearest" && dims == 2) return upsample_nearest2d(input, out, factors);
  if (mode == "nearest" && dims == 3) return upsample_nearest3d(input, out, factors);
  if (mode == "nearest-exact" && dims == 1) return _upsample_nearest_exact1d(input, out, factors);
  if (mode == "nearest-exact" && dims == 2) return _upsample_nearest_exact2d(input, out, factors);
  if (mode == "nearest-exact" && dims == 3) return _upsample_nearest_exact3d(input, out, factors);
  if (mode == "area" && dims == 1) return calque::adaptive_avg_pool1d(input, std::vector<int64_t>{(*size)[0].guard_int()});
  if (mode == "area" && dims == 2) return calque::adaptive_avg_pool2d(input, *size);
  if (mode == "area" && dims == 3) return calque::adaptive_avg_pool3d(input, *size);
  if (mode == "linear" && dims == 1) return upsample_linear1d(input, out, corners, factors);
  if (mode == "bilinear" && dims == 2)
    return options.antialias ? _upsample_bilinear2d_aa(input, out, corners, factors)
                             : upsample_bilinear2d(input, out, corners, factors);
  if (mode == "trilinear" && dims == 3) return upsample_trilinear3d(input, out, corners, factors);
  if (mode == "bicubic" && dims == 2)
    return options.antialias ? _upsample_bicubic2d_aa(input, out, corners, factors)
                             : upsample_bicubic2d(input, out, corners, factors);
  throw UserError("Input Error: Only 3D, 4D and 5D input Tensors supported (got " + std::to_string(input.dim()) +
                  "D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got " + mode +
                  ")");
}

// Where no size is given the input's stays.
static SymInts adaptive_sizes(const Tensor& input, const OptionalSizes& output_size, size_t dims) {
  const auto wanted = output_size.expanded(dims, "adaptive pooling: output_size");
  if (input.dim() < static_cast<int64_t>(dims))
    throw UserError("adaptive pooling: expected an input of at least " + std::to_string(dims + 1) + " dimensions, found " +
                    std::to_string(input.dim()));
  SymInts sizes;
  for (size_t d = 0; d < dims; ++d)
    sizes.push_back(wanted[d] ? SymInt(*wanted[d]) : input.sym_size(input.dim() - static_cast<int64_t>(dims - d)));
  return sizes;
}
static std::vector<int64_t> plain(const SymInts& sizes) {
  std::vector<int64_t> out;
  for (const SymInt& size : sizes) out.push_back(size.guard_int());
  return out;
}

Tensor adaptive_avg_pool1d(const Tensor& input, const OptionalSizes& output_size) {
  return calque::adaptive_avg_pool1d(input, plain(adaptive_sizes(input, output_size, 1)));
}
Tensor adaptive_avg_pool2d(const Tensor& input, const OptionalSizes& output_size) {
  return calque::adaptive_avg_pool2d(input, adaptive_sizes(input, output_size, 2));
}
Tensor adaptive_avg_pool3d(const Tensor& input, const OptionalSizes& output_size) {
  return calque::adaptive_avg_pool3d(input, adaptive_sizes(input, output_size, 3));
}
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& input, const OptionalSizes& output_size) {
  return calque::adaptive_max_pool1d(input, plain(adaptive_sizes(input, output_size, 1)));
}
std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& input, const OptionalSizes& output_size) {
  return calque::adaptive_max_pool2d(input, plain(adaptive_sizes(input, output_size, 2)));
}
std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& input, const OptionalSizes& output_size) {
  return calque::adaptive_max_pool3d(input, plain(adaptive_sizes(input, output_size, 3)));
}

Tensor unfold(const Tensor& input, const Sizes& kernel_size, const Sizes& dilation, const Sizes& padding,
              const Sizes& stride) {
  return im2col(input, kernel_size.expanded(2, "unfold: kernel_size"), dilation.expanded(2, "unfold: dilation"),
                padding.expanded(2, "unfold: padding"), stride.expanded(2, "unfold: stride"));
}

Tensor fold(const Tensor& input, const Sizes& output_size, const Sizes& kernel_size, const Sizes& dilation,
            const Sizes& padding, const Sizes& stride) {
  return col2im(input, sym(output_size.expanded(2, "fold: output_size")), kernel_size.expanded(2, "fold: kernel_size"),
                dilation.expanded(2, "fold: dilation"), padding.expanded(2, "fold: padding"),
                stride.expanded(2, "fold: stride"));
}

Tensor grid_sample(const Tensor& input, const Tensor& grid, std::string_view mode, std::string_view padding_mode,
                   bool align_corners) {
  const int64_t interpolation = mode == "bilinear" ? 0 : mode == "nearest" ? 1 : mode == "bicubic" ? 2 : -1;
  const int64_t padding = padding_mode == "zeros" ? 0 : padding_mode == "border" ? 1 : padding_mode == "reflection" ? 2 : -1;
  if (interpolation < 0)
    throw UserError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '" +
                    std::string(mode) + "'");
  if (padding < 0)
    throw UserError(
        "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '" +
        std::string(padding_mode) + "'");
  return grid_sampler(input, grid, interpolation, padding, align_corners);
}

}  // namespace calque::functional
