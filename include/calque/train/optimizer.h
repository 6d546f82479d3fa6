// Optimizers: what torch.optim does. An optimizer holds groups of parameters, each group with options of its own, and for each
// parameter a state that it fills at the first step. Gradients are what grad_of (grad/autograd.h) gives; a parameter without one
// is left alone. A step writes all parameters in one pass over memory (Adafactor apart, which needs sums of rows and columns).
//
//   AdamW optimizer(model.parameters(), {.lr = 1e-4});
//   backward(loss);
//   optimizer.step();
//   optimizer.zero_grad();
//
// state_dict() has PyTorch's form; save_optimizer and load_optimizer write and read the files of torch.save.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calque/op/value.h"

namespace calque {

// Names and values in order: the options of a group, the state of a parameter.
class NamedValues {
 public:
  using Item = std::pair<std::string, Value>;
  NamedValues() = default;
  NamedValues(std::initializer_list<Item> items);
  const Value* find(std::string_view name) const;
  const Value& at(std::string_view name) const;  // UserError names what there is
  double number(std::string_view name) const { return at(name).to_float(); }
  bool flag(std::string_view name) const;  // None is false
  void set(std::string_view name, Value value);
  const std::vector<Item>& items() const { return items_; }
  bool empty() const { return items_.empty(); }

 private:
  std::vector<Item> items_;
};

struct ParamGroup {
  std::vector<Tensor> params;
  NamedValues options;             // those that differ from the optimizer's; it fills in the others
  std::vector<std::string> names;  // of the parameters, or none

  double lr() const { return options.number("lr"); }
  void set_lr(double lr) { options.set("lr", lr); }
};

// One group of tensors, or of tensors with names, or several groups.
struct ParamGroups {
  ParamGroups(std::vector<Tensor> params);
  ParamGroups(const std::vector<std::pair<std::string, Tensor>>& named_params);
  ParamGroups(std::vector<ParamGroup> given) : groups(std::move(given)) {}
  ParamGroups(std::initializer_list<Tensor> params) : ParamGroups(std::vector<Tensor>(params)) {}
  std::vector<ParamGroup> groups;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  virtual std::string name() const = 0;  // "AdamW"
  // One step. A closure computes the gradients anew and gives the loss, which is given back.
  Tensor step(const std::function<Tensor()>& closure = {});
  void zero_grad(bool set_to_none = true);
  void add_param_group(ParamGroup group);
  std::vector<ParamGroup>& param_groups() { return groups_; }
  const std::vector<ParamGroup>& param_groups() const { return groups_; }
  const NamedValues& defaults() const { return defaults_; }
  // Empty before the first step.
  const NamedValues& state(const Tensor& param) const;

  // {"state": {0: {"step": ..., ...}, ...}, "param_groups": [{"lr": ..., "params": [0, 1]}]}; tensors are shared.
  Value state_dict() const;
  // Copies what it takes. UserError where groups or sizes do not fit; then nothing has changed.
  void load_state_dict(const Value& state);

 protected:
  explicit Optimizer(NamedValues defaults) : defaults_(std::move(defaults)) {}
  void add_param_groups(ParamGroups groups);  // for constructors: checks need the derived class

  struct Target {
    ParamGroup& group;
    Tensor param, grad;
    NamedValues& state;
  };
  virtual void check(const NamedValues& options) const = 0;  // UserError in PyTorch's words
  virtual void start(const Target& target) const = 0;        // fills the state of a parameter that has none
  virtual void update(std::vector<Target>& targets) = 0;
  virtual bool states_are_like_parameters() const { return false; }  // in sizes, the step apart
  // Every parameter's state is made when it is added, not at the first step.
  void start_all();
  NamedValues load_state(const Tensor& param, const Value& state, const std::string& where) const;

