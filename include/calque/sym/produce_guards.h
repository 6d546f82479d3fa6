// From an environment to conditions on inputs: the guards as Python text in PyTorch's words, checks that run on real
// sizes, and the promises that the user made about dimensions, held against what the trace needed. A broken promise is
// a UserError (constraint_violation) that lists every one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "calque/sym/dim_constraints.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/source.h"
#include "calque/sym/symbolic_context.h"
#include "calque/sym/unbacked.h"

namespace calque {

// An input of the trace: where it comes from and its symbolic value.
struct Placeholder {
  Source source;
  std::variant<TensorGeometry, SymInt, SymFloat> value;
  const SymbolicContext* context = nullptr;  // a tensor's promises
  DimConstraint constraint = {};             // an integer's
};

// Equations between input dimensions that the user stated. A derived one says source == multiplier * root + offset, where
// the root is another dimension, or a symbol of its own that is no input's dimension.
struct EqualityConstraint {
  struct Derived {
    Source source;
    std::variant<Source, SymInt> root;
    int64_t multiplier = 1;
    int64_t offset = 0;
  };
  std::vector<std::pair<Source, Source>> equal;
  std::vector<Derived> derived;
  std::vector<SymInt> phantom_symbols;
  std::vector<Source> relaxed;  // may turn out equal to anything
  bool warn_only = false;
};

struct GuardsRequest {
  const EqualityConstraint* equalities = nullptr;
  bool ignore_static = true;  // no text for tensor sizes that are plain integers
  bool simplified = false;    // leave out duck sizing, equalities and the bounds that every size has
};

// One condition on the inputs.
struct InputCheck {
  enum class Kind : uint8_t { equality, guard, range, not_nan };
  Kind kind;
  std::string text;     // "L['x'].size()[0] == 2*L['y'].size()[0]"
  std::string verbose;  // with the reason behind it
};

// The guards of one environment for given inputs. Keeps the environment alive.
class ProducedGuards {
 public:
  const std::vector<InputCheck>& checks() const;
  std::vector<std::string> exprs() const;
  std::vector<std::string> verbose() const;
  const std::vector<std::string>& warnings() const;  // broken promises that are warned of only
  DimConstraints& dim_constraints() const;           // with every condition on input dimensions added, not solved
  // The promises that were broken, as one text; empty if none. produce_guards throws it.
  const std::string& violations() const;

  struct RealTensor {
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    int64_t storage_offset = 0;
  };
  using RealInput = std::variant<RealTensor, int64_t, double>;
  // The first check that the inputs fail; none if all hold. One input for each placeholder.
  std::optional<std::string> first_failure(const std::vector<RealInput>& inputs) const;
  bool accepts(const std::vector<RealInput>& inputs) const { return !first_failure(inputs); }

  struct Impl;
  explicit ProducedGuards(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

ProducedGuards produce_guards(ShapeEnv& env, const std::vector<Placeholder>& placeholders,
                              const GuardsRequest& request = {});
// The same, with broken promises in violations() instead of an error.
ProducedGuards collect_guards(ShapeEnv& env, const std::vector<Placeholder>& placeholders,
                              const GuardsRequest& request = {});
// What an export needs: guards whose conditions on the user's dims are solved. A broken promise or an unexpected
// specialisation is a UserError that ends with suggested fixes.
ProducedGuards produce_guards_and_solve(ShapeEnv& env, const std::vector<Placeholder>& placeholders,
                                        const GuardsRequest& request, const std::vector<NamedDim>& dims);

// Symbol name to value, for the symbols that are some input's size, stride or offset by themselves.
ShapeEnv::Assignment bind_symbols(const ShapeEnv& env, const std::vector<Placeholder>& placeholders,
                                  const std::vector<ProducedGuards::RealInput>& inputs);

}  // namespace calque
