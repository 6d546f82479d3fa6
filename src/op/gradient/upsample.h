// What the gradients of resampling share.
#pragma once

#include <optional>

#include "calque/op/gradient.h"

namespace calque::gradient {

// An argument "float?".
inline std::optional<double> scale_of(const Gradients& g, std::string_view name) {
  const Value& v = g.argument(name);
  return v.is_none() ? std::nullopt : std::optional<double>(v.to_float());
}

}  // namespace calque::gradient
