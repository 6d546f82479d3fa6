#include "calque/hub/checkpoint.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "calque/base/error.h"
#include "calque/file/json.h"
#include "calque/file/mapped_file.h"
#include "calque/file/pickle.h"
#include "calque/op/aten/empty.h"
#include "hub/read_ahead.h"

namespace calque {

namespace fs = std::filesystem;

namespace {

constexpr const char* safetensors_name = "model.safetensors";
constexpr const char* safetensors_index_name = "model.safetensors.index.json";
constexpr const char* pickle_name = "pytorch_model.bin";
constexpr const char* pickle_index_name = "pytorch_model.bin.index.json";
// Of other frameworks; nothing here reads them.
constexpr const char* other_names[] = {"tf_model.h5", "model.ckpt.index", "flax_model.msgpack"};

[[noreturn]] void bad_checkpoint(const std::string& text) { throw UserError(ErrorKind::bad_file, text); }

std::string joined_names(const std::vector<std::string>& names, const char* last) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) out += (i == 0 ? "" : i + 1 < names.size() ? ", " : last) + names[i];
  return out;
}

bool is_safetensors(const fs::path& file) { return file.extension() == ".safetensors"; }

CheckpointFiles read_index(const fs::path& index, const ModelFiles* files) {
  const std::shared_ptr<const MappedFile> mapped = MappedFile::open(index.string());
  const std::string_view text(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size());
  CheckpointFiles out;
  out.index = index;
  std::set<std::string> names;
  JsonDocument(text, index.string()).read([&](const Json& root) {
    if (!root.is_object()) root.fail("a checkpoint's index is an object");
    const Json* map = root.find("weight_map");
    if (!map || !map->is_object()) root.fail("expected an object \"weight_map\" that says which file has which tensor");
    if (const Json* metadata = root.find("metadata"); metadata && metadata->is_object())
      if (const Json* dtype = metadata->find("dtype"); dtype && dtype->is_string()) out.dtype = dtype->to_string();
    for (const JsonMember& member : map->members()) {
      const std::string name(member.value.to_string());
      names.insert(name);
      out.weight_map.emplace_back(member.key, name);
    }
    if (names.empty()) root.fail("\"weight_map\" is empty: the index names no file");
  });
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (fs::path(name).is_absolute() || name.find("..") != std::string::npos)
      bad_checkpoint(index.string() + ": the index names '" + name + "', which leads out of the folder");
    const fs::path file = index.parent_path() / name;
    if (!fs::is_regular_file(file)) missing.push_back(name);
    out.files.push_back(file);
  }
  if (!missing.empty())
    bad_checkpoint((files ? files->where() : index.parent_path().string()) + " does not appear to have " +
                   (missing.size() == 1 ? "a file named " : "files named ") + joined_names(missing, " and ") +
                   ", required according to the checkpoint index " + index.string() + " (" +
                   std::to_string(names.size() - missing.size()) + " of its " + std::to_string(names.size()) +
                   " shards are there). The download may have been cut off: fetch it again");
  return out;
}

void check_format(const SafetensorsFile& file, bool shard) {
  if (!file.metadata()) return;  // transformers 5 takes those too; older ones refuse
  const auto format = file.metadata()->find("format");
  if (format == file.metadata()->end()) return;
  if (format->second == "pt" || format->second == "tf" || format->second == "flax" || format->second == "mlx") return;
  if (shard)
    bad_checkpoint("the safetensors archive at " + file.path() + " does not contain the valid metadata: its format is '" +
                   format->second + "', expected pt, tf, flax or mlx. Save the model with save_pretrained");
  bad_checkpoint("incompatible safetensors file " + file.path() + ": its metadata gives format '" + format->second +
                 "', expected pt, tf, flax or mlx");
}

// What tensors of a mapped file keep alive.
struct MappedWeights {
  std::shared_ptr<const MappedFile> file;
  std::shared_ptr<ReadAhead> ahead;
};

Tensor without_values(const SafetensorsEntry& entry) {
  return empty(SymInts(entry.sizes.begin(), entry.sizes.end()), *entry.dtype, std::nullopt, Device(DeviceType::meta));
}

void append_tensors(NamedTensors& out, const fs::path& path, bool shard, bool values,
                    std::vector<std::shared_ptr<MappedWeights>>& mapped) {
  if (is_safetensors(path)) {
    auto owner = std::make_shared<MappedWeights>();
    owner->file = MappedFile::open(path.string());
    mapped.push_back(owner);
    const SafetensorsFile file = SafetensorsFile::from_bytes(owner->file->bytes(), owner, path.string());
    check_format(file, shard);
    for (const SafetensorsEntry& entry : file.entries())
      if (entry.dtype) out.emplace_back(entry.name, values ? file.tensor(entry) : without_values(entry));
    return;
  }
  try {
    NamedTensors tensors = load_pickle_tensors(path.string());
    std::move(tensors.begin(), tensors.end(), std::back_inserter(out));
  } catch (UserError& error) {
    error.prepend("unable to load weights from the checkpoint file " + path.string() + ": ");
    throw;
  }
}

}  // namespace

