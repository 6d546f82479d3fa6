// How a real tensor's layout becomes a symbolic one, and what stands for a value that is not known.
#pragma once

#include <string>

#include "calque/op/operator.h"
#include "calque/sym/shape_env.h"

namespace calque {

struct FakeLayout {
  SymInts sizes;
  SymInts strides;
  SymInt offset;
};

// A symbol for each size; strides are products of sizes where the example's are, and symbols of their own otherwise.
FakeLayout symbolic_layout(ShapeEnv& env, const Tensor& real, const std::string& name);
// An unbacked number of the dtype's kind.
Value fake_item(ShapeEnv& env, DType dtype);
// The shape rule's answer; with `fallback` an operator that has none runs on zeros.
Value run_rule(const Operator& op, const Values& args, bool fallback);

}  // namespace calque
