// Exports with dynamic shapes that PyTorch has made too (tools/golden/dynamic_shapes.py): inputs and specs from their
// description, and the functions by name. Here a function is run on the fake inputs; nothing is recorded.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "calque/export/fake_inputs.h"

namespace calque {

struct ShapeFunction {
  std::vector<std::string> names;
  std::function<void(const Values& args, const Kwargs& kwargs)> run;
};
const std::map<std::string, ShapeFunction>& shape_functions();

Value input_from(const nlohmann::json& description, std::map<std::string, Tensor>& by_id);
DynamicShapes shapes_from(const nlohmann::json& description);
std::vector<nlohmann::json> shape_cases();  // of tests/export/golden/dynamic_shapes.jsonl

}  // namespace calque
