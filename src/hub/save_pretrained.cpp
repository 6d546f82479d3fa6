#include "calque/hub/save_pretrained.h"
#include "calque/hub/weight_form.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/file/file_writer.h"
#include "calque/file/mapped_file.h"
#include "calque/file/pickle.h"
#include "calque/hub/adapters.h"
#include "calque/hub/checkpoint.h"
#include "calque/hub/offload.h"
#include "calque/hub/sharding.h"
#include "hub/adapter/files.h"
#include "hub/config_json.h"

namespace calque {
namespace {

void write_text(const std::filesystem::path& path, const std::string& text, bool sync) {
  FileWriter writer(path.string());
  writer.write(std::as_bytes(std::span(text.data(), text.size())));
  writer.commit(sync);
}

// The bytes of a file, or of every file in a folder; links are followed, so that what is written stands for itself.
void copy_companion(const std::filesystem::path& from, const std::filesystem::path& to, bool sync) {
  if (std::filesystem::is_directory(from)) {
    std::filesystem::create_directory(to);
    for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(from))
      copy_companion(entry.path(), to / entry.path().filename(), sync);
    return;
  }
  const std::shared_ptr<const MappedFile> file = MappedFile::open(from.string());
  FileWriter writer(to.string());
  writer.write(file->bytes());
  writer.commit(sync);
}

// Weights of this or another framework, and what training leaves: another dtype or other values would not be theirs.
bool is_weights_name(const std::string& name) {
  static constexpr std::string_view endings[] = {".safetensors", ".bin",        ".pt",        ".pth", ".ckpt", ".h5",
                                                 ".msgpack",     ".onnx",       ".onnx_data", ".ot",  ".gguf", ".tflite",
                                                 ".mlmodel",     ".index.json", ".npz",       ".pb"};
  return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); }) ||
         name.starts_with("model.ckpt.");
}

// Whether a file or folder beside the weights goes with the model into another folder: all that is not weights and not hidden. Folders
// with the model in another form stay behind; the parts of sentence-transformers ("1_Pooling", "2_Dense") come, weights included.
bool goes_with_model(const std::filesystem::directory_entry& entry) {
  static const std::set<std::string_view> other_forms = {"onnx",     "openvino", "coreml", "tflite",     "gguf",
                                                         "original", "runs",     "logs",   "__pycache__"};
  const std::string name = entry.path().filename().string();
  if (is_companion(name)) return name != "generation_config.json";  // which the model writes itself
  if (name.starts_with(".") || name == "config.json" || adapter::is_adapter_file(name)) return false;
  if (entry.is_directory()) return !other_forms.contains(name) && !name.starts_with("checkpoint-");
  return entry.is_regular_file() && !is_weights_name(name);
}

template <class F>
auto naming_companions(const std::filesystem::path& from, F&& fn) {
  try {
    return fn();
  } catch (const std::filesystem::filesystem_error& wrong) {
    throw UserError(ErrorKind::bad_file, "save_pretrained: cannot copy what belongs to the model from " + from.string() +
                                             ": " + wrong.path1().string() + ": " + wrong.code().message());
  }
}

// What people write about a model; their own stays.
bool is_about_model(const std::string& name) {
  return name.ends_with(".md") || name.starts_with("README") || name.starts_with("LICENSE") || name.starts_with("NOTICE");
}

// The names of what goes from a model's folder into another one, sorted.
std::vector<std::string> companions_in(const std::filesystem::path& from, const std::filesystem::path& to) {
  return naming_companions(from, [&] {
    std::vector<std::string> names;
    for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(from))
      if (const std::string name = entry.path().filename().string();
          goes_with_model(entry) && !(is_about_model(name) && std::filesystem::exists(to / name)))
        names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  });
}

std::string config_text(const Config& config, int transformers) {
  if (transformers >= 5) return config.to_json_string();
  Config::Items items;
  for (const auto& [key, value] : config.to_diff()) {
    if (key == "dtype") {
      items.emplace_back("torch_dtype", value);
    } else if (key == "rope_parameters" && value.kind() == Value::Kind::dict) {
      // Transformers 4 has the base beside the scaling, and no scaling for the default.
      std::vector<std::pair<Value, Value>> scaling;
      bool scaled = false;
      for (const auto& [name, part] : value.to_dict().items) {
        if (name.to_string() == "rope_theta") items.emplace_back("rope_theta", part);
        if (name.to_string() == "rope_theta" || name.to_string() == "type") continue;
        scaled = scaled || name.to_string() != "rope_type" || part.to_string() != "default";
        scaling.emplace_back(name.to_string() == "rope_type" ? Value("type") : name, part);
      }
      items.emplace_back("rope_scaling", scaled ? dict(std::move(scaling)) : Value());
    } else {
      items.emplace_back(key, value);
    }
  }
  return config_json(items);
}

