#include "calque/nn/normalization.h"

#include <algorithm>

#include "base/join.h"
#include "calque/base/warning.h"
#include "calque/nn/backends.h"
#include "calque/nn/functional.h"
#include "calque/nn/init.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/aten/zeros.h"
#include "calque/tensor/number_text.h"

namespace calque {

using nn_detail::sym;
using nn_detail::text;
using nn_detail::tuple_text;

static Tensor fresh_if(const std::vector<int64_t>& sizes, const Factory& factory, bool wanted) {
  return wanted ? empty(sym(sizes), factory.dtype, std::nullopt, factory.device) : Tensor();
}

static void ones_and_zeros(const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) init::ones_(weight);
  if (bias.defined()) init::zeros_(bias);
}

LayerNorm::LayerNorm(const Sizes& normalized_shape, LayerNormOptions options)
    : normalized_shape(normalized_shape.values()),
      eps(options.eps),
      elementwise_affine(options.elementwise_affine),
      weight(register_parameter("weight", fresh_if(this->normalized_shape, options.factory, options.elementwise_affine))),
      bias(register_parameter(
          "bias", fresh_if(this->normalized_shape, options.factory, options.elementwise_affine && options.bias))) {
  reset_parameters();
}

void LayerNorm::reset_parameters() { ones_and_zeros(weight, bias); }

Tensor LayerNorm::forward(const Tensor& input) {
  return layer_norm(input, sym(normalized_shape), weight, bias, eps, cudnn_enabled());
}

std::string LayerNorm::extra_repr() const {
  return tuple_text(normalized_shape) + ", eps=" + python_repr(eps) + ", elementwise_affine=" + text(elementwise_affine) +
         ", bias=" + text(bias.defined());
}

RMSNorm::RMSNorm(const Sizes& normalized_shape, RMSNormOptions options)
    : normalized_shape(normalized_shape.values()),
      eps(options.eps),
      elementwise_affine(options.elementwise_affine),
      weight(register_parameter("weight", fresh_if(this->normalized_shape, options.factory, options.elementwise_affine))) {
  reset_parameters();
}

void RMSNorm::reset_parameters() { ones_and_zeros(weight, {}); }

Tensor RMSNorm::forward(const Tensor& x) { return rms_norm(x, sym(normalized_shape), weight, eps); }

std::string RMSNorm::extra_repr() const {
  return tuple_text(normalized_shape) + ", eps=" + (eps ? python_repr(*eps) : "None") +
         ", elementwise_affine=" + text(elementwise_affine);
}

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, GroupNormOptions options)
    : num_groups(num_groups),
      num_channels(num_channels),
      eps(options.eps),
      affine(options.affine),
      weight(register_parameter("weight", fresh_if({num_channels}, options.factory, options.affine))),
      bias(register_parameter("bias", fresh_if({num_channels}, options.factory, options.affine && options.bias))) {
  if (num_groups <= 0 || num_channels % num_groups != 0)
    throw UserError("num_channels (" + std::to_string(num_channels) + ") must be divisible by num_groups (" +
                    std::to_string(num_groups) + ")");
  reset_parameters();
}

void GroupNorm::reset_parameters() { ones_and_zeros(weight, bias); }

Tensor GroupNorm::forward(const Tensor& input) { return functional::group_norm(input, num_groups, weight, bias, eps); }

std::string GroupNorm::extra_repr() const {
  return std::to_string(num_groups) + ", " + std::to_string(num_channels) + ", eps=" + python_repr(eps) +
         ", affine=" + text(affine) + ", bias=" + text(bias.defined());
}

Tensor LocalResponseNorm::forward(const Tensor& input) {
  return functional::local_response_norm(input, size, alpha, beta, k);
}

std::string LocalResponseNorm::extra_repr() const {
  return std::to_string(size) + ", alpha=" + python_repr(alpha) + ", beta=" + python_repr(beta) + ", k=" + python_repr(k);
}

// ---- batch and instance normalization -------------------------------------------------------------------------------

