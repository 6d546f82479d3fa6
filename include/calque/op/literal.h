// torch.tensor(...): a fresh tensor of values written in the program. Traces and fake tensors see it as a literal: it is
// stored with the graph, and a single number stays known.
#pragma once

#include <initializer_list>
#include <optional>
#include <source_location>

#include "calque/op/tensor.h"

namespace calque {

// By default float32 for floats, int64 for integers, bool for bools.
Tensor tensor(const Scalar& value, std::optional<DType> dtype = std::nullopt,
              std::source_location where = std::source_location::current());
Tensor tensor(std::initializer_list<Scalar> values, std::optional<DType> dtype = std::nullopt,
              std::source_location where = std::source_location::current());
Tensor tensor(std::initializer_list<std::initializer_list<Scalar>> rows, std::optional<DType> dtype = std::nullopt,
              std::source_location where = std::source_location::current());

}  // namespace calque
