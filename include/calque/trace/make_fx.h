// make_fx: runs a function once on fake tensors and records its operator calls as a Graph. With symbolic sizes the
// graph holds for other sizes too; sizes that the function uses as numbers become sym_size nodes.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "calque/graph/graph.h"
#include "calque/sym/shape_env.h"

namespace calque {

enum class TracingMode : uint8_t { fake, symbolic };

struct TracedGraph {
  Graph graph;
  std::shared_ptr<ShapeEnv> env;  // its guards say for which sizes the graph holds; null without symbolic sizes
};

// `examples` are tensors; only their sizes, strides, dtype and device are used.
TracedGraph make_fx(const std::function<Value(const std::vector<Tensor>&)>& fn, const std::vector<Tensor>& examples, TracingMode mode = TracingMode::symbolic);

}  // namespace calque