std::vector<std::string> declared_ties(PretrainedModel& model) {
  std::vector<std::string> names;
  for (const auto& [path, module] : model.named_modules())
    if (const auto* part = dynamic_cast<const PretrainedModel*>(module))
      for (const auto& [name, source] : part->tied_weights()) names.push_back(dotted(path, name));
  return names;
}

std::optional<DType> first_floating_dtype(const Module& model) {
  for (const Tensor& parameter : model.parameters())
    if (is_floating(parameter.dtype())) return parameter.dtype();
  for (const Tensor& buffer : model.buffers())
    if (is_floating(buffer.dtype())) return buffer.dtype();
  return std::nullopt;
}

// Weights that the architecture keeps in float32 stay so in half precision, as they do when loading.
class DTypes {
 public:
  DTypes(const PretrainedModel& model, std::optional<DType> dtype) : dtype_(dtype) {
    if (dtype == DType::float16) kept_ = model.keep_in_fp32_modules();
  }
  DType of(const std::string& name, const Tensor& tensor) const {
    if (!dtype_ || !is_floating(tensor.dtype())) return tensor.dtype();
    for (const std::string& part : kept_)
      if (("." + name).find("." + part + ".") != std::string::npos) return DType::float32;
    return *dtype_;
  }

 private:
  std::optional<DType> dtype_;
  std::vector<std::string> kept_;
};

NamedTensors cast(const NamedTensors& tensors, const DTypes& dtypes) {
  NamedTensors out;
  std::map<std::tuple<const void*, DType, std::vector<int64_t>, std::vector<int64_t>>, Tensor>
      done;  // tied names stay one tensor
  for (const auto& [name, tensor] : tensors) {
    const DType dtype = dtypes.of(name, tensor);
    if (dtype == tensor.dtype()) {
      out.emplace_back(name, tensor);
      continue;
    }
    const auto vec = [](IntList l) { return std::vector<int64_t>(l.begin(), l.end()); };
    Tensor& made = done[{tensor.data(), dtype, vec(tensor.sizes()), vec(tensor.strides())}];
    if (!made.defined()) made = tensor.to(dtype);
    out.emplace_back(name, made);
  }
  return out;
}

void write_weights(const std::filesystem::path& path, const NamedTensors& tensors, bool safe, bool sync) {
  if (safe) {
    save_safetensors(path.string(), tensors, SafetensorsMetadata{{"format", "pt"}}, sync);
    return;
  }
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [name, tensor] : tensors) items.emplace_back(name, tensor.requires_grad() ? tensor.detach() : tensor);
  save_pickle(path.string(), dict(std::move(items)), sync);
}

std::string index_text(const ShardPlan& plan, std::optional<int64_t> total_parameters) {
  std::vector<std::pair<Value, Value>> metadata, map;
  if (total_parameters) metadata.emplace_back("total_parameters", *total_parameters);
  metadata.emplace_back("total_size", static_cast<int64_t>(plan.total_size));
  for (const Shard& shard : plan.shards)
    for (const auto& [name, tensor] : shard.tensors) map.emplace_back(name, shard.file);
  return config_json({{"metadata", dict(std::move(metadata))}, {"weight_map", dict(std::move(map))}});
}

// The new folder is made beside the old one; who reads a message knows the name that was asked for.
template <class F>
void naming_folder(const std::filesystem::path& made, const std::filesystem::path& wanted, F&& fn) {
  try {
    fn();
  } catch (const UserError& error) {
    std::string text = error.what();
    const size_t at = text.find(made.string());
    if (at == std::string::npos) throw;
    throw UserError(error.kind(), text.replace(at, made.string().size(), wanted.string()));
  }
}

}  // namespace

