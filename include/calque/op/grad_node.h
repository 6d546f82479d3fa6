// What autograd leaves behind: nodes that know how to go back, the edges between them, and what hangs on tensors. The engine that
// walks them is grad/autograd.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "calque/base/call_site.h"
#include "calque/base/thread_context.h"
#include "calque/op/gradient.h"
#include "calque/op/operator.h"

namespace calque {

class GradNode;

// Where the gradient of a tensor goes: into an input of a node.
struct GradEdge {
  Ref<GradNode> node;
  uint32_t input = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

// Functions that run when a pass comes by. Each may replace what it gets by giving another tensor; an undefined one leaves it.
struct GradHooks {
  struct OnTensor {
    uint64_t id;
    uint32_t input;
    std::function<Tensor(const Tensor&)> run;
  };
  struct Before {
    uint64_t id;
    std::function<TensorVector(const TensorVector& outputs)> run;  // nothing: as they are
  };
  struct After {
    uint64_t id;
    std::function<TensorVector(const TensorVector& inputs, const TensorVector& outputs)> run;
  };
  struct OnLeaf {
    uint64_t id;
    std::function<void(const Tensor& leaf)> run;
  };
  std::vector<OnTensor> on_tensors;
  std::vector<OnTensor> retaining;  // after the others: what retain_grad keeps
  std::vector<Before> before;
  std::vector<After> after;
  std::vector<OnLeaf> on_leaves;
  uint64_t next_id = 1;
};

class GradNode {
 public:
  explicit GradNode(uint64_t sequence);
  GradNode() : GradNode(next_sequence()) {}
  virtual ~GradNode() = default;
  GradNode(const GradNode&) = delete;
  GradNode& operator=(const GradNode&) = delete;

  virtual std::string name() const = 0;  // "MulBackward0"
  // The gradients of the inputs from those of the results; of what is not wanted, an undefined tensor.
  virtual TensorVector apply(TensorVector grads, const std::vector<bool>& wanted) = 0;
  virtual void release() {}  // forgets what is kept: the pass went by and nobody asked to retain it
  GradHooks& hooks();
  bool has_hooks() const { return hooks_ != nullptr; }
  const std::shared_ptr<GradHooks>& shared_hooks();

  std::vector<GradEdge> next;  // one for each input; none where no gradient is wanted
  std::vector<Meta> results;   // what the gradients that come in must look like; undefined: anything
  uint64_t sequence;           // later nodes go back first
  CallSite site;               // the line of the call

  static uint64_t next_sequence();
  static constexpr uint64_t last_sequence = ~uint64_t{0};  // of accumulation: as soon as it is ready

 private:
  template <class>
  friend class Ref;
  friend Ref<GradNode> accumulator_of(const Tensor& leaf);
  void destroy();  // without recursion, however long the chain
  std::atomic<uint32_t> refs_{1};
  GradNode* next_dying_ = nullptr;
  std::shared_ptr<GradHooks> hooks_;
};

std::string line_of(const CallSite& site);  // " called at FILE:LINE"; nothing where the line is not known
// The error of a pass that comes by when what the node kept is gone.
[[noreturn]] void refuse_second_pass(const GradNode& node);

// Takes what nodes keep and gives it back when it is needed: on disk, say, or computed again.
class SavedTensorHooks {
 public:
  virtual ~SavedTensorHooks() = default;
  virtual std::shared_ptr<void> pack(const Tensor& tensor) = 0;
  virtual Tensor unpack(const std::shared_ptr<void>& packed) = 0;
};

// A tensor that a node keeps.
class SavedTensor {
 public:
  SavedTensor() = default;
  // `own_result`: the tensor is the result of the node that keeps it, which may not own itself.
  SavedTensor(const Tensor& tensor, bool own_result, uint32_t result = 0);
  // UserError when it was written since.
  Tensor unpack(GradNode& keeper) const;
  bool is_result() const { return own_result_; }

