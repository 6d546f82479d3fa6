// Normalisation, softmax gradients and attention.

#include <limits>
#include <numeric>

#include "calque/op/aten/arithmetic.h"
#include "calque/op/aten/attention.h"
#include "calque/op/aten/comparison.h"
#include "calque/op/aten/copying.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/like.h"
#include "calque/op/aten/masking.h"
#include "calque/op/aten/norms.h"
#include "calque/op/aten/reductions.h"
#include "calque/op/aten/softmax.h"
#include "calque/op/aten/unary.h"
#include "calque/op/aten/view_metadata.h"
#include "calque/op/aten/views.h"
#include "calque/op/aten/where.h"
#include "calque/op/aten/zeros.h"
#include "calque/sym/sym_math.h"
#include "op/well_known.h"
#include "trace/decompositions/families.h"
#include "trace/decompositions/table.h"

namespace calque {
namespace {

using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

Tensor back_to(const Tensor& x, const Tensor& of) { return x.defined() && of.defined() ? converted(x, of.dtype()) : x; }

Tensor with_ones_around(Tensor x, SymInt channels, int64_t rank) {
  for (int64_t axis = 0; axis < rank; ++axis) {
    const SymInt wanted = axis == 1 ? channels : SymInt(1);
    if (guard(wanted == SymInt(1)) && !(axis < x.dim() && guard(x.sym_size(axis) == wanted))) x = x.unsqueeze(axis);
  }
  return x;
}

SymFloat reciprocal_of(SymInt n) { return SymFloat(1.0) / sym_float(n); }

std::vector<int64_t> range_of(int64_t first, int64_t last) {
  std::vector<int64_t> out(static_cast<size_t>(std::max<int64_t>(0, last - first)));
  std::iota(out.begin(), out.end(), first);
  return out;
}

ThreeTensors layer_norm_backward(const Tensor& grad_out, const Tensor& input, SymIntList normalized_shape,
                                 const Tensor& mean, const Tensor& rstd, const Tensor& weight, const Tensor& bias,
                                 BoolMask mask) {
  const DType computation = computation_dtype(input.dtype());
  const auto cast = [&](const Tensor& x) {
    return x.defined() ? to(x, computation, false, false, MemoryFormat::contiguous) : x;
  };
  const Tensor grad = cast(grad_out), in = cast(input), w = cast(weight), b = cast(bias);
  const int64_t axis = input.dim() - static_cast<int64_t>(normalized_shape.size());
  const SymIntList sizes = input.sym_sizes();
  const std::vector<int64_t> inner = range_of(axis, input.dim()), outer = range_of(0, axis);
  SymInt n = 1, m = 1;
  for (const int64_t d : inner) n = n * input.sym_size(d);
  for (const int64_t d : outer) m = m * input.sym_size(d);
  bool known = false;
  if (((m == SymInt(0)).is_known(known) && known) || ((n == SymInt(0)).is_known(known) && known)) {
    const SymInts tail(sizes.begin() + axis, sizes.end());
    const auto none_or_zeros = [&](bool wanted, SymIntList size) {
      return wanted ? new_zeros(input, size, std::nullopt, std::nullopt, std::nullopt, false) : Tensor();
    };
    const Tensor d_input = none_or_zeros(mask[0], sizes);
    const Tensor d_weight = none_or_zeros(mask[1], tail);
    return {d_input, d_weight, none_or_zeros(mask[2], tail)};
  }
  const Tensor mu = unsqueezed_to(mean, in.dim()), inverse = unsqueezed_to(rstd, in.dim());
  const Tensor x_hat = (in - mu) * inverse;
  const Tensor grad_x_hat = w.defined() ? grad * w : grad;
  const Tensor scaled = grad_x_hat * Scalar(n);
  const Tensor total = sum(grad_x_hat, inner, true);
  const Tensor c2 = sum(mul(grad_x_hat, x_hat), inner, true);
  const Tensor c3 = mul(x_hat, c2);
  const Tensor rest = scaled - total - c3;
  Tensor d_input, d_weight, d_bias;
  if (mask[0]) d_input = inverse / Scalar(n) * rest;
  if (mask[1] && w.defined()) d_weight = outer.empty() ? grad * x_hat : sum(grad * x_hat, outer, false);
  if (mask[2] && b.defined()) d_bias = outer.empty() ? clone(grad) : sum(grad, outer, false);
  const Tensor first = back_to(d_input, input);
  const Tensor second = back_to(d_weight, weight);
  return {first, second, back_to(d_bias, bias)};
}

ThreeTensors group_norm_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                 const Tensor& gamma, SymInt n, SymInt c, SymInt hxw, int64_t group, BoolMask mask) {
  require(input.sym_numel() == n * c * hxw, "native_group_norm_backward", "the input has not N*C*HxW elements");
  const SymInt per_group = floor_div(c, SymInt(group));
  require(c == per_group * SymInt(group), "native_group_norm_backward", "the channels cannot be divided among the groups");
  const SymInts flat{n, c, hxw};
  const SymInts grouped{n, SymInt(group), per_group};
  const Tensor ds = sum(view(mul(grad_output, input), flat), IntList{2});
  const Tensor db = sum(view(grad_output, flat), IntList{2});
  Tensor d_input, d_gamma, d_bias;
  if (mask[0]) {
    const Scalar s(reciprocal_of(hxw * per_group));
    Tensor ds_val, db_val, c1;
    if (gamma.defined()) {
      ds_val = sum(reshape(mul(ds, gamma.unsqueeze(0)), grouped), IntList{2});
      db_val = sum(reshape(mul(db, gamma.unsqueeze(0)), grouped), IntList{2});
      const Tensor inverse = rstd.unsqueeze(-1);
      c1 = mul(inverse, reshape(gamma, SymInts{SymInt(1), SymInt(group), per_group}));
    } else {
      ds_val = sum(reshape(ds, grouped), IntList{2});
      db_val = sum(reshape(db, grouped), IntList{2});
      const Tensor inverse = rstd.unsqueeze(-1);
      c1 =
          mul(inverse, ones(SymInts{SymInt(1), SymInt(group), per_group}, std::nullopt, std::nullopt, rstd.device(), false));
    }
    Tensor c2 = (db_val * mean - ds_val) * rstd * rstd * rstd * s;
    const Tensor against = -c2 * mean;
    Tensor c3 = against - db_val * rstd * s;
    c1 = c1.unsqueeze(-1);
    c2 = unsqueezed_to(c2, 4);
    c3 = unsqueezed_to(c3, 4);
    const SymInts split{n, SymInt(group), per_group, hxw};
    const Tensor of_grad = mul(reshape(grad_output, split), c1);
    d_input = of_grad + mul(reshape(input, split), c2) + c3;
    d_input = converted(reshape(d_input, input.sym_sizes()), input.dtype());
  }
  if (mask[1]) {
    const Tensor left = view(ds, grouped);
    const Tensor right = view(db, grouped);
    const Tensor difference = left - right * mean.unsqueeze(-1);
    d_gamma = reshape(sum(difference * rstd.unsqueeze(-1), IntList{0}), SymInts{c});
  }
  if (mask[2]) d_bias = sum(db, IntList{0});
  return {d_input, d_gamma, d_bias};
}

ThreeTensors batch_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& weight,
                                 const Tensor& running_mean, const Tensor& running_var, const Tensor& save_mean,
                                 const Tensor& save_invstd, bool train, double eps, BoolMask mask) {
  const DType computation = computation_dtype(input.dtype());
  const Tensor grad = converted(grad_out, computation), in = converted(input, computation),
               w = converted(weight, computation);
  const Tensor mean_of_run = converted(running_mean, computation), var_of_run = converted(running_var, computation);
  Tensor mean = converted(save_mean, computation), invstd = converted(save_invstd, computation);
  const int64_t rank = input.dim();
  const SymInt channels = input.sym_size(1);
  SymInt all = 1;
  for (const SymInt size : input.sym_sizes()) all = all * size;
  const SymFloat features = sym_true_div(all, channels);
  if (!train) {
    mean = mean_of_run;
    invstd = rsqrt(var_of_run + eps);
  }
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i)
    if (i != 1) axes.push_back(i);
  mean = with_ones_around(mean, channels, rank);
  const Scalar norm(SymFloat(1.0) / features);
  const Tensor grad_sum = sum(grad, axes);
  const Tensor centred = in - mean;
  const Tensor dot_p = sum(grad * centred, axes);
  const Tensor grad_mean = with_ones_around(grad_sum * norm, channels, rank);
  const Tensor scaled = dot_p * norm;
  const Tensor proj_scale = with_ones_around(mul(scaled, invstd * invstd), channels, rank);
  const Tensor grad_scale =
      w.defined() ? with_ones_around(invstd * w, channels, rank) : with_ones_around(invstd, channels, rank) * 1.0;
  Tensor grad_input;
  if (train) {
    const Tensor proj = (in - mean) * proj_scale;
    grad_input = (grad - proj - grad_mean) * grad_scale;
  } else {
    grad_input = grad * grad_scale;
  }
  const Tensor grad_weight = mask[1] ? dot_p * invstd : Tensor();
  const Tensor grad_bias = mask[2] ? grad_sum : Tensor();
  const DType weight_dtype = weight.defined() ? weight.dtype() : input.dtype();
  const Tensor first = converted(grad_input, input.dtype());
  const Tensor second = converted(grad_weight, weight_dtype);
  return {first, second, converted(grad_bias, weight_dtype)};
}

}  // namespace

