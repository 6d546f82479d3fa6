// Symbolic arithmetic beyond the operators of SymInt: powers, bits, choice, floats and the way to them and back.
// Plain arguments give plain results; the functions follow Python's semantics. An integer becomes a float only by
// sym_float. Comparing floats gives a SymBool, as comparing integers does.
#pragma once

#include "calque/sym/sym_int.h"

namespace calque {

SymInt sym_pow(SymInt base, SymInt exponent);  // the exponent must not be negative
SymInt sym_abs(SymInt value);
SymInt sym_lshift(SymInt value, SymInt shift);
SymInt sym_rshift(SymInt value, SymInt shift);
SymInt sym_bitwise_and(SymInt a, SymInt b);
SymInt sym_bitwise_or(SymInt a, SymInt b);
SymInt sym_bitwise_xor(SymInt a, SymInt b);
SymInt sym_sum(SymIntList values);

SymInt sym_where(SymBool condition, SymInt if_true, SymInt if_false);
// The same, written as sympy's Piecewise: what torch.sym_ite makes.
SymInt sym_ite(SymBool condition, SymInt if_true, SymInt if_false);
SymFloat sym_float_ite(SymBool condition, SymFloat if_true, SymFloat if_false);
SymBool sym_bool_ite(SymBool condition, SymBool if_true, SymBool if_false);

SymInt sym_int(SymBool value);   // 0 or 1
SymInt sym_int(SymFloat value);  // towards zero
SymBool sym_equal(SymBool a, SymBool b);
SymBool sym_eq(SymIntList a, SymIntList b);  // of the same length, and all equal; nothing is guarded

SymFloat sym_float(SymInt value);
SymFloat sym_true_div(SymInt a, SymInt b);
SymFloat sym_float_div(SymFloat a, SymFloat b);
SymFloat sym_add(SymFloat a, SymFloat b);
SymFloat sym_mul(SymFloat a, SymFloat b);
SymFloat sym_float_pow(SymFloat base, SymFloat exponent);
// value + value + ... and value * value * ..., `times` (not 0) of them: 3*value and value**3, where 3 stays an integer as in sympy.
SymFloat sym_repeated_sum(SymFloat value, int64_t times);
SymFloat sym_repeated_product(SymFloat value, int64_t times);
SymInt floor_to_int(SymFloat value);
SymInt ceil_to_int(SymFloat value);
SymInt trunc_to_int(SymFloat value);
SymInt round_to_int(SymFloat value);  // half to even
SymFloat sym_round(SymFloat value, int64_t digits);
SymFloat sym_trunc(SymFloat value);
SymBool sym_is_integer(SymFloat value);
SymFloat sym_float_abs(SymFloat value);
SymFloat sym_float_min(SymFloat a, SymFloat b);
SymFloat sym_float_max(SymFloat a, SymFloat b);
SymFloat sym_float_floor_div(SymFloat a, SymFloat b);
SymFloat operator%(SymFloat a, SymFloat b);

SymFloat operator+(SymFloat a, SymFloat b);
SymFloat operator-(SymFloat a, SymFloat b);
SymFloat operator*(SymFloat a, SymFloat b);
SymFloat operator/(SymFloat a, SymFloat b);
SymFloat operator-(SymFloat a);
SymBool operator==(SymFloat a, SymFloat b);
SymBool operator!=(SymFloat a, SymFloat b);
SymBool operator<(SymFloat a, SymFloat b);
SymBool operator<=(SymFloat a, SymFloat b);
SymBool operator>(SymFloat a, SymFloat b);
SymBool operator>=(SymFloat a, SymFloat b);

SymFloat sym_sqrt(SymFloat x);
SymFloat sym_cos(SymFloat x);
SymFloat sym_cosh(SymFloat x);
SymFloat sym_sin(SymFloat x);
SymFloat sym_sinh(SymFloat x);
SymFloat sym_tan(SymFloat x);
SymFloat sym_tanh(SymFloat x);
SymFloat sym_asin(SymFloat x);
SymFloat sym_acos(SymFloat x);
SymFloat sym_atan(SymFloat x);
SymFloat sym_exp(SymFloat x);
SymFloat sym_log(SymFloat x);
SymFloat sym_asinh(SymFloat x);
SymFloat sym_log2(SymFloat x);

// Some order of the dimensions makes the strides contiguous; as one condition, whichever order that is.
SymBool is_non_overlapping_and_dense(SymIntList sizes, SymIntList strides);

}  // namespace calque
