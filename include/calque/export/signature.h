// GraphSignature: what each input and output of an exported graph stands for, as torch.export's ExportGraphSignature. An
// entry names a placeholder (or a node of the output) and, where it is state, the path in the module that it came from.
// It refers to nodes by name and owns nothing of the graph.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/op/tree.h"

namespace calque {

enum class ArgumentKind : uint8_t { tensor, sym_int, sym_float, sym_bool, constant, custom_object, token };

struct ArgumentSpec {
  ArgumentKind kind = ArgumentKind::tensor;
  std::string name;             // of the node; of a constant output: empty
  Value value = {};             // of a constant: none, bool, int, float, string
  std::string class_name = {};  // of a custom object
};

enum class InputKind : uint8_t { user_input, parameter, buffer, constant_tensor, custom_object, token };
struct InputSpec {
  InputKind kind = InputKind::user_input;
  ArgumentSpec arg;
  std::string target = {};              // the path of state and constants: "layers.0.weight"
  std::optional<bool> persistent = {};  // of a buffer
};

enum class OutputKind : uint8_t {
  user_output,
  loss_output,
  buffer_mutation,
  parameter_mutation,
  gradient_to_parameter,
  gradient_to_user_input,
  user_input_mutation,
  token
};
struct OutputSpec {
  OutputKind kind = OutputKind::user_output;
  ArgumentSpec arg;
  std::string target = {};  // what is written: a buffer's path, a user input's name
};

std::string_view name(InputKind kind);   // "USER_INPUT"
std::string_view name(OutputKind kind);  // "USER_OUTPUT"

struct GraphSignature {
  std::vector<InputSpec> input_specs;    // in the order of the placeholders
  std::vector<OutputSpec> output_specs;  // in the order of the output's items

  // Paths, in the order of the inputs.
  std::vector<std::string> parameters() const;
  std::vector<std::string> buffers() const;
  std::vector<std::string> non_persistent_buffers() const;
  std::vector<std::string> lifted_tensor_constants() const;
  std::vector<std::string> lifted_custom_objects() const;
  // Names of nodes, or the constants themselves.
  Values user_inputs() const;
  Values user_outputs() const;
  // From names of nodes to paths or names of inputs.
  std::map<std::string, std::string> inputs_to_parameters() const;
  std::map<std::string, std::string> inputs_to_buffers() const;
  std::map<std::string, std::string> inputs_to_lifted_tensor_constants() const;
  std::map<std::string, std::string> inputs_to_lifted_custom_objects() const;
  std::map<std::string, std::string> buffers_to_mutate() const;
  std::map<std::string, std::string> user_inputs_to_mutate() const;
  std::vector<std::string> input_tokens() const;
  std::vector<std::string> output_tokens() const;

  void replace_all_uses(std::string_view old_name, const std::string& new_name);
  std::string str() const;  // as PyTorch prints it
};

// How a submodule was called, kept where export was asked to preserve it; that of the whole program is always there.
struct ModuleCallSignature {
  std::vector<ArgumentSpec> inputs;
  std::vector<ArgumentSpec> outputs;
  TreeSpec in_spec;  // of (arguments, keyword arguments)
  TreeSpec out_spec;
  std::optional<std::vector<std::string>> forward_arg_names = {};
};
struct ModuleCallEntry {
  std::string fqn;  // "" for the program itself; "n@1" for a further call of n
  std::optional<ModuleCallSignature> signature = {};
};

}  // namespace calque
