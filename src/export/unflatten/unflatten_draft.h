// Modules of an unflattened program while they are being made. The calls of one module share their children until it is known
// which of them run the same graph; therefore children are held apart from the module, and real modules are made last.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calque/export/program.h"
#include "calque/graph/graph.h"

namespace calque::unflatten_detail {

struct Draft;
using DraftPtr = std::shared_ptr<Draft>;
using Children = std::vector<std::pair<std::string, DraftPtr>>;

struct Draft {
  struct State {
    std::string name;
    Tensor tensor;
    bool is_parameter = false;
    bool persistent = true;
  };

  Graph graph;  // empty in modules that only hold others
  std::string type;
  std::shared_ptr<Children> children = std::make_shared<Children>();
  std::vector<State> state;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> graphs;  // of higher-order operators
  std::vector<DraftPtr> calls;                                          // of a dispatcher: what to run in turn

  DraftPtr find(std::string_view name) const;
  DraftPtr find_path(std::string_view path);  // null when there is none
  void set(const std::string& name, DraftPtr child);
  void erase(std::string_view name);
  void set_state(State value);
};

// One call of a submodule, and the node that makes it.
struct Call {
  std::string parent_path;
  DraftPtr parent;
  Node* node;
  std::string path;
  size_t index;  // from 1
  DraftPtr module;
};

struct Outlined {
  DraftPtr root;
  std::vector<std::vector<Call>> calls;  // by module
};

std::vector<std::string> split(std::string_view path);
std::string_view before_at(std::string_view call_name);        // "n" of "n@1"
std::string call_name(const std::string& path, size_t index);  // "n" for 1, "n@1" for 2
std::string accessor(const std::string& parent, const std::string& child);

// Parts of the flat graph become the graphs of modules.
Outlined outline(const ExportedProgram& program, Graph& flat);

// Puts tensors where they belong and reads them there, instead of taking them as inputs.
void place_state(const ExportedProgram& program, Draft& root);
// Calls that run the same graph become calls of one module. Gives the call names that went and what stands for them.
std::map<std::string, std::string> merge_calls(const std::vector<std::vector<Call>>& calls);
// Modules with a kept signature that are called more than once become one module that knows which call it is.
void dispatch_calls(const ExportedProgram& program, Draft& root, const std::map<std::string, std::string>& redirected);
// The order of registration is that of the original.
void order_children(const ExportedProgram& program, DraftPtr root, const std::map<std::string, std::string>& redirected);

}  // namespace calque::unflatten_detail
