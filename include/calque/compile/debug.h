// The debug folder: what every capture made, as files. CALQUE_COMPILE_DEBUG=1 makes run_<time>-pid_<n> in ./calque_compile_debug;
// set_compile_debug says another place. Of each capture a folder: graph.txt, code.py, guards.txt, metrics.json, graph_break.txt where it
// ended at one, and of each part its graph before and after each pass of the plan, and the plan.
#pragma once

#include <string>

namespace calque {

void set_compile_debug(const std::string& folder);  // "" switches it off; UserError when the folder cannot be made
std::string get_debug_dir();                        // of this run; "" when it is off

}  // namespace calque
