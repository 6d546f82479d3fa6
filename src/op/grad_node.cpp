#include "calque/op/grad_node.h"

#include <algorithm>

#include "calque/base/error.h"
#include "calque/op/mode.h"
#include "calque/op/owner.h"
#include "calque/tensor/print.h"
#include "op/well_known.h"

namespace calque {

// ---- nodes ----------------------------------------------------------------------------------------------------------

GradNode::GradNode(uint64_t sequence) : sequence(sequence), site(call_site()) {}

uint64_t GradNode::next_sequence() { return thread_context().grad_nodes++; }

std::string line_of(const CallSite& site) {
  if (site.where.line() == 0) return "";
  return std::string(" called at ") + site.where.file_name() + ":" + std::to_string(site.where.line());
}

void refuse_second_pass(const GradNode& node) {
  throw UserError("Trying to backward through the graph a second time: what " + node.name() + line_of(node.site) +
                  " kept has been freed by the first pass. Say retain_graph where you call backward or grad the first time");
}

GradHooks& GradNode::hooks() { return *shared_hooks(); }

const std::shared_ptr<GradHooks>& GradNode::shared_hooks() {
  if (!hooks_) hooks_ = std::make_shared<GradHooks>();
  return hooks_;
}

// A node owns what comes before it, through its edges and through the tensors that it keeps. What dies with a node that is being
// destroyed waits until it is gone.
void GradNode::destroy() {
  ThreadContext& context = thread_context();
  next_dying_ = context.dying_nodes;
  context.dying_nodes = this;
  if (context.nodes_die) return;
  context.nodes_die = true;
  while (GradNode* node = context.dying_nodes) {
    context.dying_nodes = node->next_dying_;
    delete node;
  }
  context.nodes_die = false;
}

// ---- what hangs on tensors -----------------------------------------------------------------------------------------

GradState& grad_state(const Tensor& t) {
  std::unique_ptr<TensorHistory>& history = t.impl().history;
  if (!history) history = std::make_unique<GradState>();
  return static_cast<GradState&>(*history);
}

const GradState* find_grad_state(const Tensor& t) { return static_cast<const GradState*>(t.impl().history.get()); }

namespace {

std::mutex& accumulators() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

AccumulateGrad::AccumulateGrad(Tensor leaf) : GradNode(last_sequence), leaf_(std::move(leaf)) { results = {leaf_.meta()}; }

AccumulateGrad::~AccumulateGrad() {
  const std::lock_guard lock(accumulators());
  if (GradState& state = grad_state(leaf_); state.accumulator == this) state.accumulator = nullptr;
}

Ref<GradNode> accumulator_of(const Tensor& leaf) {
  const std::lock_guard lock(accumulators());
  GradState& state = grad_state(leaf);
  if (GradNode* made = state.accumulator) {
    // It may be about to die: then its count is 0 already.
    for (uint32_t count = made->refs_.load(std::memory_order_relaxed); count != 0;)
      if (made->refs_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) return Ref<GradNode>(made);
  }
  state.accumulator = new AccumulateGrad(leaf);
  return Ref<GradNode>(state.accumulator);
}

GradEdge gradient_edge(const Tensor& t) {
  if (!t.defined()) return {};
  if (Ref<GradNode> node = grad_fn(t)) return {std::move(node), find_grad_state(t)->result};
  if (t.requires_grad()) return {accumulator_of(t), 0};
  return {};
}

namespace {

std::string name_of_grad_fn(const TensorBase& t) {
  const Ref<GradNode> node = grad_fn(Tensor(t));
  return node ? node->name() : std::string();
}

}  // namespace

void set_history(const Tensor& t, const Ref<GradNode>& node, uint32_t result) {
  static const bool is_told = (set_grad_fn_namer(name_of_grad_fn), true);
  static_cast<void>(is_told);
  GradState& state = grad_state(t);
  state.node = node;
  state.result = result;
  TensorImpl& impl = t.impl();
  impl.requires_grad = true;
  impl.is_leaf = false;
  impl.view_version = impl.storage->version();
}

Tensor forget_history(const Tensor& t) {
  TensorImpl& impl = t.impl();
  if (impl.base && impl.wants_grad()) throw UserError("detach_: can't detach views in place; use detach() instead");
  impl.requires_grad = false;
  impl.is_leaf = true;
  if (impl.history) {
    GradState& state = grad_state(t);
    state.node = {};
    state.result = 0;
  }
  return t;
}

namespace {

bool same_strides(const Tensor& a, const Tensor& b) { return str(a.sym_strides()) == str(b.sym_strides()); }

// A gradient lies in memory as its leaf does.
Tensor laid_out_as(const Tensor& leaf, const Tensor& g) {
  const SymIntList sizes = leaf.sym_sizes(), strides = leaf.sym_strides();
  return g.new_empty_strided(sizes, strides).copy_(g);
}

}  // namespace

TensorVector AccumulateGrad::apply(TensorVector grads, const std::vector<bool>&) {
  if (!grads[0].defined()) return {};
  GradState& state = grad_state(leaf_);
  {
    const std::lock_guard lock(state.adding);
    Tensor g = std::move(grads[0]);
    if (!state.grad.defined()) {
      // A gradient that nobody else holds becomes the leaf's own.
      const bool alone = g.use_count() == 1 && g.storage().use_count() == 1 && !g.storage()->is_borrowed();
      const bool fits = !leaf_.is_non_overlapping_and_dense() || same_strides(g, leaf_);
      if (!grad_enabled() && ((alone && fits) || g.is_fake()))
        state.grad = g;
      else if (fits || g.is_fake())
        state.grad = g.clone();
      else
        state.grad = laid_out_as(leaf_, g);
    } else if (!grad_enabled()) {
      state.grad.add_(g);
    } else {
      state.grad = state.grad.add(g);
    }
  }
  if (state.after_accumulation)
    for (const GradHooks::OnLeaf& hook : std::vector<GradHooks::OnLeaf>(state.after_accumulation->on_leaves))
      hook.run(leaf_);
  return {};
}

// ---- kept tensors --------------------------------------------------------------------------------------------------

namespace {

// The same elements without a history.
Tensor bare(const Tensor& t) {
  const TensorImpl& from = t.impl();
  Tensor out(Ref<TensorImpl>(new TensorImpl(from.storage, t.meta(), from.offset)));
  TensorImpl& to = out.impl();
  to.take_layout(from);
  to.special = from.special;
  to.opaque = from.opaque;
  to.wrapped_number = from.wrapped_number;
  to.is_view = from.is_view;
  to.extra = extra_for_copy(from);
  return out;
}

}  // namespace

Tensor with_same_history(const Tensor& t) {
  Tensor out = bare(t);
  if (const GradEdge edge = gradient_edge(t)) set_history(out, edge.node, edge.input);
  return out;
}

// The same under a trace, which has a call for it, as PyTorch's traces do.
static Tensor without_history(const Tensor& t) { return modes_active() ? t.detach() : bare(t); }

SavedTensor::SavedTensor(const Tensor& tensor, bool own_result, uint32_t result) : result_(result), own_result_(own_result) {
  if (!tensor.defined()) return;
  version_ = tensor.version();
  const auto& hooks = thread_context().saved_hooks;
  if (!hooks.empty() && !tensor.impl().wrapped_number) {  // numbers are kept as they are
    hooks_ = *hooks[hooks.size() - 1];
    if (hooks_) {
      if (!own_result) edge_ = gradient_edge(tensor);
      // A trace has no call for it, and knows the tensor itself alone.
      packed_ = hooks_->pack(own_result && !modes_active() ? bare(tensor) : tensor);
      return;
    }
  }
  tensor_ = own_result ? without_history(tensor) : tensor;
}

Tensor SavedTensor::unpack(GradNode& keeper) const {
  Tensor tensor = hooks_ ? hooks_->unpack(packed_) : tensor_;
  if (!tensor.defined()) return tensor;
  if (!hooks_ && tensor.version() != version_) {
    std::string what = std::string(calque::name(tensor.dtype())) + " " + str(tensor.sym_sizes());
    std::string maker = own_result_ ? keeper.name() : "";
    if (!own_result_)
      if (const GradState* state = find_grad_state(tensor); state && state->node)
        maker = state->node->name() + line_of(state->node->site);
    throw UserError(
        "one of the variables needed for gradient computation has been modified by an in-place operation: a tensor " + what +
        (maker.empty() ? "" : ", which is output " + std::to_string(result_) + " of " + maker) +
        ", kept for the gradient of " + keeper.name() + line_of(keeper.site) + ", is at version " +
        std::to_string(tensor.version()) + "; expected version " + std::to_string(version_) +
        " instead. Hint: clone() it before it is written, or write the operation without the underscore");
  }
  if (!own_result_ && !edge_) return tensor;
  Tensor out;
  {
    const BelowAutograd below;
    out = without_history(tensor);
  }
  if (own_result_)
    set_history(out, Ref<GradNode>::share(&keeper), result_);
  else
    set_history(out, edge_.node, edge_.input);
  return out;
}

// ---- nodes of operators --------------------------------------------------------------------------------------------

namespace {

Value without_tensors(const Value& v) {
  if (v.is_tensor()) return {};
  if (!v.is_sequence()) return v;
  const Values& items = v.to_items();
  if (std::none_of(items.begin(), items.end(), [](const Value& item) { return item.is_tensor(); })) return v;
  return {};
}

bool in(uint64_t mask, size_t place) { return place < 64 && (mask >> place & 1U) != 0; }

}  // namespace

OperatorNode::OperatorNode(const Operator& op, const OperatorGradient* gradient, const Values& args)
    : op_(op), gradient_(gradient), tensors_(args.size()) {
  arguments_.reserve(args.size());
  for (const Value& v : args) arguments_.push_back(without_tensors(v));
  const auto tensors_of = [](const Value& v) {
    TensorVector out;
    if (v.is_tensor()) out.push_back(v.to_tensor());
    if (v.is_sequence())
      for (const Value& item : v.to_items())
        if (item.is_tensor() || item.is_none()) out.push_back(item.to_tensor_or_none());
    return out;
  };
  const auto metas_of = [](const TensorVector& tensors) {
    std::vector<Meta> metas;
    for (const Tensor& t : tensors) metas.push_back(t.defined() ? t.meta() : undefined_meta());
    return metas;
  };
  const auto add_edges = [&](size_t place) {
    const TensorVector tensors = tensors_of(args[place]);
    tensors_[place].edge = static_cast<uint32_t>(next.size());
    tensors_[place].edges = static_cast<uint32_t>(tensors.size());
    for (const Tensor& t : tensors) next.push_back(gradient_edge(t));
  };
  for (size_t i = 0; i < args.size(); ++i) {
    tensors_[i].metas = metas_of(tensors_of(args[i]));
    if (args[i].is_tensor()) tensors_[i].offset = args[i].to_tensor().sym_storage_offset();
  }
  uint64_t differentiated = 0;
  if (gradient_)
    for (const GradientFormula& formula : gradient_->formulas)
      for (const uint8_t place : formula.of) differentiated |= uint64_t{1} << place;
  // In the order of the arguments, whichever order the formulas run in.
  for (size_t i = 0; i < args.size(); ++i)
    if (!gradient_ || in(differentiated, i)) add_edges(i);
}

std::string OperatorNode::name() const { return gradient_ ? gradient_->node_name : "NotImplemented"; }

bool OperatorNode::runs(const GradientFormula& formula) const {
  return std::any_of(formula.of.begin(), formula.of.end(), [&](uint8_t place) {
    const Argument& argument = tensors_[place];
    return std::any_of(next.begin() + argument.edge, next.begin() + argument.edge + argument.edges,
                       [](const GradEdge& e) { return static_cast<bool>(e); });
  });
}

bool OperatorNode::keeps_first() const {
  return gradient_ && std::any_of(gradient_->formulas.begin(), gradient_->formulas.end(),
                                  [&](const GradientFormula& f) { return in(f.kept_arguments, 0) && runs(f); });
}

std::optional<uint32_t> OperatorNode::first_edge() const {
  if (tensors_.empty() || tensors_[0].edges != 1) return std::nullopt;
  return tensors_[0].edge;
}

void OperatorNode::keep_arguments(const Values& args, const Tensor& written) {
  if (!gradient_) return;
  uint64_t kept = 0;
  for (const GradientFormula& formula : gradient_->formulas)
    if (runs(formula)) kept |= formula.kept_arguments;
  const Tensor first = written.defined() ? args[0].to_tensor() : Tensor();
  const auto keep = [&](size_t place, const Tensor& t) {
    const bool overwritten = written.defined() && t.defined() && t.is_same(first);
    kept_.push_back({static_cast<uint8_t>(place), SavedTensor(overwritten ? written : t, false)});
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (!in(kept, i)) continue;
    if (args[i].is_sequence())
      for (const Value& item : args[i].to_items()) keep(i, item.to_tensor_or_none());
    else
      keep(i, args[i].to_tensor_or_none());
  }
}

void OperatorNode::keep_results(const Value& result) {
  if (!gradient_) return;
  uint64_t kept = 0;
  for (const GradientFormula& formula : gradient_->formulas)
    if (runs(formula)) kept |= formula.kept_results;
  const auto keep = [&](size_t i, const Tensor& t) {
    if (!in(kept, i)) return;
    // What is no result of this node in the sense of gradients (indices) is kept as it is.
    const bool own = t.defined() && i < results.size() && !results[i].undefined;
    kept_.push_back({static_cast<uint8_t>(first_result + i), SavedTensor(t, own, static_cast<uint32_t>(i))});
  };
  if (result.is_sequence())
    for (size_t i = 0; i < result.to_items().size(); ++i) keep(i, result.to_items()[i].to_tensor_or_none());
  else
    keep(0, result.to_tensor_or_none());
}

TensorVector OperatorNode::kept(uint8_t place) const {
  TensorVector out;
  for (const Kept& k : kept_)
    if (k.place == place) out.push_back(k.tensor.unpack(const_cast<OperatorNode&>(*this)));
  return out;
}

TensorVector OperatorNode::apply(TensorVector grads, const std::vector<bool>& wanted) {
  if (!gradient_)
    throw UserError(ErrorKind::unsupported_operator,
                    "the gradient of " + op_.name() + line_of(site) +
                        " is not implemented; give its stanza a gradient, or call it on a detached tensor");
  TensorVector out(next.size());
  if (std::none_of(grads.begin(), grads.end(), [](const Tensor& g) { return g.defined(); })) return out;
  const Gradients call(*this, grads, wanted);
  for (const GradientFormula& formula : gradient_->formulas) {
    const auto is_wanted = [&](uint8_t place) {
      const Argument& a = tensors_[place];
      return std::any_of(wanted.begin() + a.edge, wanted.begin() + a.edge + a.edges, [](bool w) { return w; });
    };
    if (std::none_of(formula.of.begin(), formula.of.end(), is_wanted)) continue;
    if (released_ && (formula.kept_arguments | formula.kept_results) != 0) refuse_second_pass(*this);
    TensorVector given = formula.one ? TensorVector{formula.one(call)} : formula.several(call);
    size_t at = 0;
    for (const uint8_t place : formula.of) {
      // An argument that is None has no edge, but a place in what the formula gives.
      if (tensors_[place].edges == 0 && !op_.schema().arguments[place].type.list) ++at;
      for (uint32_t i = 0; i < tensors_[place].edges && at < given.size(); ++i, ++at)
        if (wanted[tensors_[place].edge + i]) out[tensors_[place].edge + i] = std::move(given[at]);
    }
  }
  return out;
}

void OperatorNode::release() {
  if (!kept_.empty()) released_ = true;
  const std::vector<Kept> gone = std::move(kept_);
  kept_.clear();
}

// ---- what formulas see ---------------------------------------------------------------------------------------------

size_t Gradients::index_of(std::string_view name) const {
  const auto& arguments = node_->op_.schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == name) return i;
  throw InternalError("the gradient of " + node_->op_.name() + " asks for '" + std::string(name) +
                      "', which is no argument");
}

Tensor Gradients::grad_or_zeros(size_t i) const {
  if (grad(i).defined()) return grad(i);
  const Meta& m = node_->results[i];
  static const Operator& zeros = get_operator("aten::zeros");
  Values sizes(m.sizes.begin(), m.sizes.end());
  return call(zeros, {calque::list(std::move(sizes))},
              {{"dtype", m.dtype}, {"layout", Layout::strided}, {"device", m.device}})
      .to_tensor();
}

TensorVector Gradients::list(std::string_view name) const { return node_->kept(static_cast<uint8_t>(index_of(name))); }

Tensor Gradients::operator[](std::string_view name) const {
  uint8_t place = 0;
  if (name.starts_with("result"))
    place = static_cast<uint8_t>(OperatorNode::first_result + (name.size() > 6 ? static_cast<size_t>(name[6] - '0') : 0));
  else
    place = static_cast<uint8_t>(index_of(name));
  for (const OperatorNode::Kept& k : node_->kept_)
    if (k.place == place) return k.tensor.unpack(*node_);
  throw InternalError("the gradient of " + node_->op_.name() + " asks for '" + std::string(name) +
                      "', which it does not keep");
}

bool Gradients::has_argument(std::string_view name) const { return node_->op_.schema().find_argument(name).has_value(); }

const Value& Gradients::argument(std::string_view name) const { return node_->arguments_[index_of(name)]; }

SymInts Gradients::sym_ints(std::string_view name) const {
  SymInts out;
  const Value& v = argument(name);
  if (v.is_sequence())
    for (const Value& item : v.to_items()) out.push_back(item.to_sym_int());
  else if (!v.is_none())
    out.push_back(v.to_sym_int());
  return out;
}

std::vector<int64_t> Gradients::integers(std::string_view name) const {
  std::vector<int64_t> out;
  const Value& v = argument(name);
  if (v.is_sequence())
    for (const Value& item : v.to_items()) out.push_back(item.to_int());
  else if (!v.is_none())
    out.push_back(v.to_int());
  return out;
}

const Meta& Gradients::meta(std::string_view name) const {
  static const Meta none = undefined_meta();
  const std::vector<Meta>& all = metas(name);
  return all.empty() ? none : all[0];
}

const std::vector<Meta>& Gradients::metas(std::string_view name) const { return node_->tensors_[index_of(name)].metas; }

SymInt Gradients::storage_offset(std::string_view name) const { return node_->tensors_[index_of(name)].offset; }

const Meta& Gradients::result_meta(size_t i) const { return node_->results[i]; }

bool Gradients::needs(std::string_view name) const {
  const OperatorNode::Argument& a = node_->tensors_[index_of(name)];
  return std::any_of(wanted_->begin() + a.edge, wanted_->begin() + a.edge + a.edges, [](bool w) { return w; });
}

}  // namespace calque
