// The inputs of an export as fake tensors: a symbol for each dimension that the user called dynamic, and the promises made
// about them; after the trace, the promises held against what it needed, and the ranges and conditions that are left.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calque/export/dynamic_shapes.h"
#include "calque/sym/produce_guards.h"
#include "calque/trace/fake.h"

namespace calque {

struct FakeInputOptions {
  bool prefer_deferred_runtime_asserts = false;  // conditions on inputs become asserts of the program
  bool keep_dynamic_zero_one =
      true;  // a dimension that was asked to be dynamic is so if its example is 0 or 1; false: static, as in PyTorch
  bool flat_names = false;  // symbols are named after the inputs' positions, as PyTorch's strict export does
};

// The environment is mode->env(). The placeholders point to the contexts: movable, not copyable.
struct FakeInputs {
  std::shared_ptr<FakeMode> mode;
  Values args;  // the user's, with fake tensors and symbolic integers
  Kwargs kwargs;
  std::vector<Placeholder> placeholders;  // tensors and integers that are dynamic, arguments first, then keyword arguments
  EqualityConstraint equalities;
  std::vector<NamedDim> dims;

  // One for each leaf of (args, kwargs).
  struct Leaf {
    std::string path;  // "['x'][0]": by argument name
    Value example;
    Value fake;
    DynamicShapes shape;  // what the user said
  };
  std::vector<Leaf> leaves;
  std::vector<std::unique_ptr<SymbolicContext>> contexts;

  // Dimensions that are dynamic although their example is 0 or 1 are traced with another size: "5 for batch"; and the examples' own
  // sizes by symbol.
  std::string stand_ins;
  ShapeEnv::Assignment own_sizes;
};

// Checks the spec, then makes a mode with a fresh environment and the inputs in it. A tensor that is fake already stays.
// Errors are UserErrors: invalid_input for a spec that does not fit, constraint_violation for examples that break it.
FakeInputs make_fake_inputs(const std::vector<std::string>& names, const Values& args, const Kwargs& kwargs,
                            const DynamicShapes& shapes, const FakeInputOptions& options = {});

// After the trace: the condition that it needed and that the example's own sizes do not fulfil, if there is one.
std::string refused_example(const FakeInputs& inputs);

// After the trace: a UserError (constraint_violation) lists every broken promise and forced specialisation, with
// suggested fixes. No guards may be taken afterwards.
void solve_constraints(const FakeInputs& inputs);

// By expression ("s0", "2*s0 + 1", "u0"): values from tensor data first, then the sizes of inputs in their order. Narrows the
// environment's ranges by the bounds of hints; UserError for hints that the trace contradicts.
using RangeConstraints = std::vector<std::pair<std::string, ValueRange>>;
RangeConstraints range_constraints(const FakeInputs& inputs);

// The guards as Python text over the inputs: "L['x'].size()[0] >= 2".
std::vector<std::string> guards_code(const ShapeEnv& env);

}  // namespace calque
