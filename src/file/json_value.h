// JSON as Values: null is None, an array a list, an object a dict in the order of the text.
#pragma once

#include <functional>
#include <optional>

#include "calque/file/json.h"
#include "calque/op/value.h"

namespace calque {

// What a format writes as an object though it is something else; nothing for other objects.
using JsonObjectReader = std::function<std::optional<Value>(const Json& object)>;

Value value_of_json(const Json& json, const JsonObjectReader& special = {});

}  // namespace calque
