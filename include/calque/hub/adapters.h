// Adapters of a model, as PEFT has them: LoRA (with DoRA, rank-stabilised scaling and the rest of its configuration), IA3, prompt and
// prefix tuning. A model may have several; those that are active change what it computes. The targeted modules stand behind modules
// with the adapters' tensors, whose names are PEFT's; the model stays the object that it is.
//
//   add_adapter(*model, AdapterConfig(AdapterType::lora, {{"r", 8}, {"target_modules", "all-linear"}}));   // to be trained
//   save_adapter(*model, "folder");            // adapter_config.json and adapter_model.safetensors, which peft opens
//   load_adapter(*other, "folder", "french");  // and the other way round
//   set_adapter(*other, {"french"});
//
// from_pretrained of a folder that has an adapter_config.json loads the base model that it names, and the adapter.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calque/hub/adapter_config.h"
#include "calque/hub/pretrained_model.h"

namespace calque {

// The adapters of a model, in the order in which they came.
struct AdapterBook {
  std::vector<std::pair<std::string, AdapterConfig>> configs;
};

struct AdapterOptions {
  bool trains = true;  // the adapter's tensors take gradients
  bool wide = true;    // tensors of 16-bit models are float32, as training needs it
};

// Adds a new adapter and makes it the active one. Everything but the adapter stops taking gradients. UserErrors: the name is taken,
// nothing is targeted, a targeted module cannot have such an adapter; the model is as it was then.
void add_adapter(PretrainedModel& model, const AdapterConfig& config, const std::string& name = "default",
                 const AdapterOptions& options = {});

struct LoadAdapterOptions {
  std::string subfolder = {}, revision = "main";
  std::filesystem::path cache_dir = {};
  std::optional<bool> use_safetensors = {};  // false: adapter_model.bin; unset: safetensors where there are
  bool trains = false;
  bool wide = true;
};
// A folder, or ORG/NAME in the hub's cache. What the file has and the adapter does not is a warning, and so is what it lacks, which
// then starts as a new adapter's; other sizes are a UserError.
void load_adapter(PretrainedModel& model, const std::filesystem::path& name_or_path, const std::string& name = "default",
                  const LoadAdapterOptions& options = {});
void load_adapter(PretrainedModel& model, const AdapterConfig& config, const StateDict& state,
                  const std::string& name = "default", const LoadAdapterOptions& options = {});

std::vector<std::string> adapter_names(const PretrainedModel& model);
const AdapterConfig& adapter_config(const PretrainedModel& model, const std::string& name);  // UserError for an unknown name
std::vector<std::string> active_adapters(PretrainedModel& model);
// These and no others. UserError for a name that there is not, and for a model without adapters.
void set_adapter(PretrainedModel& model, const std::vector<std::string>& names, bool trains = true);
void enable_adapters(PretrainedModel& model);
void disable_adapters(PretrainedModel& model);  // the base model's results
void delete_adapter(PretrainedModel& model, const std::string& name);

// Adapters into the base weights, by default those that are active, and out again. With `safe` a result that is not finite is a
// UserError, and the weights are as they were.
void merge_adapters(PretrainedModel& model, const std::vector<std::string>& names = {}, bool safe = false);
void unmerge_adapters(PretrainedModel& model);
// The base model alone again, with the active adapters merged into it or without them.
void merge_and_unload(PretrainedModel& model, bool safe = false);
void unload_adapters(PretrainedModel& model);

// A new adapter, not active: a sum of others. "linear" adds A and B each with the root of the weight, "cat" puts them side by side,
// which is exact.
void add_weighted_adapter(PretrainedModel& model, const std::vector<std::string>& names, const std::vector<double>& weights,
                          const std::string& new_name, const std::string& combination_type = "cat");

// An adapter's tensors by the names of its file, without "base_model.model." in front: adapter's names are not in them.
StateDict adapter_state_dict(PretrainedModel& model, const std::string& name);

struct SaveAdapterOptions {
  bool safe_serialization = true;       // adapter_model.safetensors; else adapter_model.bin
  std::vector<std::string> names = {};  // by default all; "default" in the folder itself, others in folders of their names
  bool sync = true;
};
void save_adapter(PretrainedModel& model, const std::filesystem::path& folder, const SaveAdapterOptions& options = {});

// PEFT's word for what a class is for, the "task_type" of a configuration: "CAUSAL_LM", "SEQ_CLS", ...; "" where it has none.
std::string peft_task(const PretrainedModel& model);

// How many positions the active prompt puts into the cache before a text; 0 without one.
int64_t virtual_tokens(const PretrainedModel& model);
// The inputs of an encoder with the active prompt before the text: for callers of the encoder alone.
ModelInputs with_encoder_prompt(PretrainedModel& model, const ModelInputs& inputs);

// Does the folder hold an adapter? (adapter_config.json)
bool is_adapter_folder(const std::filesystem::path& folder);
// The folder of the base model, of a folder that has an adapter and no model; any other folder is its own. The tokenizer may be in either:
// tokenizer_folder says in which.
std::filesystem::path base_folder(const std::filesystem::path& folder);
std::filesystem::path tokenizer_folder(const std::filesystem::path& folder);

}  // namespace calque
