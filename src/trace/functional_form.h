// From an operator that writes to the one that computes the same and writes nothing.
#pragma once

#include "calque/op/operator.h"

namespace calque {

// The functional operator that an in-place or out= one computes; its arguments have the same names. Null where there is
// none, and for operators that change a tensor's sizes, strides or memory.
const Operator* find_functional_form(const Operator& op);
bool writes_out(const Operator& op);  // it is an out= form

}  // namespace calque
