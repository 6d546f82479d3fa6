// StoredWeights: packed copies of a program's weights that came with it in its file (`calque compile`). The file is not trusted: a
// copy is used where the checksum, sizes and strides of its weights are those of the program's own, its size is what this machine's
// kernels read, and the version and instruction set are these. All else is packed anew. Made once, then only read.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "calque/export/compiled_entries.h"
#include "calque/run/passes.h"

namespace calque {
class ExportedProgram;
}

namespace calque::run {

class StoredWeights {
 public:
  // Null for a program that has none, or none for this machine; the log "plan" says why.
  static std::shared_ptr<const StoredWeights> of(const ExportedProgram& program);

  bool empty() const { return blocks_.empty(); }
  Tensor find(const Tensor& weights, bool transposed) const;  // undefined where there is none that fits

 private:
  StoredWeights() = default;
  void read(const CompiledEntries& entries);

  std::map<std::string, CompiledEntries::Block> blocks_;    // by what they are copies of
  std::unordered_map<const Storage*, uint32_t> checksums_;  // of the state
  std::vector<Ref<Storage>> state_;                         // keeps what the keys above point to
};

// What a file keeps of the copies that passes made.
CompiledEntries stored_entries(std::span<const PackedCopy> copies);

}  // namespace calque::run
