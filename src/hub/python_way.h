// What to do with a model whose architecture is not here: PyTorch exports it once, Calque runs the program. Private to hub/.
#pragma once

#include <string>

#include "calque/hub/config.h"

namespace calque {

// Lines of Python that make model.pt2 and inputs.safetensors of the model folder, and the command that runs them. They take the
// class that the configuration names, and inputs of the kind that it speaks of: text, pictures, or whatever the user has.
std::string python_way(const Config& config, const std::string& folder);

}  // namespace calque
