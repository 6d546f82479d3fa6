// IA3's layers, PEFT's ia3.Linear (also of transformers' Conv1D), Conv2d and Conv3d: the input of a feed-forward layer, or the result of
// another one, times a learned vector.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calque/hub/adapter_config.h"
#include "hub/adapter/tuner_layer.h"

namespace calque::adapter {

class Ia3Layer final : public TunerLayer {
 public:
  Ia3Layer(std::shared_ptr<Module> base, bool feedforward, bool fan_in_fan_out);
  std::string type_name() const override;
  void add(const std::string& name);
  std::vector<std::string> adapters() const override;
  const Tensor& vector(const std::string& name) const { return (*vectors_)[name]; }

 private:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new Ia3Layer(*this)); }
  Value call_adapted(const Values& args, const Kwargs& kwargs) override;
  void merge_one(const std::string& name, bool safe) override;
  void unmerge_one(const std::string& name) override;
  Tensor factor_of_weight(const std::string& name) const;

  Child<ParameterDict> vectors_;
  bool feedforward_, fan_in_fan_out_;
};

// Null where IA3 has no layer for the class.
std::shared_ptr<Ia3Layer> make_ia3_layer(const std::shared_ptr<Module>& target, bool feedforward, bool& fan_in_fan_out);
bool is_feedforward(const AdapterConfig& config, const std::string& path);

}  // namespace calque::adapter
