// load_operator_library of calque/op/library.h, for files that need nothing else of that (heavy) header.
#pragma once

#include <string>

namespace calque {

void load_operator_library(const std::string& path);

}  // namespace calque
