// Functions whose gradient their user wrote.
#include <algorithm>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/grad/autograd.h"
#include "calque/op/aten/zeros.h"
#include "calque/op/mode.h"

namespace calque {

class FunctionNode final : public GradNode {
 public:
  FunctionNode(std::shared_ptr<GradFunction> function, const TensorVector& inputs) : function_(std::move(function)) {
    for (const Tensor& t : inputs) next.push_back(gradient_edge(t));
  }
  std::string name() const override { return function_->name() + "Backward"; }

  void keep(const TensorVector& tensors, const TensorVector& outputs) {
    for (const Tensor& t : tensors) {
      const auto own = std::find_if(outputs.begin(), outputs.end(),
                                    [&](const Tensor& o) { return o.defined() && t.defined() && o.is_same(t); });
      kept_.emplace_back(t, own != outputs.end(), static_cast<uint32_t>(own - outputs.begin()));
    }
  }

  TensorVector apply(TensorVector grads, const std::vector<bool>&) override {
    if (released_) refuse_second_pass(*this);
    if (function_->materialize_)
      for (size_t i = 0; i < grads.size(); ++i)
        if (!grads[i].defined() && !results[i].undefined) {
          const Meta& m = results[i];
          grads[i] = zeros(m.sizes, m.dtype, Layout::strided, m.device);
        }
    function_->node_ = this;
    TensorVector given = function_->backward(grads);
    if (given.size() != next.size())
      throw UserError(name() + " returned an incorrect number of gradients (expected " + std::to_string(next.size()) +
                      ", got " + std::to_string(given.size()) + ")");
    return given;
  }

  TensorVector saved() {
    if (released_) throw UserError("saved_tensors of " + name() + " have been freed: a pass went by without retain_graph");
    TensorVector out;
    for (const SavedTensor& t : kept_) out.push_back(t.unpack(*this));
    return out;
  }

  void release() override {
    released_ = released_ || !kept_.empty();
    const std::vector<SavedTensor> gone = std::move(kept_);
    kept_.clear();
  }

 private:
  friend TensorVector apply_function(const std::shared_ptr<GradFunction>& function, const TensorVector& inputs);
  friend std::string function_behind(const TensorVector& tensors);
  std::shared_ptr<GradFunction> function_;
  std::vector<SavedTensor> kept_;
  bool released_ = false;
};

TensorVector GradFunction::saved_tensors() const {
  if (!node_) throw UserError("saved_tensors: there are none before the function was called");
  return node_->saved();
}

TensorVector apply_function(const std::shared_ptr<GradFunction>& function, const TensorVector& inputs) {
  const auto is_in = [](const TensorVector& list, const Tensor& t) {
    return std::any_of(list.begin(), list.end(), [&](const Tensor& x) { return x.defined() && x.is_same(t); });
  };
  const bool records = records_gradients() && std::any_of(inputs.begin(), inputs.end(),
                                                          [](const Tensor& t) { return t.defined() && t.requires_grad(); });
  function->needs_.clear();
  for (const Tensor& t : inputs) function->needs_.push_back(records && t.defined() && t.requires_grad());
  Ref<GradNode> node;
  FunctionNode* made = nullptr;
  if (records) {
    made = new FunctionNode(function, inputs);
    node = Ref<GradNode>(made);
  }
  TensorVector outputs;
  {
    const NoGradGuard off;
    outputs = function->forward(inputs);
  }
  if (!records) {
    function->to_save_.clear();
    return outputs;
  }
  function->node_ = made;
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    Tensor& t = outputs[i];
    const bool smooth = t.defined() && (is_floating(t.dtype()) || is_complex(t.dtype())) && !is_in(function->constant_, t);
    made->results.push_back(smooth ? t.meta() : undefined_meta());
    if (!smooth) continue;
    if (is_in(function->dirty_, t)) {
      check_may_write(function->name(), t);
      const auto at =
          std::find_if(inputs.begin(), inputs.end(), [&](const Tensor& x) { return x.defined() && x.is_same(t); });
      rebase_history(t, node, at == inputs.end() ? std::nullopt : std::optional(static_cast<uint32_t>(at - inputs.begin())));
      continue;
    }
    // An input that is given back is another tensor, with a history of its own.
    if (is_in(inputs, t)) {
      const NoGradGuard off;
      t = t.view_as(t);
    }
    set_history(t, node, i);
  }
  made->keep(function->to_save_, outputs);
  function->to_save_.clear();
  function->dirty_.clear();
  function->constant_.clear();
  return outputs;
}

std::string function_behind(const TensorVector& tensors) {
  std::vector<const GradNode*> waiting;
  std::unordered_set<const GradNode*> seen;
  const auto visit = [&](const Ref<GradNode>& node) {
    if (node && seen.insert(node.get()).second) waiting.push_back(node.get());
  };
  for (const Tensor& t : tensors)
    if (t.defined() && t.requires_grad()) visit(grad_fn(t));
  while (!waiting.empty()) {
    const GradNode* node = waiting.back();
    waiting.pop_back();
    if (const auto* function = dynamic_cast<const FunctionNode*>(node)) return function->function_->name();
    for (const GradEdge& e : node->next) visit(e.node);
  }
  return {};
}

}  // namespace calque
