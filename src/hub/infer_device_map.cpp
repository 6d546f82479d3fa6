// The planning itself: accelerate's rules, step by step, so that both give the same plan.
#include <algorithm>
#include <cmath>
#include <map>

#include "calque/base/warning.h"
#include "calque/hub/device_map.h"

namespace calque {
namespace {

// A module, or a tensor (whose module is null), that has no device yet.
struct Part {
  std::string name;
  Module* module;
};
using Parts = std::vector<Part>;
using Names = std::vector<std::string>;

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
// Accelerate asks whether the text occurs, not whether it begins so.
bool inside(const std::string& tensor, const std::string& module) {
  return (tensor + ".").find(module + ".") != std::string::npos;
}

class Planner {
 public:
  Planner(Module& model, const DeviceMapOptions& options)
      : options_(options), sizes_(compute_module_sizes(model, options.dtype)), tied_(find_tied_parameters(model)) {
    limits_ = options.max_memory.empty() ? available_memory() : options.max_memory;
    for (const auto& [device, bytes] : limits_) devices_.push_back(device);
    if (std::find(devices_.begin(), devices_.end(), MapDevice("disk")) == devices_.end()) devices_.emplace_back("disk");
    // The devices that keep room for the largest layer, which is brought there to be computed.
    for (const MapDevice& device : devices_)
      if (device.is_accelerator()) accelerators_.push_back(device);
    if (std::find(accelerators_.begin(), accelerators_.end(), MapDevice("mps")) != accelerators_.end())
      main_ = {"mps"};
    else if (!accelerators_.empty())
      main_ = {accelerators_[0], "cpu"};
    else
      main_ = {"cpu"};
    for (const auto& [name, tensor] : model.named_parameters("", false)) parts_.push_back({name, nullptr});
    for (const auto& [name, child] : model.named_children()) parts_.push_back({name, child});
    for (const auto& [name, tensor] : model.named_buffers("", false)) parts_.push_back({name, nullptr});
  }

  DeviceMap run() {
    find_largest(parts_);
    while (!parts_.empty()) place_next();
    DeviceMap map = options_.clean_result ? clean_device_map(map_) : map_;
    check_buffers();
    return map;
  }

 private:
  double limit_of(const MapDevice& device) const {
    for (const auto& [one, bytes] : limits_)
      if (one == device) return bytes;
    return INFINITY;
  }
  bool whole(const Part& part) const {
    return !part.module || part.module->named_children().empty() ||
           contains(options_.no_split_modules, part.module->class_name());
  }

  Parts split(const Part& part) const {
    Parts out;
    for (const auto& [name, tensor] : part.module->named_parameters("", false))
      out.push_back({part.name + "." + name, nullptr});
    for (const auto& [name, child] : part.module->named_children()) out.push_back({part.name + "." + name, child});
    return out;
  }

  void find_largest(const Parts& parts) {
    largest_ = 0;
    largest_names_.clear();
    // With the first list tensors count as layers, later ones are modules alone; a tensor's own size is what it has.
    const auto visit = [&](const auto& self, const Part& part) -> void {
      if (whole(part)) {
        const double size = sizes_.of(part.name);
        if (size > largest_) {
          largest_ = size;
          largest_names_ = {part.name};
        } else if (size == largest_) {
          largest_names_.push_back(part.name);
        }
        return;
      }
      for (const auto& [name, child] : part.module->named_children()) self(self, {part.name + "." + name, child});
    };
    for (const Part& part : parts) visit(visit, part);
  }
  void find_largest_module() {
    Parts modules;
    for (const Part& part : parts_)
      if (part.module) modules.push_back(part);
    find_largest(modules);
  }

  // Parameters elsewhere that are tied to one in this part.
  Names tied_to(const std::string& name) const {
    Names out;
    for (const Names& group : tied_) {
      const auto in_part = [&](const std::string& tensor) { return inside(tensor, name); };
      if (std::none_of(group.begin(), group.end(), in_part) || std::all_of(group.begin(), group.end(), in_part)) continue;
      std::copy_if(group.begin(), group.end(), std::back_inserter(out),
                   [&](const std::string& tensor) { return !in_part(tensor); });
    }
    return out;
  }

