// The pass: nodes whose results all have their gradients go back, the latest call first.
#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/grad/autograd.h"
#include "calque/op/aten/like.h"
#include "calque/op/mode.h"

namespace calque {
namespace {

bool equal_sizes(SymIntList a, SymIntList b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!guard_or(a[i] == b[i], false)) return false;
  return true;
}

// May a gradient of these sizes be summed to those?
bool broadcasts_to(SymIntList sizes, SymIntList wider) {
  if (sizes.size() > wider.size()) return false;
  const size_t ahead = wider.size() - sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!guard_or(sizes[i] == wider[i + ahead], false) && !guard_or(sizes[i] == 1, false)) return false;
  return true;
}

Tensor summed_to(const Tensor& g, SymIntList sizes) {
  if (sizes.empty()) return g.sum();
  const SymIntList from = g.sym_sizes();
  const size_t ahead = from.size() - sizes.size();
  std::vector<int64_t> dims;
  for (size_t i = 0; i < from.size(); ++i)
    if (i < ahead || (guard_or(sizes[i - ahead] == 1, false) && !guard_or(from[i] == 1, false)))
      dims.push_back(static_cast<int64_t>(i));
  const Tensor sum = dims.empty() ? g : g.sum(dims, true);
  return ahead > 0 ? sum.view(sizes) : sum;
}

// What goes into an input of a node looks like the result that it is the gradient of.
Tensor fitted(const Tensor& given, const Meta& wanted, const GradNode& from, size_t i) {
  if (!given.defined() || wanted.undefined) return given;
  Tensor g = given;
  const auto fail = [&](const std::string& what) {
    throw UserError(from.name() + line_of(from.site) + " returned an invalid gradient at index " + std::to_string(i) + ": " +
                    what);
  };
  if (!equal_sizes(g.sym_sizes(), wanted.sizes)) {
    if (!broadcasts_to(wanted.sizes, g.sym_sizes()))
      fail("got sizes " + str(g.sym_sizes()) + ", but expected sizes compatible with " + str(SymIntList(wanted.sizes)));
    g = summed_to(g, wanted.sizes);
  }
  if (g.dtype() != wanted.dtype) {
    if (!is_floating(g.dtype()) && !is_complex(g.dtype()))
      fail("expected a gradient of floating point or complex dtype, found " + std::string(name(g.dtype())));
    if (is_complex(g.dtype()) && !is_complex(wanted.dtype)) g = g.real();
    g = g.to(wanted.dtype);
  }
  if (!(g.device() == wanted.device)) fail("expected device " + wanted.device.str() + ", found " + g.device().str());
  return g;
}

// The gradients that have come in so far.
struct Inbox {
  TensorVector grads;

  void add(size_t i, Tensor g) {
    if (!g.defined()) return;
    if (grads.size() <= i) grads.resize(i + 1);
    Tensor& there = grads[i];
    if (!there.defined()) {
      there = std::move(g);
    } else if (!grad_enabled() && !modes_active() && there.use_count() == 1 && there.storage().use_count() == 1 &&
               !there.is_fake() && !there.storage()->is_read_only() && there.is_non_overlapping_and_dense() &&
               there.dtype() == g.dtype()) {
      there.add_(g);
    } else {
      there = there.add(g);
    }
  }
};

struct Target {
  size_t index;    // in the list that was asked for
  uint32_t input;  // of the node
};

class Pass {
 public:
  Pass(bool keep_graph, bool create_graph) : keep_graph_(keep_graph), create_graph_(create_graph) {}

  // What is captured instead of accumulated: by node.
  void capture(const GradEdge& edge, size_t index) {
    targets_[edge.node.get()].push_back({index, edge.input});
    captured_.resize(std::max(captured_.size(), index + 1));
  }
  // Leaves that a pass for some leaves alone accumulates into.
  void accumulate_only(const GradEdge& edge) { only_[edge.node.get()] = edge.node; }

