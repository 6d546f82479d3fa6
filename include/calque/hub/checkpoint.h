// The weight files of a model, and what is in them. find_checkpoint says which files there are (safetensors or .bin, whole or
// in shards with an index), Checkpoint opens them. Tensors of safetensors and zipped .bin files are views of the mapped
// file: nothing is copied and nothing is held twice. Mapped safetensors are brought into memory meanwhile, by threads of their own.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/file/safetensors.h"
#include "calque/hub/hub_cache.h"

namespace calque {

class ReadAhead;

struct CheckpointOptions {
  std::optional<bool> use_safetensors = {};  // false: only .bin; true: only safetensors; unset: safetensors where there are
  std::string variant = {};                  // "fp16" for model.fp16.safetensors
};

struct CheckpointFiles {
  std::vector<std::filesystem::path> files;                          // the one file, or the shards by name
  std::filesystem::path index = {};                                  // empty unless there are shards
  std::vector<std::pair<std::string, std::string>> weight_map = {};  // of the index: key and file name
  std::string dtype = {};                                            // of the index's metadata
  bool is_sharded() const { return !index.empty(); }
};

// "model.safetensors" and "fp16" make "model.fp16.safetensors".
std::string with_variant(const std::string& filename, const std::string& variant);

// UserErrors name the files that were looked for and where, and a shard that the index names and that is not there.
CheckpointFiles find_checkpoint(const ModelFiles& files, const CheckpointOptions& options = {});
// A weight file or an index, named directly.
CheckpointFiles checkpoint_at(const std::filesystem::path& file);
// Shards only: the index of safetensors first when it is there and `prefer_safetensors`.
CheckpointFiles find_sharded_checkpoint(const std::filesystem::path& folder, bool prefer_safetensors = true);

class Checkpoint {
 public:
  // Every header is read and checked. A Git LFS pointer, a cut-off file or a pickle that asks for code is a UserError
  // (bad_file) that says which and what to do.
  static Checkpoint open(const CheckpointFiles& files);
  // The same, without the values: tensors of safetensors files have no data, and nothing is read ahead.
  static Checkpoint open_headers(const CheckpointFiles& files);
  // Tensors in memory.
  static Checkpoint of(NamedTensors tensors, std::string where = "the state dict");

  const NamedTensors& tensors() const { return tensors_; }
  const std::string& where() const { return where_; }
  // Of the first floating-point tensor of the first file (8-bit ones not counted); of the first tensor when there is none.
  std::optional<DType> dtype() const;
  // What is not in memory yet is read in the order of these tensors, as a model will use them, instead of the files' order.
  void read_in_order(const std::vector<Tensor>& used) const;

 private:
  static Checkpoint open(const CheckpointFiles& files, bool values);

  NamedTensors tensors_;
  size_t first_file_ = 0;  // how many of them are from the first file
  std::string where_;
  std::shared_ptr<ReadAhead> ahead_;
};

}  // namespace calque
