// What a pickle of torch.save holds when it is more than names and tensors: a training checkpoint, the state of an optimiser, a whole
// module. Says it in words, and finds the tensors wherever they are.
#pragma once

#include <string>
#include <vector>

#include "calque/file/safetensors.h"
#include "calque/op/value.h"

namespace calque {

struct CheckpointPart {
  std::string key;     // of the outermost dict
  std::string what;    // "199 tensors", "the state of an optimiser", "int 7"
  bool state = false;  // names and tensors: what a model loads
};

// Of the outermost dict; none for something else.
std::vector<CheckpointPart> checkpoint_parts(const Value& content);
// Every tensor by its path: "model.encoder.weight", "optimizer.state.0.exp_avg".
NamedTensors nested_tensors(const Value& content);
// The key of the part that a model's weights are in; empty when there is none.
std::string state_key(const std::vector<CheckpointPart>& parts);
// "a training checkpoint", "the state of an optimiser", "a whole module (package.Net)", or the kind of value.
std::string content_name(const Value& content);

}  // namespace calque
