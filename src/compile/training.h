// A captured part whose inputs or parameters want gradients: forward and backward pass as graphs of their own, compiled each, behind
// one node of the backward graph.
#pragma once

#include <optional>

#include "calque/compile/compile.h"
#include "calque/compile/metrics.h"

namespace calque::compile_detail {

// None where no gradient is wanted or recorded now, or where the graph has no such form: it writes what wants a gradient, gives what
// shares memory with an input, calls what has no gradient, or asks more of its sizes than the guards say. Calls whose inputs want
// gradients differently run what the backend makes of the graph itself.
// The backward pass is compiled when it first runs; `metrics` says whose it is.
std::optional<CompiledGraph> training_graph(const std::shared_ptr<GraphModule>& graph, const Values& examples,
                                            const Backend& backend, const CompilationMetrics& metrics);

}  // namespace calque::compile_detail
