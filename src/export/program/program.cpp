#include "calque/export/program.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/export/executor.h"
#include "calque/export/input_checks.h"
#include "calque/export/verifier.h"
#include "calque/graph/interpreter.h"
#include "calque/op/aten/ternary.h"
#include "calque/op/mode.h"
#include "export/capture/build.h"
#include "export/program/program_module.h"
#include "export/pt2/pt2_format.h"

namespace calque {
namespace {

// getitem of the same item twice is computed once; the second one's place in signatures goes to the first.
void share_items(ExportedProgram::Parts& parts) {
  static const FunctionRef getitem = get_function("operator.getitem");
  for_each_graph_module(*parts.graph_module, [&](GraphModule& m) {
    std::map<std::pair<const Node*, int64_t>, Node*> seen;
    for (Node* n : m.graph().node_list()) {
      if (n->target().function() != getitem.get() || !n->args()[0].is_node() || n->args()[1].kind() != Value::Kind::integer)
        continue;
      const auto [it, fresh] = seen.try_emplace({n->args()[0].to_node(), n->args()[1].to_int()}, n);
      if (fresh) continue;
      n->replace_all_uses_with(it->second);
      if (&m == parts.graph_module.get()) {
        parts.signature.replace_all_uses(n->name(), it->second->name());
        for (ModuleCallEntry& entry : parts.module_call_graph) {
          if (!entry.signature) continue;
          for (auto* list : {&entry.signature->inputs, &entry.signature->outputs})
            for (ArgumentSpec& a : *list)
              if (a.name == n->name()) a.name = it->second->name();
        }
      }
      m.graph().erase_node(n);
    }
  });
}

}  // namespace

struct ExportedProgram::Prepared {
  std::once_flag once;
  std::unique_ptr<const InputChecks> checks;
  std::once_flag looked;
  bool writes_state = false;

