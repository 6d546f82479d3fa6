// Programs of tests/peers/export_cases.py, written in C++: modules and functions with example inputs and what is dynamic.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calque/export/export.h"

namespace calque::peers {

struct ExportCase {
  std::string name;
  std::function<ExportedProgram()> make;  // exported afresh
  std::vector<Values> inputs;             // to run it on: the example, and others where sizes are dynamic
};

std::vector<ExportCase> export_cases();

// Element i of every tensor is the same small exact number on both sides.
Tensor filled(std::vector<int64_t> sizes, int64_t seed = 0, DType dtype = DType::float32, int64_t below = 10);

void add_function_cases(std::vector<ExportCase>& cases);
void add_module_cases(std::vector<ExportCase>& cases);

}  // namespace calque::peers
