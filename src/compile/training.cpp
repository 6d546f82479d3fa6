#include "compile/training.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/phases.h"
#include "calque/grad/autograd.h"
#include "calque/graph/interpreter.h"
#include "calque/op/aten/empty.h"
#include "calque/trace/joint.h"
#include "calque/trace/partition.h"
#include "compile/books.h"

namespace calque::compile_detail {
namespace {

bool wants_gradient(const Value& v) { return v.is_tensor() && v.to_tensor().defined() && v.to_tensor().requires_grad(); }

// The tensors that a graph reads, each once: inputs of the passes, behind the graph's own.
struct Lifted {
  explicit Lifted(const GraphModule& module) {
    for (const Node* n : module.graph().nodes()) {
      if (n->kind() != NodeKind::get_attr) continue;
      const Value value = module.as_owner().attr(n->target().text());
      if (!value.is_tensor()) continue;
      const auto same = std::find_if(tensors.begin(), tensors.end(),
                                     [&](const Value& t) { return t.to_tensor().is_same(value.to_tensor()); });
      place.emplace(n->target().text(), static_cast<size_t>(same - tensors.begin()));
      if (same == tensors.end()) tensors.push_back(value);
    }
  }
  Values tensors;
  std::map<std::string, size_t, std::less<>> place;
};

// Runs a graph with other tensors in the place of those that it reads.
class LiftedRun : public Interpreter {
 public:
  LiftedRun(const GraphModule& module, const Lifted& lifted, const Values& tensors)
      : Interpreter(module.graph(), &module.as_owner()), lifted_(lifted), tensors_(tensors) {}

 protected:
  Value get_attr(const Target& target, const Values& args, const Kwargs& kwargs) override {
    const auto at = lifted_.place.find(target.text());
    return at == lifted_.place.end() ? Interpreter::get_attr(target, args, kwargs) : tensors_.at(at->second);
  }

 private:
  const Lifted& lifted_;
  const Values& tensors_;
};

Values examples_of(const GraphModule& module) {
  Values out;
  for (const Node* n : module.graph().placeholders()) out.push_back(n->meta.val);
  return out;
}

// Both passes of a part. The backward pass is compiled by the first thread that needs it.
class Passes {
 public:
  Passes(const std::shared_ptr<GraphModule>& graph, const Values& examples, const Backend& backend,
         const CompilationMetrics& metrics)
      : backend_(backend), metrics_(metrics), lifted(*graph) {
    Values primals = examples;
    primals.insert(primals.end(), lifted.tensors.begin(), lifted.tensors.end());
    for (const Value& v : primals) wants.push_back(wants_gradient(v));
    const auto function = [&](const Values& given) -> Value {
      const auto own = given.begin() + static_cast<std::ptrdiff_t>(examples.size());
      const Values tensors(own, given.end());
      return LiftedRun(*graph, lifted, tensors).run(Values(given.begin(), own));
    };
    joint = trace_joint(function, primals);
    if (!joint.aliases.empty()) throw UserError("a result shares memory with an input");
    if (joint.tangents.empty()) throw UserError("no result wants a gradient");
    const Partition parts = min_cut_rematerialization_partition(*joint.module, joint.num_forward);
    trace_training(*joint.module, *parts.forward, *parts.backward, metrics);
    num_saved = parts.saved.size();
    forward_ = backend(parts.forward, examples_of(*parts.forward));
    backward_graph_ = parts.backward;
    joint.module = nullptr;
  }

  Value run_forward(const Values& primals) const { return forward_.run(primals); }
  Value run_backward(const Values& inputs) {
    std::call_once(once_, [&] { compile_backward(); });
    return backward_.run(inputs);
  }

 private:
  void compile_backward() {
    CompilationMetrics m = metrics_;
    m.is_forward = false;
    m.start_time_us = microseconds_now();
    m.start_time = static_cast<double>(m.start_time_us) / 1e6;
    m.guard_count = m.shape_env_guard_count = {};
    m.graph_node_count = static_cast<int64_t>(backward_graph_->graph().size());
    m.graph_input_count = static_cast<int64_t>(backward_graph_->graph().placeholders().size());
    m.graph_op_count = static_cast<int64_t>(backward_graph_->graph().find_nodes(NodeKind::call_function).size());
    m.graph_node_shapes.clear();
    {
      const Phase phase("backward_compile", "backward_compile");
      backward_ = backend_(backward_graph_, examples_of(*backward_graph_));
    }
    backward_graph_ = nullptr;
    m.end_time_us = microseconds_now();
    m.duration_us = m.end_time_us - m.start_time_us;
    m.backward_cumulative_compile_time_us = m.duration_us;
    m.has_guarded_code = true;
    trace_metrics(m);
    record_compilation_metrics(m);
  }

  const Backend backend_;
  const CompilationMetrics metrics_;
  CompiledGraph forward_, backward_;
  std::shared_ptr<GraphModule> backward_graph_;
  std::once_flag once_;

 public:
  const Lifted lifted;
  JointGraph joint;         // what is known of it, without the graph
  std::vector<bool> wants;  // of each primal
  size_t num_saved = 0;
};

// One call: a node of the backward graph.
class CompiledFunction final : public GradFunction {
 public:
  CompiledFunction(std::shared_ptr<Passes> passes, Values primals)
      : passes_(std::move(passes)), primals_(std::move(primals)) {}
  std::string name() const override { return "CompiledFunction"; }

