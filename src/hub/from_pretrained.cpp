#include "calque/hub/from_pretrained.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>
#include <unordered_set>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/hub/adapters.h"
#include "calque/hub/registry.h"
#include "calque/nn/meta_parameters.h"
#include "calque/tensor/default_dtype.h"
#include "file/file_format.h"
#include "hub/near_names.h"
#include "hub/python_way.h"
#include "hub/weight_loading.h"

namespace calque {

namespace fs = std::filesystem;

namespace {

HubOptions hub_options(const LoadOptions& options) {
  return {.revision = options.revision.empty() ? "main" : options.revision,
          .subfolder = options.subfolder,
          .cache_dir = options.cache_dir};
}

// ---- which class ----------------------------------------------------------------------------------------------------

std::vector<std::string> class_names(const Architecture& architecture) {
  std::vector<std::string> out;
  for (const ModelClass& one : architecture.classes) out.push_back(one.name);
  return out;
}

// No guess: gpt_neox is near gpt_neo by its letters alone.
[[noreturn]] void unknown_architecture(const Config& config, const std::string& wanted) {
  std::vector<std::string> types;
  for (const auto& architecture : model_registry().architectures()) types.push_back(architecture->model_type);
  std::sort(types.begin(), types.end());
  const std::string type = config.model_type();
  const Value* name = config.find("_name_or_path");
  const std::string folder = name && name->kind() == Value::Kind::string && !name->to_string().empty()
                                 ? name->to_string()
                                 : fs::path(config.where()).parent_path().string();
  throw UserError(ErrorKind::bad_file, config.where() + ": " +
                                           (type.empty() ? "\"model_type\", which names the architecture, is missing"
                                                         : "there is no architecture \"" + type + "\"") +
                                           (wanted.empty() ? "" : " and no model class " + wanted) +
                                           (type.empty() ? "\nCalque has these " : " in Calque\nIt has these ") +
                                           std::to_string(types.size()) + " (`calque models` lists their classes):\n" +
                                           wrapped_list(types) + "\n" + python_way(config, folder));
}

[[noreturn]] void unknown_class(const Config& config, const std::string& name) {
  if (const Architecture* architecture = model_registry().find(config.model_type()))
    throw UserError(ErrorKind::bad_file,
                    config.where() + ": there is no model class " + name + did_you_mean(name, class_names(*architecture)) +
                        "\nOf " + architecture->model_type + " there are\n" + wrapped_list(class_names(*architecture)));
  unknown_architecture(config, name);
}

const ModelClass& choose_class(const Config& config, const LoadOptions& options) {
  std::string name = options.model_class;
  if (name.empty() && !options.task.empty()) {
    const Architecture* architecture = model_registry().find(config.model_type());
    if (!architecture) unknown_architecture(config, "");
    const ModelClass* found = model_registry().find_task(config.model_type(), options.task);
    if (!found) {
      std::vector<std::string> tasks;
      for (const ModelClass& one : architecture->classes) tasks.insert(tasks.end(), one.tasks.begin(), one.tasks.end());
      throw UserError(config.where() + ": " + architecture->model_type + " has no class for the task \"" + options.task +
                      "\"; it has " + listed(tasks));
    }
    return *found;
  }
  if (name.empty()) {
    const std::vector<std::string> names = config.architectures();
    if (names.empty() && !model_registry().find(config.model_type())) unknown_architecture(config, "");
    if (names.empty())
      throw UserError(ErrorKind::bad_file, config.where() +
                                               ": \"architectures\" is missing; name a class (--class, or model_class): " +
                                               listed(class_names(*model_registry().find(config.model_type()))));
    name = names.front();
  }
  const ModelClass* found = model_registry().find_class(name);
  if (!found) unknown_class(config, name);
  return *found;
}

// A class of one architecture with the configuration of another one: what they share counts.
Config config_for(const Config& config, const Architecture& architecture) {
  if (config.model_type() == architecture.model_type) return config;
  // Of a model of several parts ("text_config", "vision_config") a part's own, which says its type.
  for (const auto& [key, value] : config.items()) {
    const Value* type = value.kind() == Value::Kind::dict ? value.to_dict().find("model_type") : nullptr;
    if (type && type->kind() == Value::Kind::string && type->to_string() == architecture.model_type)
      return config.nested(key);
  }
  Config::Items items = config.items();
  bool named = false;
  for (auto& [key, value] : items) {
    if (key != "model_type") continue;
    value = architecture.model_type;
    named = true;
  }
  if (!named) items.emplace_back("model_type", architecture.model_type);
  if (!config.model_type().empty())
    warn("You are using a model of type " + config.model_type() + " to instantiate a model of type " +
         architecture.model_type + ". This is not supported for all configurations of models and can yield errors.");
  Config out(std::move(items), config.where());
  out.attention_implementation = config.attention_implementation;
  return out;
}

// ---- how large it may be --------------------------------------------------------------------------------------------

// A checkpoint may lack a head, or layers that are to be trained anew. A model of far more parameters than its checkpoint has
// belongs to another checkpoint, or is made up.
int64_t with_room(int64_t held, int64_t room) {
  constexpr int64_t times = 8;
  return held > (std::numeric_limits<int64_t>::max() - room) / times ? std::numeric_limits<int64_t>::max()
                                                                     : times * held + room;
}

int64_t saturated_sum(int64_t a, int64_t b) {
  return __builtin_add_overflow(a, b, &a) ? std::numeric_limits<int64_t>::max() : a;
}

// Sizes of a configuration may multiply to more than a tensor counts.
int64_t saturated_elements(IntList sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes)
    if (__builtin_mul_overflow(count, size, &count)) return std::numeric_limits<int64_t>::max();
  return count;
}

// The highest number in the names ("model.layers.11.mlp.weight") and one more.
int64_t layers_in(const NamedTensors& tensors) {
  int64_t layers = 0;
  for (const auto& [name, tensor] : tensors)
    for (size_t at = 0; at < name.size();) {
      const size_t end = std::min(name.find('.', at), name.size());
      int64_t number = 0;
      const auto [stop, error] = std::from_chars(name.data() + at, name.data() + end, number);
      if (error == std::errc() && stop == name.data() + end && number >= 0 && number < std::numeric_limits<int32_t>::max())
        layers = std::max(layers, number + 1);
      at = end + 1;
    }
  return layers;
}

ModelLimits limits_of(const Checkpoint& checkpoint, const LoadOptions& options) {
  int64_t held = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) held = saturated_sum(held, tensor.numel());
  const int64_t layers = layers_in(checkpoint.tensors());
  return {.parameters = options.max_parameters.value_or(with_room(held, int64_t{1} << 24)),
          .layers = with_room(layers, 64),
          .reason = checkpoint.where() + " holds " + std::to_string(held) + " parameters in " + std::to_string(layers) +
                    " layers, and what it lacks would have to be made up"};
}

