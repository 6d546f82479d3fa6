// Functions of torch that are written in Python there: torch.nn.functional.dropout(input, p=0.5, training=True,
// inplace=False). One table says how they are called; a graph's node of one has what is required by position and all
// the rest by name, whatever the user wrote, and running it binds them again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/graph/function.h"

namespace calque {

struct LibraryFunction {
  struct Parameter {
    std::string name;
    std::optional<Value> default_value;
  };
  std::string name;  // qualified
  std::vector<Parameter> parameters;
  Value (*body)(const LibraryFunction& self, const Values& bound);

  // One value for each parameter. UserError names what is missing or not known.
  Values bind(const Values& args, const Kwargs& kwargs) const;
  // As a node has them.
  std::pair<Values, Kwargs> written(const Values& bound) const;
};

const std::vector<LibraryFunction>& library_functions();
const LibraryFunction* find_library_function(std::string_view name);  // null when there is none

}  // namespace calque