StateDict without_tied_weights(const StateDict& state, const std::vector<std::string>& tied) {
  const std::set<std::string> declared(tied.begin(), tied.end());
  std::set<std::string> gone;
  std::string wrong;
  NamedTensors tensors(state.begin(), state.end());
  std::erase_if(tensors, [](const auto& item) { return item.second.is_fake() || !item.second.storage()->has_data(); });
  for (const SharedMemory& group : find_shared_memory(tensors)) {
    size_t left = group.names.size();
    if (group.identical)
      for (const std::string& name : group.names)
        if (declared.count(name) && left > 1) {
          gone.insert(name);
          --left;
        }
    if (left < 2) continue;
    wrong += wrong.empty() ? "" : ", ";
    std::string names;
    for (const std::string& name : group.names)
      if (!gone.count(name)) names += (names.empty() ? "" : ", ") + name;
    wrong += "{" + names + "}";
  }
  if (!wrong.empty())
    throw UserError("save_pretrained: these tensors share memory, but the model does not declare them tied: " + wrong +
                    ". A safetensors file would hold them as separate tensors. Save with safe_serialization=false, or undo "
                    "the sharing.");
  StateDict out;
  out.versions = state.versions;
  for (const auto& [name, tensor] : state)
    if (!gone.count(name)) out.set(name, tensor);
  return out;
}

bool is_companion(const std::string& name) {
  static const std::set<std::string_view> names = {
      // Tokenizers, as the classes of transformers name their files.
      "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt",
      "merges.txt", "bpe.codes", "dict.txt", "emoji.json", "normalizer.json", "source.spm", "target.spm",
      "target_vocab.json", "spiece.model", "spm.model", "spm_char.model", "sentencepiece.model", "sentencepiece.bpe.model",
      "tokenizer.model", "tiktoken.model", "tekken.json", "entity_vocab.json", "prophetnet.tokenizer",
      // Templates of conversations.
      "chat_template.jinja", "chat_template.json", "additional_chat_templates",
      // Pictures and sound.
      "preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json",
      // Generation.
      "generation_config.json"};
  return names.contains(name);
}

std::string generation_config_from(const Config& config, int transformers) {
  const bool five = transformers >= 5;
  const Config decoder = config.has("decoder") ? config.nested("decoder") : Config();
  Config::Items items{{"_from_model_config", true}};
  const auto take = [&](const std::string& key, const Value& usual) {
    const Value* found = find_item(config.items(), key);
    if (!found || found->is_none()) found = find_item(decoder.items(), key);
    // Transformers 4 leaves out what a GenerationConfig has anyway; for transformers 5 it has nothing.
    if (found && !found->is_none() && (five || !same_value(*found, usual))) items.emplace_back(key, *found);
  };
  for (const auto& [key, usual] : generation_defaults()) take(key, usual);
  for (const char* key : {"pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"}) take(key, {});
  take("use_cache", true);
  for (const char* key : {"output_attentions", "output_hidden_states"}) {
    if (five && !find_item(config.items(), key))
      items.emplace_back(key, false);
    else
      take(key, false);
  }
  items.emplace_back("transformers_version", transformers_version);
  return config_json(items);
}

// Of a model that can generate: what was given, what the model came with, or what its config says.
static std::string generation_config_of(const PretrainedModel& model, const SaveOptions& options) {
  if (options.generation_config) return *options.generation_config;
  const std::string from_config = generation_config_from(model.config(), options.transformers);
  if (model.generation_config_json.empty()) return from_config;
  Config::Items own = parse_config_items(model.generation_config_json, "generation_config.json");
  const Value* derived = find_item(own, "_from_model_config");
  if (derived && derived->kind() == Value::Kind::boolean && derived->to_bool() &&
      !model.config().non_default_generation_parameters().empty()) {
    for (const auto& [key, value] : parse_config_items(from_config, "config.json")) {
      const Value* mine = find_item(own, key);
      if (key == "transformers_version" || (mine && same_value(*mine, value))) continue;
      warn(
          "save_pretrained: the generation config was made from the model config, but the model config has changed since (" +
          key + " is " + value.str() +
          " there); the one that was made is saved. Set generation settings in the generation config, not in the model "
          "config.");
      break;
    }
  }
  return model.generation_config_json;
}

// Of a model with adapters the one that counts, and nothing of the base model.
static SaveResult save_active_adapter(PretrainedModel& model, const std::filesystem::path& folder,
                                      const SaveOptions& options) {
  const std::vector<std::string> active = active_adapters(model);
  if (active.size() > 1)
    throw UserError(
        "Multiple active adapters detected, saving multiple active adapters is not supported yet. You can save "
        "adapters separately one by one: set_adapter(model, {name}), then save_pretrained(model, folder)");
  if (active.empty()) throw UserError("save_pretrained: no adapter of the model is active; choose one with set_adapter");
  std::vector<std::string> companions;
  if (options.companions_of && options.is_main_process) companions = companions_in(*options.companions_of, folder);
  const auto replaces = [&](const std::string& file) {
    return adapter::is_adapter_file(file) || std::ranges::binary_search(companions, file);
  };
  SaveResult result;
  FolderWriter writer(folder, replaces, options.at_best);
  naming_folder(writer.path(), folder, [&] {
    const adapter::Written written =
        adapter::write_files(model, active[0], writer.path(), options.safe_serialization, options.sync);
    result.files = written.files;
    result.total_size = written.bytes;
    for (const std::string& name : companions) {
      naming_companions(*options.companions_of,
                        [&] { copy_companion(*options.companions_of / name, writer.path() / name, options.sync); });
      result.files.push_back(name);
    }
  });
  result.exchange = writer.commit(options.sync);
  return result;
}

