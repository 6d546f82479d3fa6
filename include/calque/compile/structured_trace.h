// The structured trace of compilations, in PyTorch's own format: `tlparse FILE` makes pages of it, with the compilations, their graphs,
// guards, graph breaks, metrics and failures. Off until a folder is set, or the variable CALQUE_TRACE names one.
#pragma once

#include <string>

namespace calque {

// A file of its own in the folder, which is made; "" ends the trace. UserError when it cannot be written.
void set_structured_trace(const std::string& folder);
std::string structured_trace_path();  // the file; "" when there is none

}  // namespace calque
