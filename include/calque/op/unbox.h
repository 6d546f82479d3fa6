// The correspondence between schema types, C++ parameter types and Values. Argument<T> says for a C++ parameter type T which
// schema type it answers to and how to go both ways. A call whose signature is not known where it is handled has the addresses
// of its arguments beside their ArgumentTypes, so that one piece of code serves all signatures.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "calque/op/value.h"

namespace calque {

// Room for one argument that is made from a Value. Lists own their items here.
class ArgumentSlot {
 public:
  ArgumentSlot() {}  // the room stays as it is
  ~ArgumentSlot() {
    if (destroy_) destroy_(room_);
  }
  ArgumentSlot(const ArgumentSlot&) = delete;
  ArgumentSlot& operator=(const ArgumentSlot&) = delete;

  template <class T>
  const T* make(T value) {
    static_assert(sizeof(T) <= sizeof room_ && alignof(T) <= alignof(std::max_align_t));
    const T* made = ::new (static_cast<void*>(room_)) T(std::move(value));
    if constexpr (!std::is_trivially_destructible_v<T>) destroy_ = [](void* at) { static_cast<T*>(at)->~T(); };
    return made;
  }

 private:
  alignas(std::max_align_t) std::byte room_[64];
  void (*destroy_)(void*) = nullptr;
};

// What is to be known of a parameter type at run time.
struct ArgumentType {
  std::string_view name;  // as SchemaType::cpp_type says it
  Value (*box)(const void* argument);
  const void* (*unbox)(const Value& value, ArgumentSlot& slot);  // where the argument is; it lives as long as both
  bool (*is_symbolic)(const void* argument);                     // null: it never is
};

using PairMask = std::array<bool, 2>;  // "bool[2]"

template <class T>
struct Argument;

#define CALQUE_ARGUMENT(TYPE, BOXED)  \
  template <>                         \
  struct Argument<TYPE> {             \
    static const ArgumentType type;   \
    static Value box(BOXED argument); \
  };
#define CALQUE_ARGUMENTS(TYPE, ELEMENT) \
  CALQUE_ARGUMENT(TYPE, TYPE)           \
  CALQUE_ARGUMENT(std::optional<ELEMENT>, const std::optional<ELEMENT>&)
CALQUE_ARGUMENT(const Tensor&, const Tensor&)  // also Tensor?: an undefined one is None
CALQUE_ARGUMENTS(const Scalar&, Scalar)
CALQUE_ARGUMENTS(int64_t, int64_t)
CALQUE_ARGUMENTS(SymInt, SymInt)
CALQUE_ARGUMENTS(double, double)
CALQUE_ARGUMENTS(bool, bool)
CALQUE_ARGUMENTS(SymBool, SymBool)
CALQUE_ARGUMENTS(DType, DType)
CALQUE_ARGUMENTS(Device, Device)
CALQUE_ARGUMENTS(Layout, Layout)
CALQUE_ARGUMENTS(MemoryFormat, MemoryFormat)
CALQUE_ARGUMENT(Generator*, Generator*)
CALQUE_ARGUMENTS(std::string_view, std::string_view)
CALQUE_ARGUMENTS(IntList, IntList)
CALQUE_ARGUMENTS(SymIntList, SymIntList)
CALQUE_ARGUMENTS(ListRef<double>, ListRef<double>)
CALQUE_ARGUMENTS(ListRef<Scalar>, ListRef<Scalar>)
CALQUE_ARGUMENTS(TensorList, TensorList)
CALQUE_ARGUMENT(BoolMask, const BoolMask&)
CALQUE_ARGUMENT(PairMask, const PairMask&)
#undef CALQUE_ARGUMENTS
#undef CALQUE_ARGUMENT

// The addresses of a call's arguments, in the schema's order.
using Arguments = const void* const*;

template <class A>
const std::remove_cvref_t<A>& argument_at(const void* at) {
  return *static_cast<const std::remove_cvref_t<A>*>(at);
}

// The parameters of a signature.
struct ArgumentList {
  const ArgumentType* const* types;
  size_t count;
  // By position: tensors, lists of tensors, and what may be symbolic.
  uint64_t tensors;
  uint64_t tensor_lists;
  uint64_t numbers;

