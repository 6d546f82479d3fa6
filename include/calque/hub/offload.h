// Weights that are not in the model but on disk: written and found as accelerate does (NAME.dat beside an index.json, or a tensor of a
// safetensors file), mapped before a module runs and let go after it. dispatch_model puts a model where a device map says.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/hub/device_map.h"
#include "calque/hub/from_pretrained.h"

namespace calque {

struct OffloadEntry {
  std::string dtype = {};  // "float32"; of a .dat file what it holds, of a safetensors file what to cast to (empty: nothing)
  std::vector<int64_t> shape = {};    // of a .dat file
  std::string safetensors_file = {};  // empty: NAME.dat in the folder
  std::string weight_name = {};       // in the safetensors file; empty: the same name
};
using OffloadIndex = std::vector<std::pair<std::string, OffloadEntry>>;

// Writes NAME.dat: the bytes, row-major; a scalar is one element with an empty shape.
OffloadEntry offload_weight(const Tensor& weight, const std::string& name, const std::filesystem::path& folder);
// A view of the mapped file, let go with the tensor.
Tensor load_offloaded_weight(const std::filesystem::path& file, const OffloadEntry& entry);
// index.json: entries that are there stay, those of the same names are replaced. An empty index writes nothing.
void save_offload_index(const OffloadIndex& index, const std::filesystem::path& folder);
OffloadIndex load_offload_index(const std::filesystem::path& folder);
void offload_state_dict(const StateDict& state, const std::filesystem::path& folder);

// Where weights are found: in memory, else as the index says. UserError when made of nothing.
class OffloadedWeights {
 public:
  OffloadedWeights(std::optional<StateDict> state, std::filesystem::path folder, std::optional<OffloadIndex> index);
  Tensor load(const std::string& name) const;  // UserError when there is no such weight
  bool contains(const std::string& name) const;
  std::vector<std::string> names() const;

 private:
  StateDict state_;
  std::filesystem::path folder_;
  std::map<std::string, OffloadEntry> index_;
  std::vector<std::string> order_;
};

struct DispatchOptions {
  std::string device_map = "auto";  // or `map`
  std::optional<DeviceMap> map = {};
  MaxMemory max_memory = {};
  std::filesystem::path offload_folder = {};  // where weights for the disk are written that are not in a safetensors file
  OffloadIndex offload_index = {};            // weights that are on disk already
  bool offload_buffers = false;
  std::optional<bool> low_cpu_mem_usage =
      {};  // transformers' name for what Calque does anyway; false is a UserError beside a device map
  std::vector<std::string> preload_module_classes = {};  // modules that use their children's weights without calling them
};

// Puts the model where the map says, and notes it in model.dispatched. Weights for the disk become meta tensors; hooks bring
// them for the time of a module's call. UserError for an accelerator (there is none here), for a model that is wholly on
// disk, and when weights would have to be written and no offload_folder says where. On the cpu alone no hooks are made.
void dispatch_model(PretrainedModel& model, const DeviceMap& map, const DispatchOptions& options = {});
// from_pretrained, planned and dispatched. Weights of safetensors files stay in them.
LoadedModel load_dispatched(const std::filesystem::path& name_or_path, const LoadOptions& load,
                            const DispatchOptions& options);

// What a dispatched model knows.
struct Dispatched {
  DeviceMap map;
  std::shared_ptr<const OffloadedWeights> weights;  // null when nothing is on disk
};
// The state dict with the weights that are on disk in their places.
StateDict full_state_dict(PretrainedModel& model);

// Shards of which every weight is for the disk: nothing in them is needed to load.
std::vector<std::string> disk_only_shards(const DeviceMap& map,
                                          const std::vector<std::pair<std::string, std::string>>& weight_map);

}  // namespace calque
