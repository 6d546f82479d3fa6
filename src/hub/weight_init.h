// The order in which a model's modules are initialised. Private to hub/.
#pragma once

#include <functional>

#include "calque/hub/pretrained_model.h"

namespace calque {

// Children first; each module by the innermost model that it belongs to, `module` itself by `owner`. Only what is `wanted`, and
// below that. Without gradients.
void init_modules(PretrainedModel& owner, Module& module, const std::function<bool(const Module&)>& wanted);

}  // namespace calque
