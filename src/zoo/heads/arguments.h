// Lists of forward arguments made from other lists, while compiling: what a head takes is what its model takes and labels.
#pragma once

#include <array>
#include <cstddef>

#include "calque/hub/model_inputs.h"

namespace calque {

template <size_t N>
using ArgumentNames = std::array<ModelArgument, N>;

template <size_t N>
consteval ArgumentNames<N> names_of(const ModelArgument (&names)[N]) {
  return std::to_array(names);
}
template <size_t N>
consteval ArgumentNames<N> names_of(const ArgumentNames<N>& names) {
  return names;
}

// `more` behind `behind`, which has to be there.
template <size_t N, size_t M>
consteval ArgumentNames<N + M> with_arguments(const ArgumentNames<N>& names, const ModelArgument& behind,
                                              const ModelArgument (&more)[M]) {
  ArgumentNames<N + M> out{};
  size_t at = 0;
  for (const ModelArgument& argument : names) {
    out[at++] = argument;
    if (argument.name == behind.name)
      for (const ModelArgument& one : more) out[at++] = one;
  }
  if (at != N + M) throw "the argument that others are to follow is not there";
  return out;
}

// Without those in `gone`, which have to be there.
template <size_t N, size_t M>
consteval ArgumentNames<N - M> without_arguments(const ArgumentNames<N>& names, const ModelArgument (&gone)[M]) {
  ArgumentNames<N - M> out{};
  size_t at = 0;
  for (const ModelArgument& argument : names) {
    bool stays = true;
    for (const ModelArgument& one : gone) stays = stays && one.name != argument.name;
    if (stays) out[at++] = argument;
  }
  return out;
}

}  // namespace calque
