// Lists of forward arguments made from other lists, while compiling: what a head takes is what its model takes and labels.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace calque {

template <size_t N>
using ArgumentNames = std::array<const char*, N>;

template <size_t N>
consteval ArgumentNames<N> names_of(const char* const (&names)[N]) {
  return std::to_array(names);
}
template <size_t N>
consteval ArgumentNames<N> names_of(const ArgumentNames<N>& names) {
  return names;
}

// `more` behind `behind`, which has to be there.
template <size_t N, size_t M>
consteval ArgumentNames<N + M> with_arguments(const ArgumentNames<N>& names, std::string_view behind,
                                              const char* const (&more)[M]) {
  ArgumentNames<N + M> out{};
  size_t at = 0;
  for (const char* name : names) {
    out[at++] = name;
    if (name == behind)
      for (const char* one : more) out[at++] = one;
  }
  if (at != N + M) throw "the argument that others are to follow is not there";
  return out;
}

// Without those in `gone`, which have to be there.
template <size_t N, size_t M>
consteval ArgumentNames<N - M> without_arguments(const ArgumentNames<N>& names, const char* const (&gone)[M]) {
  ArgumentNames<N - M> out{};
  size_t at = 0;
  for (const char* name : names) {
    bool stays = true;
    for (const char* one : gone) stays = stays && std::string_view(one) != name;
    if (stays) out[at++] = name;
  }
  return out;
}

}  // namespace calque