  static constexpr uint64_t positions(std::initializer_list<bool> which) {
    uint64_t found = 0;
    unsigned i = 0;
    for (const bool is : which) found |= uint64_t{is} << i++;
    return found;
  }
};

template <class T>
constexpr bool may_be_symbolic = std::is_same_v<T, SymInt> || std::is_same_v<T, Scalar> || std::is_same_v<T, SymIntList> ||
                                 std::is_same_v<T, std::optional<SymInt>> || std::is_same_v<T, std::optional<Scalar>> ||
                                 std::is_same_v<T, std::optional<SymIntList>>;

template <class... A>
struct ArgumentTypes {
  static_assert(sizeof...(A) <= 64);
  static constexpr const ArgumentType* types[] = {&Argument<A>::type..., nullptr};  // there may be no parameters
  static constexpr ArgumentList list{types, sizeof...(A), ArgumentList::positions({std::is_same_v<A, const Tensor&>...}),
                                     ArgumentList::positions({std::is_same_v<A, TensorList>...}),
                                     ArgumentList::positions({may_be_symbolic<std::remove_cvref_t<A>>...})};
};

// Arguments made from Values, for the life of one call. They refer to the Values' tensors and strings.
class UnboxedArguments {
 public:
  explicit UnboxedArguments(size_t count);
  ~UnboxedArguments();
  UnboxedArguments(const UnboxedArguments&) = delete;
  UnboxedArguments& operator=(const UnboxedArguments&) = delete;
  void add(const ArgumentType& type, const Value& value);  // UserError where the value does not fit
  Arguments at() const { return at_; }

 private:
  static constexpr size_t most_here = 12;  // longer lists are rare
  alignas(ArgumentSlot) std::byte here_[most_here * sizeof(ArgumentSlot)];
  const void* at_here_[most_here];
  ArgumentSlot* slots_;
  const void** at_;
  size_t count_ = 0;
};

// ---- results ------------------------------------------------------------------------------------------------------
template <class T>
struct Result;
#define CALQUE_RESULT(TYPE)            \
  template <>                          \
  struct Result<TYPE> {                \
    static Value box(TYPE x);          \
    static TYPE unbox(const Value& v); \
  };
CALQUE_RESULT(Tensor)
CALQUE_RESULT(Scalar)
CALQUE_RESULT(int64_t)
CALQUE_RESULT(SymInt)
CALQUE_RESULT(double)
CALQUE_RESULT(bool)
CALQUE_RESULT(SymBool)
CALQUE_RESULT(DType)
CALQUE_RESULT(std::vector<Tensor>)
#undef CALQUE_RESULT
template <>
struct Result<void> {};
template <class... T>
struct Result<std::tuple<T...>> {
  static Value box(std::tuple<T...> x) {
    return std::apply(
        [](auto&... item) {
          Values items;
          items.reserve(sizeof...(T));
          (items.push_back(Result<T>::box(std::move(item))), ...);
          return calque::tuple(std::move(items));
        },
        x);
  }
  static std::tuple<T...> unbox(const Value& v) { return unbox(v.to_items(), std::index_sequence_for<T...>{}); }
  template <size_t... i>
  static std::tuple<T...> unbox(const Values& items, std::index_sequence<i...>) {
    return {Result<T>::unbox(items.at(i))...};
  }
};

// Calls a function by the addresses of its arguments; the result as a Value, None where there is none.
template <class Function, class Indices = void>
struct BoxedResult;
template <class R, class... A>
struct BoxedResult<R (*)(A...), void> : BoxedResult<R (*)(A...), std::index_sequence_for<A...>> {};
template <class R, class... A, size_t... i>
struct BoxedResult<R (*)(A...), std::index_sequence<i...>> {
  static Value call(void (*function)(), [[maybe_unused]] Arguments at) {
    const auto typed = reinterpret_cast<R (*)(A...)>(function);
    if constexpr (std::is_void_v<R>) {
      typed(argument_at<A>(at[i])...);
      return Value();
    } else {
      return Result<R>::box(typed(argument_at<A>(at[i])...));
    }
  }
};

}  // namespace calque
