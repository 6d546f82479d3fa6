#include "calque/hub/device_map.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/hub/sharding.h"

namespace calque {

MapDevice::MapDevice(std::string name) : name_(std::move(name)) {
  std::string_view digits = name_;
  if (digits.starts_with("cuda:")) digits.remove_prefix(5);
  if (!digits.empty() && digits.size() < 7 && digits.find_first_not_of("0123456789") == std::string_view::npos) {
    index_ = std::stoll(std::string(digits));
    name_ = std::to_string(index_);
  } else if (name_ == "cuda") {
    index_ = 0;
    name_ = "0";
  }
}

std::string device_map_text(const DeviceMap& map) {
  std::string out = "{";
  for (const auto& [name, device] : map)
    out += (out.size() > 1 ? ", '" : "'") + name + "': " + (device.index() >= 0 ? device.str() : "'" + device.str() + "'");
  return out + "}";
}

std::string describe_device_map(Module& model, const DeviceMap& map, std::optional<DType> dtype) {
  const ModuleSizes sizes = compute_module_sizes(model, dtype);
  std::vector<std::pair<std::string, double>> sums;
  size_t width = 7;
  for (const auto& [name, device] : map) width = std::max(width, name.size());
  std::string out;
  for (const auto& [name, device] : map) {
    const double bytes = sizes.of(name);
    out += fmt::format("{:<{}}  {:>5}  {:>15.0f} bytes\n", name.empty() ? "(model)" : name, width, device.str(), bytes);
    const auto sum = std::find_if(sums.begin(), sums.end(), [&](const auto& s) { return s.first == device.str(); });
    if (sum == sums.end())
      sums.emplace_back(device.str(), bytes);
    else
      sum->second += bytes;
  }
  for (const auto& [device, bytes] : sums)
    out += fmt::format("{:<{}}  {:>5}  {:>15.0f} bytes\n", "total", width, device, bytes);
  return out;
}

MaxMemory available_memory() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  double kilobytes = 0;
  while (meminfo >> key >> kilobytes) {
    std::getline(meminfo, unit);
    if (key == "MemAvailable:") return {{"cpu", kilobytes * 1024}};
  }
  throw UserError("device map: this system does not say how much memory is available; give max_memory");
}

MaxMemory max_memory(const std::vector<std::pair<MapDevice, std::string>>& limits) {
  MaxMemory out;
  for (const auto& [device, size] : limits) {
    if (device.index() < 0 && device.str() != "mps" && device.str() != "cpu" && device.str() != "disk")
      throw UserError("max_memory: device " + device.str() +
                      " is not recognized, available devices are integers (for accelerators), 'mps', 'cpu' and 'disk'");
    out.emplace_back(device, static_cast<double>(parse_file_size(size)));
  }
  const auto rank = [](const MapDevice& device) -> int64_t {
    if (device.index() >= 0) return device.index();
    return INT64_MAX - (device.str() == "mps" ? 2 : device.str() == "cpu" ? 1 : 0);
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return rank(a.first) < rank(b.first); });
  return out;
}

void ModuleSizes::add(const std::string& name, double bytes) {
  const auto [it, fresh] = position_.emplace(name, items_.size());
  if (fresh)
    items_.emplace_back(name, bytes);
  else
    items_[it->second].second += bytes;
}

double ModuleSizes::of(std::string_view name) const {
  const auto found = position_.find(name);
  return found == position_.end() ? 0 : items_[found->second].second;
}

static double byte_size(DType dtype) { return dtype == DType::bool_ ? 0.125 : static_cast<double>(item_size(dtype)); }

ModuleSizes compute_module_sizes(Module& model, std::optional<DType> dtype, bool buffers_only) {
  ModuleSizes sizes;
  const auto count = [&](const Module::NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) {
      double each = byte_size(tensor.dtype());
      if (dtype && !is_integral(tensor.dtype())) each = std::min(each, byte_size(*dtype));
      const double bytes = each * static_cast<double>(tensor.numel());
      sizes.add("", bytes);
      for (size_t dot = name.find('.');; dot = name.find('.', dot + 1)) {
        sizes.add(name.substr(0, dot), bytes);
        if (dot == std::string::npos) break;
      }
    }
  };
  if (!buffers_only) count(model.named_parameters());
  count(model.named_buffers());
  return sizes;
}

std::vector<std::vector<std::string>> find_tied_parameters(Module& model) {
  const Module::NamedTensors all = model.named_parameters("", true, false), once = model.named_parameters("", true, true);
  std::set<std::string> first;
  for (const auto& [name, tensor] : once) first.insert(name);
  std::map<std::string, std::vector<std::string>> groups;
  for (const auto& [name, tensor] : all) {
    if (first.count(name)) continue;
    for (const auto& [owner, other] : once)
      if (other.is_same(tensor)) groups[owner].push_back(name);
  }
  std::vector<std::vector<std::string>> out;
  for (auto& [owner, names] : groups) {
    names.push_back(owner);
    std::sort(names.begin(), names.end());
    out.push_back(std::move(names));
  }
  return out;
}