  struct WithTies {
    double size;
    Parts parts;  // those that hold the tied tensors
  };
  WithTies with_ties(double size, const Names& tied, const Parts& rest) const {
    WithTies out{size, {}};
    for (const std::string& tensor : tied) {
      const auto holder =
          std::find_if(rest.begin(), rest.end(), [&](const Part& part) { return tensor.starts_with(part.name + "."); });
      if (holder == rest.end()) continue;
      out.parts.push_back(*holder);
      out.size += sizes_.of(holder->name) - sizes_.of(tensor);
    }
    return out;
  }

  void assign(const std::string& name, const MapDevice& device) {
    for (auto& [key, value] : map_)
      if (key == name) {
        value = device;
        return;
      }
    map_.emplace_back(name, device);
  }

  void place_next() {
    const Part part = parts_.front();
    parts_.erase(parts_.begin());
    std::erase_if(largest_names_,
                  [&](const std::string& name) { return name == part.name || name.starts_with(part.name + "."); });
    if (largest_names_.empty()) find_largest_module();

    const double size = sizes_.of(part.name);
    const Names tied = tied_to(part.name);
    const MapDevice device = devices_[current_];
    const bool disk = device == MapDevice("disk");
    const bool reserves = std::find(main_.begin(), main_.end(), device) != main_.end();
    const double reserved = reserves ? largest_ : 0;
    const double room = (disk ? INFINITY : limit_of(device)) - reserved;
    double& used = used_[device.str()];
    const WithTies all = with_ties(size, tied, parts_);

    if (used + all.size <= room) {
      used += all.size;
      assign(part.name, device);
      for (const Part& other : all.parts) {
        std::erase_if(parts_, [&](const Part& p) { return p.name == other.name; });
        assign(other.name, device);
      }
      if (!options_.offload_buffers && part.module)
        buffers_[device.str()] += compute_module_sizes(*part.module, options_.dtype, true).of("");
      return;
    }
    // It fits by itself: a smaller piece of what is tied to it may do.
    if (!tied.empty() && used + size <= room) {
      for (const Part& other : all.parts) {
        if (whole(other)) continue;
        const auto at = std::find_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.name == other.name; });
        const Parts pieces = split(other);
        parts_.insert(parts_.erase(at), pieces.begin(), pieces.end());
        parts_.insert(parts_.begin(), part);
        find_largest_module();
        return;
      }
    }
    if (used + size >= room && !whole(part)) {
      const Parts pieces = split(part);
      parts_.insert(parts_.begin(), pieces.begin(), pieces.end());
      find_largest_module();
      return;
    }
    if (used == 0 && options_.fallback_allocation && !disk &&
        fall_back(part, limit_of(device) - std::max(largest_, all.size)))
      return;
    used += reserved;
    ++current_;
    parts_.insert(parts_.begin(), part);
  }

  // Brings a smaller part that fits to the front, ahead of `part`.
  bool fall_back(const Part& part, double room) {
    if (room < 0) return false;
    Parts search = parts_;
    std::optional<std::string> found;
    while (!search.empty() && !found) {
      const Part one = search.front();
      search.erase(search.begin());
      if (with_ties(sizes_.of(one.name), tied_to(one.name), search).size <= room)
        found = one.name;
      else if (!whole(one)) {
        const Parts pieces = split(one);
        search.insert(search.begin(), pieces.begin(), pieces.end());
      }
    }
    if (!found) return false;
    for (size_t dot = found->find('.'); dot != std::string::npos; dot = found->find('.', dot + 1)) {
      const std::string parent = found->substr(0, dot);
      const auto at = std::find_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.name == parent; });
      if (at == parts_.end()) continue;
      const Parts pieces = split(*at);
      parts_.insert(parts_.erase(at), pieces.begin(), pieces.end());
    }
    const auto at = std::find_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.name == *found; });
    const Part target = *at;
    parts_.erase(at);
    parts_.insert(parts_.begin(), part);
    parts_.insert(parts_.begin(), target);
    return true;
  }

  void check_buffers() {
    const double elsewhere = buffers_["cpu"] + buffers_["disk"];
    if (elsewhere <= 0 || options_.offload_buffers || accelerators_.empty()) return;
    for (const auto& [device, bytes] : limits_)
      if (device.is_accelerator() && bytes >= elsewhere + used_[device.str()]) return;
    warn("device map: offloaded layers have " + std::to_string(static_cast<int64_t>(elsewhere)) +
         " bytes of buffers, which do not fit into what is left of any accelerator; consider offload_buffers=true");
  }

  const DeviceMapOptions& options_;
  ModuleSizes sizes_;
  std::vector<Names> tied_;
  MaxMemory limits_;
  std::vector<MapDevice> devices_, accelerators_, main_;
  Parts parts_;
  size_t current_ = 0;
  std::map<std::string, double> used_, buffers_;
  double largest_ = 0;
  Names largest_names_;
  DeviceMap map_;
};

