#include "cli/models.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/join.h"
#include "calque/base/error.h"
#include "calque/file/safetensors.h"
#include "calque/hub/adapters.h"
#include "calque/hub/from_pretrained.h"
#include "calque/hub/hub_cache.h"
#include "calque/op/aten/like.h"
#include "calque/text/tokenizer.h"
#include "cli/progress.h"
#include "cli/tensor_file.h"

namespace calque::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* built_in = "tiny-lm";

// Paths below one name into tuples.
Value nested(const std::string& name, const std::vector<std::pair<std::string, Tensor>>& leaves) {
  if (leaves.size() == 1 && leaves[0].first.empty()) return leaves[0].second;
  std::map<size_t, std::vector<std::pair<std::string, Tensor>>> parts;
  for (const auto& [path, tensor] : leaves) {
    const size_t dot = std::min(path.find('.'), path.size());
    const std::string index = path.substr(0, dot);
    if (index.empty() || index.size() > 6 || index.find_first_not_of("0123456789") != std::string::npos)
      throw UserError(fmt::format("'{}.{}': expected a number after the dot, as in past_key_values.0.1", name, path));
    parts[std::stoul(index)].emplace_back(dot < path.size() ? path.substr(dot + 1) : "", tensor);
  }
  Values items;
  for (const auto& [index, part] : parts) items.push_back(nested(fmt::format("{}.{}", name, index), part));
  return tuple(std::move(items));
}

struct HubName {
  std::string repo, revision;
};

// What cannot be a path: a file's name ends as files do, and a folder is there.
std::optional<HubName> hub_name(const std::string& name) {
  std::error_code ignored;
  if (name == built_in || fs::exists(name, ignored)) return std::nullopt;
  const size_t at = std::min(name.find('@'), name.size());
  HubName out{name.substr(0, at), at < name.size() ? name.substr(at + 1) : "main"};
  static constexpr std::string_view endings[] = {
      ".pt2", ".pt",     ".pth", ".bin",     ".safetensors", ".ckpt", ".onnx", ".gguf", ".h5",  ".json", ".npy", ".npz",
      ".pte", ".tflite", ".pb",  ".msgpack", ".zip",         ".tar",  ".gz",   ".html", ".txt", ".dot",  ".svg", ".png"};
  for (const std::string_view ending : endings)
    if (out.repo.ends_with(ending)) return std::nullopt;
  try {
    validate_repo_id(out.repo);
  } catch (const UserError&) {
    return std::nullopt;
  }
  if (out.repo.find('/') != std::string::npos || fs::is_directory(hub_cache_dir() / repo_folder_name(out.repo), ignored))
    return out;
  return std::nullopt;
}

std::string& read_variant() {
  static std::string variant;
  return variant;
}

}  // namespace

void set_read_variant(const std::string& variant) { read_variant() = variant; }
const std::string& current_read_variant() { return read_variant(); }

bool names_model(const std::string& name) {
  return name == built_in || fs::is_directory(name) || hub_name(name).has_value();
}

std::string model_folder(const std::string& name) {
  if (const std::optional<HubName> hub = hub_name(name))
    return ModelFiles(hub->repo, {.revision = hub->revision}).folder().string();
  std::error_code ignored;
  if (const fs::path path = name; fs::is_regular_file(path, ignored)) {
    static constexpr std::string_view parts[] = {".safetensors", ".bin", ".json"};
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (std::ranges::find(parts, path.extension().string()) != std::end(parts) &&
        fs::exists(folder / "config.json", ignored))
      throw UserError(ErrorKind::bad_file,
                      fmt::format("{} is one file of a model; name its folder: {}", name, folder.string()));
  }
  if (name != built_in || fs::is_directory(name)) return name;
  const fs::path bin = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path installed = bin.parent_path() / "share/calque/models" / name;
  const fs::path in_tree = bin.parent_path().parent_path().parent_path() / "assets" / name;
  for (const fs::path& folder : {installed, in_tree})
    if (fs::is_regular_file(folder / "config.json")) return folder.string();
  throw UserError(ErrorKind::bad_file,
                  fmt::format("the model '{}' comes with the program, but is neither in {} nor in {}; name a model folder",
                              name, installed.string(), in_tree.string()));
}

std::shared_ptr<PretrainedModel> load_model(const ModelChoice& choice) {
  LoadOptions options;
  options.model_class = choice.model_class;
  options.attention = choice.attention;
  options.variant = choice.variant.empty() ? read_variant() : choice.variant;
  Progress progress("loading " + choice.name);
  options.progress = progress.callback();
  if (!choice.dtype.empty()) options.dtype = dtype_option(choice.dtype);
  return from_pretrained(model_folder(choice.name), options);
}