SaveResult save_pretrained(PretrainedModel& model, const std::filesystem::path& folder, const SaveOptions& options) {
  std::error_code ignored;  // FolderWriter says what is wrong with a path
  if (std::filesystem::is_regular_file(folder, ignored))
    throw UserError(ErrorKind::bad_file, "save_pretrained: " + folder.string() + " should be a directory, not a file");
  if (model.adapters) return save_active_adapter(model, folder, options);
  const bool five = options.transformers >= 5;
  const uint64_t limit = parse_file_size(options.max_shard_size.empty() ? (five ? "50GB" : "5GB") : options.max_shard_size);

  model.config().set("architectures", list({model.class_name()}));
  if (const std::optional<DType> dtype = options.dtype ? options.dtype : first_floating_dtype(model))
    model.config().set("dtype", std::string(name(*dtype)));

  StateDict state = options.state_dict ? *options.state_dict : full_state_dict(model);
  for (const std::string& key : model.keys_to_ignore_on_save()) state.erase(key);
  if (options.safe_serialization) state = without_tied_weights(state, declared_ties(model));
  const auto* own = dynamic_cast<const OwnWeightForm*>(&model.base_model());
  const WeightForm form = own ? own->weight_form() : WeightForm{};
  const NamedTensors tensors_of_file = form.empty() ? state.items() : form.of_file(state.items());

  const DTypes dtypes(model, options.dtype);
  const std::string plain = options.safe_serialization ? "model.safetensors" : "pytorch_model.bin";
  const ShardPlan plan =
      plan_shards(tensors_of_file, {.max_shard_size = limit,
                                    .weights_name = with_variant(plain, options.variant),
                                    .transformers = options.transformers,
                                    .bytes_of = [&](const std::string& key, const Tensor& t) {
                                      return static_cast<uint64_t>(t.numel()) * item_size(dtypes.of(key, t));
                                    }});

  std::vector<std::string> companions;
  if (options.companions_of && options.is_main_process) companions = companions_in(*options.companions_of, folder);
  const auto replaces = [&](const std::string& file) {
    if (is_weight_file(file, options.variant)) return true;
    if (!options.is_main_process) return false;
    return file == "config.json" || (file == "generation_config.json" && model.can_generate()) ||
           (options.companions_of && is_companion(file)) || std::ranges::binary_search(companions, file);
  };
  SaveResult result;
  result.total_size = plan.total_size;
  FolderWriter writer(folder, replaces, options.at_best);
  naming_folder(writer.path(), folder, [&] {
    if (options.is_main_process) {
      write_text(writer.path() / "config.json", config_text(model.config(), options.transformers), options.sync);
      result.files.push_back("config.json");
      if (model.can_generate()) {
        write_text(writer.path() / "generation_config.json", generation_config_of(model, options), options.sync);
        result.files.push_back("generation_config.json");
      }
      for (const std::string& name : companions) {
        naming_companions(*options.companions_of,
                          [&] { copy_companion(*options.companions_of / name, writer.path() / name, options.sync); });
        result.files.push_back(name);
      }
    }
    uint64_t done = 0;
    for (const Shard& shard : plan.shards) {
      const NamedTensors tensors = cast(shard.tensors, dtypes);
      write_weights(writer.path() / shard.file, tensors, options.safe_serialization, options.sync);
      result.files.push_back(shard.file);
      for (const auto& [key, tensor] : tensors) done += tensor.nbytes();
      if (options.progress) options.progress(std::min(done, plan.total_size), plan.total_size);
    }
    if (plan.sharded()) {
      std::optional<int64_t> parameters;
      if (five) {
        parameters = 0;
        for (const Tensor& parameter : model.parameters()) *parameters += parameter.numel();
      }
      const std::string index = with_variant(plain + ".index.json", options.variant);
      write_text(writer.path() / index, index_text(plan, parameters), options.sync);
      result.files.push_back(index);
    }
  });
  result.exchange = writer.commit(options.sync);
  return result;
}

}  // namespace calque
