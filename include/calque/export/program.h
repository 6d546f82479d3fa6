// ExportedProgram: a graph with the tensors it refers to, as torch.export.save writes it into a .pt2 archive. Weights
// stay mapped. This reads PyTorch 2.13's archives and runs them; writing and checking are not here yet.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calque/graph/graph.h"

namespace calque {

class ExportedProgram {
 public:
  // UserError(bad_file) naming the file and the part that is missing or malformed.
  static std::shared_ptr<const ExportedProgram> load(const std::string& path);

  const Graph& graph() const { return graph_; }
  const std::map<std::string, Tensor>& state() const { return state_; }  // parameters, buffers and constants by name
  const std::vector<std::string>& user_inputs() const { return user_inputs_; }
  // Inputs flattened, in the order of user_inputs(); results flattened.
  std::vector<Value> run(const Values& inputs) const;

 private:
  friend class ProgramReader;
  Graph graph_;
  std::map<std::string, Tensor> state_;
  std::vector<std::string> user_inputs_;
  std::vector<std::string> placeholder_state_;  // by placeholder: the state's name, or empty for a user input
  std::vector<size_t> user_outputs_;            // positions in the graph's output
};

}  // namespace calque
