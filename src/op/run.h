// The forms that are derived from an operator's functions, by the addresses of the arguments; run.cpp has the others too.
#pragma once

#include "calque/op/library.h"

namespace calque::op_detail {

// Of an operator with a rule and a kernel.
Tensor write_in_place(const Operator& op, Arguments at, bool fake);
Tensor write_out(const Operator& op, Arguments at, bool fake);
// Several outputs: computed aside, then written; such operators are not the hot ones.
Value run_outs(const Operator& op, Arguments at, bool fake);
// Of an operator whose result exists only as a tensor: compute, then write.
Tensor write_result_in_place(const Operator& op, Arguments at, bool fake);
Tensor write_result_out(const Operator& op, Arguments at, bool fake);

}  // namespace calque::op_detail
