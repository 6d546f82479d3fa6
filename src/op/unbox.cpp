#include "calque/op/unbox.h"

#include "calque/op/library.h"

namespace calque {
namespace {

template <class T>
bool is_symbolic_at(const void* at) {
  static_assert(may_be_symbolic<std::remove_cvref_t<T>>);
  return op_detail::is_marked(argument_at<T>(at));
}

template <class List>
Value box_items(const List& list) {
  Values items;
  items.reserve(list.size());
  for (const auto& x : list) items.push_back(Value(x));
  return calque::list(std::move(items));
}

// The argument comes first: its address is the list's.
template <class Parameter, class T>
struct OwnedList {
  Parameter list;
  std::vector<T> items;
};

template <class Parameter, class T, class Convert>
const void* unbox_items(const Value& v, ArgumentSlot& slot, Convert convert) {
  std::vector<T> items;
  const Values& values = v.to_items();
  items.reserve(values.size());
  for (const Value& item : values) items.push_back(convert(item));
  const ListRef<T> list(items);  // moving a vector leaves its items where they are
  return slot.make(OwnedList<Parameter, T>{list, std::move(items)});
}

template <class Parameter>
const void* no_value(ArgumentSlot& slot) {
  return slot.make(Parameter());
}

template <class T>
constexpr bool (*never)(const void*) = nullptr;

}  // namespace

// TYPE as functions take it, NAME as schemas say it, CONVERT makes it from a Value `v`.
#define CALQUE_SIMPLE(TYPE, NAME, SYMBOLIC, CONVERT)                                                                   \
  Value Argument<TYPE>::box(TYPE x) { return Value(x); }                                                               \
  constinit const ArgumentType Argument<TYPE>::type{                                                                   \
      NAME, [](const void* at) { return Argument<TYPE>::box(argument_at<TYPE>(at)); },                                 \
      [](const Value& v, ArgumentSlot& slot) -> const void* { return slot.make(std::remove_cvref_t<TYPE>(CONVERT)); }, \
      SYMBOLIC<TYPE>};                                                                                                 \
  CALQUE_OPTIONAL(std::remove_cvref_t<TYPE>, NAME, SYMBOLIC, CONVERT)
#define CALQUE_OPTIONAL(ELEMENT, NAME, SYMBOLIC, CONVERT)                                                            \
  Value Argument<std::optional<ELEMENT>>::box(const std::optional<ELEMENT>& x) { return x ? Value(*x) : Value(); }   \
  constinit const ArgumentType Argument<std::optional<ELEMENT>>::type{                                               \
      "std::optional<" NAME ">",                                                                                     \
      [](const void* at) { return Argument<std::optional<ELEMENT>>::box(argument_at<std::optional<ELEMENT>>(at)); }, \
      [](const Value& v, ArgumentSlot& slot) -> const void* {                                                        \
        return slot.make(v.is_none() ? std::optional<ELEMENT>() : std::optional<ELEMENT>(CONVERT));                  \
      },                                                                                                             \
      SYMBOLIC<std::optional<ELEMENT>>};
#define CALQUE_LIST(TYPE, ELEMENT, NAME, SYMBOLIC, CONVERT)                                                      \
  Value Argument<TYPE>::box(TYPE x) { return box_items(x); }                                                     \
  constinit const ArgumentType Argument<TYPE>::type{                                                             \
      NAME, [](const void* at) { return Argument<TYPE>::box(argument_at<TYPE>(at)); },                           \
      [](const Value& v, ArgumentSlot& slot) {                                                                   \
        return unbox_items<TYPE, ELEMENT>(v, slot, [](const Value& x) { return x.CONVERT; });                    \
      },                                                                                                         \
      SYMBOLIC<TYPE>};                                                                                           \
  Value Argument<std::optional<TYPE>>::box(const std::optional<TYPE>& x) { return x ? box_items(*x) : Value(); } \
  constinit const ArgumentType Argument<std::optional<TYPE>>::type{                                              \
      "std::optional<" NAME ">",                                                                                 \
      [](const void* at) { return Argument<std::optional<TYPE>>::box(argument_at<std::optional<TYPE>>(at)); },   \
      [](const Value& v, ArgumentSlot& slot) {                                                                   \
        if (v.is_none()) return no_value<std::optional<TYPE>>(slot);                                             \
        return unbox_items<std::optional<TYPE>, ELEMENT>(v, slot, [](const Value& x) { return x.CONVERT; });     \
      },                                                                                                         \
      SYMBOLIC<std::optional<TYPE>>};

CALQUE_SIMPLE(const Scalar&, "Scalar", is_symbolic_at, v.to_scalar())
CALQUE_SIMPLE(int64_t, "int64_t", never, v.to_int())
CALQUE_SIMPLE(SymInt, "SymInt", is_symbolic_at, v.to_sym_int())
CALQUE_SIMPLE(double, "double", never, v.to_float())
CALQUE_SIMPLE(bool, "bool", never, v.to_bool())
CALQUE_SIMPLE(SymBool, "SymBool", never, v.to_sym_bool())
CALQUE_SIMPLE(DType, "DType", never, v.to_dtype())
CALQUE_SIMPLE(Device, "Device", never, v.to_device())
CALQUE_SIMPLE(Layout, "Layout", never, v.to_layout())
CALQUE_SIMPLE(MemoryFormat, "MemoryFormat", never, v.to_memory_format())
CALQUE_SIMPLE(std::string_view, "std::string_view", never, v.to_string())
CALQUE_LIST(IntList, int64_t, "IntList", never, to_int())
CALQUE_LIST(SymIntList, SymInt, "SymIntList", is_symbolic_at, to_sym_int())
CALQUE_LIST(ListRef<double>, double, "ListRef<double>", never, to_float())
CALQUE_LIST(ListRef<Scalar>, Scalar, "ListRef<Scalar>", never, to_scalar())
CALQUE_LIST(TensorList, Tensor, "TensorList", never, to_tensor_or_none())

Value Argument<const Tensor&>::box(const Tensor& x) { return Value(x); }
constinit const ArgumentType Argument<const Tensor&>::type{
    "Tensor", [](const void* at) { return Value(argument_at<const Tensor&>(at)); },
    [](const Value& v, ArgumentSlot&) -> const void* { return &v.to_tensor_or_none(); }, nullptr};

Value Argument<Generator*>::box(Generator* x) { return x ? Value(x) : Value(); }
constinit const ArgumentType Argument<Generator*>::type{
    "Generator*", [](const void* at) { return Argument<Generator*>::box(argument_at<Generator*>(at)); },
    [](const Value& v, ArgumentSlot& slot) -> const void* {
      return slot.make(v.is_none() ? static_cast<Generator*>(nullptr) : v.to_generator());
    },
    nullptr};

#define CALQUE_MASK(TYPE, NAME)                                                                    \
  Value Argument<TYPE>::box(const TYPE& x) { return box_items(x); }                                \
  constinit const ArgumentType Argument<TYPE>::type{                                               \
      NAME, [](const void* at) { return Argument<TYPE>::box(argument_at<TYPE>(at)); },             \
      [](const Value& v, ArgumentSlot& slot) -> const void* {                                      \
        TYPE mask{};                                                                               \
        const Values& items = v.to_items();                                                        \
        for (size_t i = 0; i < items.size() && i < mask.size(); ++i) mask[i] = items[i].to_bool(); \
        return slot.make(mask);                                                                    \
      },                                                                                           \
      nullptr};
CALQUE_MASK(BoolMask, "BoolMask")
CALQUE_MASK(PairMask, "std::array<bool, 2>")
#undef CALQUE_MASK

#undef CALQUE_SIMPLE
#undef CALQUE_OPTIONAL
#undef CALQUE_LIST

UnboxedArguments::UnboxedArguments(size_t count) {
  if (count <= most_here) {
    slots_ = reinterpret_cast<ArgumentSlot*>(here_);
    at_ = at_here_;
  } else {
    slots_ = static_cast<ArgumentSlot*>(::operator new(count * sizeof(ArgumentSlot)));
    at_ = new const void*[count];
  }
}

UnboxedArguments::~UnboxedArguments() {
  for (size_t i = 0; i < count_; ++i) slots_[i].~ArgumentSlot();
  if (at_ != at_here_) {
    ::operator delete(slots_);
    delete[] at_;
  }
}

void UnboxedArguments::add(const ArgumentType& type, const Value& value) {
  ArgumentSlot* slot = ::new (static_cast<void*>(slots_ + count_)) ArgumentSlot;
  ++count_;  // from here on the slot is destroyed with the others
  at_[count_ - 1] = type.unbox(value, *slot);
}

#define CALQUE_RESULT(TYPE, CONVERT)                              \
  Value Result<TYPE>::box(TYPE x) { return Value(std::move(x)); } \
  TYPE Result<TYPE>::unbox(const Value& v) { return v.CONVERT; }
CALQUE_RESULT(Tensor, to_tensor_or_none())
CALQUE_RESULT(Scalar, to_scalar())
CALQUE_RESULT(int64_t, to_int())
CALQUE_RESULT(SymInt, to_sym_int())
CALQUE_RESULT(double, to_float())
CALQUE_RESULT(bool, to_bool())
CALQUE_RESULT(SymBool, to_sym_bool())
CALQUE_RESULT(DType, to_dtype())
#undef CALQUE_RESULT
Value Result<std::vector<Tensor>>::box(std::vector<Tensor> x) { return box_items(x); }
std::vector<Tensor> Result<std::vector<Tensor>>::unbox(const Value& v) {
  std::vector<Tensor> tensors;
  for (const Value& item : v.to_items()) tensors.push_back(item.to_tensor_or_none());
  return tensors;
}

}  // namespace calque
