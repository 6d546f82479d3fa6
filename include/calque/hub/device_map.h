// Device maps: which module of a model goes to which device, as accelerate plans it. Planning reads sizes alone and knows
// accelerators that are not there; dispatching (hub/offload.h) refuses them. Names are modules or parameters; "" is the model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/hub/pretrained_model.h"

namespace calque {

// An accelerator by its number, or "cpu", "disk", "mps".
class MapDevice {
 public:
  MapDevice(int64_t index) : index_(index), name_(std::to_string(index)) {}
  MapDevice(int index) : MapDevice(static_cast<int64_t>(index)) {}
  MapDevice(std::string name);  // "0" and "cuda:0" are the accelerator of that number
  MapDevice(const char* name) : MapDevice(std::string(name)) {}

  bool is_accelerator() const { return index_ >= 0 || name_ == "mps"; }
  int64_t index() const { return index_; }  // -1 for the named ones
  const std::string& str() const { return name_; }
  bool operator==(const MapDevice& other) const { return name_ == other.name_; }

 private:
  int64_t index_ = -1;
  std::string name_;
};

using DeviceMap = std::vector<std::pair<std::string, MapDevice>>;
using MaxMemory = std::vector<std::pair<MapDevice, double>>;  // bytes

// "{'': 0}", as Python prints it.
std::string device_map_text(const DeviceMap& map);
// One line a module: name, device, bytes; and a sum for each device.
std::string describe_device_map(Module& model, const DeviceMap& map, std::optional<DType> dtype = std::nullopt);

// Limits in accelerate's order: accelerators by number, mps, cpu, disk. UserError for a device of an unknown kind.
// Sizes are bytes or texts like "10GB". Without limits: the memory that this machine has available, on the cpu.
MaxMemory max_memory(const std::vector<std::pair<MapDevice, std::string>>& limits);
MaxMemory available_memory();

// Bytes of every module and tensor, by name, in the order met; tied tensors count where they are first. A boolean counts an
// eighth of a byte, as in accelerate. With `dtype` wider floating-point tensors count as that.
class ModuleSizes {
 public:
  void add(const std::string& name, double bytes);
  double of(std::string_view name) const;  // 0 when absent
  const std::vector<std::pair<std::string, double>>& items() const { return items_; }

 private:
  std::vector<std::pair<std::string, double>> items_;
  std::map<std::string, size_t, std::less<>> position_;
};
ModuleSizes compute_module_sizes(Module& model, std::optional<DType> dtype = std::nullopt, bool buffers_only = false);

// Groups of parameters that are one tensor, each sorted.
std::vector<std::vector<std::string>> find_tied_parameters(Module& model);

struct DeviceMapOptions {
  MaxMemory max_memory = {};                       // empty: available_memory()
  std::vector<std::string> no_split_modules = {};  // class names
  std::optional<DType> dtype = {};                 // that the weights will have
  bool clean_result = true;
  bool offload_buffers = false;      // no warning of buffers that fit nowhere
  bool fallback_allocation = false;  // a device that would stay empty gets a smaller module that fits
};
DeviceMap infer_auto_device_map(Module& model, const DeviceMapOptions& options = {});
// Limits under which infer_auto_device_map spreads a model evenly over the accelerators; `low_zero` spares the first.
MaxMemory get_balanced_memory(Module& model, const DeviceMapOptions& options, bool low_zero = false);

// Modules whose parts are all on one device become one entry, at every level.
DeviceMap clean_device_map(DeviceMap map);
// UserError lists the tensors that no entry covers; entries that name no module are a warning.
void check_device_map(Module& model, const DeviceMap& map);
// Warns of tied parameters on several devices. UserError for a parameter that no entry covers.
void check_tied_parameters_on_same_device(const std::vector<std::vector<std::string>>& tied, const DeviceMap& map);
// The entry for a module or tensor: its own, or the nearest above it. UserError when there is none.
MapDevice device_of(std::string_view name, const DeviceMap& map);

// What from_pretrained's device_map may be: "auto", "balanced", "balanced_low_0", "sequential" (planned under the limits, with the
// model's no_split_modules), a device's name or number (the whole model). UserError for another text, a negative number, and
// a class that does not say which modules must stay whole.
DeviceMap resolve_device_map(PretrainedModel& model, const std::string& device_map, const MaxMemory& limits = {},
                             std::optional<DType> dtype = std::nullopt);

}  // namespace calque
