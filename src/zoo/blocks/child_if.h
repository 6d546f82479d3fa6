// A child that a configuration may leave out: nothing is registered then, as in transformers.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "calque/nn/typed.h"

namespace calque {

template <class M, class... A>
std::optional<Child<M>> child_if(bool wanted, Module& parent, const char* name, A&&... args) {
  if (!wanted) return std::nullopt;
  return parent.child<M>(name, std::forward<A>(args)...);
}

}  // namespace calque
