// auto_functionalized and its second version by the names that graphs call them by, for the table of functions.
#pragma once

#include <utility>
#include <vector>

#include "calque/graph/function.h"

namespace calque {

const std::vector<std::pair<const char*, Function::Body>>& functionalized_calls();

}  // namespace calque
