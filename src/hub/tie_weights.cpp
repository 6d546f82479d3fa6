#include "calque/hub/tie_weights.h"

#include <algorithm>
#include <typeinfo>

#include "calque/base/error.h"
#include "calque/base/warning.h"
#include "calque/op/aten/padding.h"

namespace calque {

void adjust_to_weight(Linear& output) {
  const int64_t rows = output.weight->size(0);
  if (output.bias.defined() && output.bias->size(0) < rows) {
    const GradModeScope no_grad(false);
    const Tensor bias = *output.bias;
    const Tensor padded = constant_pad_nd(bias.detach(), {0, rows - bias.size(0)});
    padded.set_requires_grad(bias.requires_grad());
    output.bias = padded;
  }
  output.out_features = rows;
  output.in_features = output.weight->size(1);
}

void tie_or_clone_weights(Linear& output, const Embedding& input, bool clone) {
  if (clone) {
    const GradModeScope no_grad(false);
    output.weight = input.weight->detach().clone();
  } else {
    output.weight = *input.weight;
  }
  adjust_to_weight(output);
}

namespace {

bool is_index(const std::string& name) {
  return !name.empty() && name.size() < 9 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

const TensorSlot* parameter_named(const Module& module, std::string_view name) {
  for (const auto& slot : module.parameter_slots())
    if (slot->name == name && slot->tensor.defined()) return slot.get();
  return nullptr;
}

Module* child_named(const Module& module, std::string_view name) {
  for (const auto& slot : module.module_slots())
    if (slot->name == name) return slot->module.get();
  return nullptr;
}

void tie_trees(Module& encoder, Module& decoder, const std::string& path, int depth, std::vector<std::string>& left) {
  constexpr int deepest = 500;
  if (depth > deepest)
    throw UserError("tie_encoder_decoder_weights: the modules are nested deeper than 500 at " + path +
                    "; is a module its own descendant?");
  if (const TensorSlot* weight = parameter_named(decoder, "weight")) {
    if (!parameter_named(encoder, "weight"))
      throw UserError("tie_encoder_decoder_weights: the decoder has a weight at " + path + ", the encoder has none");
    encoder.set_tensor("weight", weight->tensor);
    if (const TensorSlot* bias = parameter_named(decoder, "bias"); bias && parameter_named(encoder, "bias"))
      encoder.set_tensor("bias", bias->tensor);
    return;
  }
  if (decoder.module_slots().empty()) return;
  std::vector<std::string> rest;
  for (const auto& slot : encoder.module_slots()) rest.push_back(slot->name);
  int64_t shift = 0;
  for (const auto& slot : decoder.module_slots()) {
    if (!slot->module) continue;
    std::string name = slot->name;
    if (is_index(name)) {
      name = std::to_string(std::stoll(name) + shift);
      const Module* other = child_named(encoder, name);
      const Module& own = *slot->module;
      if (!other || (encoder.module_slots().size() != decoder.module_slots().size() && typeid(*other) != typeid(own))) {
        --shift;  // a layer that the encoder does not have
        continue;
      }
    }
    Module* other = child_named(encoder, name);
    if (!other) continue;
    tie_trees(*other, *slot->module, path + "/" + name, depth + 1, left);
    std::erase(rest, name);
  }
  for (const std::string& name : rest) left.push_back(path + "/" + name);
}

}  // namespace

std::vector<std::string> tie_encoder_decoder_weights(Module& encoder, Module& decoder, const std::string& name) {
  std::vector<std::string> left;
  tie_trees(encoder, decoder, name, 0, left);
  if (!left.empty()) {
    std::string text = "The following encoder weights were not tied to the decoder:";
    for (const std::string& path : left) text += " " + path;
    warn(text);
  }
  return left;
}

}  // namespace calque
