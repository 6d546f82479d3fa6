// What PyTorch 2.13 asks of sizes beyond what a program needs: how each recorded tensor lies in memory, how a view splits
// the dimensions, which library would convolve. Calque's rules do not ask it, so that its graphs hold for more sizes; with
// FakeOptions::pytorch_guards they do, and the guards are PyTorch's. Nothing here changes a result.
#pragma once

#include "calque/op/operator.h"
#include "calque/op/tensor.h"

namespace calque::pytorch_guards {

// Of a tensor that becomes a node's value.
void ask_recorded(const Tensor& t);
// Once the shape rules have answered an operator's call, which they may refuse: of what it was given, and of what it gave.
void ask_arguments(const Operator& op, const Values& args);
void ask_result(const Tensor& t);

}  // namespace calque::pytorch_guards
