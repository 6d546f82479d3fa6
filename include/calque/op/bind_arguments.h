// From a call as it is written to the full list of arguments that an operator takes.
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

}  // namespace calque
