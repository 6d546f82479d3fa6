// Writing into the debug folder. All of it does nothing while that is off.
#pragma once

#include <string>

#include "calque/compile/metrics.h"
#include "compile/capture.h"

namespace calque::compile_detail {

bool debug_enabled();
void debug_capture(const Captured& captured, const Guards& guards, const CompilationMetrics& metrics);
void debug_metrics(const CompilationMetrics& metrics);

// What the calling thread makes now belongs to this part of that capture.
class DebugPartScope {
 public:
  DebugPartScope(const std::string& compile_id, const GraphModule& module);
  ~DebugPartScope();
  DebugPartScope(const DebugPartScope&) = delete;
  DebugPartScope& operator=(const DebugPartScope&) = delete;

 private:
  bool is_open_ = false;
};
// A file of the part that the calling thread makes.
void debug_part_file(const std::string& name, const std::string& text);

}  // namespace calque::compile_detail