 private:
  Tensor tensor_;
  std::shared_ptr<void> packed_;  // by these hooks
  std::shared_ptr<SavedTensorHooks> hooks_;
  GradEdge edge_;  // where the gradient of a packed tensor goes
  uint32_t version_ = 0;
  uint32_t result_ = 0;
  bool own_result_ = false;
};

// Of an operator's call.
class OperatorNode final : public GradNode {
 public:
  OperatorNode(const Operator& op, const OperatorGradient* gradient, const Values& args);
  std::string name() const override;
  TensorVector apply(TensorVector grads, const std::vector<bool>& wanted) override;
  void release() override;

  // Keeps what the formulas want. `written` stands for the first argument, which the call has overwritten.
  void keep_arguments(const Values& args, const Tensor& written);
  void keep_results(const Value& result);
  bool keeps_first() const;                    // does a formula that will run want the first argument?
  std::optional<uint32_t> first_edge() const;  // the first argument's

 private:
  friend class Gradients;
  struct Kept {
    uint8_t place;  // of the argument; results follow from `first_result` on
    SavedTensor tensor;
  };
  static constexpr uint8_t first_result = 64;
  struct Argument {
    std::vector<Meta> metas;  // of a tensor one, of a list all
    SymInt offset = 0;        // of a tensor in its storage
    uint32_t edge = 0;        // its first
    uint32_t edges = 0;
  };
  bool runs(const GradientFormula& formula) const;
  TensorVector kept(uint8_t place) const;

  const Operator& op_;
  const OperatorGradient* gradient_;
  Values arguments_;               // without tensors
  std::vector<Argument> tensors_;  // by argument
  std::vector<Kept> kept_;
  bool released_ = false;
};

// Where the gradient of a leaf is added up: grad(), or what a pass captures.
class AccumulateGrad final : public GradNode {
 public:
  explicit AccumulateGrad(Tensor leaf);
  ~AccumulateGrad() override;
  std::string name() const override { return "AccumulateGrad"; }
  TensorVector apply(TensorVector grads, const std::vector<bool>& wanted) override;
  const Tensor& leaf() const { return leaf_; }

 private:
  Tensor leaf_;
};

// What hangs on a tensor.
struct GradState final : TensorHistory {
  Tensor grad;
  Ref<GradNode> node;  // whose result it is; null for leaves
  uint32_t result = 0;
  GradNode* accumulator = nullptr;   // of a leaf, while a graph leads to it
  std::shared_ptr<GradHooks> hooks;  // of a leaf
  std::shared_ptr<GradHooks> after_accumulation;
  std::shared_ptr<Tensor> retained;  // the gradient of a result that was told to retain it
  std::mutex adding;
};

GradState& grad_state(const Tensor& t);  // made when it is first asked for
const GradState* find_grad_state(const Tensor& t);
// Whose result the tensor is, null for leaves. A view whose base was written says how it comes from the base now.
Ref<GradNode> grad_fn(const Tensor& t);
GradEdge gradient_edge(const Tensor& t);  // none when no gradient is wanted
// The same elements and history in another tensor. A node that keeps it does not own itself when `t` is written with the result.
Tensor with_same_history(const Tensor& t);
Ref<GradNode> accumulator_of(const Tensor& leaf);
// The tensor is the node's result from now on.
void set_history(const Tensor& t, const Ref<GradNode>& node, uint32_t result);
// The same of a tensor that was written; where it is a view its base follows, and with it the other views.
// `self_edge`: the edge of the node that leads to what was there before.
void rebase_history(const Tensor& t, const Ref<GradNode>& node, std::optional<uint32_t> self_edge);
Tensor forget_history(const Tensor& t);  // it is a leaf that wants no gradient; UserError for a view
// UserError when `self` must not be written while gradients are recorded.
void check_may_write(const std::string& op, const Tensor& self);
// A view as the operators make them.
void mark_view(const Tensor& view, const Tensor& of, ViewKind kind);

// While it lives, calls are not recorded.
class BelowAutograd : ContextScope<&ThreadContext::below_autograd> {
 public:
  explicit BelowAutograd(bool below = true) : ContextScope(below) {}
};

bool any_wants_grad(const Values& args);

// The call, with a node for what has to be gone back through. For calls of which an argument wants a gradient.
Value call_with_gradient(const Operator& op, const Values& args);

}  // namespace calque
