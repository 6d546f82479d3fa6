// What Cohere and Cohere 2 share: attention and feed-forward side by side, norms without bias, rotary positions of neighbouring
// numbers, logits scaled.
#pragma once

#include "decoder_design.h"

namespace calque {

DecoderDesign cohere_design(const char* names, const Config& config, std::vector<LayerDesign> layers);
// `own` is behind what they share, as JSON.
std::string cohere_defaults(std::string_view own);

}  // namespace calque
