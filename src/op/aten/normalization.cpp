// Layer, RMS, group, batch and instance norm.
#include "kernel/cpu/reduce/norm.h"

#include <algorithm>
#include <cmath>

#include "calque/op/aten/copying.h"
#include "calque/op/aten/empty.h"
#include "calque/op/aten/normalization.h"
#include "calque/op/composite_policy.h"
#include "kernel/cpu/elementwise/copy.h"
#include "op/gradient/norms.h"
#include "op/rule/reduction.h"
#include "op/stanza.h"

namespace calque {
namespace {

bool is_mixed(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const Tensor& p = weight.defined() ? weight : bias;
  return is_reduced_float(input.dtype()) && p.defined() && p.dtype() == DType::float32;
}
// Parameters are of the input's dtype, or all float32 beside a 16-bit input.
void check_parameter_dtypes(const char* op, const Tensor& input, std::initializer_list<const Tensor*> parameters) {
  DType found = input.dtype();
  bool first = true;
  for (const Tensor* p : parameters) {
    if (!p->defined()) continue;
    const bool fits = first
                          ? p->dtype() == input.dtype() || (is_reduced_float(input.dtype()) && p->dtype() == DType::float32)
                          : p->dtype() == found;
    if (!fits)
      throw UserError(std::string(op) + ": mixed dtype (CPU): expect parameter to have scalar type of Float, found " +
                      std::string(name(p->dtype())) + " beside input of " + std::string(name(input.dtype())));
    found = p->dtype();
    first = false;
  }
}

Meta stats_meta(SymInts sizes, DType dtype, Device device) {
  Meta m;
  m.strides = contiguous_strides(sizes);
  m.sizes = std::move(sizes);
  m.dtype = dtype;
  m.device = device;
  return m;
}
Meta undefined_meta() {
  Meta m;
  m.undefined = true;
  return m;
}

// ---- layer norm ---------------------------------------------------------------------------------------------------
void check_normalized_shape(const char* op, const Tensor& input, SymIntList shape, const Tensor& weight,
                            const Tensor& bias) {
  if (shape.empty())
    throw UserError(std::string(op) +
                    ": Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but "
                    "got normalized_shape = []");
  const auto same = [&](const Tensor& p) {
    if (static_cast<size_t>(p.dim()) != shape.size()) return false;
    for (size_t i = 0; i < shape.size(); ++i)
      if (!check(p.sym_sizes()[i] == shape[i])) return false;
    return true;
  };
  if (weight.defined() && !same(weight))
    throw UserError(std::string(op) + ": Expected weight to be of same shape as normalized_shape, but got weight of shape " +
                    str(weight.sym_sizes()) + " and normalized_shape = " + str(shape));
  if (bias.defined() && !same(bias))
    throw UserError(std::string(op) + ": Expected bias to be of same shape as normalized_shape, but got bias of shape " +
                    str(bias.sym_sizes()) + " and normalized_shape = " + str(shape));
  const SymIntList sizes = input.sym_sizes();
  bool fits = sizes.size() >= shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = check(sizes[sizes.size() - shape.size() + i] == shape[i]);
  if (!fits)
    throw UserError(std::string(op) + ": Given normalized_shape=" + str(shape) + ", expected input with shape [*, " +
                    str(shape).substr(1) + ", but got input of size" + str(sizes));
}
Meta row_stats(const Tensor& input, size_t normalized, DType dtype) {
  SymInts sizes(input.sym_sizes().begin(), input.sym_sizes().end());
  for (size_t i = sizes.size() - normalized; i < sizes.size(); ++i) sizes[i] = 1;
  return stats_meta(std::move(sizes), dtype, input.device());
}
int64_t row_length(SymIntList shape) { return product(shape).as_int(); }

std::array<Meta, 3> layer_norm_rule(const Tensor& input, SymIntList shape, const Tensor& weight, const Tensor& bias,
                                    double) {
  check_normalized_shape("native_layer_norm", input, shape, weight, bias);
  const Meta stats = row_stats(input, shape.size(), is_mixed(input, weight, bias) ? DType::float32 : input.dtype());
  return {rule::contiguous_like(input, input.dtype()), stats, stats};
}
void layer_norm_kernel(const Tensor& input, SymIntList shape, const Tensor& weight, const Tensor& bias, double eps,
                       const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  check_parameter_dtypes("native_layer_norm", input, {&weight, &bias});
  kernel::layer_norm(input, row_length(shape), weight, bias, eps, out, mean, rstd);
}

// Gradients of parameters are allocated like the parameters.
void check_has_gradient(const char* op, const char* what, const Tensor& parameter, bool wanted) {
  if (wanted && !parameter.defined())
    throw UserError(std::string(op) + ": output_mask asks for a gradient made like " + what + ", which is missing");
}

std::array<Meta, 3> layer_norm_backward_rule(const Tensor&, const Tensor& input, SymIntList shape, const Tensor&,
                                             const Tensor&, const Tensor& weight, const Tensor& bias, BoolMask mask) {
  // Of the input's sizes, which are the parameters'.
  const SymIntList sizes = input.sym_sizes();
  const auto parameter = [&](const Tensor& p) {
    return stats_meta(SymInts(sizes.end() - static_cast<std::ptrdiff_t>(std::min(shape.size(), sizes.size())), sizes.end()),
                      p.defined() ? p.dtype() : input.dtype(), input.device());
  };
  return {mask[0] ? rule::contiguous_like(input, input.dtype()) : undefined_meta(),
          mask[1] ? parameter(weight) : undefined_meta(), mask[2] ? parameter(bias) : undefined_meta()};
}
void layer_norm_backward_kernel(const Tensor& grad, const Tensor& input, SymIntList shape, const Tensor& mean,
                                const Tensor& rstd, const Tensor& weight, const Tensor& bias, BoolMask mask,
                                const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias) {
  // PyTorch's shape rule has no guards for the sizes.
  check_normalized_shape("native_layer_norm_backward", input, shape, weight, bias);
  const int64_t length = row_length(shape), rows = length ? input.numel() / length : 0;
  if (grad.numel() != input.numel() || (rows && (mean.numel() != rows || rstd.numel() != rows)))
    throw UserError("native_layer_norm_backward: expected grad_out of sizes " + str(input.sym_sizes()) + " and " +
                    std::to_string(rows) + " means, found " + str(grad.sym_sizes()) + ", " + str(mean.sym_sizes()) +
                    " and " + str(rstd.sym_sizes()));
  check_has_gradient("native_layer_norm_backward", "weight", weight, mask[1]);
  check_has_gradient("native_layer_norm_backward", "bias", bias, mask[2]);
  kernel::layer_norm_backward(grad, input, row_length(shape), mean, rstd, weight, grad_input, grad_weight, grad_bias);
}

// ---- RMS norm -----------------------------------------------------------------------------------------------------
double rms_eps(DType dtype, std::optional<double> eps) {
  if (eps) return *eps;
  return dtype == DType::float64 ? 0x1p-52 : 0x1p-23;
}
Meta rms_rule(const Tensor& input, SymIntList shape, const Tensor& weight) {
  check_normalized_shape("rms_norm", input, shape, weight, {});
  if (is_integral(input.dtype())) rule::check_kinds("rms_norm", input.dtype(), rule::Kinds::floats);
  return rule::contiguous_like(input, input.dtype());
}
// Built from elementary operators, as ATen's composite form is; what traces see.
std::pair<Tensor, Tensor> rms_composite(const Tensor& input, SymIntList shape, const Tensor& weight,
                                        std::optional<double> eps) {
  rms_rule(input, shape, weight);
  SmallVector<int64_t, 6> dims;
  for (size_t i = 0; i < shape.size(); ++i)
    dims.push_back(input.dim() - 1 - static_cast<int64_t>(i));  // the last first, as ATen has them
  const DType wide = is_reduced_float(input.dtype()) ? DType::float32 : input.dtype();
  const Tensor x = wide == input.dtype() ? input : input.to(wide);
  double e = rms_eps(wide, eps);
  if (wide == DType::float32) e = static_cast<double>(static_cast<float>(e));
  static const Operator& add_number = get_operator("aten::add_.Scalar");
  const Tensor mean = x.pow(Scalar(2)).mean(IntList(dims), true);
  dispatch(add_number, {mean, e, 1});
  const Tensor rstd = mean.rsqrt();
  Tensor out = x.mul(rstd);
  if (weight.defined()) out = out.mul(weight);
  if (!out.is_contiguous()) out = out.contiguous();
  if (out.dtype() != input.dtype()) out = out.to(input.dtype());
  return {out, rstd};
}
bool runs_plainly(const Tensor& input, const Tensor& weight) {
  return !modes_active() && !input.impl().special && input.numel() != 0 && (!weight.defined() || !weight.impl().special) &&
         !(grad_enabled() && (input.requires_grad() || (weight.defined() && weight.requires_grad())));
}
Tensor rms_norm_body(const Tensor& input, SymIntList shape, const Tensor& weight, std::optional<double> eps) {
  if (!runs_plainly(input, weight) || is_complex(input.dtype())) return rms_composite(input, shape, weight, eps).first;
  const Tensor out = make_tensor(rms_rule(input, shape, weight));
  kernel::rms_norm(input, row_length(shape), weight, rms_eps(input.dtype(), eps), out, {});
  return out;
}
std::tuple<Tensor, Tensor> fused_rms_norm_body(const Tensor& input, IntList shape, const Tensor& weight,
                                               std::optional<double> eps) {
  if (!runs_plainly(input, weight) || is_complex(input.dtype())) {
    const auto [out, rstd] = rms_composite(input, as_sym(shape), weight, eps);
    return {out, rstd};
  }
  const Tensor out = make_tensor(rms_rule(input, as_sym(shape), weight));
  const Tensor rstd =
      make_tensor(row_stats(input, shape.size(), input.dtype() == DType::float64 ? DType::float64 : DType::float32));
  kernel::rms_norm(input, row_length(as_sym(shape)), weight, rms_eps(input.dtype(), eps), out, rstd);
  return {out, rstd};
}

// ---- batch norm ---------------------------------------------------------------------------------------------------
Meta like_suggested(const Tensor& input) {
  Meta m = rule::contiguous_like(input, input.dtype());
  const MemoryFormat format = input.suggest_memory_format();
  if (format != MemoryFormat::contiguous) m.strides = strides_for(format, m.sizes);
  return m;
}
void check_batch_input(const char* op, const Tensor& input) {
  if (input.dim() < 2)
    throw UserError(std::string(op) + ": Dimension out of range: expected an input of at least 2 dimensions, found sizes " +
                    str(input.sym_sizes()));
}
void check_channel_vector(const char* op, const char* what, const Tensor& p, const Tensor& input) {
  if (p.defined() && !check(p.sym_numel() == input.sym_size(1)))
    throw UserError(std::string(op) + ": " + what + " should contain " + input.sym_size(1).str() + " elements not " +
                    p.sym_numel().str());
}
std::array<Meta, 3> batch_norm_rule(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                                    const Tensor& var, bool training, double, double) {
  check_batch_input("native_batch_norm", input);
  check_channel_vector("native_batch_norm", "weight", weight, input);
  check_channel_vector("native_batch_norm", "bias", bias, input);
  check_channel_vector("native_batch_norm", "running_mean", mean, input);
  check_channel_vector("native_batch_norm", "running_var", var, input);
  if (!training && !(mean.defined() && var.defined()))
    throw UserError("native_batch_norm: running_mean and running_var must be defined in evaluation mode");
  if (training && guard_or(input.sym_numel() == 0, false))
    throw UserError("native_batch_norm: input tensor must have at least one element, but got input_sizes = " +
                    str(input.sym_sizes()));
  const Tensor& p = weight.defined() ? weight : bias.defined() ? bias : mean.defined() ? mean : var;
  const bool mixed = is_reduced_float(input.dtype()) && p.defined() && p.dtype() == DType::float32;
  const Meta stats =
      stats_meta({training ? input.sym_size(1) : SymInt(0)}, mixed ? DType::float32 : input.dtype(), input.device());
  return {like_suggested(input), stats, stats};
}
void batch_norm_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                       bool training, double momentum, double eps, const Tensor& out, const Tensor& save_mean,
                       const Tensor& save_invstd) {
  check_parameter_dtypes("native_batch_norm", input, {&weight, &bias, &mean, &var});
  for (const Tensor* t : {&mean, &var})
    if (t->defined() && t->dim() != 1)
      throw UserError("native_batch_norm: expected running statistics of 1 dimension, found sizes " + str(t->sym_sizes()));
  if (training)
    kernel::batch_norm_training(input, weight, bias, mean, var, momentum, eps, out, save_mean, save_invstd);
  else
    kernel::batch_norm_inference(input, weight, bias, mean, var, eps, out);
}

using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
// Operators that write their running statistics allocate for themselves.
template <bool fake>
Three legit(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
            bool training, double momentum, double eps) {
  const auto metas = batch_norm_rule(input, weight, bias, mean, var, training, momentum, eps);
  const Three out{make_tensor(metas[0], fake), make_tensor(metas[1], fake), make_tensor(metas[2], fake)};
  if constexpr (!fake)
    batch_norm_kernel(input, weight, bias, mean, var, training, momentum, eps, std::get<0>(out), std::get<1>(out),
                      std::get<2>(out));
  return out;
}
Tensor no_reserve(const Tensor& input, bool fake) {
  return make_tensor(stats_meta({SymInt(0)}, DType::uint8, input.device()), fake);
}
template <bool fake>
Four with_update(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                 double momentum, double eps) {
  return std::tuple_cat(legit<fake>(input, weight, bias, mean, var, true, momentum, eps),
                        std::make_tuple(no_reserve(input, fake)));
}
template <bool fake>
Four no_update(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
               double momentum, double eps) {
  return std::tuple_cat(legit<fake>(input, weight, bias, mean, var, false, momentum, eps),
                        std::make_tuple(no_reserve(input, fake)));
}

Tensor batch_norm_body(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                       bool training, double momentum, double eps, bool) {
  if (guard_or(input.sym_numel() == 0, false)) {  // no size of a parameter matters
    Tensor out = input.clone();
    if (weight.defined()) out = out.mul(weight.select(0, SymInt(0)));
    if (bias.defined()) out = out.add(bias.select(0, SymInt(0)));
    return out;
  }
  check_batch_input("batch_norm", input);
  if (!training) {
    if (!mean.defined()) throw UserError("batch_norm: running_mean must be defined in evaluation mode");
    if (!var.defined()) throw UserError("batch_norm: running_var must be defined in evaluation mode");
  }
  check_channel_vector("batch_norm", "running_mean", mean, input);
  check_channel_vector("batch_norm", "running_var", var, input);
  check_channel_vector("batch_norm", "weight", weight, input);
  check_channel_vector("batch_norm", "bias", bias, input);
  // ATen allocates an unused reserve first; traces show it.
  if (modes_active()) calque::empty({SymInt(0)}, DType::uint8, Layout::strided, input.device());
  // With symbolic sizes, and in exports, PyTorch's traces show the variant that says whether it writes the statistics.
  if (modes_active() && (input.is_symbolic() || python_bodies()) && mean.defined() && var.defined())
    return training ? std::get<0>(_native_batch_norm_legit(input, weight, bias, mean, var, true, momentum, eps))
                    : std::get<0>(_native_batch_norm_legit_no_training(input, weight, bias, mean, var, momentum, eps));
  if (modes_active() && (input.is_symbolic() || python_bodies()) && !mean.defined() && !var.defined())
    return std::get<0>(_native_batch_norm_legit(input, weight, bias, training, momentum, eps));
  return std::get<0>(native_batch_norm(input, weight, bias, mean, var, training, momentum, eps));
}

std::array<Meta, 3> batch_norm_backward_rule(const Tensor&, const Tensor& input, const Tensor& weight, const Tensor&,
                                             const Tensor&, const Tensor&, const Tensor&, bool, double, BoolMask mask) {
  check_batch_input("native_batch_norm_backward", input);
  const Meta p = stats_meta({input.sym_size(1)}, weight.defined() ? weight.dtype() : input.dtype(), input.device());
  return {mask[0] ? like_suggested(input) : undefined_meta(), mask[1] ? p : undefined_meta(),
          mask[2] ? p : undefined_meta()};
}
void batch_norm_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                                const Tensor& var, const Tensor& save_mean, const Tensor& save_invstd, bool train,
                                double eps, BoolMask, const Tensor& grad_input, const Tensor& grad_weight,
                                const Tensor& grad_bias) {
  kernel::batch_norm_backward(grad, input, weight, mean, var, save_mean, save_invstd, train, eps, grad_input, grad_weight,
                              grad_bias);
}

