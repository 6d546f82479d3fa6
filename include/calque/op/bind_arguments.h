// From a call as it is written to the full list of arguments that an operator takes, and back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calque/op/schema.h"
#include "calque/op/value.h"

namespace calque {

// Fills positional and keyword arguments into one full list in the schema's order: defaults supplied, single numbers
// widened to fixed-size lists, each value checked against its type. UserError names operator, argument and both types.
Values bind_arguments(const Schema& schema, Values positional, std::vector<std::pair<std::string, Value>> keyword = {});

// One argument of it: `bound` receives the value as the operator takes it. False where it does not fit the type.
bool bind_argument(const SchemaType& type, const Value& value, Value& bound);

// Whether the argument has a default and the value equals it.
bool is_default(const SchemaArgument& argument, const Value& value);

// A full list as PyTorch writes the call in graphs and in Python: arguments equal to their defaults are left out, of the positional
// ones those at the end.
struct WrittenArguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> keyword;
};
WrittenArguments written_arguments(const Schema& schema, const Values& args);

}  // namespace calque