  std::mutex mutex;  // of what follows
  std::shared_ptr<const Executor> executor;
  ExecutorFactory made_by = nullptr;
  uint64_t graph_changes = 0;
};

std::shared_ptr<const Executor> ExportedProgram::executor_for(const Values& inputs) const {
  const auto has_no_data = [](const Value& v) { return v.is_tensor() ? v.to_tensor().is_fake() : v.expr() != nullptr; };
  const ExecutorFactory factory = executor_factory();
  if (!factory || modes_active() || std::any_of(inputs.begin(), inputs.end(), has_no_data)) return nullptr;
  const std::lock_guard lock(prepared_->mutex);
  const bool stands = prepared_->executor && prepared_->made_by == factory &&
                      prepared_->graph_changes == graph().changes() && prepared_->executor->is_current();
  if (!stands) {
    prepared_->executor = factory(*this);
    prepared_->made_by = factory;
    prepared_->graph_changes = graph().changes();
  }
  return prepared_->executor;
}

bool ExportedProgram::writes_state() const {
  std::call_once(prepared_->looked, [&] {
    const std::unordered_set<std::string> written = pt2::written_inputs(graph(), parts_.signature);
    for (const InputSpec& spec : parts_.signature.input_specs)
      prepared_->writes_state |= spec.kind != InputKind::user_input && written.contains(spec.arg.name);
  });
  return prepared_->writes_state;
}

std::unique_lock<std::mutex> ExportedProgram::turn() const {
  return writes_state() ? std::unique_lock(*parts_.state_mutex) : std::unique_lock<std::mutex>();
}

const InputChecks& ExportedProgram::input_checks() const {
  std::call_once(prepared_->once, [&] { prepared_->checks = std::make_unique<const InputChecks>(*this); });
  return *prepared_->checks;
}

ExportedProgram::ExportedProgram(Parts parts) : parts_(std::move(parts)), prepared_(std::make_shared<Prepared>()) {
  if (!parts_.graph_module) throw UserError("ExportedProgram: a program has a graph module, none was given");
  if (parts_.module_call_graph.empty() || !parts_.module_call_graph[0].fqn.empty() || !parts_.module_call_graph[0].signature)
    throw UserError("ExportedProgram: the first entry of the module call graph is the program itself, with its signature");
  if (!parts_.state_mutex) parts_.state_mutex = std::make_shared<std::mutex>();
  share_items(parts_);
  validate();
}

void ExportedProgram::validate() const { verify(*this); }

const TreeSpec& ExportedProgram::in_spec() const { return parts_.module_call_graph.at(0).signature.value().in_spec; }
const TreeSpec& ExportedProgram::out_spec() const { return parts_.module_call_graph.at(0).signature.value().out_spec; }

namespace {

const Value* find_constant(const ExportedProgram::Parts& parts, const std::string& path) {
  const auto it =
      std::find_if(parts.constants.begin(), parts.constants.end(), [&](const auto& c) { return c.first == path; });
  return it == parts.constants.end() ? nullptr : &it->second;
}

Value state_of(const ExportedProgram::Parts& parts, const InputSpec& spec) {
  if (const Tensor* t = parts.state_dict.find(spec.target)) return *t;
  if (const Value* c = find_constant(parts, spec.target)) return *c;
  throw UserError("run: input " + spec.arg.name + " refers to " + spec.target + ", which the program does not hold");
}

void check_number(const GraphSignature& signature, size_t given) {
  size_t expected = 0;
  for (const InputSpec& spec : signature.input_specs) {
    if (spec.kind != InputKind::user_input) continue;
    if (expected++ == given)
      throw UserError("run: " + std::to_string(given) + " inputs were given, " + spec.arg.name + " has none");
  }
  if (expected != given)
    throw UserError("run: expected " + std::to_string(expected) + " inputs, found " + std::to_string(given));
}

}  // namespace

std::vector<std::pair<std::string, Tensor>> ExportedProgram::named_parameters() const {
  std::vector<std::pair<std::string, Tensor>> out;
  for (const std::string& path : parts_.signature.parameters()) out.emplace_back(path, parts_.state_dict.at(path));
  return out;
}

std::vector<std::pair<std::string, Tensor>> ExportedProgram::named_buffers() const {
  std::vector<std::pair<std::string, Tensor>> out;
  for (const InputSpec& spec : parts_.signature.input_specs)
    if (spec.kind == InputKind::buffer) out.emplace_back(spec.target, state_of(parts_, spec).to_tensor());
  return out;
}

void ExportedProgram::set_example_inputs(std::optional<ExampleInputs> inputs) {
  if (inputs) input_checks().flatten(inputs->args, inputs->kwargs);
  parts_.example_inputs = std::move(inputs);
}

// ---- running ----------------------------------------------------------------------------------------------------------

Values ExportedProgram::run_graph(const Values& inputs) const {
  check_number(parts_.signature, inputs.size());
  if (const std::shared_ptr<const Executor> executor = executor_for(inputs)) return executor->run(inputs);
  Values all;
  size_t next = 0;
  for (const InputSpec& spec : parts_.signature.input_specs) {
    switch (spec.kind) {
      case InputKind::user_input: all.push_back(inputs[next++]); break;
      case InputKind::token: all.emplace_back(); break;
      case InputKind::parameter:
      case InputKind::buffer:
      case InputKind::constant_tensor:
      case InputKind::custom_object: all.push_back(state_of(parts_, spec)); break;
    }
  }
  return Interpreter(graph(), &graph_module().as_owner()).run(all).to_items();
}

Values ExportedProgram::run_flat(const Values& inputs) const {
  const std::unique_lock<std::mutex> alone = turn();
  const Values results = run_graph(inputs);
  Values out;
  for (size_t i = 0; i < results.size(); ++i)
    if (parts_.signature.output_specs.at(i).kind == OutputKind::user_output) out.push_back(results[i]);
  return out;
}

Value ExportedProgram::call(const Values& args, const Kwargs& kwargs) const {
  const Values inputs = input_checks()(args, kwargs);
  const std::unique_lock<std::mutex> alone = turn();
  const Values results = run_graph(inputs);
  Values out;
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputSpec& spec = parts_.signature.output_specs.at(i);
    switch (spec.kind) {
      case OutputKind::buffer_mutation:
      case OutputKind::parameter_mutation: {
        const Tensor* t = parts_.state_dict.find(spec.target);
        const Tensor target = t ? *t : find_constant(parts_, spec.target)->to_tensor();
        target.copy_(results[i].to_tensor());
        break;
      }
      case OutputKind::user_input_mutation: {
        size_t user = 0;
        for (const InputSpec& input : parts_.signature.input_specs) {
          if (input.kind != InputKind::user_input) continue;
          if (input.arg.name == spec.target) inputs[user].to_tensor().copy_(results[i].to_tensor());
          ++user;
        }
        break;
      }
      case OutputKind::token: break;
      case OutputKind::user_output:
      case OutputKind::loss_output:
      case OutputKind::gradient_to_parameter:
      case OutputKind::gradient_to_user_input: out.push_back(results[i]);
    }
  }
  return out_spec().unflatten(out);
}