// ---- group norm ---------------------------------------------------------------------------------------------------
void check_group_arguments(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias, SymInt channels,
                           int64_t groups) {
  if (groups <= 0)
    throw UserError(std::string(op) + ": Expected num groups to be greater than 0, got " + std::to_string(groups));
  if (!check(channels % groups == 0))
    throw UserError(std::string(op) +
                    ": Expected number of channels in input to be divisible by num_groups, but got input of shape " +
                    str(input.sym_sizes()) + " and num_groups=" + std::to_string(groups));
  const auto is_vector = [&](const Tensor& p) { return p.dim() == 1 && check(p.sym_numel() == channels); };
  if (weight.defined() && !is_vector(weight))
    throw UserError(
        std::string(op) +
        ": Expected weight to be a vector of size equal to the number of channels in input, but got weight of shape " +
        str(weight.sym_sizes()) + " and input of shape " + str(input.sym_sizes()));
  if (bias.defined() && !is_vector(bias))
    throw UserError(
        std::string(op) +
        ": Expected bias to be a vector of size equal to the number of channels in input, but got bias of shape " +
        str(bias.sym_sizes()) + " and input of shape " + str(input.sym_sizes()));
}
std::array<Meta, 3> group_norm_rule(const Tensor& input, const Tensor& weight, const Tensor& bias, SymInt n, SymInt c,
                                    SymInt hw, int64_t groups, double) {
  check_group_arguments("native_group_norm", input, weight, bias, c, groups);
  if (!check(input.sym_numel() == n * c * hw))
    throw UserError("native_group_norm: expected input of N * C * HxW = " + (n * c * hw).str() + " elements, found sizes " +
                    str(input.sym_sizes()));
  const Meta stats =
      stats_meta({n, SymInt(groups)}, is_mixed(input, weight, bias) ? DType::float32 : input.dtype(), input.device());
  return {like_suggested(input), stats, stats};
}
void group_norm_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias, SymInt n, SymInt c, SymInt hw,
                       int64_t groups, double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  check_parameter_dtypes("native_group_norm", input, {&weight, &bias});
  if (!input.is_contiguous(input.suggest_memory_format()))
    throw UserError("native_group_norm: expected a contiguous input, found sizes " + str(input.sym_sizes()) +
                    " and strides " + str(input.sym_strides()));
  kernel::group_norm(input, weight, bias, n.as_int(), c.as_int(), hw.as_int(), groups, eps, out, mean, rstd);
}
std::array<Meta, 3> group_norm_backward_rule(const Tensor&, const Tensor& input, const Tensor&, const Tensor&,
                                             const Tensor& weight, SymInt, SymInt c, SymInt, int64_t groups, BoolMask mask) {
  check_group_arguments("native_group_norm_backward", input, weight, {}, c, groups);
  const Meta p = stats_meta({c}, weight.defined() ? weight.dtype() : input.dtype(), input.device());
  return {mask[0] ? like_suggested(input) : undefined_meta(), mask[1] ? p : undefined_meta(),
          mask[2] ? p : undefined_meta()};
}
void group_norm_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                const Tensor& weight, SymInt n, SymInt c, SymInt hw, int64_t groups, BoolMask mask,
                                const Tensor& grad_input, const Tensor& grad_weight, const Tensor& grad_bias) {
  check_has_gradient("native_group_norm_backward", "weight", weight, mask[1] || mask[2]);
  const int64_t numel = (n * c * hw).as_int();
  if (n.as_int() < 0 || c.as_int() < 0 || hw.as_int() < 0 || input.numel() != numel || grad.numel() != numel ||
      mean.numel() != (n * groups).as_int() || rstd.numel() != mean.numel())
    throw UserError("native_group_norm_backward: expected " + std::to_string(numel) + " values and " + (n * groups).str() +
                    " means, found sizes " + str(grad.sym_sizes()) + ", " + str(input.sym_sizes()) + ", " +
                    str(mean.sym_sizes()) + " and " + str(rstd.sym_sizes()));
  kernel::group_norm_backward(grad, input, mean, rstd, weight, n.as_int(), c.as_int(), hw.as_int(), groups, grad_input,
                              grad_weight, grad_bias);
}
Tensor group_norm_body(const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias, double eps, bool) {
  if (input.dim() < 2)
    throw UserError("group_norm: Expected at least 2 dimensions for input tensor but received " +
                    std::to_string(input.dim()));
  check_group_arguments("group_norm", input, weight, bias, input.sym_size(1), groups);
  const MemoryFormat format = input.suggest_memory_format();
  const Tensor x = input.is_contiguous(format) ? input : input.contiguous(format);
  SymInt hw = 1;
  for (int64_t d = 2; d < input.dim(); ++d) hw *= input.sym_size(d);
  const auto dense = [](const Tensor& t) { return t.defined() && !t.is_contiguous() ? t.contiguous() : t; };
  return std::get<0>(
      native_group_norm(x, dense(weight), dense(bias), input.sym_size(0), input.sym_size(1), hw, groups, eps));
}

