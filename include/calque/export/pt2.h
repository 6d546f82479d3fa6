// PyTorch's .pt2 archives: what torch.export.save writes is read, and what is written torch.export.load reads. Reading
// maps the file; a program's tensors are views of it, and keep it mapped. A file that is cut off, hostile or of another
// kind is one UserError (bad_file) that names it. Any number of threads may load at once, also from one archive.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calque/export/program.h"

namespace calque {

struct LoadProgramOptions {
  bool weights = true;  // false: parameters, buffers and constants have their shapes, but no data
  bool example_inputs = true;
  // From the device names in the file ("cuda:1", or "cuda" for all of that kind) to others. What is not named here stays.
  std::map<std::string, std::string> devices = {{"cuda", "cpu"}};
};

class Pt2Archive {
 public:
  static Pt2Archive open(const std::string& path);
  static Pt2Archive open(int descriptor,
                         const std::string& what = "the open file");  // mapped; the descriptor stays the caller's
  static Pt2Archive from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                               const std::string& what = "the buffer");

  const std::vector<std::string>& models() const;  // usually one, "model"
  std::shared_ptr<const ExportedProgram> load(const std::string& model, const LoadProgramOptions& options = {}) const;
  std::shared_ptr<const ExportedProgram> load(const LoadProgramOptions& options = {}) const;  // "model", or the only one
  std::map<std::string, std::string> extra_files() const;
  std::string schema_version(const std::string& model) const;  // "8.20"

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

std::shared_ptr<const ExportedProgram> load_program(const std::string& path, const LoadProgramOptions& options = {});
std::shared_ptr<const ExportedProgram> load_program(int descriptor, const LoadProgramOptions& options = {});
std::shared_ptr<const ExportedProgram> load_program(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                    const LoadProgramOptions& options = {});

struct SaveProgramOptions {
  std::map<std::string, std::string> extra_files = {};
  bool sync = true;  // the file is on the disk, not only handed to the system, when the call returns
  // Structures among inputs and outputs are written as dicts and tuples, so that PyTorch needs to know no class. By default
  // for programs made here; those that came from a file keep their types.
  std::optional<bool> plain_containers = {};
  std::shared_ptr<const CompiledEntries> compiled = {};  // of the only program: written beside it (run/compiled_file.h)
};

// The same program gives the same bytes. The file is there whole or not at all.
void save_program(const ExportedProgram& program, const std::string& path, const SaveProgramOptions& options = {});
void save_programs(const std::vector<std::pair<std::string, const ExportedProgram*>>& models, const std::string& path,
                   const SaveProgramOptions& options = {});
std::string serialize_program(const ExportedProgram& program, const SaveProgramOptions& options = {});  // the file's bytes

}  // namespace calque
