// PretrainedModel: a module that a config describes, with what transformers' PreTrainedModel knows of a class: its inputs
// and outputs by name, its base model, its tied weights, how its parameters start. The classes are in zoo/; loading and
// saving are in from_pretrained.h and save_pretrained.h.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calque/grad/checkpointing_options.h"
#include "calque/hub/config.h"
#include "calque/hub/example_inputs.h"
#include "calque/hub/model_io.h"
#include "calque/nn/linear.h"
#include "calque/nn/module.h"

namespace calque {

struct AdapterBook;
struct Dispatched;

class PretrainedModel : public Module {
 public:
  const Config& config() const { return config_; }
  Config& config() { return config_; }

  // Hooks and observers, then forward. UserError for an argument that the class does not take.
  ModelOutput operator()(const ModelInputs& inputs);
  // The same from a model around this one, whose inputs may have more: what a Child calls.
  ModelOutput call_typed(const ModelInputs& inputs);
  virtual ModelOutput forward(const ModelInputs& inputs) = 0;
  // The arguments of forward, in transformers' order. They live as long as the model.
  virtual std::span<const ModelArgument> arguments() const = 0;
  bool takes(const ModelArgument& argument) const { return find_argument(arguments(), argument.name) != nullptr; }
  std::vector<std::string> argument_names() const final;
  Value forward_values(const Values& args, const Kwargs& kwargs) override;

  // ---- what a class says of itself ------------------------------------------------------------------------------------
  virtual std::string base_model_prefix() const { return ""; }
  PretrainedModel& base_model();  // the submodule of that name, or the model itself
  // Tied parameters: the name, and the name of what it is (both full paths). Only those that the config asks for.
  using TiedWeights = std::vector<std::pair<std::string, std::string>>;
  virtual TiedWeights tied_weights() const { return {}; }
  // Regular expressions; on_save are names.
  virtual std::vector<std::string> keys_to_ignore_on_load_missing() const { return {}; }
  virtual std::vector<std::string> keys_to_ignore_on_load_unexpected() const { return {}; }
  virtual std::vector<std::string> keys_to_ignore_on_save() const { return {}; }
  virtual std::vector<std::string> keep_in_fp32_modules() const { return {}; }
  virtual std::vector<std::string> no_split_modules() const { return {}; }  // class names
  virtual std::string main_input_name() const { return "input_ids"; }
  // The inputs of a symbolic trace for which nobody names any: those of transformers 4's dummy_inputs.
  virtual std::vector<std::string> dummy_input_names() const { return {main_input_name()}; }
  // What the class can be called with: by default ids, their mask, and the decoder's ids where it takes any.
  virtual ModelInputs example_inputs(const ExampleSizes& sizes = {}) const;
  virtual bool is_encoder_decoder() const { return config_.flag("is_encoder_decoder"); }
  virtual bool can_generate() const { return false; }
  virtual bool supports_sdpa() const { return true; }  // false: its attention is always written out

  // Takes heads out of one layer's attention: by default of the n-th PrunableAttention (hub/prune.h), and a UserError where there
  // are none.
  virtual void prune_layer_heads(int64_t layer, const std::vector<int64_t>& heads);
  // False where no gradient may be recomputed; enabling it is a UserError then.
  virtual bool supports_gradient_checkpointing() const { return true; }

  virtual Child<Embedding>* input_embeddings() { return nullptr; }
  virtual Child<Linear>* output_embeddings() { return nullptr; }

  // The values that this module's own parameters start with (children are asked for themselves): normal with the config's
  // initializer_range for Linear, Embedding and Conv1D, ones and zeros for norms, unless a class says otherwise.
  virtual void init_weights(Module& module);
  void init_all_weights();  // of every module, then ties
  void tie_weights();       // makes tied parameters one tensor

  // ---- gradient checkpointing (hub/checkpointing.h) ---------------------------------------------------------------------
  // The layers of this model and of those inside it, all or each n-th, are computed again in the backward pass while the model is
  // trained; it makes no cache then. Where ids go in, their embeddings come to want gradients. UserError for a class that does not
  // support it, and for a model without such layers.
  void gradient_checkpointing_enable(const CheckpointingOptions& options = {.use_reentrant = true},
                                     int64_t every_n_layers = 1);
  void gradient_checkpointing_disable();  // and what it did to the embeddings
  bool is_gradient_checkpointing();       // on for any layer
  // What the input embeddings give wants gradients from now on, also where they are not trained: what is behind them may be.
  void enable_input_require_grads();
  void disable_input_require_grads();

  // For model cards; a tag that is there already is not added.
  void add_model_tags(const std::vector<std::string>& tags);
  std::vector<std::string> model_tags;

  // Where a device map put it (hub/offload.h); null when none did.
  std::shared_ptr<const Dispatched> dispatched;
  // The configurations of its adapters (hub/adapters.h); null when it has none.
  std::shared_ptr<const AdapterBook> adapters;

  // What generation_config.json said; empty when there was none, and config() has what is known.
  std::string generation_config_json;

  // ---- settings of a call -----------------------------------------------------------------------------------------------
  bool wants_attentions(const ModelInputs& inputs) const {
    return inputs[arg::output_attentions].value_or(config_.flag("output_attentions"));
  }
  bool wants_hidden_states(const ModelInputs& inputs) const {
    return inputs[arg::output_hidden_states].value_or(config_.flag("output_hidden_states"));
  }
  bool wants_cache(const ModelInputs& inputs) const;  // never while layers are checkpointed

 protected:
  explicit PretrainedModel(Config config);
  PretrainedModel(const PretrainedModel&) = default;

 private:
  friend std::shared_ptr<PretrainedModel> finished_model(std::shared_ptr<PretrainedModel> model);
  struct OwnHooks {  // a copy of the model has none of them
    OwnHooks() = default;
    OwnHooks(const OwnHooks&) {}
    std::vector<HookHandle> handles;
  };
  Config config_;
  OwnHooks input_hooks_;
  bool checkpoints_layers_ = false;
};

// Gives a model class its copy and its name: struct LlamaModel : ModelOf<LlamaModel, LlamaPretrained> { ... }, where
// `static constexpr const char* torch_type` is transformers' qualified name.
template <class D, class Base = PretrainedModel>
class ModelOf : public Base {
 public:
  using Base::Base;
  std::string type_name() const override { return D::torch_type; }
  std::span<const ModelArgument> arguments() const override { return D::forward_arguments; }

 protected:
  ModelOf(const ModelOf&) = default;
  std::shared_ptr<Module> copy_self() const override {
    return nn_detail::shared_module(std::unique_ptr<Module>(new D(static_cast<const D&>(*this))));
  }
};

}  // namespace calque
