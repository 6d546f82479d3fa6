// A condition as it reads by now: "True" once what is known decides it, where SymBool::str keeps what was asked. Values of nodes
// print so, as PyTorch's do.
#pragma once

#include <string>

#include "calque/sym/sym_int.h"

namespace calque {

std::string condition_text(const SymBool& condition);

}  // namespace calque
