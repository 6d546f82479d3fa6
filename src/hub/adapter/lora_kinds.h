// What the files of LoRA's layers share.
#pragma once

#include "hub/adapter/lora_layer.h"

namespace calque::adapter {

std::shared_ptr<LoraLayer> make_lora_linear(const std::shared_ptr<Module>& target, bool fan_in_fan_out);

}  // namespace calque::adapter
