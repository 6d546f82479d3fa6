// What a compilation writes down: logs, and the structured trace (structured_trace.cpp).
#pragma once

#include <cstdint>
#include <string>

#include "calque/compile/metrics.h"
#include "compile/capture.h"

namespace calque::compile_detail {

int64_t microseconds_now();  // since 1970
std::string options_json(const CompileOptions& options);
std::string fail_type_of(const Error& error);
void write_guards_log(const Guards& guards, const CompilationMetrics& metrics);

// The structured trace: PyTorch's, which tlparse reads. Silent unless a folder was set.
void trace_start(const CompilationMetrics& metrics);
void trace_capture(const Captured& captured, const Guards& guards, const CompilationMetrics& metrics);
void trace_graph(const GraphModule& module, const CompilationMetrics& metrics);
void trace_training(const GraphModule& joint, const GraphModule& forward, const GraphModule& backward,
                    const CompilationMetrics& metrics);
void trace_metrics(const CompilationMetrics& metrics);

}  // namespace calque::compile_detail