void decompose_normalization(DecompositionBuilder& table) {
  table.add("_fused_rms_norm",
            [](const Tensor& input, IntList normalized_shape, const Tensor& weight,
               std::optional<double> eps) -> std::tuple<Tensor, Tensor> {
              std::vector<int64_t> dims;
              for (size_t i = 0; i < normalized_shape.size(); ++i) dims.push_back(input.dim() - static_cast<int64_t>(i) - 1);
              const DType computation = computation_dtype(input.dtype());
              const Tensor in = converted(input, computation);
              const bool single = computation == DType::float32 || computation == DType::complex64;
              const double epsilon = eps.value_or(single ? static_cast<double>(std::numeric_limits<float>::epsilon())
                                                         : std::numeric_limits<double>::epsilon());
              Tensor inverse = rsqrt(call(ops().add_scalar, {mean(pow(in, Scalar(2)), dims, true), epsilon}).to_tensor());
              Tensor result = mul(in, inverse);
              if (weight.defined()) result = mul(result, weight);
              const MemoryFormat format = input.suggest_memory_format();
              if (format != MemoryFormat::channels_last && format != MemoryFormat::channels_last_3d) {
                result = contiguous(result);
                inverse = contiguous(inverse);
              }
              return {type_as(result, input), inverse};
            });
  table.add("native_layer_norm_backward",
            [](const Tensor& grad_out, const Tensor& input, SymIntList normalized_shape, const Tensor& mean,
               const Tensor& rstd, const Tensor& weight, const Tensor& bias, BoolMask mask) -> ThreeTensors {
              return layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, mask);
            });
  table.add_cast("native_group_norm_backward",
                 [](const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                    const Tensor& weight, SymInt n, SymInt c, SymInt hxw, int64_t group, BoolMask mask) -> ThreeTensors {
                   return group_norm_backward(grad_out, input, mean, rstd, weight, n, c, hxw, group, mask);
                 });
  table.add("native_batch_norm_backward",
            [](const Tensor& grad_out, const Tensor& input, const Tensor& weight, const Tensor& running_mean,
               const Tensor& running_var, const Tensor& save_mean, const Tensor& save_invstd, bool train, double eps,
               BoolMask mask) -> ThreeTensors {
              return batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train,
                                         eps, mask);
            });
  table.add("_weight_norm_interface", [](const Tensor& v, const Tensor& g, int64_t dim) -> std::tuple<Tensor, Tensor> {
    std::vector<int64_t> dims;
    for (int64_t i = 0; i < v.dim(); ++i)
      if (i != dim) dims.push_back(i);
    const std::optional<DType> dtype = g.dtype() == DType::bfloat16 ? std::optional<DType>(DType::float32) : std::nullopt;
    const Tensor norm = linalg_vector_norm(v, Scalar(2), dims, true, dtype);
    return {v * (g / converted(norm, g.dtype())), norm};
  });
  table.add("_safe_softmax", [](const Tensor& self, int64_t dim, std::optional<DType> dtype) -> Tensor {
    const Tensor out = softmax(self, dim, dtype);
    const Tensor hidden = eq(self, Scalar(-std::numeric_limits<double>::infinity()));
    const Tensor rows = all(hidden, dim, true);
    const Tensor nothing = zeros_like(out, std::nullopt, std::nullopt, std::nullopt, false);
    return where(rows, nothing, out);
  });
  table.add_cast(
      "_softmax_backward_data",
      [](const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype) -> Tensor {
        const Tensor product = grad_output * output;
        const Tensor grad_input = product - output * sum(product, IntList{dim}, true);
        return contiguous(grad_output.dtype() == input_dtype ? grad_input : to(grad_input, input_dtype));
      },
      DecompositionBuilder::Kind::standard, true);
  table.add_cast(
      "_log_softmax_backward_data",
      [](const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype) -> Tensor {
        const Tensor probabilities = exp(output);
        const Tensor grad_input = grad_output - probabilities * sum(grad_output, IntList{dim}, true);
        return grad_output.dtype() == input_dtype ? grad_input : to(grad_input, input_dtype);
      },
      DecompositionBuilder::Kind::standard, true);
  table.add("_scaled_dot_product_flash_attention_for_cpu",
            [](const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p, bool is_causal,
               const Tensor& attn_mask, std::optional<double> scale) -> std::tuple<Tensor, Tensor> {
              require(query.sym_size(3) == value.sym_size(3), "_scaled_dot_product_flash_attention_for_cpu",
                      "query, key and value must have the same head size");
              require(key.sym_size(3) == value.sym_size(3), "_scaled_dot_product_flash_attention_for_cpu",
                      "query, key and value must have the same head size");
              const bool grouped = guard(query.sym_size(1) != key.sym_size(1));
              auto [output, attention] = _scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p,
                                                                            is_causal, Tensor(), scale, grouped);
              output = permute(contiguous(permute(output, IntList{2, 0, 1, 3})), IntList{1, 2, 0, 3});
              return {output, attention};
            });
}

}  // namespace calque
