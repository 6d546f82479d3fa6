// Adapters in folders: adapter_config.json beside adapter_model.safetensors or adapter_model.bin.
#include <algorithm>
#include <map>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/file/file_writer.h"
#include "calque/file/folder_writer.h"
#include "calque/file/pickle.h"
#include "calque/hub/checkpoint.h"
#include "calque/hub/save_pretrained.h"
#include "hub/adapter/files.h"
#include "hub/adapter/inject.h"
#include "hub/adapter/prompt.h"

namespace calque {

namespace fs = std::filesystem;

namespace {

constexpr const char* config_file = "adapter_config.json";
constexpr const char* safe_file = "adapter_model.safetensors";
constexpr const char* pickle_file = "adapter_model.bin";

// Prompts stand beside the model in PEFT, other adapters have their layers in a tuner that holds the model.
std::string_view prefix_of(const AdapterConfig& config) {
  return config.is_prompt_learning() ? "base_model." : adapter::saved_prefix;
}

std::string without_prefix(const std::string& name, std::string_view prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

fs::path weights_of(const ModelFiles& files, const std::optional<bool>& use_safetensors) {
  if (use_safetensors.value_or(true))
    if (const auto safe = files.find(safe_file)) return *safe;
  if (!use_safetensors.value_or(false))
    if (const auto pickled = files.find(pickle_file)) return *pickled;
  const std::string looked =
      use_safetensors ? (*use_safetensors ? safe_file : pickle_file) : std::string(safe_file) + " or " + pickle_file;
  throw UserError(ErrorKind::bad_file, files.where() + ": there is an " + config_file + ", but no " + looked +
                                           " with the adapter's tensors; there are " + files.listing());
}

// What does not fit is said at once, before anything is written.
void fill(PretrainedModel& model, const std::string& name, const std::map<std::string, Tensor>& state,
          const std::string& where) {
  const GradModeScope no_grad(false);
  const StateDict own = model.state_dict();
  std::map<std::string, std::string> names;
  std::vector<std::string> missing, unexpected;
  for (const auto& [saved, mine] : adapter::state_names(model, name)) {
    names.emplace(saved, mine);
    if (!state.contains(saved)) missing.push_back(saved);
  }
  std::vector<std::pair<Tensor, Tensor>> copies;
  std::string wrong;
  for (const auto& [saved, tensor] : state) {
    const auto found = names.find(saved);
    const Tensor* mine = own.find(found == names.end() ? saved : found->second);
    if (!mine) {
      unexpected.push_back(saved);
    } else if (!std::ranges::equal(mine->sizes(), tensor.sizes())) {
      wrong += "\n  " + saved + ": expected sizes " + str(mine->sizes()) + ", found " + str(tensor.sizes());
    } else {
      copies.emplace_back(*mine, tensor);
    }
  }
  if (!wrong.empty())
    throw UserError(ErrorKind::bad_file, where + ": tensors of the adapter do not fit " + model.class_name() + ":" + wrong +
                                             "\nIs it an adapter of another base model, or of another rank?");
  if (copies.empty())
    throw UserError(ErrorKind::bad_file, where + ": no tensor of it is of the adapter that " + config_file +
                                             " describes; expected " +
                                             (names.empty() ? "none" : names.begin()->first + " and others") + ", found " +
                                             (unexpected.empty() ? "no tensors" : unexpected[0] + " and others"));
  if (!unexpected.empty())
    warn("Loading adapter weights from " + where +
         " led to unexpected keys not found in the model: " + join(unexpected, ", ") + ".");
  if (!missing.empty())
    warn("Loading adapter weights from " + where + " led to missing keys in the model: " + join(missing, ", ") + ".");
  std::vector<Tensor> written;
  for (const auto& [mine, tensor] : copies) written.push_back(mine);
  adapter::make_writable(model, written);
  for (const auto& [mine, tensor] : copies) mine.detach().copy_(tensor);
}

void load(PretrainedModel& model, const AdapterConfig& config, const NamedTensors& tensors, const std::string& where,
          const std::string& name, const LoadAdapterOptions& options) {
  std::map<std::string, Tensor> state;
  for (const auto& [key, tensor] : tensors) {
    if (!tensor.is_floating_point())
      throw UserError(ErrorKind::bad_file, where + ": " + key + " is " + std::string(calque::name(tensor.dtype())) +
                                               ", expected floating-point numbers");
    state.emplace(without_prefix(key, prefix_of(config)), tensor);
  }
  const auto find = [&](const std::string& saved) -> const Tensor* {
    const auto found = state.find(saved);
    return found == state.end() ? nullptr : &found->second;
  };
  adapter::inject(model, config, name, {.trains = options.trains, .wide = options.wide}, find);
  try {
    if (config.is_prompt_learning()) {
      adapter::load_prompt(model, name, find("prompt_embeddings"), where);
      state.erase("prompt_embeddings");
    }
    if (!config.is_prompt_learning() || !state.empty()) fill(model, name, state, where);
  } catch (...) {
    adapter::forget(model, name);
    throw;
  }
}

NamedTensors saved_tensors(PretrainedModel& model, const std::string& name, bool safe) {
  NamedTensors out;
  std::map<const void*, int> seen;
  const std::string prefix(prefix_of(adapter_config(model, name)));
  for (const auto& [key, tensor] : adapter_state_dict(model, name)) {
    Tensor t = tensor.detach().contiguous();
    if (safe && t.numel() > 0 && seen[t.data()]++ > 0) t = t.clone();
    out.emplace_back(key == "prompt_embeddings" ? key : prefix + key, t);
  }
  return out;
}

AdapterConfig saved_config(const PretrainedModel& model, const std::string& name) {
  AdapterConfig config = adapter_config(model, name);
  config.set("inference_mode", true);
  if (!config.has("base_model_name_or_path"))
    if (const Value* path = model.config().find("_name_or_path");
        path && path->kind() == Value::Kind::string && !path->to_string().empty())
      config.set("base_model_name_or_path", *path);
  if (!config.has("task_type") && !config.has("auto_mapping")) {
    const std::string type = model.type_name();
    const size_t dot = type.rfind('.');
    config.set("auto_mapping", dict({{"base_model_class", model.class_name()},
                                     {"parent_library", dot == std::string::npos ? type : type.substr(0, dot)}}));
  }
  return config;
}

void write_adapter(PretrainedModel& model, const fs::path& folder, const std::string& name,
                   const SaveAdapterOptions& options) {
  FolderWriter writer(folder, adapter::is_adapter_file);
  adapter::write_files(model, name, writer.path(), options.safe_serialization, options.sync);
  writer.commit(options.sync);
}

}  // namespace

namespace adapter {

bool is_adapter_file(const std::string& name) { return name == config_file || name == safe_file || name == pickle_file; }

Written write_files(PretrainedModel& model, const std::string& name, const fs::path& folder, bool safe, bool sync) {
  const NamedTensors tensors = saved_tensors(model, name, safe);
  const std::string json = saved_config(model, name).to_json();
  FileWriter config((folder / config_file).string());
  config.write(json.data(), json.size());
  config.commit(sync);
  const std::string path = (folder / (safe ? safe_file : pickle_file)).string();
  if (safe) {
    save_safetensors(path, tensors, SafetensorsMetadata{{"format", "pt"}}, sync);
  } else {
    std::vector<std::pair<Value, Value>> items;
    for (const auto& [key, tensor] : tensors) items.emplace_back(key, tensor);
    save_pickle(path, dict(std::move(items)), sync);
  }
  Written out{{config_file, safe ? safe_file : pickle_file}, 0};
  for (const auto& [key, tensor] : tensors) out.bytes += tensor.nbytes();
  return out;
}

}  // namespace adapter

bool is_adapter_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / config_file, ignored);
}