// ---- changing ---------------------------------------------------------------------------------------------------------

ExportedProgram ExportedProgram::transform(const std::vector<std::function<bool(GraphModule&)>>& passes) const {
  Parts parts = parts_;
  parts.graph_module = deep_copy(*parts_.graph_module);
  bool changed = false;
  for (const auto& pass : passes) changed = pass(*parts.graph_module) || changed;
  if (!changed) return *this;
  const Graph& graph = parts.graph_module->graph();
  const std::vector<Node*> inputs = graph.placeholders();
  if (inputs.size() != parts.signature.input_specs.size())
    throw UserError("transform: the number of inputs changed from " + std::to_string(parts.signature.input_specs.size()) +
                    " to " + std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    ArgumentSpec& arg = parts.signature.input_specs[i].arg;
    if (arg.kind != ArgumentKind::constant && arg.kind != ArgumentKind::custom_object) arg.name = inputs[i]->name();
  }
  const Values& outputs = graph.output_value().to_items();
  if (outputs.size() != parts.signature.output_specs.size())
    throw UserError("transform: the number of outputs changed from " + std::to_string(parts.signature.output_specs.size()) +
                    " to " + std::to_string(outputs.size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    ArgumentSpec& arg = parts.signature.output_specs[i].arg;
    if (outputs[i].is_node() && arg.kind != ArgumentKind::constant && arg.kind != ArgumentKind::custom_object)
      arg.name = outputs[i].to_node()->name();
  }
  return ExportedProgram(std::move(parts));
}

ProgramStatistics ExportedProgram::statistics() const {
  ProgramStatistics out;
  for_each_graph_module(*parts_.graph_module, [&](GraphModule& m) {
    for (const Node* n : m.graph().nodes()) {
      if (n->kind() != NodeKind::call_function) continue;
      ++out.op_count;
      out.op_set.insert(n->target().qualified_name());
    }
  });
  return out;
}

// ---- text and equality ------------------------------------------------------------------------------------------------

namespace {

std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out;
}

std::string bound(int64_t value) {
  if (value == ValueRange::unbounded_above) return "int_oo";
  if (value == ValueRange::unbounded_below) return "-int_oo";
  return std::to_string(value);
}

bool same_tensor(const Tensor& x, const Tensor& y) {
  if (x.dtype() != y.dtype() || str(x.sym_sizes()) != str(y.sym_sizes()) || x.requires_grad() != y.requires_grad() ||
      x.device() != y.device() || x.is_fake() != y.is_fake())
    return false;
  return x.is_fake() || equal(x, y);  // a tensor without data has no more to compare
}

// The graphs, and what their nodes refer to by name: graphs of higher-order operators, and tensors.
std::string first_difference(const GraphModule& a, const GraphModule& b) {
  std::string why;
  if (!same_graph(a.graph(), b.graph(), &why, true)) return why;
  for (const Node* n : a.graph().nodes()) {
    if (n->kind() != NodeKind::get_attr) continue;
    const std::string path(n->target().text());
    const auto* x = dynamic_cast<const GraphModule*>(a.find_submodule(path));
    const auto* y = dynamic_cast<const GraphModule*>(b.find_submodule(path));
    const Tensor* s = a.find_tensor(path);
    const Tensor* t = b.find_tensor(path);
    if (!x != !y || !s != !t) return path + " is not the same kind of thing in both programs";
    if (s && !same_tensor(*s, *t)) return "the tensors " + path + " differ";
    if (x && !(why = first_difference(*x, *y)).empty()) return "in " + path + ": " + why;
  }
  return {};
}

}  // namespace

