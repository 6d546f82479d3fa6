// Compiled files: a .pt2 archive with the packed weights of its plan beside the program. load_program reads it, and calls of the program
// use them from the first on, mapped; PyTorch opens the same file and ignores them. Where a file was made by another version, for
// another instruction set, or does not fit its program, they are made again.
#pragma once

#include <string>

#include "calque/export/pt2.h"

namespace calque {

struct CompiledFile {
  size_t packed = 0;        // weights
  size_t packed_bytes = 0;  // that the file is larger for them
};

// `options` as save_program takes them.
CompiledFile save_compiled_program(const ExportedProgram& program, const std::string& path, SaveProgramOptions options = {});

}  // namespace calque