Tensor instance_norm_body(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                          const Tensor& var, bool use_input_stats, double momentum, double eps, bool cudnn_enabled) {
  if (!use_input_stats && !(mean.defined() && var.defined()))
    throw UserError("instance_norm: Expected running_mean and running_var to be defined when use_input_stats is false");
  check_batch_input("instance_norm", input);
  const SymInt b = input.sym_size(0);
  const SymInt c = input.sym_size(1);
  SymInts shape(input.sym_sizes().begin(), input.sym_sizes().end());
  shape[0] = 1;
  shape[1] = b * c;
  const auto repeated = [&](const Tensor& t) { return t.defined() ? t.repeat({b}) : t; };
  const Tensor w = repeated(weight);
  const Tensor bb = repeated(bias);
  const Tensor m = repeated(mean);
  const Tensor v = repeated(var);
  const Tensor x = (input.is_contiguous() ? input : input.contiguous()).view(shape);
  const Tensor out = batch_norm(x, w, bb, m, v, use_input_stats, momentum, eps, cudnn_enabled);
  if (use_input_stats && mean.defined()) mean.alias().copy_(m.view({b, c}).mean(IntList({0}), false));
  if (use_input_stats && var.defined()) var.alias().copy_(v.view({b, c}).mean(IntList({0}), false));
  return out.view(input.sym_sizes());
}

}  // namespace

