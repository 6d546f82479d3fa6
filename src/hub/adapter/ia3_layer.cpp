#include "hub/adapter/ia3_layer.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/nn/convolution.h"
#include "calque/op/aten/zeros.h"
#include "hub/adapter/targets.h"

namespace calque::adapter {

Ia3Layer::Ia3Layer(std::shared_ptr<Module> base, bool feedforward, bool fan_in_fan_out)
    : TunerLayer(std::move(base)),
      vectors_(child<ParameterDict>("ia3_l")),
      feedforward_(feedforward),
      fan_in_fan_out_(fan_in_fan_out) {}

std::string Ia3Layer::type_name() const {
  const auto* convolution = dynamic_cast<const ConvBase*>(&innermost());
  return std::string("peft.tuners.ia3.layer.") + (convolution ? convolution->class_name() : "Linear");
}

std::vector<std::string> Ia3Layer::adapters() const {
  std::vector<std::string> out;
  for (const auto& slot : vectors_->parameter_slots()) out.push_back(slot->name);
  return out;
}

void Ia3Layer::add(const std::string& name) {
  const Tensor& weight = innermost().get_parameter("weight");
  std::vector<int64_t> sizes;
  if (const auto* convolution = dynamic_cast<const ConvBase*>(&innermost())) {
    sizes.assign(static_cast<size_t>(weight.dim()), 1);
    sizes[1] = feedforward_ ? convolution->in_channels : convolution->out_channels;
  } else {
    const int64_t in = weight.size(fan_in_fan_out_ ? 0 : 1), out = weight.size(fan_in_fan_out_ ? 1 : 0);
    sizes = feedforward_ ? std::vector<int64_t>{1, in} : std::vector<int64_t>{out, 1};
  }
  const bool floats = is_floating(weight.dtype()) && !is_float8(weight.dtype());
  vectors_->set(name, ones(nn_detail::sym(sizes), floats ? weight.dtype() : DType::float32));
}

Value Ia3Layer::call_adapted(const Values& args, const Kwargs& kwargs) {
  const bool convolution = dynamic_cast<const ConvBase*>(&innermost());
  Tensor factor;
  for (const std::string& name : active_) {
    if (!has_adapter(name)) continue;
    const Tensor one = convolution ? vector(name) : vector(name).flatten();
    factor = factor.defined() ? factor * one : one;
  }
  Module& base = nn_detail::reach(*module_slots()[0]);
  if (!factor.defined()) return base.call(args, kwargs);
  const Tensor& x = input(args, kwargs);
  const DType before = x.dtype();
  if (feedforward_) {
    const Tensor scaled = (x.to(factor.dtype()) * factor).to(before);
    return base.call({scaled}).to_tensor().to(before);
  }
  const Tensor result = base.call(args, kwargs).to_tensor();
  return (result * factor).to(result.dtype());
}

// In the form of the weight.
Tensor Ia3Layer::factor_of_weight(const std::string& name) const {
  const Tensor& factor = vector(name);
  const auto* convolution = dynamic_cast<const ConvBase*>(&innermost());
  if (!convolution) return transposed_if(factor, fan_in_fan_out_);
  if (!feedforward_) return factor.transpose(0, 1);
  const int64_t groups = convolution->groups;
  if (groups == 1) return factor;
  const int64_t in = convolution->in_channels / groups, out = convolution->out_channels / groups;
  std::vector<int64_t> one(static_cast<size_t>(factor.dim()) + 1, 1);
  one[0] = groups, one[2] = in;
  std::vector<int64_t> all = one;
  all[1] = out;
  std::vector<int64_t> flat(static_cast<size_t>(factor.dim()), 1);
  flat[0] = convolution->out_channels, flat[1] = in;
  return factor.reshape(nn_detail::sym(one)).expand(nn_detail::sym(all)).reshape(nn_detail::sym(flat));
}

void Ia3Layer::merge_one(const std::string& name, bool safe) {
  const Tensor& weight = innermost().get_parameter("weight");
  const Tensor merged = (weight * factor_of_weight(name)).to(weight.dtype());
  const Tensor* bias = feedforward_ ? nullptr : innermost().find_tensor("bias");
  const Tensor scaled = bias ? (*bias * vector(name).reshape(bias->sym_sizes())).to(bias->dtype()) : Tensor();
  if (safe) {
    check_merged(merged, name);
    if (bias) check_merged(scaled, name);
  }
  set_values(weight, merged);
  if (bias) set_values(*bias, scaled);
}

void Ia3Layer::unmerge_one(const std::string& name) {
  warn("Unmerge result can be inaccurate for (IA)^3.");
  const Scalar small(1e-8);
  const Tensor& weight = innermost().get_parameter("weight");
  set_values(weight, (weight / (factor_of_weight(name) + small)).to(weight.dtype()));
  if (const Tensor* bias = feedforward_ ? nullptr : innermost().find_tensor("bias"))
    set_values(*bias, (*bias / (vector(name).reshape(bias->sym_sizes()) + small)).to(bias->dtype()));
}

std::shared_ptr<Ia3Layer> make_ia3_layer(const std::shared_ptr<Module>& target, bool feedforward, bool& fan_in_fan_out) {
  if (is_matrix_layer(*target, fan_in_fan_out)) {
    return std::make_shared<Ia3Layer>(target, feedforward, fan_in_fan_out);
  }
  if (dynamic_cast<const Conv2d*>(target.get()) || dynamic_cast<const Conv3d*>(target.get()))
    return std::make_shared<Ia3Layer>(target, feedforward, false);
  return nullptr;
}

bool is_feedforward(const AdapterConfig& config, const std::string& path) {
  const AdapterConfig::Names names = config.names("feedforward_modules");
  if (names.pattern) return NamePattern(*names.pattern, config, "feedforward_modules").matches(path);
  return std::ranges::any_of(names.list, [&](const std::string& end) { return path.ends_with(end); });
}

}  // namespace calque::adapter