 private:
  NamedValues defaults_;
  std::vector<ParamGroup> groups_;
  std::unordered_map<const TensorImpl*, NamedValues> states_;
};

// Files as torch.save(optimizer.state_dict(), path) writes them.
void save_optimizer(const Optimizer& optimizer, const std::string& path);
void load_optimizer(Optimizer& optimizer, const std::string& path);

// ---- the optimizers -------------------------------------------------------------------------------------------------
// Options are PyTorch's, with its defaults. `fused`: 16-bit parameters are computed in float32 and rounded once a step, as
// PyTorch's fused form does; otherwise every intermediate result is rounded, as its default does. Other dtypes are computed alike.

// What an optimizer does element by element, all parameters in one pass.
class ElementwiseOptimizer : public Optimizer {
 protected:
  using Optimizer::Optimizer;
  void update(std::vector<Target>& targets) override;
  bool states_are_like_parameters() const override { return true; }
  struct Part;  // a parameter's arrays and numbers
  virtual void prepare(const Target& target, Part& part) const = 0;
};

struct SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false, fused = false;
};
class SGD final : public ElementwiseOptimizer {
 public:
  explicit SGD(ParamGroups params, const SGDOptions& options = {});
  std::string name() const override { return "SGD"; }

 private:
  void check(const NamedValues& options) const override;
  void start(const Target& target) const override;
  void prepare(const Target& target, Part& part) const override;
};

struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false, fused = false;
  bool decoupled_weight_decay = false;
};
class Adam : public ElementwiseOptimizer {
 public:
  explicit Adam(ParamGroups params, const AdamOptions& options = {});
  std::string name() const override { return "Adam"; }

 private:
  void check(const NamedValues& options) const override;
  void start(const Target& target) const override;
  void prepare(const Target& target, Part& part) const override;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 1e-2;
  bool amsgrad = false, maximize = false, fused = false;
};
class AdamW final : public Adam {
 public:
  explicit AdamW(ParamGroups params, const AdamWOptions& options = {});
  std::string name() const override { return "AdamW"; }
};

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false, fused = false;
};
class Adagrad final : public ElementwiseOptimizer {
 public:
  explicit Adagrad(ParamGroups params, const AdagradOptions& options = {});
  std::string name() const override { return "Adagrad"; }

 private:
  void check(const NamedValues& options) const override;
  void start(const Target& target) const override;
  void prepare(const Target& target, Part& part) const override;
};

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
class RMSprop final : public ElementwiseOptimizer {
 public:
  explicit RMSprop(ParamGroups params, const RMSpropOptions& options = {});
  std::string name() const override { return "RMSprop"; }

 private:
  void check(const NamedValues& options) const override;
  void start(const Target& target) const override;
  void prepare(const Target& target, Part& part) const override;
};

// torch.optim.Adafactor.
struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8;
  std::pair<std::optional<double>, double> eps = {std::nullopt, 1e-3};
  double d = 1.0, weight_decay = 0.0;
  bool maximize = false;
};
class Adafactor final : public Optimizer {
 public:
  explicit Adafactor(ParamGroups params, const AdafactorOptions& options = {});
  std::string name() const override { return "Adafactor"; }

 private:
  void check(const NamedValues& options) const override;
  void start(const Target& target) const override;
  void update(std::vector<Target>& targets) override;
};

// transformers.optimization.Adafactor: the one that T5 was trained with.
struct TransformersAdafactorOptions {
  std::optional<double> lr = std::nullopt;
  std::pair<double, double> eps = {1e-30, 1e-3};
  double clip_threshold = 1.0, decay_rate = -0.8;
  std::optional<double> beta1 = std::nullopt;
  double weight_decay = 0.0;
  bool scale_parameter = true, relative_step = true, warmup_init = false;
};
class TransformersAdafactor final : public Optimizer {
 public:
  explicit TransformersAdafactor(ParamGroups params, const TransformersAdafactorOptions& options = {});
  std::string name() const override { return "Adafactor"; }

 private:
  void check(const NamedValues& options) const override;
  void start(const Target& target) const override;
  void update(std::vector<Target>& targets) override;
};

}  // namespace calque
