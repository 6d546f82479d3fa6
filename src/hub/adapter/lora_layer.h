// LoRA's layers, PEFT's lora.Linear (also of transformers' Conv1D), Embedding, Conv1d/2d/3d and ParamWrapper: the base layer's result
// and B(A(x)) times the scaling; with DoRA the rows of the weight are brought to a learned length.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hub/adapter/tuner_layer.h"

namespace calque::adapter {

// What an adapter's configuration says of one layer.
struct LoraSettings {
  int64_t r = 8;
  double alpha = 8;
  double dropout = 0;
  bool rslora = false, dora = false, bias = false;
  enum class Start : uint8_t { usual, gaussian, as_constructed } start = Start::usual;
  bool fits_base_dtype = true;  // tensors get the dtype of the base layer's weight
  double scaling() const;
};

class LoraLayer : public TunerLayer {
 public:
  void add(const std::string& name, const LoraSettings& settings);
  const LoraSettings& settings(const std::string& name) const { return settings_.at(name); }
  double scaling(const std::string& name) const { return scaling_.at(name); }
  void set_scaling(const std::string& name, double scaling) { scaling_.at(name) = scaling; }
  std::vector<std::string> adapters() const override { return order_; }
  void delete_adapter(const std::string& name) override;

  // What merging adds to the base layer's weight, DoRA apart.
  virtual Tensor delta(const std::string& name) const = 0;
  // A and B of an adapter, with rows and columns of the rank; for weighted sums of adapters.
  virtual std::pair<Tensor, Tensor> factors(const std::string& name) const;
  virtual const Tensor& base_weight() const;

 protected:
  explicit LoraLayer(std::shared_ptr<Module> base);
  LoraLayer(const LoraLayer&) = default;

  virtual void check(const LoraSettings& settings) const = 0;
  virtual void make(const std::string& name, const LoraSettings& settings) = 0;  // A and B, as their constructors leave them
  virtual void start(const std::string& name, const LoraSettings& settings);
  virtual Tensor apply(const std::string& name, const Tensor& x, const Tensor& result) = 0;
  Value call_adapted(const Values& args, const Kwargs& kwargs) override;
  void merge_one(const std::string& name, bool safe) override;
  void unmerge_one(const std::string& name) override;

  // DoRA: the lengths of the rows of the weight with `scaling` times the product, and the form in which they divide a weight.
  virtual Tensor row_lengths(const Tensor& weight, const Tensor& product, double scaling) const = 0;
  virtual Tensor as_factor(const Tensor& scale) const = 0;
  virtual Tensor product(const std::string& name) const = 0;  // of A and B, in the form that row_lengths takes
  virtual Tensor product_of_delta(const Tensor& delta) const { return delta; }
  const Tensor& magnitude(const std::string& name) const;
  void merge_dora(const std::string& name, bool safe);
  void unmerge_dora(const std::string& name);
  Tensor unmerged_weight(bool safe);

  const Tensor& weight_a(const std::string& name) const;
  const Tensor& weight_b(const std::string& name) const;
  Tensor dropped(const std::string& name, const Tensor& x) const;
  // What calls of A and B add to a result, with DoRA too.
  Tensor through(const std::string& name, const Tensor& x) const;
  Tensor apply_layers(const std::string& name, const Tensor& x, const Tensor& result) const;
  virtual Tensor scale_of_call(const std::string&, const Tensor&) const { return {}; }
  virtual Tensor bias_of_result(const Tensor& bias, int64_t /*dims*/) const { return bias; }

  Child<ModuleDict> lora_dropout_, lora_a_, lora_b_;
  Child<ParameterDict> embedding_a_, embedding_b_;
  Child<ModuleDict> magnitudes_;
  std::map<std::string, LoraSettings> settings_;
  std::map<std::string, double> scaling_;
  std::vector<std::string> order_;
  std::map<std::string, Tensor> merged_lengths_;  // of DoRA adapters that are merged
};

// The layer for a module; null where LoRA has none for its class. `fan_in_fan_out` is what the configuration says, and what the layer
// needs afterwards.
std::shared_ptr<LoraLayer> make_lora_layer(const std::shared_ptr<Module>& target, bool& fan_in_fan_out);
// For a parameter of a module. UserError where it has neither two nor three dimensions.
std::shared_ptr<LoraLayer> make_lora_parameter(const std::shared_ptr<Module>& target, const std::string& parameter);
// The layer that stands for this parameter, among those that wrap each other; null when there is none.
LoraLayer* find_lora_parameter(Module* module, const std::string& parameter);

}  // namespace calque::adapter
