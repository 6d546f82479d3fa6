// "2*dx + 1", "dx - 3", "7": what sympy prints of a linear expression in one symbol, and back.
#pragma once

#include <optional>
#include <string_view>

#include "calque/sym/dim_constraints.h"

namespace calque {

// The root is empty for a number. Nothing where the text is something else.
std::optional<NamedDim::Derived> parse_linear(std::string_view text);
std::string linear_text(const NamedDim::Derived& linear);

}  // namespace calque
