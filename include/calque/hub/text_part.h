// The text part of a model of several parts.
#pragma once

#include "calque/hub/config.h"

namespace calque {

// "text_config" where a configuration has one, else the configuration itself.
Config text_part(const Config& config);

}  // namespace calque
