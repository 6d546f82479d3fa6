// Reads one request a line (a tree of modules, limits, options; JSON), prints the plan for it as JSON. tests/peers/device_maps.py asks.
#include <iostream>
#include <nlohmann/json.hpp>

#include "calque/base/error.h"
#include "calque/hub/device_map.h"
#include "calque/op/aten/zeros.h"

namespace {

using nlohmann::ordered_json;
using namespace calque;

SymInts sizes_of(const ordered_json& sizes) {
  const auto numbers = sizes.get<std::vector<int64_t>>();
  return {numbers.begin(), numbers.end()};
}

struct Tree : Module {
  explicit Tree(const ordered_json& node) : name(node["class"].get<std::string>()) {
    for (const auto& [key, sizes] : node["params"].items()) register_parameter(key, zeros(sizes_of(sizes)));
    for (const auto& [key, sizes] : node["children"].items()) register_module(key, std::make_shared<Tree>(sizes));
    for (const auto& [key, sizes] : node["buffers"].items())
      register_buffer(key, zeros(sizes_of(sizes), key == "flags" ? DType::bool_ : DType::float32));
  }
  std::string type_name() const override { return "peer." + name; }
  std::string name;
};

ordered_json answer(const ordered_json& request) {
  Tree model(request["tree"]);
  for (const auto& tie : request["ties"])
    model.set_tensor(tie[1].get<std::string>(), model.get_parameter(tie[0].get<std::string>()));
  DeviceMapOptions options;
  for (const auto& [device, bytes] : request["max_memory"].items())
    options.max_memory.emplace_back(MapDevice(device), bytes.get<double>());
  options.no_split_modules = request["no_split"].get<std::vector<std::string>>();
  if (request["half"].get<bool>()) options.dtype = DType::float16;
  options.fallback_allocation = request["fallback"].get<bool>();
  const std::string mode = request["mode"];
  if (mode != "sequential") options.max_memory = get_balanced_memory(model, options, mode == "balanced_low_0");
  ordered_json out;
  for (const auto& [device, bytes] : options.max_memory) out["memory"][device.str()] = bytes;
  out["map"] = ordered_json::object();
  for (const auto& [name, device] : infer_auto_device_map(model, options)) out["map"][name] = device.str();
  return out;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      std::cout << answer(ordered_json::parse(line)).dump() << std::endl;
    } catch (const std::exception& error) {
      std::cout << ordered_json{{"error", error.what()}}.dump() << std::endl;
    }
  }
}
