// GraphModule: a Module whose forward is a Graph, with the parameters, buffers and submodules that the graph refers to,
// under the same paths as in the module they come from and shared with it. It owns its graph; deep_copy copies both.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calque/graph/code.h"
#include "calque/graph/graph.h"
#include "calque/nn/module.h"

namespace calque {

// A base for modules whose call must not be dropped or merged even where nobody uses its result.
class HasSideEffects {
 public:
  virtual ~HasSideEffects() = default;
};

// What a graph may refer to: a tensor that becomes a buffer, one that becomes a parameter or a constant, a module.
struct Attribute {
  Attribute(Tensor buffer) : tensor(std::move(buffer)) {}
  Attribute(Tensor parameter, bool is_parameter) : tensor(std::move(parameter)), is_parameter(is_parameter) {}
  template <std::derived_from<Module> M>
  Attribute(std::shared_ptr<M> module) : module(std::move(module)) {}
  static Attribute constant(Tensor tensor) {
    Attribute attribute(std::move(tensor));
    attribute.is_constant = true;
    return attribute;
  }
  static Attribute buffer(Tensor tensor, bool persistent) {
    Attribute attribute(std::move(tensor));
    attribute.persistent = persistent;
    return attribute;
  }
  Tensor tensor;
  std::shared_ptr<Module> module;
  bool is_parameter = false;
  bool is_constant = false;
  bool persistent = true;
};
using Attributes = std::vector<std::pair<std::string, Attribute>>;  // by dotted path

class GraphModule : public Module, private GraphOwner {
 public:
  // What the graph refers to is taken from `root`, or from `attributes`; UserError names what is not there.
  GraphModule(const Module& root, Graph graph, std::string class_name = "GraphModule");
  GraphModule(const Attributes& attributes, Graph graph, std::string class_name = "GraphModule");
  explicit GraphModule(Graph graph) : GraphModule(Attributes{}, std::move(graph)) {}

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  void set_graph(Graph graph);

  Value forward_values(const Values& args, const Kwargs& kwargs) override;
  // Runs with positional arguments.
  Value operator()(Values args) { return call(std::move(args)); }

  // As torch.fx's methods: false when a tensor is in the way, or when there is no such module.
  bool add_submodule(std::string_view path, std::shared_ptr<Module> module);
  bool remove_submodule(std::string_view path);
  // Modules that no node calls or reads from. Parameters and buffers of the module itself stay.
  void delete_all_unused_submodules();
  // Puts an attribute at a path, making empty modules on the way.
  void set_attribute(std::string_view path, const Attribute& attribute);
  // Takes an attribute of `root` under the same path, unless this module has one there already.
  void copy_attribute(const Module& root, const std::string& path);

  std::string code() const { return python_code(graph_); }
  // The graph, and those of submodules, as a readable Python class, with shapes and source lines.
  std::string print_readable(const CodeOptions& options = {}) const;

  std::string type_name() const override { return "torch.fx.graph_module." + class_name_; }
  std::string str() const override;
  std::vector<std::string> argument_names() const override;

  // What the graph's lint needs to know of it.
  const GraphOwner& as_owner() const { return *this; }

 protected:
  GraphModule(const GraphModule& other);
  std::shared_ptr<Module> copy_self() const override;

 private:
  bool has_attr(const std::string& path) const override;
  bool has_module(const std::string& path) const override;
  bool module_is_impure(const std::string& path) const override;
  Value attr(const std::string& path) const override;
  Value call_module(const std::string& path, const Values& args, const Kwargs& kwargs) const override;
  Graph* subgraph(const std::string& path) const override;

  Graph graph_;
  std::string class_name_;
};

}  // namespace calque
