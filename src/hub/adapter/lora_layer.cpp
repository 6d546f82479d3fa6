#include "hub/adapter/lora_layer.h"

#include <algorithm>
#include <cmath>

#include "calque/base/error.h"
#include "calque/nn/dropout.h"
#include "calque/nn/init.h"
#include "calque/op/aten/factories.h"
#include "calque/op/aten/matmul.h"
#include "calque/op/aten/norms.h"

namespace calque::adapter {

double LoraSettings::scaling() const {
  return rslora ? alpha / std::sqrt(static_cast<double>(r)) : alpha / static_cast<double>(r);
}

namespace {

// The learned lengths of a DoRA adapter.
struct Magnitude : Module {
  explicit Magnitude(const Tensor& lengths) { register_parameter("weight", lengths); }
  std::string type_name() const override { return "peft.tuners.lora.dora.DoraLinearLayer"; }

 protected:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new Magnitude(*this)); }
};

// A product whose 16-bit factors are multiplied in float32.
template <class F>
Tensor in_float32(const Tensor& a, const Tensor& b, F&& multiply) {
  const DType dtype = b.dtype();
  if (dtype != DType::float16 && dtype != DType::bfloat16) return multiply(a, b);
  return multiply(a.to(DType::float32), b.to(DType::float32)).to(dtype);
}

}  // namespace

LoraLayer::LoraLayer(std::shared_ptr<Module> base)
    : TunerLayer(std::move(base)),
      lora_dropout_(child<ModuleDict>("lora_dropout")),
      lora_a_(child<ModuleDict>("lora_A")),
      lora_b_(child<ModuleDict>("lora_B")),
      embedding_a_(child<ParameterDict>("lora_embedding_A")),
      embedding_b_(child<ParameterDict>("lora_embedding_B")),
      magnitudes_(child<ModuleDict>("lora_magnitude_vector")) {}

const Tensor& LoraLayer::base_weight() const { return innermost().get_parameter("weight"); }
const Tensor& LoraLayer::weight_a(const std::string& name) const { return lora_a_->get_parameter(name + ".weight"); }
const Tensor& LoraLayer::weight_b(const std::string& name) const { return lora_b_->get_parameter(name + ".weight"); }
std::pair<Tensor, Tensor> LoraLayer::factors(const std::string& name) const { return {weight_a(name), weight_b(name)}; }
const Tensor& LoraLayer::magnitude(const std::string& name) const { return magnitudes_->get_parameter(name + ".weight"); }

Tensor LoraLayer::through(const std::string& name, const Tensor& x) const {
  const Value inner = reached(*lora_a_, name).call({x});
  return reached(*lora_b_, name).call({inner}).to_tensor();
}

Tensor LoraLayer::apply_layers(const std::string& name, const Tensor& x, const Tensor& result) const {
  const Scalar scaling(scaling_.at(name));
  if (!settings_.at(name).dora) return result + through(name, dropped(name, x)) * scaling;
  const bool drops = settings_.at(name).dropout > 0 && training();
  const Tensor input = drops ? dropped(name, x) : x;
  const Tensor scale = scale_of_call(name, input);
  const Tensor change = through(name, input);
  Tensor base = drops ? nn_detail::reach(*module_slots()[0]).call({input}).to_tensor() : result;
  if (const Tensor* bias = innermost().find_tensor("bias")) base = base - bias_of_result(*bias, base.dim());
  return result + ((scale - 1) * base + scale * change * scaling);
}

Tensor LoraLayer::dropped(const std::string& name, const Tensor& x) const {
  return reached(*lora_dropout_, name).call({x}).to_tensor();
}

void LoraLayer::add(const std::string& name, const LoraSettings& settings) {
  check(settings);
  if (settings.dropout > 0)
    lora_dropout_->set(name, std::make_shared<Dropout>(settings.dropout));
  else
    lora_dropout_->set(name, std::make_shared<Identity>());
  make(name, settings);
  if (settings.start != LoraSettings::Start::as_constructed) start(name, settings);
  if (std::ranges::find(order_, name) == order_.end()) order_.push_back(name);
  settings_[name] = settings;
  scaling_[name] = settings.scaling();
  const DType dtype = base_weight().dtype();
  if (is_floating(dtype) && !is_float8(dtype))
    for (Module* container : containers()) {
      if (Module* module = container->find_submodule(name)) module->to(dtype);
      for (const auto& slot : container->parameter_slots())
        if (slot->name == name && slot->tensor.dtype() != dtype)
          container->register_parameter(name, slot->tensor.detach().to(dtype));
    }
  if (!settings.dora) return;
  const GradModeScope no_grad(false);
  magnitudes_->set(name,
                   std::make_shared<Magnitude>(row_lengths(base_weight().detach(), product(name).detach(), scaling_[name])));
}

void LoraLayer::start(const std::string& name, const LoraSettings& settings) {
  if (settings.start == LoraSettings::Start::gaussian)
    init::normal_(weight_a(name), 0, 1 / static_cast<double>(settings.r));
  else
    init::kaiming_uniform_(weight_a(name), std::sqrt(5.0));
  init::zeros_(weight_b(name));
  if (settings.bias) init::zeros_(lora_b_->get_parameter(name + ".bias"));
}

void LoraLayer::delete_adapter(const std::string& name) {
  TunerLayer::delete_adapter(name);
  settings_.erase(name);
  scaling_.erase(name);
  std::erase(order_, name);
}

Value LoraLayer::call_adapted(const Values& args, const Kwargs& kwargs) {
  Tensor result = nn_detail::reach(*module_slots()[0]).call(args, kwargs).to_tensor();
  const DType dtype = result.dtype();
  Tensor x = input(args, kwargs);
  for (const std::string& name : active_) {
    if (!settings_.contains(name)) continue;
    // Ids stay what they are.
    if (x.is_floating_point() && x.dtype() != weight_a(name).dtype()) x = x.to(weight_a(name).dtype());
    result = apply(name, x, result);
  }
  return result.to(dtype);
}

