// Checkpointing: a part of a model keeps its inputs instead of what it computes, and computes again when the pass comes back.
//
//   Tensor y = checkpoint([&](const TensorVector& x) { return TensorVector{layer(x[0])}; }, {x})[0];
#pragma once

#include <functional>
#include <string>

#include "calque/grad/autograd.h"
#include "calque/grad/checkpointing_options.h"
#include "calque/op/value.h"

namespace calque {

using CheckpointedFunction = std::function<TensorVector(const TensorVector& inputs)>;
TensorVector checkpoint(const CheckpointedFunction& function, const TensorVector& inputs,
                        const CheckpointingOptions& options = {});
// The same for any values: the tensors in them are what goes in and what comes out; the rest is as it is given.
Value checkpoint_values(const std::function<Value(const Value& inputs)>& function, const Value& inputs,
                        const CheckpointingOptions& options = {});
// The functions one after the other, in so many parts of which all but the last are checkpointed.
TensorVector checkpoint_sequential(const std::vector<CheckpointedFunction>& functions, size_t segments,
                                   const TensorVector& inputs, const CheckpointingOptions& options = {});

}  // namespace calque
