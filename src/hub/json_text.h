// Values as the JSON text that Python's json.dumps(indent=2, sort_keys=True) gives.
#pragma once

#include <string>

#include "calque/tensor/value.h"

namespace calque {

// None, booleans, numbers, strings, lists, tuples and dicts (their keys as strings). UserError for anything else.
std::string json_text(const Value& value);

}  // namespace calque