fs::path base_folder(const fs::path& folder) {
  std::error_code ignored;
  if (!is_adapter_folder(folder) || fs::exists(folder / "config.json", ignored)) return folder;
  const std::string base = AdapterConfig::from_file(folder / config_file).text("base_model_name_or_path");
  return base.empty() ? folder : ModelFiles(base).folder();
}

fs::path tokenizer_folder(const fs::path& folder) {
  if (!is_adapter_folder(folder)) return folder;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string(); is_companion(name) && name != "generation_config.json")
      return folder;
  return base_folder(folder);
}

void load_adapter(PretrainedModel& model, const fs::path& name_or_path, const std::string& name,
                  const LoadAdapterOptions& options) {
  const ModelFiles files(name_or_path.string(),
                         {.revision = options.revision, .subfolder = options.subfolder, .cache_dir = options.cache_dir});
  const AdapterConfig config = AdapterConfig::from_file(files.at(config_file));
  const fs::path weights = weights_of(files, options.use_safetensors);
  const Checkpoint checkpoint = Checkpoint::open(checkpoint_at(weights));
  load(model, config, checkpoint.tensors(), weights.string(), name, options);
}

void load_adapter(PretrainedModel& model, const AdapterConfig& config, const StateDict& state, const std::string& name,
                  const LoadAdapterOptions& options) {
  load(model, config, state.items(), "the adapter's state dict", name, options);
}

void save_adapter(PretrainedModel& model, const fs::path& folder, const SaveAdapterOptions& options) {
  std::error_code ignored;
  if (fs::is_regular_file(folder, ignored))
    throw UserError(ErrorKind::bad_file, "Provided path (" + folder.string() + ") should be a directory, not a file");
  const std::vector<std::string> names = options.names.empty() ? adapter_names(model) : options.names;
  if (names.empty()) throw UserError("No adapter loaded. Please load an adapter first.");
  for (const std::string& name : names) adapter::check_adapter(model, name);
  for (const std::string& name : names) {
    if (names.size() == 1 || name == "default") write_adapter(model, folder, name, options);
  }
  for (const std::string& name : names)
    if (names.size() > 1 && name != "default") {
      fs::create_directories(folder);
      write_adapter(model, folder / name, name, options);
    }
}

}  // namespace calque