  TensorVector run(const std::vector<GradEdge>& roots, const TensorVector& grads) {
    find_dependencies(roots);
    find_needed();
    const GradModeScope mode(create_graph_);
    const BelowAutograd recorded(false);
    for (size_t i = 0; i < roots.size(); ++i) {
      if (roots[i].node) inboxes_[roots[i].node.get()].add(roots[i].input, grads[i]);
    }
    std::unordered_set<GradNode*> queued;
    for (const GradEdge& root : roots)
      if (root.node && dependencies_[root.node.get()] == 0 && queued.insert(root.node.get()).second) push(root.node);
    while (!ready_.empty()) {
      const Ready next = ready_.top();
      ready_.pop();
      step(next.node);
    }
    return std::move(captured_);
  }

 private:
  struct Ready {
    Ref<GradNode> node;
    uint64_t order;  // equal sequences: in the order in which they became ready
    bool operator<(const Ready& o) const {
      return node->sequence != o.node->sequence ? node->sequence < o.node->sequence : order > o.order;
    }
  };

  bool is_partial() const { return !targets_.empty() || !only_.empty(); }

  void push(const Ref<GradNode>& node) { ready_.push({node, pushed_++}); }

  // How many gradients each node waits for.
  void find_dependencies(const std::vector<GradEdge>& roots) {
    std::vector<GradNode*> stack;
    const auto visit = [&](GradNode* node) {
      if (seen_.insert(node).second) {
        stack.push_back(node);
        order_.push_back(node);
      }
    };
    for (const GradEdge& root : roots)
      if (root.node) {
        dependencies_.emplace(root.node.get(), 0);
        visit(root.node.get());
      }
    while (!stack.empty()) {
      GradNode* node = stack.back();
      stack.pop_back();
      for (const GradEdge& edge : node->next) {
        if (!edge.node) continue;
        ++dependencies_[edge.node.get()];
        visit(edge.node.get());
      }
    }
  }

  // Where only some gradients are asked for: the nodes from which one can get there. A node's successors come first.
  void find_needed() {
    if (!is_partial()) return;
    struct Visit {
      GradNode* node;
      size_t next;
    };
    std::unordered_set<GradNode*> done;
    std::vector<Visit> stack;
    for (GradNode* start : order_) {
      if (!done.insert(start).second) continue;
      stack.push_back({start, 0});
      while (!stack.empty()) {
        Visit& v = stack.back();
        if (v.next < v.node->next.size()) {
          GradNode* child = v.node->next[v.next++].node.get();
          if (child && done.insert(child).second) stack.push_back({child, 0});
          continue;
        }
        GradNode* node = v.node;
        stack.pop_back();
        bool is_needed = targets_.count(node) != 0 || only_.count(node) != 0;
        for (const GradEdge& edge : node->next) is_needed = is_needed || (edge.node && needed_.count(edge.node.get()) != 0);
        if (is_needed) needed_.insert(node);
      }
    }
  }

  bool is_wanted(GradNode* node) const { return !is_partial() || needed_.count(node) != 0; }
  // Does the node itself run, or are its gradients only captured?
  bool runs(const GradNode& node) const {
    if (!is_partial() || only_.count(const_cast<GradNode*>(&node)) != 0) return true;
    return std::any_of(node.next.begin(), node.next.end(),
                       [&](const GradEdge& e) { return e.node && needed_.count(e.node.get()) != 0; });
  }

  static void run_hooks(const std::vector<GradHooks::OnTensor>& hooks, TensorVector& grads) {
    for (const GradHooks::OnTensor& hook : hooks) {
      if (hook.input >= grads.size() || !grads[hook.input].defined()) continue;
      if (const Tensor given = hook.run(grads[hook.input]); given.defined()) {
        if (!equal_sizes(given.sym_sizes(), grads[hook.input].sym_sizes()))
          throw UserError("hook '" + std::to_string(hook.id) + "' has changed the size of value: expected " +
                          str(grads[hook.input].sym_sizes()) + ", found " + str(given.sym_sizes()));
        grads[hook.input] = given;
      }
    }
  }

