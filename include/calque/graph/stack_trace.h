// A line of C++ as Python writes a frame of a traceback, for the stack_trace of nodes and files.
#pragma once

#include <source_location>
#include <string>

namespace calque {

// The function's signature stands for the line's text, which is not known when a program runs.
std::string stack_trace(const std::source_location& where);

}  // namespace calque
