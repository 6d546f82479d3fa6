// HFTracer: symbolic traces of models, as transformers 4.40 makes them (utils/fx.py). Inputs are named; every other argument
// keeps its default and leaves nothing in the graph. Proxies carry fake values of dummy inputs (hub/dummy_inputs.h), so that
// control flow on shapes, lengths and dtypes goes the way it goes for such inputs; the graph runs at other sizes.
//
//   const auto traced = symbolic_trace(*model, {{"input_ids", "attention_mask"}});
//
// For the graph of a module that is no model, and for what is recorded in general, see trace/tracer.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calque/hub/traced_model.h"
#include "calque/trace/tracer.h"

namespace calque {

class PretrainedModel;

struct HFTraceInputs {
  Kwargs concrete_args = {};  // by name: values for which the graph is made
  // By name: what inputs are like, in place of the dummy inputs of the model's class. A module that is no model needs one for each
  // input. Their sizes are open.
  Kwargs dummy_inputs = {};
  // With dummy inputs: every argument that is in neither list keeps its default; UserError for one without.
  bool complete_concrete_args_with_inputs_not_in_dummy_inputs = true;
};

class HFTracer : public Tracer {
 public:
  HFTracer();

  uint64_t seed = 0;  // of the sizes of dummy inputs
  // A warning for each node whose value could not be computed while tracing. By default what FX_DEBUG_MODE says (1, ON, YES, TRUE).
  bool debug;

  Graph trace(Module& root, const HFTraceInputs& inputs, std::source_location where = std::source_location::current());

  // A result that cannot be computed is not known, and the trace goes on.
  std::optional<Value> example_result(NodeKind kind, const Target& target, const std::function<Value()>& call) override;
  // One call of size() for each proxy, and getitem.
  Node* size_node(Node& tensor, int64_t dim) override;
  // Of a catch-all argument ("**kwargs") the names that it was given, else a call.
  Value keys(const Value& proxy) override;

 private:
  struct Examples;
  void add_examples(Examples& examples, Module& root, const std::vector<std::string>& names);
  std::unordered_map<Node*, Node*> sizes_;
};

// For each argument of forward that is not among the names its default. UserError lists the names that there are.
Kwargs get_concrete_args(const Module& model, const std::vector<std::string>& input_names);

// The classes that can be traced: those of the registry that have one of the tasks (empty: any), sorted.
std::vector<std::string> supported_model_class_names(const std::vector<std::string>& tasks = {});
bool is_model_supported(const PretrainedModel& model);
void check_if_model_is_supported(const PretrainedModel& model);  // UserError lists the classes that are

struct SymbolicTraceOptions {
  bool disable_check = false;  // trace also a class that the registry does not have
  Kwargs dummy_inputs = {};    // what inputs are like, where not as the class's dummy inputs
  std::function<std::unique_ptr<HFTracer>()> tracer = {};
};

// Without names: the model's dummy_input_names(). Unless past_key_values is one of them, use_cache is switched off in the
// model's configuration.
std::shared_ptr<TracedModel> symbolic_trace(PretrainedModel& model,
                                            const std::optional<std::vector<std::string>>& input_names,
                                            const SymbolicTraceOptions& options = {},
                                            std::source_location where = std::source_location::current());

}  // namespace calque
