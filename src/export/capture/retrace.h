// A graph run again, so that what is recorded knows which node it comes from and values from tensor data keep their names.
#pragma once

#include <unordered_map>

#include "calque/graph/interpreter.h"
#include "calque/sym/shape_env.h"
#include "calque/sym/unbacked.h"

namespace calque {

class Retracer : public Interpreter {
 public:
  // Without an environment nothing is renamed; with `names_origin` new nodes get a meta entry from_node.
  Retracer(const Graph& graph, const GraphOwner* owner, ShapeEnv* env, bool names_origin);

 protected:
  Value run_node(const Node& node) override;

 private:
  ShapeEnv* env_;
  const bool names_origin_;
  std::unordered_map<const Node*, UnbackedBindings> bindings_;
};

}  // namespace calque
