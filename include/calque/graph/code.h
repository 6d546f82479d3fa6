// A graph as Python code, in the layout of torch.fx: what Graph.python_code and GraphModule.print_readable print.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace calque {

class Graph;

struct CodeOptions {
  bool verbose = false;  // shapes and dtypes as annotations, the source lines of nodes
  bool include_stride = false;
  bool include_device = false;
  bool colored = false;
  bool expanded_def = false;                 // each argument on its own line
  std::vector<std::string> additional_meta;  // keys of meta.custom to show
};

// The source of `def forward(self, ...)`, with the empty lines that torch.fx puts in front.
std::string python_code(const Graph& graph, std::string_view root_module = "self", const CodeOptions& options = {});

}  // namespace calque