  void before(GradNode& node, TensorVector& grads) {
    if (auto* leaf = dynamic_cast<AccumulateGrad*>(&node))
      if (const auto hooks = grad_state(leaf->leaf()).hooks) run_hooks(hooks->on_tensors, grads);
    if (!node.has_hooks()) return;
    const std::shared_ptr<GradHooks> hooks = node.shared_hooks();
    run_hooks(hooks->on_tensors, grads);
    for (const GradHooks::Before& hook : std::vector<GradHooks::Before>(hooks->before))
      if (TensorVector given = hook.run(grads); !given.empty()) {
        if (given.size() != grads.size())
          throw UserError("a pre hook of " + node.name() + " gave " + std::to_string(given.size()) +
                          " gradients, expected " + std::to_string(grads.size()));
        grads = std::move(given);
      }
    run_hooks(hooks->retaining, grads);
  }

  void after(GradNode& node, TensorVector& inputs, const TensorVector& outputs) {
    if (!node.has_hooks()) return;
    const std::shared_ptr<GradHooks> hooks = node.shared_hooks();
    for (const GradHooks::After& hook : std::vector<GradHooks::After>(hooks->after))
      if (TensorVector given = hook.run(inputs, outputs); !given.empty()) {
        if (given.size() != inputs.size())
          throw UserError("a hook of " + node.name() + " gave " + std::to_string(given.size()) + " gradients, expected " +
                          std::to_string(inputs.size()));
        inputs = std::move(given);
      }
  }

  void capture_from(GradNode& node, const TensorVector& grads) {
    const auto found = targets_.find(&node);
    if (found == targets_.end()) return;
    for (const Target& target : found->second)
      if (target.input < grads.size()) captured_[target.index] = grads[target.input];
  }

  void check_nan(const GradNode& node, const TensorVector& given) const {
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i].defined() && !given[i].is_fake() && given[i].isnan().any().item<bool>())
        throw UserError(node.name() + line_of(node.site) + " returned nan values in its " + std::to_string(i) + "th output");
  }

  TensorVector apply(GradNode& node, TensorVector grads, const std::vector<bool>& wanted) {
    using Anomaly = ThreadSwitches::Anomaly;
    const Anomaly anomaly = thread_context().detect_anomaly;
    if (anomaly == Anomaly::off) return node.apply(std::move(grads), wanted);
    try {
      TensorVector given = node.apply(std::move(grads), wanted);
      if (anomaly == Anomaly::nan_too) check_nan(node, given);
      return given;
    } catch (UserError& e) {
      if (node.site.where.line() != 0) e.set_context("the gradient of " + node.name() + line_of(node.site));
      throw;
    }
  }

  void step(const Ref<GradNode>& ref) {
    GradNode& node = *ref;
    Inbox inbox = std::move(inboxes_[&node]);
    inboxes_.erase(&node);
    TensorVector grads = std::move(inbox.grads);
    grads.resize(std::max(grads.size(), node.results.size()));
    TensorVector given;
    if (is_wanted(&node)) {
      before(node, grads);
      capture_from(node, grads);
      if (runs(node)) {
        std::vector<bool> wanted(node.next.size());
        for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = node.next[i].node && is_wanted(node.next[i].node.get());
        TensorVector kept_grads;
        if (node.has_hooks()) kept_grads = grads;
        given = apply(node, std::move(grads), wanted);
        after(node, given, kept_grads);
        if (given.size() < node.next.size()) given.resize(node.next.size());
        if (!keep_graph_) node.release();
      }
    }
    given.resize(node.next.size());
    for (size_t i = 0; i < node.next.size(); ++i) {
      const GradEdge& edge = node.next[i];
      if (!edge.node) continue;
      GradNode* to = edge.node.get();
      if (given[i].defined())
        inboxes_[to].add(edge.input,
                         edge.input < to->results.size() ? fitted(given[i], to->results[edge.input], node, i) : given[i]);
      given[i] = Tensor();
      if (--dependencies_[to] == 0) push(edge.node);
    }
  }

  bool keep_graph_;
  bool create_graph_;
  std::unordered_map<GradNode*, std::vector<Target>> targets_;
  std::unordered_map<GradNode*, Ref<GradNode>> only_;
  std::unordered_set<GradNode*> seen_;
  std::vector<GradNode*> order_;
  std::unordered_map<GradNode*, size_t> dependencies_;
  std::unordered_set<GradNode*> needed_;
  std::unordered_map<GradNode*, Inbox> inboxes_;
  std::priority_queue<Ready> ready_;
  uint64_t pushed_ = 0;
  TensorVector captured_;
};

