#include "calque/export/signature.h"

#include "calque/base/error.h"

namespace calque {

std::string_view name(InputKind kind) {
  switch (kind) {
    case InputKind::user_input: return "USER_INPUT";
    case InputKind::parameter: return "PARAMETER";
    case InputKind::buffer: return "BUFFER";
    case InputKind::constant_tensor: return "CONSTANT_TENSOR";
    case InputKind::custom_object: return "CUSTOM_OBJ";
    case InputKind::token: return "TOKEN";
  }
  throw InternalError("an input of no kind");
}

std::string_view name(OutputKind kind) {
  switch (kind) {
    case OutputKind::user_output: return "USER_OUTPUT";
    case OutputKind::loss_output: return "LOSS_OUTPUT";
    case OutputKind::buffer_mutation: return "BUFFER_MUTATION";
    case OutputKind::parameter_mutation: return "PARAMETER_MUTATION";
    case OutputKind::gradient_to_parameter: return "GRADIENT_TO_PARAMETER";
    case OutputKind::gradient_to_user_input: return "GRADIENT_TO_USER_INPUT";
    case OutputKind::user_input_mutation: return "USER_INPUT_MUTATION";
    case OutputKind::token: return "TOKEN";
  }
  throw InternalError("an output of no kind");
}

namespace {

std::vector<std::string> targets(const std::vector<InputSpec>& specs, InputKind kind) {
  std::vector<std::string> out;
  for (const InputSpec& s : specs)
    if (s.kind == kind) out.push_back(s.target);
  return out;
}

std::map<std::string, std::string> names_to_targets(const std::vector<InputSpec>& specs, InputKind kind) {
  std::map<std::string, std::string> out;
  for (const InputSpec& s : specs)
    if (s.kind == kind) out[s.arg.name] = s.target;
  return out;
}

std::map<std::string, std::string> names_to_targets(const std::vector<OutputSpec>& specs, OutputKind kind) {
  std::map<std::string, std::string> out;
  for (const OutputSpec& s : specs)
    if (s.kind == kind) out[s.arg.name] = s.target;
  return out;
}

Value named_or_constant(const ArgumentSpec& arg) { return arg.kind == ArgumentKind::constant ? arg.value : Value(arg.name); }

std::string with_target(const std::string& name, std::string_view kind, const std::string& target) {
  std::string text = name + ": " + std::string(kind);
  if (!target.empty()) text += " target='" + target + "'";
  return text;
}

}  // namespace

std::vector<std::string> GraphSignature::parameters() const { return targets(input_specs, InputKind::parameter); }
std::vector<std::string> GraphSignature::buffers() const { return targets(input_specs, InputKind::buffer); }
std::vector<std::string> GraphSignature::lifted_tensor_constants() const {
  return targets(input_specs, InputKind::constant_tensor);
}
std::vector<std::string> GraphSignature::lifted_custom_objects() const {
  return targets(input_specs, InputKind::custom_object);
}

std::vector<std::string> GraphSignature::non_persistent_buffers() const {
  std::vector<std::string> out;
  for (const InputSpec& s : input_specs)
    if (s.kind == InputKind::buffer && s.persistent == false) out.push_back(s.target);
  return out;
}

Values GraphSignature::user_inputs() const {
  Values out;
  for (const InputSpec& s : input_specs)
    if (s.kind == InputKind::user_input) out.push_back(named_or_constant(s.arg));
  return out;
}

Values GraphSignature::user_outputs() const {
  Values out;
  for (const OutputSpec& s : output_specs)
    if (s.kind == OutputKind::user_output || s.kind == OutputKind::loss_output) out.push_back(named_or_constant(s.arg));
  return out;
}

std::map<std::string, std::string> GraphSignature::inputs_to_parameters() const {
  return names_to_targets(input_specs, InputKind::parameter);
}
std::map<std::string, std::string> GraphSignature::inputs_to_buffers() const {
  return names_to_targets(input_specs, InputKind::buffer);
}
std::map<std::string, std::string> GraphSignature::inputs_to_lifted_tensor_constants() const {
  return names_to_targets(input_specs, InputKind::constant_tensor);
}
std::map<std::string, std::string> GraphSignature::inputs_to_lifted_custom_objects() const {
  return names_to_targets(input_specs, InputKind::custom_object);
}
std::map<std::string, std::string> GraphSignature::buffers_to_mutate() const {
  return names_to_targets(output_specs, OutputKind::buffer_mutation);
}
std::map<std::string, std::string> GraphSignature::user_inputs_to_mutate() const {
  return names_to_targets(output_specs, OutputKind::user_input_mutation);
}

std::vector<std::string> GraphSignature::input_tokens() const {
  std::vector<std::string> out;
  for (const InputSpec& s : input_specs)
    if (s.kind == InputKind::token) out.push_back(s.arg.name);
  return out;
}

std::vector<std::string> GraphSignature::output_tokens() const {
  std::vector<std::string> out;
  for (const OutputSpec& s : output_specs)
    if (s.kind == OutputKind::token) out.push_back(s.arg.name);
  return out;
}

void GraphSignature::replace_all_uses(std::string_view old_name, const std::string& new_name) {
  for (InputSpec& s : input_specs)
    if (s.arg.name == old_name) s.arg.name = new_name;
  for (OutputSpec& s : output_specs) {
    if (s.arg.name == old_name) s.arg.name = new_name;
    if (s.kind == OutputKind::user_input_mutation && s.target == old_name) s.target = new_name;
  }
}

std::string GraphSignature::str() const {
  std::string text = "\n# inputs\n";
  for (size_t i = 0; i < input_specs.size(); ++i) {
    const InputSpec& s = input_specs[i];
    text += (i ? "\n" : "") + with_target(s.arg.name, name(s.kind), s.target);
    if (s.persistent) text += std::string(" persistent=") + (*s.persistent ? "True" : "False");
  }
  text += "\n\n# outputs\n";
  for (size_t i = 0; i < output_specs.size(); ++i)
    text += (i ? "\n" : "") + with_target(output_specs[i].arg.name, name(output_specs[i].kind), output_specs[i].target);
  return text + "\n";
}

}  // namespace calque
