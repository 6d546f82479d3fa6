// What bench and profile run: a model folder, a name in the hub's cache, a built-in example or a .pt2 program, with inputs for it.
#pragma once

#include <memory>
#include <string>

#include "calque/nn/module.h"
#include "cli/command.h"
#include "cli/json_text.h"

namespace calque {
class ExportedProgram;
}

namespace calque::cli {

struct Workload {
  std::shared_ptr<Module> module;                  // null for a program
  std::shared_ptr<const ExportedProgram> program;  // null for a module
  Kwargs inputs;  // by name: of a module its arguments, of a program all its user inputs in their order
  Values input_values() const;
};

// UserError, which begins with the command's name, for what is none of them, and for inputs that it does not take.
Workload load_workload(const std::string& command, const WorkloadOptions& options);

// The inputs' dtypes and shapes: a table for people, and {"input_ids": {"dtype": ..., "shape": [...]}} as JSON.
std::string inputs_table(const Kwargs& inputs);
OrderedJson inputs_json(const Kwargs& inputs);

}  // namespace calque::cli
