// Weighted sums of adapters, which are adapters themselves.
#include <algorithm>
#include <cmath>

#include "calque/base/error.h"
#include "calque/op/aten/cat.h"
#include "calque/op/aten/joining.h"
#include "calque/op/make.h"
#include "hub/adapter/ia3_layer.h"
#include "hub/adapter/inject.h"
#include "hub/adapter/lora_layer.h"

namespace calque {
namespace {

int64_t largest_rank(const AdapterConfig& config) {
  int64_t most = config["r"].to_int();
  if (config.has("rank_pattern"))
    for (const auto& [key, rank] : config["rank_pattern"].to_dict().items) most = std::max(most, rank.to_int());
  return most;
}

// Both lists, or one expression or the other.
Value joined(const std::vector<AdapterConfig>& configs, const char* setting) {
  std::vector<std::string> all;
  std::string pattern;
  for (const AdapterConfig& config : configs) {
    const AdapterConfig::Names names = config.names(setting);
    if (names.pattern) pattern += (pattern.empty() ? "(" : "|(") + *names.pattern + ")";
    for (const std::string& name : names.list)
      if (std::ranges::find(all, name) == all.end()) all.push_back(name);
  }
  if (!pattern.empty() && !all.empty())
    throw UserError("all adapter configs should follow the same target modules type. Combining adapters with `" +
                    std::string(setting) + "` type being a mix of list/set and string is not supported.");
  return pattern.empty() ? list(Values(all.begin(), all.end())) : Value(pattern);
}

void check_sum(PretrainedModel& model, const std::vector<std::string>& names, const std::vector<double>& weights,
               const std::vector<AdapterConfig>& configs) {
  if (names.empty() || names.size() != weights.size())
    throw UserError("add_weighted_adapter: a weight for each adapter is needed, found " + std::to_string(names.size()) +
                    " adapters and " + std::to_string(weights.size()) + " weights");
  for (const AdapterConfig& config : configs) {
    if (config.type() != configs[0].type() || config.is_prompt_learning())
      throw UserError("add_weighted_adapter: sums of adapters are for those of one kind, LoRA or IA3");
    if (config.type() == AdapterType::lora && !config.names("target_parameters").list.empty())
      throw UserError("add_weighted_adapter does not support targeting nn.Parameter");
  }
  for (const auto& [path, saved] : adapter::modules_of<adapter::WholeModule>(model))
    if (std::ranges::count_if(names, [&](const std::string& name) { return saved->has_adapter(name); }) > 1)
      throw UserError("Cannot add weighted adapters if they target the same module with modules_to_save, but found " + path);
}

// What the new adapter's A and B are; undefined where no adapter has the layer.
std::pair<Tensor, Tensor> sum_of(const adapter::LoraLayer& layer, const std::vector<std::string>& names,
                                 const std::vector<double>& weights, bool side_by_side) {
  std::vector<Tensor> as, bs;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!layer.has_adapter(names[i])) continue;
    const auto [a, b] = layer.factors(names[i]);
    const double weight = weights[i] * layer.scaling(names[i]);
    if (side_by_side) {
      as.push_back(a * Scalar(weights[i]) * Scalar(layer.scaling(names[i])));
      bs.push_back(b);
    } else {
      const double root = std::sqrt(std::abs(weight));
      as.push_back(a * Scalar(weight >= 0 ? root : -root));
      bs.push_back(b * Scalar(root));
    }
  }
  if (as.empty()) return {};
  if (side_by_side) return {cat(as, 0), cat(bs, 1)};
  return {stack(as, 0).sum({0}), stack(bs, 0).sum({0})};
}

}  // namespace

void add_weighted_adapter(PretrainedModel& model, const std::vector<std::string>& names, const std::vector<double>& weights,
                          const std::string& new_name, const std::string& combination_type) {
  std::vector<AdapterConfig> configs;
  for (const std::string& name : names) configs.push_back(adapter_config(model, name));
  check_sum(model, names, weights, configs);
  const bool lora = configs[0].type() == AdapterType::lora;
  if (lora && combination_type != "linear" && combination_type != "cat")
    throw UserError("add_weighted_adapter: the combination_type has to be \"linear\" or \"cat\", found \"" +
                    combination_type + "\"" +
                    (combination_type.ends_with("svd") ? "; Calque computes no singular values" : ""));
  const bool side_by_side = combination_type == "cat" && names.size() > 1;
  AdapterConfig config = configs[0];
  config.set("target_modules", joined(configs, "target_modules"));
  if (lora) {
    int64_t rank = 0;
    for (const AdapterConfig& one : configs) {
      const int64_t its = largest_rank(one);
      if (!side_by_side && rank != 0 && its != rank)
        throw UserError("All adapters must have the same r value when using combination_type linear; found " +
                        std::to_string(rank) + " and " + std::to_string(its) + ", which \"cat\" takes");
      rank = side_by_side ? rank + its : its;
    }
    config.set("r", rank);
    config.set("lora_alpha", rank);
    config.set("rank_pattern", dict({}));
    config.set("alpha_pattern", dict({}));
  } else {
    config.set("feedforward_modules", joined(configs, "feedforward_modules"));
  }
  const std::vector<std::string> active = active_adapters(model);
  add_adapter(model, config, new_name, {.trains = false});
  const GradModeScope no_grad(false);
  for (const auto& [path, layer] : adapter::tuner_layers(model)) {
    if (!layer->has_adapter(new_name)) continue;
    if (auto* one = dynamic_cast<adapter::LoraLayer*>(layer)) {
      const auto [a, b] = sum_of(*one, names, weights, side_by_side);
      const auto [new_a, new_b] = one->factors(new_name);
      const Tensor into_a = new_a.detach().zero_(), into_b = new_b.detach().zero_();
      if (!a.defined()) continue;
      into_a.narrow(0, 0, a.size(0)).copy_(a);
      into_b.narrow(1, 0, b.size(1)).copy_(b);
    } else if (auto* vectors = dynamic_cast<adapter::Ia3Layer*>(layer)) {
      const Tensor into = vectors->vector(new_name).detach().zero_();
      for (size_t i = 0; i < names.size(); ++i)
        if (vectors->has_adapter(names[i])) into.add_(vectors->vector(names[i]) * Scalar(weights[i]));
    }
  }
  set_adapter(model, active);
}

}  // namespace calque
