// The activations that configurations name ("hidden_act"), as transformers' ACT2FN has them.
#pragma once

#include <string>

#include "calque/op/tensor.h"

namespace calque {

using Activation = Tensor (*)(const Tensor&);
Activation activation_named(const std::string& name);  // UserError lists the names that there are

}  // namespace calque
