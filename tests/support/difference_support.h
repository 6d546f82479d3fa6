// In what two results differ: structure, geometry, and every bit of the values.
#pragma once

#include <string>

#include "calque/op/value.h"

namespace calque::test {

std::string difference(const Value& a, const Value& b);  // empty: in nothing

}  // namespace calque::test
