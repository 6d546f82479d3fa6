// Verifiers: whether a graph keeps to a dialect and whether a program's parts fit together, as torch.export checks them. The
// training dialect allows writes and composite operators, the ATen dialect functional operators only. Nothing is changed.
#pragma once

#include "calque/export/program.h"

namespace calque {

// UserErrors name the node and what is wrong with it. Subgraphs are checked too.
void verify_graph(const GraphModule& module, Dialect dialect);
void verify_signature(const ExportedProgram& program);
void verify_module_call_graph(const ExportedProgram& program);
// All of these.
void verify(const ExportedProgram& program);

}  // namespace calque
