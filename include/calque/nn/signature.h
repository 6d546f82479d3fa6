// ForwardSignature: what can be told of a typed forward without running it: the kinds of its arguments and the structure
// of its result. A tracer makes its proxies by it. An outline is an example Value that shows structure only: None for a
// tensor or for anything that is not known, 0, 0.0, false or "" for a number, bool or text, a tuple of outlines, and an
// empty list for a list whose length nobody knows.
#pragma once

#include <cstddef>

#include "calque/nn/convert.h"

namespace calque {

struct ForwardSignature {
  Values arguments;
  Value result;
  Values defaults;  // of the last arguments
};

template <class T>
Value outline() {
  using nn_detail::is_a;
  if constexpr (std::is_void_v<T>)
    return {};
  else if constexpr (std::same_as<T, bool> || std::same_as<T, SymBool>)
    return false;
  else if constexpr (std::integral<T> || std::same_as<T, SymInt>)
    return 0;
  else if constexpr (std::floating_point<T> || std::same_as<T, SymFloat> || std::same_as<T, Scalar>)
    return 0.0;
  else if constexpr (std::same_as<T, std::string>)
    return "";
  else if constexpr (std::same_as<T, DType> || std::same_as<T, Device> || std::same_as<T, Layout> ||
                     std::same_as<T, MemoryFormat>)
    return Value(T{});
  else if constexpr (is_a<T, std::optional>)
    return outline<typename T::value_type>();
  else if constexpr (is_a<T, std::vector> || nn_detail::is_small_vector<T>)
    return list({});
  else if constexpr (is_a<T, std::tuple>)
    return []<size_t... i>(std::index_sequence<i...>) {
      return tuple({outline<std::tuple_element_t<i, T>>()...});
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  else
    return {};
}

}  // namespace calque
