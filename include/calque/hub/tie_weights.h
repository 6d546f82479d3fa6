// Weights that are one tensor in two places: an output layer and the input embeddings, an encoder and a decoder of the same
// layers. PretrainedModel::tie_weights does what a class declares; these are for models that are put together by hand.
#pragma once

#include <string>
#include <vector>

#include "calque/nn/linear.h"

namespace calque {

// The output's weight is the embedding's (a copy of it with `clone`, which torchscript asked for). A bias that is shorter than
// the rows is padded with zeros; the sizes that the layer states follow.
void tie_or_clone_weights(Linear& output, const Embedding& input, bool clone = false);
// What a Linear says of itself after its weight was replaced.
void adjust_to_weight(Linear& output);

// Weights and biases of the encoder become the decoder's, by the names of their children. Layers that only the decoder has
// (cross attention, in a list of layers) are skipped. Gives the paths of the encoder that the decoder had nothing for, below
// `name`, and warns of them. UserError when a part of the decoder has a weight and the encoder's has none, and for trees deeper
// than 500.
std::vector<std::string> tie_encoder_decoder_weights(Module& encoder, Module& decoder, const std::string& name);

}  // namespace calque