void register_normalization(Library& aten);
void register_normalization(Library& aten) {
  aten.def(
          "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, "
          "Tensor, Tensor)")
      .compute(layer_norm_rule, layer_norm_kernel)
      .out("native_layer_norm.out")
      .tags(Tag::dense_out, Tag::reduction, Tag::core)
      .gradient("input weight bias", "input weight bias result1 result2", gradient::of_layer_norm)
      .no_gradient("result1 result2");
  aten.def(
          "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
          "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
      .compute(layer_norm_backward_rule, layer_norm_backward_kernel)
      .tags(Tag::reduction, Tag::core)
      .gradient("grad_out input weight", "grad_out input mean rstd weight", gradient::of_layer_norm_backward);
  aten.def(
          "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
          "bool cudnn_enable=True) -> Tensor")
      .python("torch.nn.functional.layer_norm")
      .composite([](const Tensor& input, SymIntList shape, const Tensor& weight, const Tensor& bias, double eps,
                    bool) -> Tensor { return std::get<0>(native_layer_norm(input, shape, weight, bias, eps)); });
  aten.def("rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor")
      .python("torch.nn.functional.rms_norm")
      .composite(rms_norm_body);
  aten.def("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)")
      .composite(fused_rms_norm_body);

  aten.def(
          "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
          "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
      .own(legit<true>, legit<false>)
      .tags(Tag::reduction)
      .gradient("input weight bias", "input weight running_mean running_var result1 result2",
                [](const Gradients& g) { return gradient::of_batch_norm(g, g.flag("training")); })
      .no_gradient("result1 result2");
  aten.def(
          "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
          "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
      .own(legit<true>, legit<false>)
      .tags(Tag::reduction, Tag::core)
      .gradient("input weight bias", "input weight running_mean running_var result1 result2",
                [](const Gradients& g) { return gradient::of_batch_norm(g, g.flag("training")); })
      .no_gradient("result1 result2");
  aten.def(
          "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
          "float eps) -> (Tensor, Tensor, Tensor)")
      .compute([](const Tensor& input, const Tensor& weight, const Tensor& bias, bool training, double momentum,
                  double eps) { return batch_norm_rule(input, weight, bias, {}, {}, training, momentum, eps); },
               [](const Tensor& input, const Tensor& weight, const Tensor& bias, bool training, double momentum, double eps,
                  const Tensor& out, const Tensor& mean, const Tensor& invstd) {
                 batch_norm_kernel(input, weight, bias, {}, {}, training, momentum, eps, out, mean, invstd);
               })
      .out("_native_batch_norm_legit.no_stats_out(out, save_mean, save_invstd)")
      .tags(Tag::reduction, Tag::core)
      .gradient("input weight bias", "input weight result1 result2",
                [](const Gradients& g) { return gradient::of_batch_norm(g, g.flag("training")); })
      .no_gradient("result1 result2");
  aten.def(
          "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
          "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
      .compute(
          [](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
             double momentum, double eps) { return batch_norm_rule(input, weight, bias, mean, var, false, momentum, eps); },
          [](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
             double momentum, double eps, const Tensor& out, const Tensor& a,
             const Tensor& b) { batch_norm_kernel(input, weight, bias, mean, var, false, momentum, eps, out, a, b); })
      .out("_native_batch_norm_legit_no_training.out")
      .tags(Tag::dense_out, Tag::core)
      .gradient("input weight bias", "input weight running_mean running_var result1 result2",
                [](const Gradients& g) { return gradient::of_batch_norm(g, false); })
      .no_gradient("result1 result2");
  aten.def(
          "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
          "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, "
          "Tensor running_var_out)")
      .compute(
          [](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
             bool training, double momentum, double eps) {
            const auto m = batch_norm_rule(input, weight, bias, mean, var, training, momentum, eps);
            return std::array<Meta, 5>{m[0], m[1], m[2], rule::unary("clone", mean), rule::unary("clone", var)};
          },
          [](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
             bool training, double momentum, double eps, const Tensor& out, const Tensor& save_mean,
             const Tensor& save_invstd, const Tensor& new_mean, const Tensor& new_var) {
            kernel::copy(mean, new_mean);
            kernel::copy(var, new_var);
            batch_norm_kernel(input, weight, bias, new_mean, new_var, training, momentum, eps, out, save_mean, save_invstd);
          })
      .tags(Tag::reduction)
      .gradient("input weight bias", "input weight running_mean running_var result1 result2",
                [](const Gradients& g) { return gradient::of_batch_norm(g, g.flag("training")); })
      .no_gradient("result1 result2 result3 result4");
  aten.def(
          "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
          "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)")
      .own(with_update<true>, with_update<false>)
      .tags(Tag::reduction)
      .gradient("input weight bias", "input weight running_mean running_var result1 result2",
                [](const Gradients& g) { return gradient::of_batch_norm(g, true); })
      .no_gradient("result1 result2 result3");
  aten.def(
          "_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
          "float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)")
      .own(no_update<true>, no_update<false>)
      .tags(Tag::reduction)
      .gradient("input weight bias", "input weight running_mean running_var result1 result2",
                [](const Gradients& g) { return gradient::of_batch_norm(g, false); })
      .no_gradient("result1 result2 result3");
  aten.def(
          "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? "
          "running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, "
          "Tensor, Tensor)")
      .compute(batch_norm_backward_rule, batch_norm_backward_kernel)
      .tags(Tag::reduction)
      .gradient("grad_out input weight", "grad_out input weight running_mean running_var save_mean save_invstd",
                gradient::of_batch_norm_backward);
  aten.def(
          "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
          "float momentum, float eps, bool cudnn_enabled) -> Tensor")
      .tags(Tag::not_whole)
      .composite(batch_norm_body);

  aten.def(
          "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float "
          "eps) -> (Tensor, Tensor, Tensor)")
      .compute(group_norm_rule, group_norm_kernel)
      .out("native_group_norm.out")
      .tags(Tag::dense_out, Tag::reduction, Tag::core)
      .gradient("input weight bias", "input weight result1 result2", gradient::of_group_norm);
  aten.def(
          "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, "
          "SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
      .compute(group_norm_backward_rule, group_norm_backward_kernel)
      .tags(Tag::reduction, Tag::core);
  aten.def(
          "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
          "cudnn_enabled=True) -> Tensor")
      .python("torch.nn.functional.group_norm")
      .composite(group_norm_body);
  aten.def(
          "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
          "use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor")
      .composite(instance_norm_body);
}

}  // namespace calque
