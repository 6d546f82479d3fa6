#include "calque/run/plan.h"

#include <algorithm>
#include <optional>

#include "calque/base/error.h"
#include "calque/export/program.h"
#include "calque/run/passes.h"
#include "graph/region_functions.h"
#include "graph/unknown_functions.h"
#include "run/instruction.h"
#include "run/planned_graph.h"

namespace calque {
namespace {

using run::Frame;
using run::FramePool;
using run::Operand;

struct Step {
  const Node* node;
  std::unique_ptr<const run::Instruction> instruction;
  uint32_t result;
  std::vector<uint32_t> dead;  // not needed after this step
  uint32_t slot = run::no_slot;
};

}  // namespace

struct Plan::Parts {
  explicit Parts(std::shared_ptr<GraphModule> made_from)
      : module(std::move(made_from)), graph(module->graph()), ids(graph) {}

  void add_input(const Node& n) {
    if (n.target().text().starts_with("*")) rest_from = inputs.size();
    ids.add(n);
    inputs.push_back(&n);
  }

  void add_step(const Node& n) {
    steps.push_back({&n, run::make_instruction(n, ids, module->as_owner()), 0, {}, run::no_slot});
    ids.add(n);
    steps.back().result = ids.id_of(n);
  }

  // The tensors of these attributes are taken as results that want no gradient.
  void add_nodes(const std::set<std::string, std::less<>>& detached) {
    ids = run::ValueIds(graph);
    for (const Node* n : graph.nodes()) {
      switch (n->kind()) {
        case NodeKind::placeholder: add_input(*n); break;
        case NodeKind::get_attr: ids.add_constant(*n, constant(n->target().text(), detached)); break;
        case NodeKind::call_function:
        case NodeKind::call_method:
        case NodeKind::call_module: add_step(*n); break;
        case NodeKind::output: result = n; output = std::make_unique<const Operand>(n->args().at(0), ids);
      }
    }
    find_last_uses();
    std::vector<run::PlannedStep> planned;
    for (const Step& s : steps) planned.push_back({s.node, s.instruction->makes_tensor(), s.instruction->takes_over()});
    run::MemoryPlan memory = run::plan_memory(planned, graph);
    for (size_t i = 0; i < steps.size(); ++i) steps[i].slot = memory.slot_of[i];
    slot_bytes = std::move(memory.bytes);
  }

  Value constant(const std::string& path, const std::set<std::string, std::less<>>& detached) const {
    Value value = module->as_owner().attr(path);
    if (!detached.contains(path)) return value;
    const Tensor& t = value.to_tensor();
    return Tensor(Ref<TensorImpl>(new TensorImpl(t.storage(), t.meta(), t.sym_storage_offset())));
  }

  // What nobody reads any more after a step. What no step reads goes after the first, or right after it is made.
  void find_last_uses() {
    std::vector<bool> seen(ids.count());
    const auto dies = [&](const Node& n) {
      const uint32_t id = ids.id_of(n);
      if (id == run::ValueIds::none || seen[id]) return false;
      return static_cast<bool>(seen[id] = true);
    };
    if (result)
      for_each_node(result->args().at(0), [&](const Node* n) {
        if (dies(*n)) dead_at_end.push_back(ids.id_of(*n));
      });
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      for (size_t i = 0; i < step->node->num_input_nodes(); ++i)
        if (const Node& input = *step->node->input_node(i); dies(input)) step->dead.push_back(ids.id_of(input));
      if (dies(*step->node)) step->dead.push_back(step->result);
    }
    for (const Node* input : inputs)
      if (dies(*input)) (steps.empty() ? dead_at_end : steps.front().dead).push_back(ids.id_of(*input));
  }

  void take_inputs(const Values& given, Frame& frame) const {
    size_t next = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Value& place = frame.values[ids.id_of(*inputs[i])];
      if (i == rest_from) {  // *args: all that is left
        place = list(Values(given.begin() + static_cast<std::ptrdiff_t>(std::min(next, given.size())), given.end()));
        next = std::max(next, given.size());
      } else if (next < given.size()) {
        place = given[next++];
      } else if (!inputs[i]->args().empty()) {
        place = inputs[i]->args()[0];
      } else {
        throw UserError("Expected positional argument for parameter " + inputs[i]->target().text() +
                        ", but one was not passed in!");
      }
    }
    if (next < given.size())
      throw UserError("the graph takes " + std::to_string(next) + " inputs, found " + std::to_string(given.size()));
  }

  std::shared_ptr<GraphModule> module;
  const Graph& graph;
  std::optional<UserError> unknown_functions;  // thrown by every run, as the interpreter does; null where all are known
  run::ValueIds ids;
  std::vector<const Node*> inputs;
  size_t rest_from = SIZE_MAX;
  std::vector<Step> steps;
  const Node* result = nullptr;
  std::unique_ptr<const Operand> output;
  std::vector<uint32_t> dead_at_end;
  std::vector<SymInt> slot_bytes;  // of the frame's slots
  run::StateUses state;
  // The same steps on computed state that wants no gradient, for calls that ask for none; null where that is no difference.
  std::unique_ptr<Parts> without_gradients;
  mutable FramePool frames;

  Value run(const Values& inputs, const Watch& watch) const;
};

