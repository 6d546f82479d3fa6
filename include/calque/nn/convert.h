// C++ types into Values and back, for modules whose forward is typed: tensors, numbers, strings, optionals, vectors,
// tuples, Values themselves, and structs that say `Value to_value() const` and `static T from_value(const Value&)`.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "calque/base/list_ref.h"
#include "calque/base/small_vector.h"
#include "calque/op/value.h"

namespace calque {

// What keeps a converted argument alive while forward runs: T, unless T only borrows.
template <class T>
struct StoredAs {
  using type = T;
};
template <class T>
struct StoredAs<ListRef<T>> {
  using type = std::vector<T>;
};
template <>
struct StoredAs<std::string_view> {
  using type = std::string;
};
template <class T>
struct StoredAs<std::optional<ListRef<T>>> {
  using type = std::optional<std::vector<T>>;
};
template <class T>
using stored_as = typename StoredAs<std::remove_cvref_t<T>>::type;

namespace nn_detail {
template <class T, template <class...> class Of>
inline constexpr bool is_a = false;
template <class... A, template <class...> class Of>
inline constexpr bool is_a<Of<A...>, Of> = true;
template <class T>
inline constexpr bool is_small_vector = false;
template <class T, size_t n>
inline constexpr bool is_small_vector<SmallVector<T, n>> = true;
template <class T>
inline constexpr bool is_sequence = is_a<T, std::vector> || is_a<T, ListRef> || is_small_vector<T>;
template <class T>
inline constexpr bool is_plain =
    std::same_as<T, Value> || std::same_as<T, Tensor> || std::integral<T> || std::floating_point<T> ||
    std::same_as<T, SymInt> || std::same_as<T, SymBool> || std::same_as<T, SymFloat> || std::same_as<T, Scalar> ||
    std::same_as<T, std::string> || std::same_as<T, std::string_view> || std::same_as<T, DType> || std::same_as<T, Device> ||
    std::same_as<T, Layout> || std::same_as<T, MemoryFormat> || std::same_as<T, Generator*>;
template <class T>
constexpr bool convertible() {
  if constexpr (is_plain<T>)
    return true;
  else if constexpr (is_a<T, std::optional>)
    return convertible<typename T::value_type>();
  else if constexpr (is_a<T, std::vector> || is_small_vector<T>)
    return convertible<typename T::value_type>();
  else if constexpr (is_a<T, ListRef>)
    return convertible<std::remove_cvref_t<decltype(std::declval<T>()[0])>>();
  else if constexpr (is_a<T, std::tuple>)
    return []<size_t... i>(std::index_sequence<i...>) {
      return (convertible<std::tuple_element_t<i, T>>() && ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  else
    return requires(const T& x, const Value& v) {
      { x.to_value() } -> std::same_as<Value>;
      { T::from_value(v) } -> std::same_as<T>;
    };
}
}  // namespace nn_detail

// Goes through a Value and back?
template <class T>
concept AsValue = nn_detail::convertible<std::remove_cvref_t<T>>();

template <AsValue T>
Value to_value(const T& x) {
  using nn_detail::is_a;
  if constexpr (std::same_as<T, Generator*>)
    return x ? Value(x) : Value();
  else if constexpr (std::floating_point<T>)
    return Value(static_cast<double>(x));
  else if constexpr (nn_detail::is_plain<T>)
    return Value(x);
  else if constexpr (is_a<T, std::optional>)
    return x ? to_value(*x) : Value();
  else if constexpr (nn_detail::is_sequence<T>) {
    Values items;
    items.reserve(x.size());
    for (size_t i = 0; i < x.size(); ++i) items.push_back(to_value(x[i]));
    return list(std::move(items));
  } else if constexpr (is_a<T, std::tuple>) {
    return std::apply([](const auto&... item) { return tuple({to_value(item)...}); }, x);
  } else
    return x.to_value();
}

template <class T>
T from_value(const Value& v) {
  using nn_detail::is_a;
  if constexpr (std::same_as<T, Value>)
    return v;
  else if constexpr (std::same_as<T, Tensor>)
    return v.to_tensor_or_none();
  else if constexpr (std::same_as<T, bool>)
    return v.to_bool();
  else if constexpr (std::integral<T>)
    return static_cast<T>(v.to_int());
  else if constexpr (std::floating_point<T>)
    return static_cast<T>(v.to_float());
  else if constexpr (std::same_as<T, SymInt>)
    return v.to_sym_int();
  else if constexpr (std::same_as<T, SymBool>)
    return v.to_sym_bool();
  else if constexpr (std::same_as<T, SymFloat>)
    return v.to_sym_float();
  else if constexpr (std::same_as<T, Scalar>)
    return v.to_scalar();
  else if constexpr (std::same_as<T, std::string>)
    return v.to_string();
  else if constexpr (std::same_as<T, DType>)
    return v.to_dtype();
  else if constexpr (std::same_as<T, Device>)
    return v.to_device();
  else if constexpr (std::same_as<T, Layout>)
    return v.to_layout();
  else if constexpr (std::same_as<T, MemoryFormat>)
    return v.to_memory_format();
  else if constexpr (std::same_as<T, Generator*>)
    return v.is_none() ? nullptr : v.to_generator();
  else if constexpr (is_a<T, std::optional>)
    return v.is_none() ? T() : T(from_value<typename T::value_type>(v));
  else if constexpr (is_a<T, std::vector> || nn_detail::is_small_vector<T>) {
    T out;
    for (const Value& item : v.to_items()) out.push_back(from_value<typename T::value_type>(item));
    return out;
  } else if constexpr (is_a<T, std::tuple>) {
    const Values& items = v.to_items();
    constexpr size_t n = std::tuple_size_v<T>;
    if (items.size() != n)
      throw UserError("expected " + std::to_string(n) + " values, found " + std::to_string(items.size()));
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return T{from_value<std::tuple_element_t<i, T>>(items[i])...};
    }(std::make_index_sequence<n>{});
  } else
    return T::from_value(v);
}

}  // namespace calque