DeviceMap clean_device_map(DeviceMap map) {
  const auto clean = [&](const auto& self, const std::string& module) -> void {
    const std::string prefix = module.empty() ? "" : module + ".";
    std::vector<MapDevice> devices;
    for (const auto& [name, device] : map)
      if (name.starts_with(prefix)) devices.push_back(device);
    if (devices.size() > 1 &&
        std::all_of(devices.begin(), devices.end(), [&](const MapDevice& d) { return d == devices[0]; })) {
      std::erase_if(map, [&](const auto& item) { return item.first.starts_with(prefix); });
      std::erase_if(map, [&](const auto& item) { return item.first == module; });
      map.emplace_back(module, devices[0]);
    }
    std::set<std::string> children;
    for (const auto& [name, device] : map)
      if (name.starts_with(prefix) && name.size() > module.size())
        children.insert(name.substr(0, name.find('.', prefix.size())));
    for (const std::string& child : children) self(self, child);
  };
  clean(clean, "");
  return map;
}

void check_device_map(Module& model, const DeviceMap& map) {
  std::string unknown;
  for (const auto& [name, device] : map)
    if (!name.empty() && !model.find_submodule(name)) unknown += (unknown.empty() ? "" : ", ") + name;
  if (!unknown.empty()) warn("device map: these names match no module of the model: " + unknown);
  std::string uncovered;
  for (const auto& [tensor, value] : model.state_dict()) {
    const bool covered = std::any_of(map.begin(), map.end(), [&, &tensor = tensor](const auto& item) {
      return item.first.empty() || tensor == item.first || tensor.starts_with(item.first + ".");
    });
    if (!covered) uncovered += (uncovered.empty() ? "" : ", ") + tensor;
  }
  if (!uncovered.empty())
    throw UserError("The device map does not give any device for the following parameters: " + uncovered);
}

MapDevice device_of(std::string_view name, const DeviceMap& map) {
  std::string_view at = name;
  while (true) {
    for (const auto& [key, device] : map)
      if (key == at) return device;
    if (at.empty()) break;
    const size_t dot = at.rfind('.');
    at = dot == std::string_view::npos ? std::string_view() : at.substr(0, dot);
  }
  throw UserError("The device map does not contain the module " + std::string(name) + ".");
}

void check_tied_parameters_on_same_device(const std::vector<std::vector<std::string>>& tied, const DeviceMap& map) {
  for (const std::vector<std::string>& group : tied) {
    DeviceMap places;
    for (const std::string& name : group) places.emplace_back(name, device_of(name, map));
    if (std::any_of(places.begin(), places.end(), [&](const auto& place) { return !(place.second == places[0].second); }))
      warn("Tied parameters are on different devices: " + device_map_text(places) +
           ". Change the device map, or ask for device_map 'auto'.");
  }
}

DeviceMap resolve_device_map(PretrainedModel& model, const std::string& device_map, const MaxMemory& limits,
                             std::optional<DType> dtype) {
  const std::set<std::string> modes = {"auto", "balanced", "balanced_low_0", "sequential"};
  if (!modes.count(device_map)) {
    if (device_map.starts_with("-") && device_map.find_first_not_of("0123456789", 1) == std::string::npos)
      throw UserError("device map: a device number cannot be negative, found " + device_map +
                      "; to run on the cpu ask for 'cpu'");
    const MapDevice device(device_map);
    if (!device.is_accelerator() && device.str() != "cpu" && device.str() != "disk")
      throw UserError("device map: '" + device_map +
                      "' is neither a device nor one of 'auto', 'balanced', 'balanced_low_0', 'sequential'");
    return {{"", device}};
  }
  DeviceMapOptions options{.max_memory = limits, .dtype = dtype};
  std::set<std::string> whole;
  for (Module* module : model.modules())
    if (const auto* part = dynamic_cast<const PretrainedModel*>(module)) {
      const std::vector<std::string> names = part->no_split_modules();
      if (names.empty())
        throw UserError(part->class_name() + " does not support device map '" + device_map +
                        "': it does not say which modules must stay whole (no_split_modules)");
      whole.insert(names.begin(), names.end());
    }
  options.no_split_modules.assign(whole.begin(), whole.end());
  model.tie_weights();
  if (device_map != "sequential") options.max_memory = get_balanced_memory(model, options, device_map == "balanced_low_0");
  return infer_auto_device_map(model, options);
}

}  // namespace calque
