#include "calque/run/compiled_file.h"

#include "run/planned_graph.h"
#include "run/stored_weights.h"

namespace calque {

CompiledFile save_compiled_program(const ExportedProgram& program, const std::string& path, SaveProgramOptions options) {
  run::PlannedGraph planned = run::planned_graph(program);
  run::PassInput input{*planned.module, std::move(planned.written)};
  input.stored = std::move(planned.stored);
  run::run_passes(input, {});
  options.compiled = std::make_shared<const CompiledEntries>(run::stored_entries(input.packed));
  save_program(program, path, options);
  CompiledFile out{input.packed.size(), 0};
  for (const run::PackedCopy& copy : input.packed) out.packed_bytes += copy.packed.nbytes();
  return out;
}

}  // namespace calque