void refuse_model_options(const std::string& command, const ModelChoice& choice) {
  for (const auto& [option, value] :
       {std::pair("--class", &choice.model_class), {"--dtype", &choice.dtype}, {"--attention", &choice.attention}})
    if (!value->empty())
      throw UserError(
          fmt::format("{}: {} is for model folders, and {} is none; leave it out", command, option, choice.name));
}

void without_cache(PretrainedModel& model) {
  for (Module* module : model.modules())  // the models inside a model have configurations of their own
    if (auto* part = dynamic_cast<PretrainedModel*>(module)) {
      part->config().set("use_cache", false);
      if (part->config().has("use_mems_eval")) part->config().set("use_mems_eval", false);  // XLNet's cache
    }
}

ModelInputs read_model_inputs(const std::string& command, const std::string& path, const PretrainedModel& model) {
  const TensorFile file = TensorFile::open(path);
  std::map<std::string, std::vector<std::pair<std::string, Tensor>>> by_name;
  for (const std::string& full : file.names()) {
    const size_t dot = std::min(full.find('.'), full.size());
    const std::string name = full.substr(0, dot);
    if (!find_argument(model.arguments(), name))
      throw UserError(fmt::format("{}: {} holds '{}', which {} does not take; it takes {}", command, path, full,
                                  model.class_name(), join(model.argument_names(), ", ")));
    by_name[name].emplace_back(dot < full.size() ? full.substr(dot + 1) : "", file.tensor(full).clone());
  }
  ModelInputs inputs;
  for (const auto& [name, leaves] : by_name) {
    about_file(path, [&, &name = name, &leaves = leaves] {
      const ModelArgument& argument = *find_argument(model.arguments(), name);
      const Value value = nested(name, leaves);
      const bool scalar = value.is_tensor() && value.to_tensor().dim() == 0;
      if (scalar && value.to_tensor().dtype() == DType::bool_)
        inputs.set({argument, value.to_tensor().item_as<bool>()});
      else if (scalar && argument.kind == ModelArgument::Kind::integer)
        inputs.set({argument, value.to_tensor().item_as<int64_t>()});
      else
        inputs.set({argument, value});
    });
  }
  return inputs;
}

std::vector<std::string> tokenizer_input_names(const std::string& folder, const PretrainedModel& model) {
  std::vector<std::string> out;
  try {
    const Tokenizer tokenizer = Tokenizer::from_file(tokenizer_folder(folder));
    for (const std::string& name : tokenizer.model_input_names())
      if (find_argument(model.arguments(), name)) out.push_back(name);
  } catch (const UserError&) {  // a model without a tokenizer has its class's inputs
  }
  return out;
}

ModelInputs made_up_inputs(const std::string& folder, const PretrainedModel& model) {
  ModelInputs inputs = model.example_inputs();
  if (!inputs.has(arg::input_ids.name)) return inputs;
  for (const std::string& name : tokenizer_input_names(folder, model)) {
    const ModelArgument& argument = *find_argument(model.arguments(), name);
    if (!inputs.has(argument.name)) inputs.set({argument, zeros_like(inputs[arg::input_ids])});
  }
  return inputs;
}

// Features of sound [batch, frames, size] whose mask is over their frames.
static bool heard_length(std::string_view name, const Tensor& features, const Kwargs& inputs) {
  if (name != "input_features") return false;
  for (const auto& [other, value] : inputs)
    if (other == "attention_mask" && value.is_tensor() && value.to_tensor().dim() == 2)
      return value.to_tensor().size(1) == features.size(1);
  return false;
}

std::vector<std::string> usual_dynamic_sizes(const Kwargs& inputs) {
  std::vector<std::string> out;
  for (const auto& [name, value] : inputs) {
    if (!value.is_tensor() || value.to_tensor().dim() == 0) continue;
    const bool decoder = name.starts_with("decoder_"), encoder = name.starts_with("encoder_");
    const bool wide =
        name.ends_with("embeds") || name.ends_with("hidden_states") || name == "bbox";  // the last dimension is the model's
    const auto dims = static_cast<size_t>(value.to_tensor().dim());
    // Pictures and features of sound have sizes of their own, which the model may fix.
    const bool own = !wide && dims > 2 && is_floating(value.to_tensor().dtype()) && !name.ends_with("mask");
    const size_t length = own ? (heard_length(name, value.to_tensor(), inputs) ? 1 : dims) : dims - (wide ? 2 : 1);
    std::string text = name + "=batch";
    const bool picture = name == "pixel_values" || name == "bool_masked_pos";  // as large as the model's
    for (size_t i = 1; i < dims; ++i)
      text += i != length || name == "mc_token_ids" || picture ? ",*"
              : decoder                                        ? ",decoder_seq"
              : encoder                                        ? ",encoder_seq"
                                                               : ",seq";
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace calque::cli
