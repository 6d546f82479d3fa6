// Recording: calls leave nodes behind, writes change the history of what they write.
#include <algorithm>
#include <optional>

#include "calque/base/error.h"
#include "calque/op/grad_node.h"
#include "calque/op/mode.h"
#include "op/well_known.h"

namespace calque {

namespace {

bool has_gradient_dtype(DType d) { return is_floating(d) || is_complex(d); }

bool wants_grad(const Value& v) {
  if (v.is_tensor()) return v.to_tensor().impl().wants_grad();
  return v.is_sequence() && any_wants_grad(v.to_items());
}

Tensor tensor_of(const Ref<TensorImpl>& impl) { return Tensor(TensorBase(impl)); }

Value geometry_value(const SymInts& numbers) { return list(Values(numbers.begin(), numbers.end())); }

// The node of as_strided, which makes any view from its base.
Ref<GradNode> node_from_base(const Tensor& view, const Tensor& base) {
  const Values args{base, geometry_value(view.impl().sizes), geometry_value(view.impl().strides), view.sym_storage_offset()};
  Ref<GradNode> node(new OperatorNode(ops().as_strided, ops().as_strided.gradient(), args));
  node->results = {view.meta()};
  return node;
}

// Of a base of which a view was written: the gradient goes through the call that wrote where the view is, and past it elsewhere.
class CopySlices final : public GradNode {
 public:
  // `self_edge`: which edge of the call leads to what it wrote; none where the old values play no part.
  CopySlices(const Tensor& base, const Tensor& view, Ref<GradNode> call, std::optional<uint32_t> self_edge)
      : call_(std::move(call)),
        self_edge_(self_edge),
        base_(base.meta()),
        view_(view.meta()),
        base_offset_(base.sym_storage_offset()),
        view_offset_(view.sym_storage_offset()) {
    results = {base.meta()};
    next = call_->next;
    if (!self_edge_) next.emplace_back();
    whole_edge_ = self_edge_.value_or(static_cast<uint32_t>(next.size() - 1));
    next[whole_edge_] = gradient_edge(base);
    site = call_->site;
  }

  std::string name() const override { return "CopySlices"; }

  TensorVector apply(TensorVector grads, const std::vector<bool>& wanted) override {
    TensorVector out(next.size());
    if (!grads[0].defined()) return out;
    if (!call_) refuse_second_pass(*this);
    const Tensor whole = grads[0].new_empty_strided(base_.sizes, base_.strides);
    whole.copy_(grads[0]);
    const Tensor slice = whole.as_strided(view_.sizes, view_.strides, view_offset_ - base_offset_);
    std::vector<bool> of_call = wanted;
    of_call.resize(call_->next.size());
    TensorVector given = call_->apply({slice.clone()}, of_call);
    given.resize(next.size());
    for (size_t i = 0; i < next.size(); ++i)
      if (i != whole_edge_) out[i] = given[i];
    if (!wanted[whole_edge_]) return out;
    // Where nothing of the old values went into the new ones, they have no gradient.
    const Tensor& of_self = given[whole_edge_];
    if (self_edge_ && of_self.defined())
      slice.copy_(of_self);
    else
      slice.zero_();
    out[whole_edge_] = whole;
    return out;
  }

  void release() override { call_ = {}; }

