// Example modules that the program can trace without any file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calque/nn/module.h"

namespace calque::cli {

struct Example {
  const char* name;
  const char* shows;
  std::function<std::shared_ptr<Module>()> make;
  std::function<Values()> inputs;
};
const std::vector<Example>& examples();
const Example& find_example(const std::string& name);  // UserError lists the names

}  // namespace calque::cli