Names leaves_of(const std::vector<std::pair<std::string, double>>& sizes) {
  std::map<std::string, int> children;
  for (const auto& [name, bytes] : sizes)
    if (const size_t dot = name.rfind('.'); dot != std::string::npos) ++children[name.substr(0, dot)];
  Names out;
  for (const auto& [name, bytes] : sizes)
    if (!name.empty() && !children.count(name)) out.push_back(name);
  return out;
}

}  // namespace

DeviceMap infer_auto_device_map(Module& model, const DeviceMapOptions& options) { return Planner(model, options).run(); }

MaxMemory get_balanced_memory(Module& model, const DeviceMapOptions& options, bool low_zero) {
  MaxMemory limits = options.max_memory.empty() ? available_memory() : options.max_memory;
  std::vector<size_t> accelerators;  // places in limits
  for (size_t i = 0; i < limits.size(); ++i)
    if (limits[i].first.index() >= 0 && limits[i].second > 0) accelerators.push_back(i);
  if (accelerators.empty()) return limits;
  if (accelerators.size() == 1) low_zero = false;

  const ModuleSizes sizes = compute_module_sizes(model, options.dtype);
  double each = std::floor(sizes.of("") / static_cast<double>(accelerators.size() - (low_zero ? 1 : 0)));
  // Layers do not divide evenly: room is added for the largest block that stays whole, or for an average layer.
  double block = 0;
  Names seen;
  for (const auto& [name, bytes] : sizes.items()) {
    const Module* module = name.empty() ? nullptr : model.find_submodule(name);
    if (!module) continue;
    const std::string type = module->class_name();
    if (!contains(options.no_split_modules, type) || contains(seen, type)) continue;
    seen.push_back(type);
    block = std::max(block, bytes);
  }
  std::vector<std::pair<std::string, double>> modules;
  const Names tensors = leaves_of(sizes.items());
  std::copy_if(sizes.items().begin(), sizes.items().end(), std::back_inserter(modules),
               [&](const auto& item) { return !contains(tensors, item.first); });
  double sum = 0;
  const Names leaves = leaves_of(modules);
  for (const std::string& leaf : leaves) sum += sizes.of(leaf);
  const double mean = std::trunc(sum / static_cast<double>(std::max<size_t>(leaves.size(), 1)));
  each += std::trunc(1.25 * std::max(block, mean));

  const auto limit_of = [&](int64_t index) -> double* {
    for (auto& [device, bytes] : limits)
      if (device.index() == index) return &bytes;
    return nullptr;
  };
  // The last one keeps its limit, in case that was not enough.
  for (size_t i = 0; i + 1 < accelerators.size(); ++i) {
    auto& [device, bytes] = limits[accelerators[i]];
    bytes = std::min(low_zero && device.index() == 0 ? bytes : each, bytes);
  }
  if (double* zero = limit_of(0); low_zero && zero) {
    double others = 0;
    for (size_t i = 1; i < accelerators.size(); ++i)
      if (const double* bytes = limit_of(static_cast<int64_t>(i))) others += *bytes;
    *zero = std::min(std::max(0.0, sizes.of("") - others), *zero);
  }
  return limits;
}

}  // namespace calque
