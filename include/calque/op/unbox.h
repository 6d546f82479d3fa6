// The correspondence between schema types, C++ parameter types and Values, for typed and boxed calls of one function.
// Argument<T> says for a C++ parameter type T which schema type it answers to and how to go both ways.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "calque/op/value.h"

namespace calque {

template <class T>
struct Argument;

// A parameter held by value whose Value conversion needs no extra storage.
#define CALQUE_SIMPLE_ARGUMENT(TYPE, NAME, CONVERT)                                           \
  template <>                                                                                 \
  struct Argument<TYPE> {                                                                     \
    static constexpr std::string_view name = NAME;                                            \
    using Holder = std::remove_cvref_t<TYPE>;                                                 \
    static Holder hold(const Value& v) { return v.CONVERT; }                                  \
    static TYPE get(const Holder& h) { return h; }                                            \
    static Value box(TYPE x) { return Value(x); }                                             \
  };                                                                                          \
  template <>                                                                                 \
  struct Argument<std::optional<std::remove_cvref_t<TYPE>>> {                                 \
    static constexpr std::string_view name = "std::optional<" NAME ">";                       \
    using Holder = std::optional<std::remove_cvref_t<TYPE>>;                                  \
    static Holder hold(const Value& v) { return v.is_none() ? Holder() : Holder(v.CONVERT); } \
    static Holder get(const Holder& h) { return h; }                                          \
    static Value box(const Holder& x) { return x ? Value(*x) : Value(); }                     \
  };
CALQUE_SIMPLE_ARGUMENT(const Scalar&, "Scalar", to_scalar())
CALQUE_SIMPLE_ARGUMENT(int64_t, "int64_t", to_int())
CALQUE_SIMPLE_ARGUMENT(SymInt, "SymInt", to_sym_int())
CALQUE_SIMPLE_ARGUMENT(double, "double", to_float())
CALQUE_SIMPLE_ARGUMENT(bool, "bool", to_bool())
CALQUE_SIMPLE_ARGUMENT(SymBool, "SymBool", to_sym_bool())
CALQUE_SIMPLE_ARGUMENT(DType, "DType", to_dtype())
CALQUE_SIMPLE_ARGUMENT(Device, "Device", to_device())
CALQUE_SIMPLE_ARGUMENT(Layout, "Layout", to_layout())
CALQUE_SIMPLE_ARGUMENT(MemoryFormat, "MemoryFormat", to_memory_format())
#undef CALQUE_SIMPLE_ARGUMENT

template <>
struct Argument<const Tensor&> {  // also Tensor?: an undefined one is None
  static constexpr std::string_view name = "Tensor";
  using Holder = Tensor;
  static Holder hold(const Value& v) { return v.to_tensor_or_none(); }
  static const Tensor& get(const Holder& h) { return h; }
  static Value box(const Tensor& x) { return Value(x); }
};

template <>
struct Argument<Generator*> {
  static constexpr std::string_view name = "Generator*";
  using Holder = Generator*;
  static Holder hold(const Value& v) { return v.is_none() ? nullptr : v.to_generator(); }
  static Generator* get(Holder h) { return h; }
  static Value box(Generator* x) { return x ? Value(x) : Value(); }
};

template <>
struct Argument<std::string_view> {
  static constexpr std::string_view name = "std::string_view";
  using Holder = std::string;
  static Holder hold(const Value& v) { return v.to_string(); }
  static std::string_view get(const Holder& h) { return h; }
  static Value box(std::string_view x) { return Value(x); }
};
template <>
struct Argument<std::optional<std::string_view>> {
  static constexpr std::string_view name = "std::optional<std::string_view>";
  using Holder = std::optional<std::string>;
  static Holder hold(const Value& v) { return v.is_none() ? Holder() : Holder(v.to_string()); }
  static std::optional<std::string_view> get(const Holder& h) {
    return h ? std::optional<std::string_view>(*h) : std::nullopt;
  }
  static Value box(std::optional<std::string_view> x) { return x ? Value(*x) : Value(); }
};

namespace unbox_detail {
template <class T, class F>
std::vector<T> convert_items(const Value& v, F&& f) {
  std::vector<T> out;
  for (const Value& item : v.to_items()) out.push_back(f(item));
  return out;
}
template <class List>
Value box_items(const List& list) {
  Values items;
  items.reserve(list.size());
  for (const auto& x : list) items.push_back(Value(x));
  return calque::list(std::move(items));
}
}  // namespace unbox_detail

#define CALQUE_LIST_ARGUMENT(TYPE, ELEMENT, NAME, CONVERT)                                                  \
  template <>                                                                                               \
  struct Argument<TYPE> {                                                                                   \
    static constexpr std::string_view name = NAME;                                                          \
    using Holder = std::vector<ELEMENT>;                                                                    \
    static Holder hold(const Value& v) {                                                                    \
      return unbox_detail::convert_items<ELEMENT>(v, [](const Value& x) { return x.CONVERT; });             \
    }                                                                                                       \
    static TYPE get(const Holder& h) { return h; }                                                          \
    static Value box(TYPE x) { return unbox_detail::box_items(x); }                                         \
  };                                                                                                        \
  template <>                                                                                               \
  struct Argument<std::optional<TYPE>> {                                                                    \
    static constexpr std::string_view name = "std::optional<" NAME ">";                                     \
    using Holder = std::optional<std::vector<ELEMENT>>;                                                     \
    static Holder hold(const Value& v) { return v.is_none() ? Holder() : Holder(Argument<TYPE>::hold(v)); } \
    static std::optional<TYPE> get(const Holder& h) { return h ? std::optional<TYPE>(*h) : std::nullopt; }  \
    static Value box(const std::optional<TYPE>& x) { return x ? Argument<TYPE>::box(*x) : Value(); }        \
  };
CALQUE_LIST_ARGUMENT(IntList, int64_t, "IntList", to_int())
CALQUE_LIST_ARGUMENT(SymIntList, SymInt, "SymIntList", to_sym_int())
CALQUE_LIST_ARGUMENT(ListRef<double>, double, "ListRef<double>", to_float())
CALQUE_LIST_ARGUMENT(ListRef<Scalar>, Scalar, "ListRef<Scalar>", to_scalar())
CALQUE_LIST_ARGUMENT(TensorList, Tensor, "TensorList", to_tensor_or_none())
#undef CALQUE_LIST_ARGUMENT

template <>
struct Argument<BoolMask> {
  static constexpr std::string_view name = "BoolMask";
  using Holder = BoolMask;
  static Holder hold(const Value& v) {
    BoolMask mask{};
    const Values& items = v.to_items();
    for (size_t i = 0; i < items.size() && i < mask.size(); ++i) mask[i] = items[i].to_bool();
    return mask;
  }
  static BoolMask get(const Holder& h) { return h; }
  static Value box(const BoolMask& x) { return unbox_detail::box_items(x); }
};

// ---- results ------------------------------------------------------------------------------------------------------
template <class T>
struct Result {  // Tensor, int64_t, SymInt, double, bool, Scalar
  static Value box(T x) { return Value(std::move(x)); }
  static T unbox(const Value& v) {
    if constexpr (std::is_same_v<T, Tensor>)
      return v.to_tensor_or_none();
    else if constexpr (std::is_same_v<T, Scalar>)
      return v.to_scalar();
    else
      return Argument<T>::hold(v);
  }
};
template <>
struct Result<void> {};
template <>
struct Result<std::vector<Tensor>> {
  static Value box(std::vector<Tensor> x) { return unbox_detail::box_items(x); }
  static std::vector<Tensor> unbox(const Value& v) { return Argument<TensorList>::hold(v); }
};
template <class... T>
struct Result<std::tuple<T...>> {
  static Value box(std::tuple<T...> x) {
    return std::apply([](auto&... item) { return calque::tuple({Result<T>::box(std::move(item))...}); }, x);
  }
  static std::tuple<T...> unbox(const Value& v) { return unbox(v.to_items(), std::index_sequence_for<T...>{}); }
  template <size_t... i>
  static std::tuple<T...> unbox(const Values& items, std::index_sequence<i...>) {
    return {Result<T>::unbox(items.at(i))...};
  }
};

// Calls fn(op, args...) with the Values converted to the parameter types.
template <class R, class Op, class... A, size_t... i>
Value call_boxed(R (*fn)(const Op&, A...), const Op& op, const Values& args, std::index_sequence<i...>) {
  std::tuple<typename Argument<A>::Holder...> held{Argument<A>::hold(args[i])...};
  if constexpr (std::is_void_v<R>) {
    fn(op, Argument<A>::get(std::get<i>(held))...);
    return Value();
  } else {
    return Result<R>::box(fn(op, Argument<A>::get(std::get<i>(held))...));
  }
}

}  // namespace calque