// The gradients that a pass starts with.
TensorVector first_gradients(const char* function, const TensorVector& outputs, const TensorVector& given) {
  if (!given.empty() && given.size() != outputs.size())
    throw UserError(std::string(function) + ": got " + std::to_string(outputs.size()) + " tensors and " +
                    std::to_string(given.size()) + " gradients");
  TensorVector out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    if (!output.defined()) throw UserError(std::string(function) + ": output " + std::to_string(i) + " is undefined");
    if (!output.requires_grad())
      throw UserError(std::string(function) + ": element " + std::to_string(i) +
                      " of tensors does not require grad and does not have a grad_fn; say set_requires_grad() of what it is "
                      "computed from, and compute it outside of no-grad scopes");
    if (i < given.size() && given[i].defined()) {
      if (!equal_sizes(given[i].sym_sizes(), output.sym_sizes()))
        throw UserError("Mismatch in shape: gradient " + std::to_string(i) + " has a shape of " + str(given[i].sym_sizes()) +
                        " and output " + std::to_string(i) + " has a shape of " + str(output.sym_sizes()));
      if (is_complex(given[i].dtype()) != is_complex(output.dtype()))
        throw UserError("for complex tensors, both the output and its gradient are required to have the same dtype; found " +
                        std::string(name(output.dtype())) + " and " + std::string(name(given[i].dtype())));
      out.push_back(given[i]);
      continue;
    }
    if (!guard_or(output.sym_numel() == 1, false))
      throw UserError("grad can be implicitly created only for scalar outputs; output " + std::to_string(i) + " has sizes " +
                      str(output.sym_sizes()) + ": give its gradient, or reduce it with sum() or mean()");
    if (!is_floating(output.dtype()))
      throw UserError("grad can be implicitly created only for real scalar outputs but got " +
                      std::string(name(output.dtype())));
    out.push_back(ones_like(output));
  }
  return out;
}

std::vector<GradEdge> edges_of(const TensorVector& outputs) {
  std::vector<GradEdge> edges;
  for (const Tensor& output : outputs) edges.push_back(gradient_edge(output));
  return edges;
}

}  // namespace

void backward(const TensorVector& outputs, const BackwardOptions& options) {
  const TensorVector grads = first_gradients("backward", outputs, options.gradients);
  Pass pass(options.retain_graph.value_or(options.create_graph), options.create_graph);
  std::vector<GradEdge> held;  // the pass knows nodes by address
  for (const Tensor& input : options.inputs) {
    if (!input.requires_grad()) throw UserError("backward: one of the inputs does not require grad");
    if (const Ref<GradNode> node = grad_fn(input)) {
      retain_grad(input);
      held.push_back({node, find_grad_state(input)->result});
    } else {
      held.push_back(gradient_edge(input));
    }
    pass.accumulate_only(held.back());
  }
  pass.run(edges_of(outputs), grads);
}

void backward(const Tensor& output, const BackwardOptions& options) { backward(TensorVector{output}, options); }

TensorVector grad(const TensorVector& outputs, const TensorVector& inputs, const GradOptions& options) {
  if (inputs.empty()) throw UserError("grad: requires non-empty inputs");
  const TensorVector grads = first_gradients("grad", outputs, options.grad_outputs);
  Pass pass(options.retain_graph.value_or(options.create_graph), options.create_graph);
  std::vector<GradEdge> held;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad())
      throw UserError("grad: one of the differentiated tensors does not require grad (input " + std::to_string(i) + ")");
    held.push_back(gradient_edge(inputs[i]));
    pass.capture(held.back(), i);
  }
  TensorVector out = pass.run(edges_of(outputs), grads);
  out.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (out[i].defined()) continue;
    if (options.materialize_grads)
      out[i] = zeros_like(inputs[i]);
    else if (!options.allow_unused)
      throw UserError("One of the differentiated tensors appears to not have been used in the graph (input " +
                      std::to_string(i) + "). Set allow_unused if this is the desired behavior");
  }
  return out;
}

}  // namespace calque
