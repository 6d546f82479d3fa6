// Writing recordings. Nothing is written where no folder was set.
#pragma once

#include <string>

#include "calque/graph/graph_module.h"

namespace calque::compile_detail {

// The file's path; empty where none was written.
std::string write_recording(const GraphModule& module, const std::string& function, const std::string& backend,
                            const std::string& error);

}  // namespace calque::compile_detail
