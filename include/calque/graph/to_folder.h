// A graph as a Python package, in the layout of torch.fx's GraphModule.to_folder: module.py with a class, __init__.py, and
// state_dict.pt. Unlike torch.fx's, the package may be moved, its modules are constructor calls and not pickled objects, and the state
// loads with weights_only=True.
//
//   from FOLDER import FxModule
#pragma once

#include <filesystem>
#include <string>

#include "calque/graph/graph_module.h"

namespace calque {

// The text of module.py. UserError names a module that the graph calls and that no constructor of torch.nn makes.
std::string python_module(const GraphModule& module, const std::string& class_name = "FxModule");
// Every tensor that the graph's module holds, under its path; buffers that are in no state dict too.
Value graph_state(const GraphModule& module);
// Writes the three files into a folder that there is.
void write_python_package(const GraphModule& module, const std::filesystem::path& folder,
                          const std::string& class_name = "FxModule");
// Makes the folder, or takes the place of these files in it.
void to_folder(const GraphModule& module, const std::filesystem::path& folder, const std::string& class_name = "FxModule");

}  // namespace calque
