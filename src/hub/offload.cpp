#include "calque/hub/offload.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "calque/base/error.h"
#include "calque/file/file_writer.h"
#include "calque/file/json.h"
#include "calque/file/mapped_file.h"
#include "calque/file/safetensors.h"
#include "calque/op/operators.h"

namespace calque {

namespace fs = std::filesystem;

static std::string mapped_text(const fs::path& path) {
  const auto file = MappedFile::open(path.string());
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

OffloadEntry offload_weight(const Tensor& weight, const std::string& name, const fs::path& folder) {
  const Tensor whole = weight.detach().contiguous();
  FileWriter file((folder / (name + ".dat")).string());
  file.write(whole.data(), whole.nbytes());
  file.commit(false);
  return {.dtype = std::string(calque::name(weight.dtype())), .shape = {weight.sizes().begin(), weight.sizes().end()}};
}

Tensor load_offloaded_weight(const fs::path& file, const OffloadEntry& entry) {
  const std::optional<DType> dtype = dtype_from_name(entry.dtype);
  if (!dtype)
    throw UserError(ErrorKind::bad_file,
                    file.string() + ": the index says dtype \"" + entry.dtype + "\", which is not a dtype");
  const std::shared_ptr<const MappedFile> mapped = MappedFile::open(file.string());
  uint64_t elements = 1;
  bool overflow = false;
  for (const int64_t size : entry.shape)
    overflow |= size < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements);
  if (overflow || elements > mapped->bytes().size() / item_size(*dtype) ||
      elements * item_size(*dtype) != mapped->bytes().size())
    throw UserError(ErrorKind::bad_file, file.string() + ": has " + std::to_string(mapped->bytes().size()) +
                                             " bytes, expected " + entry.dtype + " of shape " + str(IntList(entry.shape)));
  // The mapping is private and read-only: nobody writes through this pointer.
  const Ref<Storage> storage =
      Storage::borrow(const_cast<std::byte*>(mapped->bytes().data()), mapped->bytes().size(), mapped, true);
  std::vector<int64_t> strides(entry.shape.size(), 1);
  for (size_t d = entry.shape.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(entry.shape[d], 1);
  return from_storage(storage, *dtype, entry.shape, strides, 0);
}

OffloadIndex load_offload_index(const fs::path& folder) {
  const fs::path path = folder / "index.json";
  const std::string text = mapped_text(path);
  return JsonDocument(text, path.string()).read([](const Json& root) {
    OffloadIndex index;
    for (const JsonMember& member : root.members()) {
      OffloadEntry entry;
      const auto text_of = [&](const char* key) {
        return member.value.find(key) ? std::string(member.value.at(key).to_string()) : std::string();
      };
      entry.dtype = text_of("dtype");
      entry.safetensors_file = text_of("safetensors_file");
      entry.weight_name = text_of("weight_name");
      if (const Json* shape = member.value.find("shape"))
        for (const Json& size : shape->items()) entry.shape.push_back(size.to_int());
      index.emplace_back(member.key, std::move(entry));
    }
    return index;
  });
}

// As Python's json.dump(..., indent=2) writes it, in the order given.
static std::string index_json(const OffloadIndex& index) {
  std::string out = "{";
  const auto field = [&](bool& first, const char* key, const std::string& value) {
    out += (first ? "\n    " : ",\n    ") + json_quoted(key) + ": " + value;
    first = false;
  };
  for (size_t i = 0; i < index.size(); ++i) {
    const auto& [name, entry] = index[i];
    out += (i ? ",\n  " : "\n  ") + json_quoted(name) + ": {";
    bool first = true;
    if (!entry.safetensors_file.empty()) {
      field(first, "safetensors_file", json_quoted(entry.safetensors_file));
      field(first, "weight_name", json_quoted(entry.weight_name.empty() ? name : entry.weight_name));
      if (!entry.dtype.empty()) field(first, "dtype", json_quoted(entry.dtype));
    } else {
      field(first, "dtype", json_quoted(entry.dtype));
      std::string shape = "[";
      for (const int64_t size : entry.shape) shape += (shape.size() > 1 ? ",\n      " : "\n      ") + std::to_string(size);
      field(first, "shape", shape + (entry.shape.empty() ? "]" : "\n    ]"));
    }
    out += "\n  }";
  }
  return out + "\n}";
}

void save_offload_index(const OffloadIndex& index, const fs::path& folder) {
  if (index.empty()) return;
  OffloadIndex all;
  if (fs::is_regular_file(folder / "index.json")) all = load_offload_index(folder);
  for (const auto& item : index) {
    const auto there = std::find_if(all.begin(), all.end(), [&](const auto& old) { return old.first == item.first; });
    if (there == all.end())
      all.push_back(item);
    else
      there->second = item.second;
  }
  const std::string text = index_json(all);
  FileWriter file((folder / "index.json").string());
  file.write(text.data(), text.size());
  file.commit();
}

void offload_state_dict(const StateDict& state, const fs::path& folder) {
  fs::create_directories(folder);
  OffloadIndex index;
  for (const auto& [name, tensor] : state) index.emplace_back(name, offload_weight(tensor, name, folder));
  save_offload_index(index, folder);
}

OffloadedWeights::OffloadedWeights(std::optional<StateDict> state, fs::path folder, std::optional<OffloadIndex> index)
    : folder_(std::move(folder)) {
  if (!state && folder_.empty() && !index)
    throw UserError("offloaded weights: need a state dict, a folder or an index that has them");
  if (!index && !folder_.empty()) index = load_offload_index(folder_);
  if (state) {
    state_ = std::move(*state);
    for (const auto& [name, tensor] : state_) order_.push_back(name);
  }
  if (index)
    for (auto& [name, entry] : *index) {
      if (!state_.contains(name)) order_.push_back(name);
      index_[name] = std::move(entry);
    }
}

bool OffloadedWeights::contains(const std::string& name) const { return state_.contains(name) || index_.count(name); }
std::vector<std::string> OffloadedWeights::names() const { return order_; }

Tensor OffloadedWeights::load(const std::string& name) const {
  if (const Tensor* tensor = state_.find(name)) return *tensor;
  const auto found = index_.find(name);
  if (found == index_.end()) throw UserError("offloaded weights: there is no weight " + name);
  const OffloadEntry& entry = found->second;
  if (entry.safetensors_file.empty()) return load_offloaded_weight(folder_ / (name + ".dat"), entry);
  const Tensor tensor =
      SafetensorsFile::open(entry.safetensors_file).tensor(entry.weight_name.empty() ? name : entry.weight_name);
  if (entry.dtype.empty()) return tensor;
  const std::optional<DType> dtype = dtype_from_name(entry.dtype);
  if (!dtype)
    throw UserError(ErrorKind::bad_file,
                    "offloaded weights: " + name + " is to be of dtype \"" + entry.dtype + "\", which is not a dtype");
  return tensor.dtype() == *dtype ? tensor : tensor.to(*dtype);
}

std::vector<std::string> disk_only_shards(const DeviceMap& map,
                                          const std::vector<std::pair<std::string, std::string>>& weight_map) {
  std::set<std::string> all, needed;
  for (const auto& [name, file] : weight_map) {
    all.insert(file);
    if (!(device_of(name, map) == MapDevice("disk"))) needed.insert(file);
  }
  std::vector<std::string> out;
  std::set_difference(all.begin(), all.end(), needed.begin(), needed.end(), std::back_inserter(out));
  return out;
}

}  // namespace calque