RunningNorm::RunningNorm(int64_t num_features, const RunningNormOptions& options)
    : num_features(num_features),
      eps(options.eps),
      momentum(options.momentum),
      affine(options.affine),
      track_running_stats(options.track_running_stats),
      weight(register_parameter("weight", fresh_if({num_features}, options.factory, options.affine))),
      bias(register_parameter("bias", fresh_if({num_features}, options.factory, options.affine && options.bias))),
      running_mean(register_buffer("running_mean", fresh_if({num_features}, options.factory, options.track_running_stats))),
      running_var(register_buffer("running_var", fresh_if({num_features}, options.factory, options.track_running_stats))),
      num_batches_tracked(register_buffer(
          "num_batches_tracked",
          options.track_running_stats ? zeros({}, DType::int64, std::nullopt, options.factory.device) : Tensor())) {
  reset_parameters();
}

void RunningNorm::reset_running_stats() {
  if (!track_running_stats) return;
  running_mean->zero_();
  running_var->fill_(1);
  num_batches_tracked->zero_();
}

void RunningNorm::reset_parameters() {
  reset_running_stats();
  ones_and_zeros(weight, bias);
}

std::string RunningNorm::extra_repr() const {
  return std::to_string(num_features) + ", eps=" + python_repr(eps) +
         ", momentum=" + (momentum ? python_repr(*momentum) : "None") + ", affine=" + text(affine) +
         ", bias=" + text(bias.defined()) + ", track_running_stats=" + text(track_running_stats);
}

void RunningNorm::upgrade_state(StateDict& state, const std::string& prefix, std::optional<int64_t> version) {
  // Before version 2 batches were not counted.
  if (version.value_or(1) >= 2 || !track_running_stats || state.contains(prefix + "num_batches_tracked")) return;
  const Tensor& own = num_batches_tracked;
  state.set(prefix + "num_batches_tracked",
            own.defined() && own.device().type != DeviceType::meta ? own : zeros({}, DType::int64));
}

Tensor RunningNorm::batch_norm(const Tensor& input, std::initializer_list<int64_t> dims) {
  if (std::find(dims.begin(), dims.end(), input.dim()) == dims.end()) {
    const std::string expected = join(dims, " or ", [](const int64_t d) { return std::to_string(d) + "D"; });
    throw UserError(class_name() + ": expected " + expected + " input (got " + std::to_string(input.dim()) + "D input)");
  }
  double factor = momentum.value_or(0);
  if (training() && track_running_stats && num_batches_tracked.defined()) {
    num_batches_tracked->add_(1);
    if (!momentum) factor = 1 / num_batches_tracked->item_as<double>();
  }
  const bool own_statistics = training() || (!running_mean.defined() && !running_var.defined());
  const bool keeps = !training() || track_running_stats;
  return functional::batch_norm(input, keeps ? *running_mean : Tensor(), keeps ? *running_var : Tensor(), weight, bias,
                                own_statistics, factor, eps);
}

Tensor RunningNorm::instance_norm(const Tensor& input, int64_t unbatched_dims) {
  const int64_t dims = input.dim();
  if (dims != unbatched_dims && dims != unbatched_dims + 1) {
    throw UserError(class_name() + ": expected " + std::to_string(unbatched_dims) + "D or " +
                    std::to_string(unbatched_dims + 1) + "D input (got " + std::to_string(dims) + "D input)");
  }
  const int64_t feature_dim = dims - unbatched_dims;
  if (guard(input.sym_size(feature_dim) != num_features)) {
    const std::string at = "input's size at dim=" + std::to_string(feature_dim);
    if (affine)
      throw UserError("expected " + at + " to match num_features (" + std::to_string(num_features) +
                      "), but got: " + input.sym_size(feature_dim).str() + ".");
    warn(at +
         " does not match num_features. You can silence this warning by not passing in num_features, which is not used "
         "because affine=False");
  }
  const auto normalize = [&](const Tensor& batch) {
    return functional::instance_norm(batch, running_mean, running_var, weight, bias, training() || !track_running_stats,
                                     momentum.value_or(0), eps);
  };
  return dims == unbatched_dims ? normalize(input.unsqueeze(0)).squeeze(0) : normalize(input);
}

}  // namespace calque
