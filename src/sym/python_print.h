// Expressions as Python code, in the words and the order of PyTorch's guard printer.
#pragma once

#include <functional>
#include <string>

#include "calque/sym/expr.h"

namespace calque {

using SymbolText = std::function<std::string(size_t symbol)>;
std::string python_text(const Expr* e, const SymbolText& symbol_text);

}  // namespace calque
