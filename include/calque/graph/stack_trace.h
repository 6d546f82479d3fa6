// Where nodes come from, as text: a line of C++ as Python writes a frame of a traceback, and a node with its line for messages.
#pragma once

#include <source_location>
#include <string>

namespace calque {

class Node;

// The function's signature stands for the line's text, which is not known when a program runs.
std::string stack_trace(const std::source_location& where);

// "%add : f32[3] = aten.add.Tensor(%x, %y) (model.cpp:12)", and below it the node's stack trace where it has one.
std::string node_with_line(const Node& node);

}  // namespace calque