// Without a checkpoint: what this machine can hold.
ModelLimits limits_of_machine(DType dtype, const LoadOptions& options) {
  const int64_t bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  // Parameters without data take no memory.
  const int64_t parameters =
      MetaParametersScope::active() ? std::numeric_limits<int64_t>::max() : bytes / static_cast<int64_t>(item_size(dtype));
  return {.parameters = options.max_parameters.value_or(parameters),
          .layers = std::numeric_limits<int64_t>::max(),
          .reason = options.max_parameters ? "max_parameters says so"
                                           : "this machine has " + std::to_string(bytes) + " bytes of memory"};
}

// Of a model without data.
void check_parameters(PretrainedModel& model, const ModelLimits& limits) {
  int64_t count = 0;
  for (const Tensor& tensor : model.parameters()) count = saturated_sum(count, saturated_elements(tensor.sizes()));
  if (count > limits.parameters)
    throw UserError(ErrorKind::bad_file, model.config().where() + ": " + model.class_name() + " has " +
                                             std::to_string(count) + " parameters, expected at most " +
                                             std::to_string(limits.parameters) + ": " + limits.reason);
}

// ---- making it ------------------------------------------------------------------------------------------------------

void check_attention(const std::string& attention) {
  if (attention.empty() || attention == "eager" || attention == "sdpa") return;
  if (attention.starts_with("flash_attention"))
    throw UserError("attention \"" + attention +
                    "\" is not supported: it needs kernels for a GPU; use \"sdpa\" or \"eager\"");
  throw UserError("specified attention \"" + attention +
                  "\" is not supported; the only possible values are \"eager\" (written out) and \"sdpa\" "
                  "(scaled_dot_product_attention)");
}

