// Schemas of the in-place and out= forms, derived from the functional one by ATen's conventions. Shared by the table
// and by the generator of typed fronts, so that the two cannot disagree.
#pragma once

#include <string_view>

#include "calque/op/schema.h"

namespace calque {

// name: "add_.Tensor".
Schema derive_in_place(const Schema& functional, std::string_view name);
// spec: "add.out", or with the out arguments' names "max.dim_max(max, max_values)".
Schema derive_out(const Schema& functional, std::string_view spec);

}  // namespace calque
