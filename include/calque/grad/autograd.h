// Gradients: what torch.autograd does.
//
//   Tensor w = randn({3}).set_requires_grad();
//   Tensor loss = (w * x).sum();
//   backward(loss);                      // adds into w.grad()
//   TensorVector g = grad({loss}, {w});  // gives the gradients and leaves w.grad() alone
//
// Calls on tensors that want a gradient leave nodes behind (op/grad_node.h); a pass walks them from the results to the leaves.
// Passes of several threads over one graph are independent of each other.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/op/grad_node.h"

namespace calque {

struct BackwardOptions {
  TensorVector gradients = {};  // of the outputs; may be left out, or undefined, for those with one element
  std::optional<bool> retain_graph = std::nullopt;  // unset: as create_graph
  bool create_graph = false;                        // the pass itself is recorded, for gradients of gradients
  TensorVector inputs = {};                         // only these leaves get their gradient; none: all
};
// Adds the gradients of the leaves that the outputs depend on into their grad().
void backward(const TensorVector& outputs, const BackwardOptions& options = {});
void backward(const Tensor& output, const BackwardOptions& options = {});

struct GradOptions {
  TensorVector grad_outputs = {};  // as BackwardOptions::gradients
  std::optional<bool> retain_graph = std::nullopt;
  bool create_graph = false;
  bool allow_unused = false;       // an input that no output depends on has an undefined gradient; else a UserError
  bool materialize_grads = false;  // zeros instead; implies allow_unused
};
// The gradients of the inputs, which may be any tensors on the way.
TensorVector grad(const TensorVector& outputs, const TensorVector& inputs, const GradOptions& options = {});

// ---- leaves -------------------------------------------------------------------------------------------------------
Tensor grad_of(const Tensor& leaf);                      // undefined until a pass has been there
void set_grad(const Tensor& leaf, const Tensor& value);  // undefined: none. UserError where it does not fit
void zero_grad(const TensorVector& leaves, bool set_to_none = true);
void retain_grad(const Tensor& t);  // of a tensor that is no leaf: a pass leaves its gradient in grad_of

// ---- hooks --------------------------------------------------------------------------------------------------------
// Takes a hook away again. Going out of scope does not.
class GradHookHandle {
 public:
  GradHookHandle() = default;
  explicit GradHookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  void remove() {
    if (remove_) remove_();
    remove_ = nullptr;
  }

 private:
  std::function<void()> remove_;
};
// Runs with the tensor's gradient; what it gives takes its place, unless it is undefined.
GradHookHandle register_hook(const Tensor& t, std::function<Tensor(const Tensor& grad)> hook);
// Runs when a pass has added into the leaf's grad().
GradHookHandle register_post_accumulate_grad_hook(const Tensor& leaf, std::function<void(const Tensor& leaf)> hook);
// Before the node goes back, with the gradients of its results, and after it, with those of its inputs and results. Nothing given:
// they stay.
GradHookHandle register_prehook(const Ref<GradNode>& node, std::function<TensorVector(const TensorVector& outputs)> hook);
GradHookHandle register_hook(const Ref<GradNode>& node,
                             std::function<TensorVector(const TensorVector& inputs, const TensorVector& outputs)> hook);

// ---- modes --------------------------------------------------------------------------------------------------------
class EnableGradGuard : GradModeScope {
 public:
  EnableGradGuard() : GradModeScope(true) {}
};

// What is kept for a backward pass goes through the hooks while the scope lives.
class SavedTensorHooksScope {
 public:
  explicit SavedTensorHooksScope(std::shared_ptr<SavedTensorHooks> hooks);
  ~SavedTensorHooksScope();
  SavedTensorHooksScope(const SavedTensorHooksScope&) = delete;
  SavedTensorHooksScope& operator=(const SavedTensorHooksScope&) = delete;

 private:
  std::shared_ptr<SavedTensorHooks> hooks_;
};
// Hooks that keep tensors in files of this folder until they are needed.
std::shared_ptr<SavedTensorHooks> save_on_disk(const std::string& folder);

// While it lives, a pass that fails names the line whose gradient failed, and a gradient that is NaN is an error.
class DetectAnomaly : ContextScope<&ThreadContext::detect_anomaly> {
 public:
  explicit DetectAnomaly(bool check_nan = true)
      : ContextScope(check_nan ? ThreadSwitches::Anomaly::nan_too : ThreadSwitches::Anomaly::named) {}
};

// ---- functions with a gradient of the user's ------------------------------------------------------------------------
//
//   struct Cube : GradFunction {
//     TensorVector forward(const TensorVector& x) override { save_for_backward({x[0]}); return {x[0] * x[0] * x[0]}; }
//     TensorVector backward(const TensorVector& g) override { return {g[0] * 3 * saved_tensors()[0] * saved_tensors()[0]}; }
//   };
//   Tensor y = apply_function(std::make_shared<Cube>(), {x})[0];
class GradFunction {
 public:
  virtual ~GradFunction() = default;
  virtual std::string name() const { return "Function"; }
  virtual TensorVector forward(const TensorVector& inputs) = 0;
  // One gradient for each input; undefined ones where there is none.
  virtual TensorVector backward(const TensorVector& grad_outputs) = 0;

  // For `forward` to say.
  void save_for_backward(TensorVector tensors) { to_save_ = std::move(tensors); }
  void mark_dirty(TensorVector inputs) { dirty_ = std::move(inputs); }                    // they were written
  void mark_non_differentiable(TensorVector outputs) { constant_ = std::move(outputs); }  // they have no gradient
  void set_materialize_grads(bool value) { materialize_ = value; }                        // undefined gradients become zeros
  // For `backward` to ask.
  TensorVector saved_tensors() const;
  bool needs_input_grad(size_t i) const { return i < needs_.size() && needs_[i]; }

 private:
  friend class FunctionNode;
  friend TensorVector apply_function(const std::shared_ptr<GradFunction>& function, const TensorVector& inputs);
  TensorVector to_save_, dirty_, constant_;
  bool materialize_ = true;
  std::vector<bool> needs_;
  class FunctionNode* node_ = nullptr;
};
TensorVector apply_function(const std::shared_ptr<GradFunction>& function, const TensorVector& inputs);
// The name of a GradFunction through which these tensors' gradients go; "" where there is none.
std::string function_behind(const TensorVector& tensors);

}  // namespace calque