std::string with_variant(const std::string& filename, const std::string& variant) {
  if (variant.empty()) return filename;
  const size_t dot = filename.rfind('.');
  return filename.substr(0, dot) + "." + variant + filename.substr(dot);
}

CheckpointFiles find_checkpoint(const ModelFiles& files, const CheckpointOptions& options) {
  const bool safe = options.use_safetensors.value_or(true);
  const bool pickled = !options.use_safetensors.value_or(false);
  std::vector<std::string> looked_for;
  const auto look = [&](const char* name) {
    looked_for.push_back(with_variant(name, options.variant));
    return files.find(looked_for.back());
  };
  if (safe) {
    if (const auto file = look(safetensors_name)) return {.files = {*file}};
    if (const auto index = look(safetensors_index_name)) return read_index(*index, &files);
  }
  if (pickled) {
    if (const auto file = look(pickle_name)) return {.files = {*file}};
    if (const auto index = look(pickle_index_name)) return read_index(*index, &files);
  }
  std::string text = "no file named " + joined_names(looked_for, " or ");
  if (pickled) text += " (nor " + joined_names({std::begin(other_names), std::end(other_names)}, " or ") + ")";
  text += " found in directory " + files.where() + ". It has " + files.listing();
  if (!options.variant.empty()) {
    for (const char* name : {safetensors_name, safetensors_index_name, pickle_name, pickle_index_name})
      if (files.find(name)) bad_checkpoint(text + "; there is " + name + ", without the variant " + options.variant);
  }
  if (options.use_safetensors == false && (files.find(safetensors_name) || files.find(safetensors_index_name)))
    text += "; there are safetensors weights, which use_safetensors=false leaves aside";
  for (const char* name : other_names)
    if (files.find(name))
      text +=
          "; " + std::string(name) + " is of another framework: convert it with transformers first (from_tf or from_flax)";
  bad_checkpoint(text);
}

CheckpointFiles checkpoint_at(const fs::path& file) {
  if (!fs::is_regular_file(file)) {
    if (fs::is_regular_file(file.string() + ".index"))
      bad_checkpoint("there is a TensorFlow checkpoint " + file.string() +
                     ".index: Calque reads safetensors and .bin files; load it with transformers "
                     "(from_tf=True) and save it");
    bad_checkpoint("no weight file at " + file.string());
  }
  if (file.string().ends_with(".index.json")) return read_index(file, nullptr);
  return {.files = {file}};
}

CheckpointFiles find_sharded_checkpoint(const fs::path& folder, bool prefer_safetensors) {
  const fs::path safe = folder / safetensors_index_name;
  const fs::path pickled = folder / pickle_index_name;
  const bool has_safe = fs::is_regular_file(safe);
  const bool has_pickled = fs::is_regular_file(pickled);
  if (!has_safe && !has_pickled)
    bad_checkpoint("can't find a checkpoint index (" + std::string(pickle_index_name) + " or " + safetensors_index_name +
                   ") in " + folder.string());
  return read_index(has_safe && (prefer_safetensors || !has_pickled) ? safe : pickled, nullptr);
}

Checkpoint Checkpoint::open(const CheckpointFiles& files) { return open(files, true); }

Checkpoint Checkpoint::open_headers(const CheckpointFiles& files) { return open(files, false); }

Checkpoint Checkpoint::open(const CheckpointFiles& files, bool values) {
  Checkpoint out;
  out.where_ = (files.is_sharded() ? files.index : files.files.at(0)).string();
  std::vector<std::shared_ptr<MappedWeights>> mapped;
  for (const fs::path& file : files.files) {
    append_tensors(out.tensors_, file, files.is_sharded(), values, mapped);
    if (&file == &files.files.front()) out.first_file_ = out.tensors_.size();
  }
  if (!values) return out;
  // After the headers: they would wait behind the weights.
  std::vector<std::shared_ptr<const MappedFile>> whole;
  for (const auto& one : mapped) whole.push_back(one->file);
  out.ahead_ = std::make_shared<ReadAhead>(std::move(whole));
  for (const auto& one : mapped) one->ahead = out.ahead_;
  return out;
}

Checkpoint Checkpoint::of(NamedTensors tensors, std::string where) {
  Checkpoint out;
  out.tensors_ = std::move(tensors);
  out.first_file_ = out.tensors_.size();
  out.where_ = std::move(where);
  return out;
}

void Checkpoint::read_in_order(const std::vector<Tensor>& used) const {
  if (!ahead_) return;
  std::vector<ByteSpan> bytes;
  for (const Tensor& tensor : used)
    if (const Ref<Storage>& storage = tensor.storage(); storage && storage->data())
      bytes.emplace_back(static_cast<const std::byte*>(storage->data()), storage->nbytes());
  ahead_->order(bytes);
}

std::optional<DType> Checkpoint::dtype() const {
  for (size_t i = 0; i < first_file_; ++i) {
    const DType dtype = tensors_[i].second.dtype();
    if (is_floating(dtype) && !is_float8(dtype)) return dtype;
  }
  return tensors_.empty() ? std::nullopt : std::optional(tensors_[0].second.dtype());
}

}  // namespace calque
