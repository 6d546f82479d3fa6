// std::cout << x for whatever has a str() (tensors, values, sizes, graphs, modules, programs), for lists of sizes, and for
// enumerations with a name (dtypes, layouts).
#pragma once

#include <concepts>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>

namespace calque {

template <class T>
concept HasText = requires(const T& x) {
  { x.str() } -> std::convertible_to<std::string>;
};

template <HasText T>
std::ostream& operator<<(std::ostream& out, const T& x) {
  return out << x.str();
}
template <class T>
  requires(!HasText<T> &&
           requires(const T& x) {
             { str(x) } -> std::same_as<std::string>;
           })
std::ostream& operator<<(std::ostream& out, const T& x) {
  return out << str(x);
}
template <class T>
  requires std::is_enum_v<T> && requires(T x) {
    { name(x) } -> std::convertible_to<std::string_view>;
  }
std::ostream& operator<<(std::ostream& out, T x) {
  return out << name(x);
}

}  // namespace calque
