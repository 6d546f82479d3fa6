// Symbolic arithmetic beyond the operators of SymInt: powers, choice, and the way to floats and back.
// Plain arguments give plain results; the functions follow Python's semantics.
#pragma once

#include "calque/sym/sym_int.h"

namespace calque {

SymInt sym_pow(SymInt base, SymInt exponent);  // the exponent must not be negative
SymInt sym_where(SymBool condition, SymInt if_true, SymInt if_false);

SymFloat sym_float(SymInt value);
SymFloat sym_true_div(SymInt a, SymInt b);
SymFloat sym_float_div(SymFloat a, SymFloat b);
SymFloat sym_add(SymFloat a, SymFloat b);
SymFloat sym_mul(SymFloat a, SymFloat b);
SymFloat sym_float_pow(SymFloat base, SymFloat exponent);
SymInt floor_to_int(SymFloat value);
SymInt ceil_to_int(SymFloat value);
SymInt trunc_to_int(SymFloat value);

}  // namespace calque
