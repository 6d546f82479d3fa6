// from_pretrained: a model from a folder as Hugging Face writes it, from the hub's cache on this machine, from a weight file or
// from a state dict. Weights stay mapped until something asks for another dtype; what the file lacks is initialised as the
// architecture does it, and reported.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/hub/checkpoint.h"
#include "calque/hub/key_report.h"
#include "calque/hub/pretrained_model.h"

namespace calque {

struct LoadOptions {
  std::string model_class = {};     // by default the first of the config's architectures
  std::string task = {};            // or the class of the architecture for a task: "causal-lm"
  std::optional<DType> dtype = {};  // unset: the config's, else as the weights are
  std::string attention = {};       // "eager" or "sdpa"; by default sdpa where the class has it
  std::string subfolder = {}, variant = {}, revision = "main";
  std::string adapter_subfolder = {}, adapter_revision = {};  // where its adapter is, when not beside it
  std::filesystem::path cache_dir = {};
  std::optional<bool> use_safetensors = {};
  std::optional<Config> config = {};     // instead of the folder's
  Config::Items config_updates = {};     // values that count instead of the config's; UserError for an unknown name
  bool ignore_mismatched_sizes = false;  // initialise what has another shape in the checkpoint
  bool strict = false;                   // UserError when a key is missing or unexpected
  // A model of more parameters is a UserError before it has any. By default what the checkpoint holds decides, with room for what it
  // may lack, and without a checkpoint this machine's memory.
  std::optional<int64_t> max_parameters = {};
  // false: for sizes and dtypes alone. Of weight files only the headers are read, and the parameters' values mean nothing.
  bool values = true;
  std::vector<std::pair<std::string, std::string>> key_mapping = {};  // keys of the file: regular expression, replacement
  std::function<void(uint64_t done, uint64_t total)> progress = {};   // tensors of the checkpoint taken over
};

struct LoadedModel {
  std::shared_ptr<PretrainedModel> model;
  LoadReport report;
};

// In eval mode. `name_or_path` is a folder, ORG/NAME in the hub's cache, or a weight file (options.config says of what). A folder with
// an adapter_config.json has an adapter (hub/adapters.h), of the model in it or else of the one that the adapter names.
// UserErrors name what was looked for and where. What is missing, and what is unexpected in a checkpoint of this class, is
// also a warning.
std::shared_ptr<PretrainedModel> from_pretrained(const std::filesystem::path& name_or_path, const LoadOptions& options = {});
LoadedModel load_pretrained(const std::filesystem::path& name_or_path, const LoadOptions& options = {});
// The weights are the given tensors, not copied where their dtype is right.
LoadedModel load_pretrained(const Config& config, const StateDict& state, const LoadOptions& options = {});
// Newly initialised, of options.dtype, else the config's, else float32; in training mode.
std::shared_ptr<PretrainedModel> from_config(const Config& config, const LoadOptions& options = {});

// How attention is computed from the next call on, in this model and those inside it: "eager" or "sdpa". UserError for any other
// word, and for a class that has no sdpa.
void set_attention_implementation(PretrainedModel& model, const std::string& attention);

// The configuration alone, found in the same places; a path may also be a JSON file.
Config config_from_pretrained(const std::filesystem::path& name_or_path, const LoadOptions& options = {});

// "auto" is unset; UserError for what is neither that nor the name of a dtype.
std::optional<DType> dtype_option(std::string_view text);
// Of the first floating-point parameter, else of the last one; UserError for a module without parameters.
DType parameter_dtype(const Module& module);

// Shards of a folder into a model that is there. With `strict` keys that do not fit are a UserError before anything is read.
IncompatibleKeys load_sharded_checkpoint(Module& model, const std::filesystem::path& folder, bool strict = true,
                                         bool prefer_safetensors = true);

}  // namespace calque