Plan::Plan(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Plan::~Plan() = default;

std::shared_ptr<const Plan> Plan::make(const GraphModule& module, const PlanOptions& options) {
  return run::plan_of(run::planned_graph(module), options);
}

std::shared_ptr<const Plan> Plan::make(const ExportedProgram& program, const PlanOptions& options) {
  return run::plan_of(run::planned_graph(program), options);
}

std::shared_ptr<const Plan> run::plan_of(PlannedGraph&& planned, const PlanOptions& options) {
  auto parts = std::make_unique<Plan::Parts>(planned.module);
  try {
    refuse_unknown_functions(planned.module->graph());
  } catch (const UserError& e) {
    parts->unknown_functions = e;
  }
  PassInput input{*planned.module, std::move(planned.written)};
  input.stored = std::move(planned.stored);
  run_passes(input, options);
  parts->state = std::move(input.state);
  const auto wants_gradient = [&](const std::string& path) { return planned.module->find_tensor(path)->requires_grad(); };
  if (std::any_of(input.computed.begin(), input.computed.end(), wants_gradient)) {
    parts->without_gradients = std::make_unique<Plan::Parts>(planned.module);
    parts->without_gradients->add_nodes(input.computed);
  }
  parts->add_nodes({});
  return std::shared_ptr<const Plan>(new Plan(std::move(parts)));
}

// ---- running ----------------------------------------------------------------------------------------------------------

Value Plan::run(const Values& inputs) const { return run_watched(inputs, nullptr); }

Value Plan::run_watched(const Values& inputs, const Watch& watch) const {
  if (parts_->unknown_functions) throw UserError(*parts_->unknown_functions);
  return (parts_->without_gradients && !grad_enabled() ? *parts_->without_gradients : *parts_).run(inputs, watch);
}

Value Plan::Parts::run(const Values& inputs, const Watch& watch) const {
  const ContextScope<&ThreadContext::running_owner> owner(&module->as_owner());
  RegionGuard regions;
  FramePool::Lease lease(frames, ids.count(), slot_bytes.size());
  Frame& frame = *lease;
  take_inputs(inputs, frame);
  const Step* current = nullptr;
  try {
    for (const Step& step : steps) {
      current = &step;
      frame.values[step.result] = step.instruction->run(frame, {step.dead, step.slot});
      if (watch) watch(*step.node, frame.values[step.result]);
      for (const uint32_t id : step.dead) frame.values[id] = Value();
    }
  } catch (Error& e) {
    if (!current->instruction->names_steps()) run::name_step(e, *current->node);
    throw;
  }
  Value result = output ? output->read(frame) : Value();
  for (const uint32_t id : dead_at_end) frame.values[id] = Value();
  lease.done();
  regions.done();
  return result;
}

Values Plan::call(const Values& inputs) const {
  Value result = run(inputs);
  return result.is_sequence() ? result.to_items() : Values{std::move(result)};
}

// ---- reading ----------------------------------------------------------------------------------------------------------

bool Plan::is_current() const { return parts_->state.are_current(); }
const Graph& Plan::graph() const { return parts_->graph; }
size_t Plan::num_steps() const { return parts_->steps.size(); }
size_t Plan::num_values() const { return parts_->ids.count(); }
std::vector<SymInt> Plan::slot_bytes() const { return parts_->slot_bytes; }
size_t Plan::packed_bytes() const { return parts_->state.bytes_made(); }

std::string Plan::describe() const {
  std::string out = std::to_string(parts_->steps.size()) + " steps, " + std::to_string(parts_->ids.count()) + " values, " +
                    std::to_string(packed_bytes()) + " bytes made of the state\n";
  const auto number = [](uint32_t id) { return "#" + std::to_string(id); };
  for (const Node* n : parts_->inputs) out += number(parts_->ids.id_of(*n)) + " " + n->str() + "\n";
  for (const Step& step : parts_->steps) {
    out += number(step.result) + " " + step.node->str();
    if (step.slot != run::no_slot) out += "  @" + std::to_string(step.slot);
    if (!step.dead.empty()) out += "  -";
    for (const uint32_t id : step.dead) out += " " + number(id);
    out += "\n";
  }
  if (parts_->result) out += parts_->result->str() + "\n";
  for (size_t i = 0; i < parts_->slot_bytes.size(); ++i)
    out += "@" + std::to_string(i) + ": " + parts_->slot_bytes[i].str() + " bytes\n";
  return out;
}

}  // namespace calque