  TensorVector forward(const TensorVector&) override {
    const JointGraph& joint = passes_->joint;
    Values all = passes_->run_forward(primals_).to_items();
    const auto written = static_cast<std::ptrdiff_t>(joint.written.size());
    const auto split = all.begin() + static_cast<std::ptrdiff_t>(joint.num_forward);
    results.assign(all.begin() + written, split);
    saved_.assign(split, all.end());
    keep_apart_from_writes();
    for (size_t i = 0; i < joint.written.size(); ++i) primals_[joint.written[i]].to_tensor().copy_(all[i].to_tensor());
    TensorVector to_save, outputs, constant;
    for (Value& v : saved_) {
      if (!v.is_tensor()) continue;
      to_save.push_back(v.to_tensor());
      v = Value();
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].is_tensor()) continue;
      outputs.push_back(results[i].to_tensor());
      const size_t place = i + joint.written.size();
      const bool has_tangent = std::find(joint.tangents.begin(), joint.tangents.end(), place) != joint.tangents.end();
      if (has_tangent)
        tangents_.emplace_back(outputs.size() - 1, outputs.back().meta());
      else
        constant.push_back(outputs.back());
    }
    for (const Value& v : primals_) tensor_primals_.push_back(v.is_tensor());
    primals_.clear();
    save_for_backward(std::move(to_save));
    mark_non_differentiable(std::move(constant));
    return outputs;
  }

  TensorVector backward(const TensorVector& grads) override {
    if (records_gradients())
      throw UserError(
          "compile: the backward pass of a compiled function is not recorded, so it has no gradient of its own "
          "(create_graph); "
          "call the function itself, or compile it with backend \"eager\"");
    Values inputs;
    const TensorVector tensors = saved_tensors();
    size_t next = 0;
    for (const Value& v : saved_) inputs.push_back(v.is_none() ? Value(tensors.at(next++)) : v);
    for (const auto& [place, like] : tangents_) inputs.emplace_back(as_traced(grads.at(place), like));
    const Values given = passes_->run_backward(inputs).to_items();
    TensorVector out;
    for (size_t i = 0; i < given.size(); ++i)
      if (tensor_primals_.at(i)) out.push_back(given[i].is_tensor() ? given[i].to_tensor() : Tensor());
    return out;
  }

  Values results;  // of the call, numbers among them

 private:
  // What is kept for the backward pass and written after the forward one has to be kept as it was.
  void keep_apart_from_writes() {
    for (const size_t i : passes_->joint.written)
      for (Value& v : saved_)
        if (v.is_tensor() && v.to_tensor().storage().get() == primals_[i].to_tensor().storage().get())
          v = v.to_tensor().clone();
  }

  // The backward pass was recorded with tangents of the results' strides.
  static Tensor as_traced(const Tensor& grad, const Meta& like) {
    const IntList strides = grad.strides();
    if (std::equal(strides.begin(), strides.end(), like.strides.begin(), like.strides.end(),
                   [](int64_t a, const SymInt& b) { return a == b.as_int(); }))
      return grad;
    const Tensor out = empty_strided(like.sizes, like.strides, grad.dtype(), Layout::strided, grad.device());
    out.copy_(grad);
    return out;
  }

  std::shared_ptr<Passes> passes_;
  Values primals_;
  Values saved_;  // numbers; None in the place of tensors
  std::vector<std::pair<size_t, Meta>> tangents_;
  std::vector<bool> tensor_primals_;
};

}  // namespace

std::optional<CompiledGraph> training_graph(const std::shared_ptr<GraphModule>& graph, const Values& examples,
                                            const Backend& backend, const CompilationMetrics& metrics) {
  if (!records_gradients()) return std::nullopt;
  std::shared_ptr<Passes> passes;
  try {
    const Lifted lifted(*graph);
    if (std::none_of(examples.begin(), examples.end(), wants_gradient) &&
        std::none_of(lifted.tensors.begin(), lifted.tensors.end(), wants_gradient))
      return std::nullopt;
    const size_t guards = graph->graph().shape_env() ? graph->graph().shape_env()->guards().size() : 0;
    passes = std::make_shared<Passes>(graph, examples, backend, metrics);
    if (graph->graph().shape_env() && graph->graph().shape_env()->guards().size() != guards)
      throw UserError("the backward pass asks more of the sizes than the guards say");
  } catch (const UserError& e) {
    write_log(Log::plan, std::string("no forward and backward pass of ") + metrics.co_name + ": " + e.what());
    return std::nullopt;
  }
  struct Otherwise {
    std::once_flag once;
    CompiledGraph graph;
  };
  const auto otherwise = std::make_shared<Otherwise>();
  return CompiledGraph{[=](const Values& inputs) -> Value {
    Values primals = inputs;
    primals.insert(primals.end(), passes->lifted.tensors.begin(), passes->lifted.tensors.end());
    bool as_captured = records_gradients();
    for (size_t i = 0; i < primals.size(); ++i) as_captured = as_captured && wants_gradient(primals[i]) == passes->wants[i];
    if (!as_captured) {
      std::call_once(otherwise->once, [&] { otherwise->graph = backend(graph, examples); });
      return otherwise->graph.run(inputs);
    }
    TensorVector tensors;
    for (const Value& v : primals)
      if (v.is_tensor()) tensors.push_back(v.to_tensor());
    const auto function = std::make_shared<CompiledFunction>(passes, std::move(primals));
    const TensorVector outputs = apply_function(function, tensors);
    Values results = std::move(function->results);
    size_t next = 0;
    for (Value& v : results)
      if (v.is_tensor()) v = outputs.at(next++);
    return tuple(std::move(results));
  }};
}

}  // namespace calque::compile_detail
