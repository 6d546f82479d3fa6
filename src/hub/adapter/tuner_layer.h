// TunerLayer: what stands in a model in the place of a module that adapters change, PEFT's BaseTunerLayer. The module is its child
// "base_layer"; each adapter has its own tensors under the adapter's name. Names of states are PEFT's.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calque/nn/container.h"
#include "calque/nn/linear.h"
#include "calque/nn/signature.h"

namespace calque::adapter {

// The weight of a layer, transposed where it is stored as (in, out).
Tensor transposed_if(const Tensor& weight, bool fan_in_fan_out);
// Replaces the values of a parameter, which stays the one that it is.
void set_values(const Tensor& parameter, const Tensor& values);
bool all_finite(const Tensor& values);
bool is_conv1d(const Module& module);  // transformers' Conv1D, whose weight is (in, out); Linear's is (out, in)
// Is it one of these two? Then `fan_in_fan_out` says (in, out) as the layer is; a warning where it was told otherwise.
bool is_matrix_layer(const Module& module, bool& fan_in_fan_out);
// A module of a ModuleDict, which is reached by it from now on.
Module& reached(const ModuleDict& modules, const std::string& name);
void set_requires_grad(Module& module, bool value);

class TunerLayer : public Module {
 public:
  Module& base_layer() const { return *base_.module(); }
  std::shared_ptr<Module> base_layer_ptr() const { return module_slots()[0]->module; }
  Module& innermost() const;  // below other tuner layers
  Module* wrapped_module() const override { return base_.module(); }
  std::vector<std::string> argument_names() const override { return base_layer().argument_names(); }
  ForwardSignature forward_signature() const override { return base_layer().forward_signature(); }
  Value forward_values(const Values& args, const Kwargs& kwargs) override;

  virtual std::vector<std::string> adapters() const = 0;  // that have tensors here
  bool has_adapter(const std::string& name) const;
  const std::vector<std::string>& active() const { return active_; }
  bool enabled() const { return enabled_; }
  virtual void set_active(const std::vector<std::string>& names, bool trains);
  virtual void enable(bool enabled);
  virtual void delete_adapter(const std::string& name);

  const std::vector<std::string>& merged() const { return merged_; }
  // Of the named adapters those that are here and not merged yet.
  virtual void merge(const std::vector<std::string>& names, bool safe);
  virtual void unmerge();

  // The children and parameters that hold an adapter's tensors, by adapter name: every child but the base layer.
  std::vector<Module*> containers() const;

 protected:
  explicit TunerLayer(std::shared_ptr<Module> base);
  TunerLayer(const TunerLayer&) = default;

  // The call with the active adapters.
  virtual Value call_adapted(const Values& args, const Kwargs& kwargs) = 0;
  virtual void merge_one(const std::string& name, bool safe) = 0;
  virtual void unmerge_one(const std::string& name) = 0;
  // Its tensors take gradients when it is active.
  void requires_grad_of(const std::string& name, bool value);
  // UserError when `values` hold NaN or infinities.
  void check_merged(const Tensor& values, const std::string& adapter) const;
  // The first argument, and what is handed to the base layer beside it.
  const Tensor& input(const Values& args, const Kwargs& kwargs) const;

  Child<Module> base_;
  std::vector<std::string> active_;
  std::vector<std::string> merged_;
  bool enabled_ = true;
};

}  // namespace calque::adapter
