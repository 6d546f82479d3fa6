#include "calque/export/program.h"

#include "calque/base/error.h"
#include "calque/graph/interpreter.h"

namespace calque {

ExportedProgram::ExportedProgram(Parts parts) : parts_(std::move(parts)) {}

Values ExportedProgram::run_flat(const Values& inputs) const {
  Values all;
  size_t next = 0;
  for (const InputSpec& spec : parts_.signature.input_specs) {
    switch (spec.kind) {
      case InputKind::user_input:
        if (next == inputs.size()) throw UserError("run: " + std::to_string(inputs.size()) + " inputs were given, " + spec.arg.name + " has none");
        all.push_back(inputs[next++]);
        break;
      case InputKind::token: all.emplace_back(); break;
      case InputKind::parameter:
      case InputKind::buffer:
      case InputKind::constant_tensor:
      case InputKind::custom_object: {
        if (const Tensor* t = parts_.state_dict.find(spec.target)) {
          all.emplace_back(*t);
          break;
        }
        const auto it = std::find_if(parts_.constants.begin(), parts_.constants.end(), [&](const auto& c) { return c.first == spec.target; });
        if (it == parts_.constants.end()) throw UserError("run: input " + spec.arg.name + " refers to " + spec.target + ", which the program does not hold");
        all.push_back(it->second);
      }
    }
  }
  if (next != inputs.size()) throw UserError("run: expected " + std::to_string(next) + " inputs, found " + std::to_string(inputs.size()));
  const Value result = Interpreter(graph(), &graph_module().as_owner()).run(all);
  Values out;
  size_t position = 0;
  for (const OutputSpec& spec : parts_.signature.output_specs) {
    if (spec.kind == OutputKind::user_output) out.push_back(result.to_items().at(position));
    ++position;
  }
  return out;
}

const TreeSpec& ExportedProgram::in_spec() const { return parts_.module_call_graph.at(0).signature.value().in_spec; }
const TreeSpec& ExportedProgram::out_spec() const { return parts_.module_call_graph.at(0).signature.value().out_spec; }

}  // namespace calque
