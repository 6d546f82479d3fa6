// What the commands say of programs in .pt2 archives, and of checkpoints in pickles.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"

namespace calque {
class ExportedProgram;
}

namespace calque::cli {

enum class FileKind { safetensors, program, pickle, arrays };
// By the file's bytes; a damaged one by its name. UserError says what a file of another kind is, and what to do with it.
FileKind kind_of(const std::string& path);
// Of a safetensors file or a checkpoint, nested ones by path.
std::vector<std::pair<std::string, Tensor>> tensors_of(const std::string& path);

// From a file of tensors by the names of the program's user inputs, in their order. Without a file the constants of a program that takes no
// more than those. UserErrors begin with the command's name.
Values program_inputs(const std::string& command, const ExportedProgram& program, const std::string& path);
// The user's outputs by path: "0", "a", "b.0".
std::vector<std::string> output_names(const ExportedProgram& program);

void run_program_info(const InfoOptions& options);
void run_pickle_info(const InfoOptions& options);
void run_arrays_info(const InfoOptions& options);
// Both sorted by name.
FileComparison compare_states(const std::vector<std::pair<std::string, Tensor>>& a,
                              const std::vector<std::pair<std::string, Tensor>>& b, const SameOptions& options);
// Graphs, signatures, ranges; then the state, tensor by tensor. Prints and throws as run_diff does.
void run_program_diff(const DiffOptions& options);

}  // namespace calque::cli