std::shared_ptr<PretrainedModel> make_model(const ModelClass& chosen, Config config, DType dtype,
                                            const LoadOptions& options) {
  if (!is_floating(dtype) || is_float8(dtype))
    throw UserError(chosen.name + " cannot be instantiated under dtype " + std::string(name(dtype)) +
                    ", as it is not a floating-point dtype");
  check_attention(options.attention);
  if (!options.attention.empty()) config.attention_implementation = options.attention;
  config.set("dtype", dtype);
  const DefaultDTypeScope scope(dtype);
  std::shared_ptr<PretrainedModel> model = chosen.make(config);
  if (model->supports_sdpa() || config.attention_implementation != "sdpa") return model;
  if (options.attention == "sdpa")
    throw UserError(chosen.name + " does not support attention \"sdpa\" (scaled_dot_product_attention); use \"eager\"");
  model->config().attention_implementation = "eager";
  return model;
}

DType load_dtype(const Config& config, const CheckpointFiles& files, const Checkpoint& checkpoint,
                 const LoadOptions& options) {
  if (options.dtype) return *options.dtype;
  if (const std::optional<DType> dtype = config.dtype()) return *dtype;
  if (!files.dtype.empty()) {
    const std::optional<DType> dtype = dtype_from_name(files.dtype);
    if (!dtype)
      throw UserError(ErrorKind::bad_file,
                      files.index.string() + ": metadata gives dtype \"" + files.dtype + "\", which is not a dtype");
    return *dtype;
  }
  const DType dtype = checkpoint.dtype().value_or(DType::float32);
  return is_floating(dtype) ? dtype : DType::float32;
}

void warn_of(const PretrainedModel& model, const LoadReport& report, const std::string& where) {
  const std::vector<std::string> names = model.config().architectures();
  const bool same_class = std::find(names.begin(), names.end(), model.class_name()) != names.end();
  LoadReport said = report;
  if (!same_class) said.unexpected_keys.clear();
  if (!said.empty()) warn(model.class_name() + " load report from " + where + "\n" + said.table());
}

// Quantised weights are other tensors under the same names; read as plain ones they would compute something else.
void refuse_quantised(const Config& config) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (!config.has(key)) continue;
    const Config quantised = config.nested(key);
    std::string method = quantised.optional_text("quant_method").value_or("");
    if (method.empty() && (quantised.flag("load_in_8bit") || quantised.flag("load_in_4bit"))) method = "bitsandbytes";
    throw UserError(
        ErrorKind::bad_file,
        config.where() + ": \"" + key + "\" says that the weights are quantised (" +
            (method.empty() ? "by a method that it does not name" : method) +
            "), expected plain ones; open the checkpoint that they were made from, or dequantise it with transformers");
  }
}

LoadedModel load_model(Config config, const CheckpointFiles& files, const Checkpoint& checkpoint,
                       const LoadOptions& options) {
  refuse_quantised(config);
  const ModelClass& chosen = choose_class(config, options);
  config = config_for(config, *chosen.architecture);
  const DType dtype = load_dtype(config, files, checkpoint, options);
  const ModelLimits limits = limits_of(checkpoint, options);
  check_limits(config, chosen.architecture, limits);
  LoadedModel out;
  {
    const MetaParametersScope no_data;
    out.model = make_model(chosen, std::move(config), dtype, options);
  }
  check_parameters(*out.model, limits);
  out.report = load_weights(*out.model, checkpoint,
                            {.dtype = dtype,
                             .ignore_mismatched_sizes = options.ignore_mismatched_sizes,
                             .strict = options.strict,
                             .values = options.values,
                             .key_mapping = options.key_mapping,
                             .progress = options.progress});
  checkpoint.read_in_order(out.model->parameters());
  out.model->eval();
  warn_of(*out.model, out.report, checkpoint.where());
  return out;
}

Config updated_config(Config config, const LoadOptions& options) {
  for (const auto& [key, value] : config.update(options.config_updates))
    if (key != "dtype" && key != "torch_dtype")
      throw UserError(config.where() + ": the configuration has no \"" + key + "\" to set");
  return config;
}

Checkpoint open_checkpoint(const CheckpointFiles& files, const LoadOptions& options) {
  return options.values ? Checkpoint::open(files) : Checkpoint::open_headers(files);
}

// Or the index of shards.
bool may_be_weights(FileFormat format) {
  return format == FileFormat::safetensors || format == FileFormat::checkpoint || format == FileFormat::json ||
         format == FileFormat::unknown;
}

bool names_a_config_file(const fs::path& path) { return path.extension() == ".json" && fs::is_regular_file(path); }

