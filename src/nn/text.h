// How modules print.
#pragma once

#include <string>

#include "calque/tensor/dtype.h"

namespace calque::nn_detail {

std::string indented(const std::string& text);  // every line but the first, by two spaces
std::string legacy_type(DType dtype);           // "torch.FloatTensor"

}  // namespace calque::nn_detail