std::string ExportedProgram::str() const {
  CodeOptions readable;
  readable.verbose = true;
  std::string text = "ExportedProgram:\n    " + indented(parts_.graph_module->print_readable(readable)) +
                     "\nGraph signature: " + indented(parts_.signature.str()) + "\nRange constraints: {";
  for (size_t i = 0; i < parts_.range_constraints.size(); ++i) {
    const auto& [symbol, range] = parts_.range_constraints[i];
    text += (i ? ", " : "") + symbol + ": VR[" + bound(range.lower) + ", " + bound(range.upper) + "]";
  }
  return text + "}\n";
}

bool same_program(const ExportedProgram& a, const ExportedProgram& b, std::string* why) {
  const auto differ = [&](const std::string& what) {
    if (why) *why = what;
    return false;
  };
  if (a.dialect() != b.dialect()) return differ("the dialects differ");
  if (const std::string what = first_difference(a.graph_module(), b.graph_module()); !what.empty()) return differ(what);
  if (a.graph_signature().str() != b.graph_signature().str())
    return differ("the signatures differ:" + a.graph_signature().str() + "and" + b.graph_signature().str());
  if (!(a.in_spec() == b.in_spec()))
    return differ("the inputs have the structure " + a.in_spec().str() + " and " + b.in_spec().str());
  if (!(a.out_spec() == b.out_spec()))
    return differ("the outputs have the structure " + a.out_spec().str() + " and " + b.out_spec().str());
  // Ranges are found by their symbols, in whatever order they were met.
  const auto by_symbol = [](const ExportedProgram& p) {
    return std::map<std::string, ValueRange>(p.range_constraints().begin(), p.range_constraints().end());
  };
  if (by_symbol(a) != by_symbol(b)) return differ("the range constraints differ");
  if (a.state_dict().size() != b.state_dict().size())
    return differ("the state dicts have " + std::to_string(a.state_dict().size()) + " and " +
                  std::to_string(b.state_dict().size()) + " entries");
  for (const auto& [path, tensor] : a.state_dict()) {
    const Tensor* other = b.state_dict().find(path);
    if (!other) return differ("only the first state dict has " + path);
    if (!same_tensor(tensor, *other)) return differ("the tensors " + path + " differ");
  }
  if (a.constants().size() != b.constants().size())
    return differ("there are " + std::to_string(a.constants().size()) + " and " + std::to_string(b.constants().size()) +
                  " constants");
  for (const auto& [path, value] : a.constants()) {
    const Value* other = find_constant(b.parts(), path);
    if (!other) return differ("only the first program has the constant " + path);
    if (value.is_tensor() != other->is_tensor() ||
        (value.is_tensor() ? !same_tensor(value.to_tensor(), other->to_tensor()) : !value.equals(*other)))
      return differ("the constants " + path + " differ");
  }
  return true;
}

}  // namespace calque