std::string file_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

namespace {

// Also by the name of a TensorFlow checkpoint, which has several files.
bool names_a_weight_file(const fs::path& path, const LoadOptions& options) {
  return fs::is_regular_file(path) || (options.config && !fs::exists(path) && fs::exists(path.string() + ".index"));
}

HubOptions adapter_options(const LoadOptions& options) {
  HubOptions out = hub_options(options);
  if (!options.adapter_revision.empty()) out.revision = options.adapter_revision;
  if (!options.adapter_subfolder.empty()) out.subfolder = options.adapter_subfolder;
  return out;
}

// Of a folder with an adapter and without a model of its own.
struct AdapterFolder {
  bool has_adapter = false;
  fs::path base;
};

AdapterFolder adapter_in(const fs::path& name_or_path, const LoadOptions& options) {
  if (names_a_weight_file(name_or_path, options)) return {false, name_or_path};
  const ModelFiles files(name_or_path.string(), adapter_options(options));
  const auto file = files.find("adapter_config.json");
  if (!file) return {false, name_or_path};
  if (ModelFiles(name_or_path.string(), hub_options(options)).find("config.json")) return {true, name_or_path};
  const std::string base = AdapterConfig::from_file(*file).text("base_model_name_or_path");
  if (base.empty())
    throw UserError(ErrorKind::bad_file, file->string() +
                                             ": \"base_model_name_or_path\" does not name the model of the adapter; load "
                                             "the model, and the adapter into it (load_adapter), or write its folder there");
  return {true, base};
}

// Of the adapter's place, which says nothing of where the base model is.
LoadOptions options_of_base(LoadOptions options) {
  options.subfolder.clear();
  options.variant.clear();
  options.revision = "main";
  return options;
}

Config config_of_base(const fs::path& name_or_path, const LoadOptions& options) {
  const ModelFiles files(name_or_path.string(), hub_options(options));
  files.at("config.json");
  Config config = Config::from_file(files.folder());
  config.set("_name_or_path", name_or_path.string());
  return updated_config(std::move(config), options);
}

LoadedModel load_base(const fs::path& name_or_path, const LoadOptions& options);

}  // namespace

Config config_from_pretrained(const fs::path& name_or_path, const LoadOptions& options) {
  if (options.config) return updated_config(*options.config, options);
  if (names_a_config_file(name_or_path)) return updated_config(Config::from_file(name_or_path), options);
  const fs::path base = adapter_in(name_or_path, options).base;
  return config_of_base(base, base == name_or_path ? options : options_of_base(options));
}

LoadedModel load_pretrained(const fs::path& name_or_path, const LoadOptions& options) {
  const AdapterFolder found = adapter_in(name_or_path, options);
  if (!found.has_adapter) return load_base(name_or_path, options);
  LoadedModel out = load_base(found.base, found.base == name_or_path ? options : options_of_base(options));
  const HubOptions where = adapter_options(options);
  load_adapter(*out.model, name_or_path, "default",
               {.subfolder = where.subfolder, .revision = where.revision, .cache_dir = where.cache_dir});
  out.model->eval();
  return out;
}

namespace {

LoadedModel load_base(const fs::path& name_or_path, const LoadOptions& options) {
  const bool is_there = fs::is_regular_file(name_or_path);
  const bool is_file = names_a_weight_file(name_or_path, options);
  if (is_file) {
    if (const FileFormat found = is_there ? format_of_file(name_or_path.string()) : FileFormat::unknown;
        !may_be_weights(found))
      refuse_format(name_or_path.string(), "a model folder", found);
    const fs::path folder = name_or_path.parent_path();
    LoadOptions beside = options;
    beside.subfolder.clear();
    if (!options.config && !fs::is_regular_file(folder / "config.json"))
      throw UserError(ErrorKind::bad_file,
                      name_or_path.string() +
                          " is a weight file, and there is no config.json beside it: give a config, or name a folder");
    const Config config = options.config ? updated_config(*options.config, options)
                                         : config_of_base(folder.empty() ? fs::path(".") : folder, beside);
    const CheckpointFiles files = checkpoint_at(name_or_path);
    return load_model(config, files, open_checkpoint(files, options), options);
  }
  const ModelFiles where(name_or_path.string(), hub_options(options));
  Config config = options.config ? updated_config(*options.config, options) : config_of_base(name_or_path, options);
  choose_class(config, options);  // an architecture that we do not have is said before weights are looked for
  const CheckpointFiles files =
      find_checkpoint(where, {.use_safetensors = options.use_safetensors, .variant = options.variant});
  LoadedModel out = load_model(std::move(config), files, open_checkpoint(files, options), options);
  if (const auto generation = where.find("generation_config.json"))
    out.model->generation_config_json = file_text(*generation);
  return out;
}

}  // namespace