 private:
  Ref<GradNode> call_;
  std::optional<uint32_t> self_edge_;
  uint32_t whole_edge_ = 0;
  Meta base_;
  Meta view_;
  SymInt base_offset_;
  SymInt view_offset_;
};

}  // namespace

bool any_wants_grad(const Values& args) { return std::any_of(args.begin(), args.end(), wants_grad); }

void mark_view(const Tensor& view, const Tensor& of, ViewKind kind) {
  TensorImpl& impl = view.impl();
  TensorImpl& from = of.impl();
  impl.base = from.base ? from.base : Ref<TensorImpl>::share(&from);
  impl.has_base = true;
  impl.view_kind = from.view_kind == ViewKind::plain ? kind : from.view_kind;
  impl.view_version = impl.storage->version();
  impl.is_view = true;
}

Ref<GradNode> grad_fn(const Tensor& t) {
  TensorImpl& impl = t.impl();
  if (!impl.history && !impl.base) return {};
  const GradState* state = find_grad_state(t);
  const bool has_node = state && state->node;
  if (impl.base && impl.view_kind == ViewKind::plain && (has_node || impl.base->requires_grad) &&
      impl.view_version != impl.storage->version()) {
    const Tensor base = tensor_of(impl.base);
    if (gradient_edge(base)) set_history(t, node_from_base(t, base), 0);
    state = find_grad_state(t);
  }
  return state ? state->node : Ref<GradNode>();
}

void rebase_history(const Tensor& t, const Ref<GradNode>& node, std::optional<uint32_t> self_edge) {
  TensorImpl& impl = t.impl();
  if (!impl.base) return set_history(t, node, 0);
  const Tensor base = tensor_of(impl.base);
  set_history(base, Ref<GradNode>(new CopySlices(base, t, node, self_edge)), 0);
  set_history(t, node_from_base(t, base), 0);
}

void check_may_write(const std::string& op, const Tensor& self) {
  const TensorImpl& impl = self.impl();
  if (!impl.wants_grad() && !impl.base) return;
  if (impl.base) {
    if (impl.base->requires_grad && impl.base->is_leaf)
      throw UserError(
          op +
          ": a view of a leaf tensor that requires grad is being used in an in-place operation; use a no-grad scope "
          "or clone() the leaf first");
    if (impl.view_kind == ViewKind::no_grad)
      throw UserError(op +
                      ": a view was created in no_grad mode and is being modified in place with grad mode enabled. Move "
                      "both into the no-grad scope, or both outside of it");
    if (impl.view_kind == ViewKind::one_of_many)
      throw UserError(
          op +
          ": this view is the output of a function that returns multiple views. Such functions do not allow the "
          "output views to be modified in place; make the views one by one (select, narrow), or clone() this one");
    return;
  }
  if (impl.is_leaf)
    throw UserError(op +
                    ": a leaf tensor that requires grad is being used in an in-place operation; use a no-grad scope or "
                    "clone() it");
}

namespace {

// Gives the results their history. Whether there is any result with one.
bool attach(const Ref<GradNode>& node, const Operator& op, const OperatorGradient* gradient, const Values& args,
            const Value& result) {
  TensorVector results;
  if (result.is_sequence())
    for (const Value& item : result.to_items()) results.push_back(item.is_tensor() ? item.to_tensor() : Tensor());
  else
    results.push_back(result.is_tensor() ? result.to_tensor() : Tensor());
  const bool is_view = op.form() == Operator::Form::view || op.has_tag(Tag::view);
  const auto is_argument = [&](const Tensor& t) {
    return std::any_of(args.begin(), args.end(), [&](const Value& v) { return v.is_tensor() && v.to_tensor().is_same(t); });
  };
  const ViewKind kind = result.is_sequence() ? ViewKind::one_of_many : ViewKind::plain;
  bool any = false;
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& t = results[i];
    const bool smooth = t.defined() && has_gradient_dtype(t.dtype()) && !is_argument(t) &&
                        !(gradient && i < 64 && (gradient->constant_results >> i & 1U) != 0);
    if (t.defined() && is_view && args[0].is_tensor() && !t.is_same(args[0].to_tensor()) &&
        t.storage().get() == args[0].to_tensor().storage().get())
      mark_view(t, args[0].to_tensor(), kind);
    node->results.push_back(smooth ? t.meta() : undefined_meta());
    any = any || smooth;
  }
  if (!any) return false;
  for (size_t i = 0; i < results.size(); ++i)
    if (!node->results[i].undefined) set_history(results[i], node, static_cast<uint32_t>(i));
  return true;
}

// Does the call write an argument besides the first? Such a one is kept as it is then: the noise of a random slope.
bool writes_arguments(const Operator& op) {
  const auto& arguments = op.schema().arguments;
  return arguments.size() > 1 &&
         std::any_of(arguments.begin() + 1, arguments.end(), [](const auto& a) { return a.is_written(); });
}

Value call_that_writes(const Operator& op, const OperatorGradient* gradient, const Values& args) {
  const Tensor& self = args[0].to_tensor();
  check_may_write(op.name(), self);
  if (!has_gradient_dtype(self.dtype())) return call_next(op, args);
  auto* call = new OperatorNode(op, gradient, args);
  const Ref<GradNode> node(call);
  const bool keeps = std::any_of(args.begin() + 1, args.end(),
                                 [&](const Value& v) { return v.is_tensor() && v.to_tensor().is_same(self); });
  Tensor before;
  if (call->keeps_first() || keeps) {
    const BelowAutograd recorded(false);
    before = self.clone();
  }
  const bool writes_another = writes_arguments(op);
  if (!writes_another) call->keep_arguments(args, before);
  Value result = call_next(op, args);
  if (writes_another) call->keep_arguments(args, before);
  node->results = {self.meta()};
  rebase_history(self, node, call->first_edge());
  call->keep_results(self);
  return result;
}

}  // namespace

Value call_with_gradient(const Operator& op, const Values& args) {
  const BelowAutograd below;
  if (op.has_tag(Tag::out))
    throw UserError(op.name() +
                    ": functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                    "requires grad");
  const OperatorGradient* gradient = op.gradient();
  // A comparison has formulas for its in-place form alone: the old values play no part in the new ones.
  const bool is_constant = gradient && (gradient->formulas.empty() ||
                                        (op.schema().returns.size() == 1 && gradient->constant_results == 1 && !op.base()));
  if (is_constant) return call_next(op, args);
  if (op.has_tag(Tag::in_place)) return call_that_writes(op, gradient, args);
  auto* made = new OperatorNode(op, gradient, args);
  const Ref<GradNode> node(made);
  if (gradient && std::none_of(node->next.begin(), node->next.end(), [](const GradEdge& e) { return static_cast<bool>(e); }))
    return call_next(op, args);
  const bool writes_one = writes_arguments(op);
  if (!writes_one) made->keep_arguments(args, {});
  Value result = call_next(op, args);
  if (writes_one) made->keep_arguments(args, {});
  if (attach(node, op, gradient, args, result)) made->keep_results(result);
  return result;
}

}  // namespace calque
