// Functions that a graph calls and that nobody knows.
#pragma once

namespace calque {

class Graph;

// UserError that lists all of them; nothing when there are none.
void refuse_unknown_functions(const Graph& graph);

}  // namespace calque