// ---- merging --------------------------------------------------------------------------------------------------------

void LoraLayer::merge_one(const std::string& name, bool safe) {
  Tensor bias, bias_delta;
  if (settings_.at(name).bias) {
    const Tensor* found = innermost().find_tensor("bias");
    if (!found) throw UserError("Impossible to merge LoRA with `lora_bias=True` because the base layer has no bias.");
    bias = *found;
    bias_delta = lora_b_->get_parameter(name + ".bias") * Scalar(scaling_.at(name));
    if (safe) check_merged(bias + bias_delta, name);
  }
  if (settings_.at(name).dora) {
    merge_dora(name, safe);
  } else {
    const Tensor& weight = base_weight();
    const Tensor merged = weight + (safe ? delta(name).to(weight.dtype()) : delta(name));
    if (safe) check_merged(merged, name);
    set_values(weight, merged);
  }
  if (bias.defined()) set_values(bias, bias + bias_delta);
}

void LoraLayer::unmerge_one(const std::string& name) {
  if (settings_.at(name).dora)
    unmerge_dora(name);
  else
    set_values(base_weight(), base_weight() - delta(name).to(base_weight().dtype()));
  if (settings_.at(name).bias) {
    const Tensor& bias = innermost().get_parameter("bias");
    set_values(bias, bias - lora_b_->get_parameter(name + ".bias") * Scalar(scaling_.at(name)));
  }
}

// Lengths are of the weight that no adapter is merged into, as a call computes them.
Tensor LoraLayer::unmerged_weight(bool safe) {
  if (merged_.empty()) return base_weight();
  const std::vector<std::string> merged = merged_;
  unmerge();
  const Tensor weight = base_weight().detach().clone();
  merge(merged, safe);
  return weight;
}

void LoraLayer::merge_dora(const std::string& name, bool safe) {
  const Tensor change = delta(name);
  const Tensor lengths = row_lengths(unmerged_weight(safe), product_of_delta(change), 1);
  const Tensor& weight = base_weight();
  const Tensor merged = (as_factor(magnitude(name) / lengths) * (weight + change)).to(weight.dtype());
  if (safe) check_merged(merged, name);
  merged_lengths_[name] = lengths;
  set_values(weight, merged);
}

void LoraLayer::unmerge_dora(const std::string& name) {
  const Tensor lengths = merged_lengths_.at(name);
  merged_lengths_.erase(name);
  const Tensor& weight = base_weight();
  set_values(weight, (weight / as_factor(magnitude(name) / lengths) - delta(name)).to(weight.dtype()));
}

// ---- Linear and Conv1D ------------------------------------------------------------------------------------------------

namespace {

class LoraLinear final : public LoraLayer {
 public:
  LoraLinear(std::shared_ptr<Module> base, bool fan_in_fan_out)
      : LoraLayer(std::move(base)), fan_in_fan_out_(fan_in_fan_out) {
    if (const auto* linear = dynamic_cast<const Linear*>(&innermost())) {
      in_features_ = linear->in_features;
      out_features_ = linear->out_features;
    } else {
      in_features_ = base_weight().size(0);
      out_features_ = base_weight().size(1);
    }
  }
  std::string type_name() const override { return "peft.tuners.lora.layer.Linear"; }

  Tensor delta(const std::string& name) const override {
    return in_float32(weight_a(name), weight_b(name), [&](const Tensor& a, const Tensor& b) {
      return transposed_if(matmul(b, a), fan_in_fan_out_) * Scalar(scaling_.at(name));
    });
  }

 private:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new LoraLinear(*this)); }
  void check(const LoraSettings&) const override {}
  void make(const std::string& name, const LoraSettings& settings) override {
    lora_a_->set(name, std::make_shared<Linear>(in_features_, settings.r, false));
    lora_b_->set(name, std::make_shared<Linear>(settings.r, out_features_, settings.bias));
  }

  Tensor apply(const std::string& name, const Tensor& x, const Tensor& result) override {
    return apply_layers(name, x, result);
  }
  // The product as a call computes it, with the bias of B, as in PEFT.
  Tensor scale_of_call(const std::string& name, const Tensor& x) const override {
    const Tensor unit = eye(in_features_, weight_a(name).dtype());
    const Tensor both = through(name, unit).t().to(x.dtype());
    const Tensor lengths = row_lengths(base_weight().to(x.dtype()), both.detach(), scaling_.at(name)).detach();
    return (magnitude(name) / lengths).view({1, -1});
  }

  Tensor row_lengths(const Tensor& weight, const Tensor& product, double scaling) const override {
    const Tensor sum = transposed_if(weight, fan_in_fan_out_) + product * Scalar(scaling);
    return linalg_vector_norm(sum, 2, {1}).to(weight.dtype());
  }
  Tensor as_factor(const Tensor& scale) const override { return transposed_if(scale.view({-1, 1}), fan_in_fan_out_); }
  Tensor product(const std::string& name) const override { return matmul(weight_b(name), weight_a(name)); }
  Tensor product_of_delta(const Tensor& delta) const override { return transposed_if(delta, fan_in_fan_out_); }

  bool fan_in_fan_out_;
  int64_t in_features_ = 0, out_features_ = 0;
};

}  // namespace

std::shared_ptr<LoraLayer> make_lora_linear(const std::shared_ptr<Module>& target, bool fan_in_fan_out) {
  return std::make_shared<LoraLinear>(target, fan_in_fan_out);
}

}  // namespace calque::adapter
