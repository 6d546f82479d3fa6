// save_pretrained: a model into a folder as transformers writes it: config.json, generation_config.json where the model can
// generate, the weights in one file or in shards with an index. Tied weights are written once. The folder is built beside the old
// one and exchanged whole (file/folder_writer.h); other files that were there (a README, other variants) stay, and weights of the
// same variant that are not part of the new checkpoint go. A tokenizer that was there stays too, as with transformers, unless the
// companions of the model are written with it: then they are part of the exchange, and those of another model go.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calque/file/folder_writer.h"
#include "calque/hub/pretrained_model.h"

namespace calque {

struct SaveOptions {
  std::string max_shard_size = "";           // "5GB", "200MiB"; empty: transformers' default, 50GB (5GB for transformers 4)
  bool safe_serialization = true;            // model.safetensors; else pytorch_model.bin
  std::string variant = "";                  // "fp16": model.fp16.safetensors
  std::optional<DType> dtype = {};           // floating-point weights are written in it; the model stays as it is
  std::optional<StateDict> state_dict = {};  // these tensors instead of the model's
  std::optional<std::string> generation_config = {};  // JSON, instead of the model's own
  // The folder that the model came from: what else it holds is written beside the weights (tokenizer, templates, README, the parts of
  // sentence-transformers; not weights in other forms, not hidden files), and no other model's companions are left there.
  std::optional<std::filesystem::path> companions_of = {};
  bool is_main_process = true;  // false: weights only
  int transformers = 5;         // whose files: 4 writes torch_dtype, no total_parameters, and shards as it does
  bool sync = true;             // false: whole after a crash of the process, not after one of the machine
  FolderWriter::Exchange at_best = FolderWriter::Exchange::whole;
  std::function<void(uint64_t done, uint64_t total)> progress = {};  // bytes of weights written, after each file
};

struct SaveResult {
  std::vector<std::string> files;  // in the order written
  uint64_t total_size = 0;         // bytes of weights
  FolderWriter::Exchange exchange = FolderWriter::Exchange::whole;
};

// Sets "architectures" and "dtype" of the model's config, as transformers does. UserError when the path is a file, when tensors
// share memory that no tie explains (safetensors would lose that), when the disk is full; the old folder is as it was then.
SaveResult save_pretrained(PretrainedModel& model, const std::filesystem::path& folder, const SaveOptions& options = {});

// Whether a file or folder of a model folder is known to belong to the model besides its configuration and weights: tokenizer, chat
// templates, settings of processors and of generation. Of a folder that is written over, another model's go; a README, a license
// or code stay, unless the model brings its own.
bool is_companion(const std::string& name);

// What a model's config says of generating: the generation_config.json of a model that came without one.
std::string generation_config_from(const Config& config, int transformers = 5);

// What is left of a state dict when each group of tensors that are the same memory keeps one name: those that `tied` lists go,
// one of a group stays whatever it is called. Views side by side in one storage are copied apart. UserError lists names
// that overlap otherwise.
StateDict without_tied_weights(const StateDict& state, const std::vector<std::string>& tied);

}  // namespace calque