LoadedModel load_pretrained(const Config& config, const StateDict& state, const LoadOptions& options) {
  return load_model(updated_config(config, options), {}, Checkpoint::of(state.items()), options);
}

std::shared_ptr<PretrainedModel> from_pretrained(const fs::path& name_or_path, const LoadOptions& options) {
  return load_pretrained(name_or_path, options).model;
}

std::shared_ptr<PretrainedModel> from_config(const Config& given, const LoadOptions& options) {
  const Config config = updated_config(given, options);
  const ModelClass& chosen = choose_class(config, options);
  const DType dtype = options.dtype ? *options.dtype : config.dtype().value_or(DType::float32);
  const Config own = config_for(config, *chosen.architecture);
  const ModelLimits limits = limits_of_machine(dtype, options);
  check_limits(own, chosen.architecture, limits);
  {
    const MetaParametersScope no_data;  // how much it would take, before it takes it
    check_parameters(*make_model(chosen, own, dtype, options), limits);
  }
  std::shared_ptr<PretrainedModel> model = make_model(chosen, own, dtype, options);
  model->init_all_weights();
  return model;
}

std::optional<DType> dtype_option(std::string_view text) {
  if (text == "auto") return std::nullopt;
  if (const std::optional<DType> dtype = dtype_from_name(text)) return dtype;
  throw UserError("dtype can only be \"auto\" or the name of a dtype such as float32 or bfloat16, found \"" +
                  std::string(text) + "\"");
}

DType parameter_dtype(const Module& module) {
  const std::vector<Tensor> parameters = module.parameters();
  if (parameters.empty()) throw UserError(module.class_name() + " has no parameters, and so no dtype");
  for (const Tensor& parameter : parameters)
    if (parameter.is_floating_point()) return parameter.dtype();
  return parameters.back().dtype();
}

IncompatibleKeys load_sharded_checkpoint(Module& model, const fs::path& folder, bool strict, bool prefer_safetensors) {
  const CheckpointFiles files = find_sharded_checkpoint(folder, prefer_safetensors);
  const StateDict own = model.state_dict();
  std::unordered_set<std::string> given;
  IncompatibleKeys keys;
  for (const auto& [key, file] : files.weight_map) {
    given.insert(key);
    if (!own.contains(key)) keys.unexpected_keys.push_back(key);
  }
  for (const auto& [key, tensor] : own)
    if (!given.contains(key)) keys.missing_keys.push_back(key);
  if (strict && !(keys.missing_keys.empty() && keys.unexpected_keys.empty())) {
    const auto quoted = [](const std::vector<std::string>& names) {
      std::string out;
      for (const std::string& name : names) out += (out.empty() ? "\"" : ",\"") + name + "\"";
      return out;
    };
    std::string text = "Error(s) in loading state_dict for " + model.class_name();
    if (!keys.missing_keys.empty()) text += "\nMissing key(s): " + quoted(keys.missing_keys) + ".";
    if (!keys.unexpected_keys.empty()) text += "\nUnexpected key(s): " + quoted(keys.unexpected_keys) + ".";
    throw UserError(ErrorKind::bad_file, text);
  }
  const Checkpoint checkpoint = Checkpoint::open(files);
  model.load_state_dict(StateDict(checkpoint.tensors()), false);
  return keys;
}

void set_attention_implementation(PretrainedModel& model, const std::string& attention) {
  if (attention.empty()) throw UserError("set_attention_implementation: name \"eager\" or \"sdpa\"");
  check_attention(attention);
  std::vector<PretrainedModel*> models;
  for (const auto& [path, module] : model.named_modules())
    if (auto* inner = dynamic_cast<PretrainedModel*>(module)) models.push_back(inner);
  for (const PretrainedModel* inner : models)
    if (attention == "sdpa" && !inner->supports_sdpa())
      throw UserError(inner->class_name() +
                      " does not support attention \"sdpa\" (scaled_dot_product_attention); use \"eager\"");
  for (PretrainedModel* inner : models) inner->config().attention_implementation = attention;
}

}  // namespace calque
