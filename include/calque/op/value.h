// Value: anything an operator takes or gives and anything a program's inputs and outputs are made of (PyTorch's
// pytree): none, numbers (symbolic or not), strings, tensors, dtypes, ..., and containers of Values. A Value is cheap
// to copy; containers and strings are shared and immutable once inside a Value.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "calque/op/tensor.h"
#include "calque/sym/sym_int.h"

namespace calque {

class Value;
class Node;  // of a graph (graph/graph.h); a Value only carries the pointer
using Values = std::vector<Value>;

struct None {
  bool operator==(const None&) const = default;
};
struct SliceValue;
struct DictValue;    // ordered, keys are Values (strings or integers in practice)
struct StructValue;  // a named type with named fields: namedtuple, dataclass, ModelOutput, cache

struct ListValue {
  Values items;
};
struct TupleValue {
  Values items;
};

class Value {
 public:
  // In the order of the alternatives below.
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    floating,
    complex,
    string,
    slice,
    tensor,
    dtype,
    device,
    layout,
    memory_format,
    generator,
    node,
    list,
    tuple,
    dict,
    structure
  };

  Value() = default;
  Value(const Value& other);  // not inline: it switches over the kind, which is much code
  Value(Value&& other) noexcept = default;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept = default;
  ~Value() = default;
  Value(None) {}
  Value(bool v) : v_(SymBool(v)) {}
  Value(SymBool v) : v_(v) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Value(T v) : v_(SymInt(v)) {}
  Value(SymInt v) : v_(v) {}
  Value(double v) : v_(SymFloat(v)) {}
  Value(SymFloat v) : v_(v) {}
  Value(std::complex<double> v) : v_(v) {}
  Value(const char* s) : Value(std::string(s)) {}
  Value(std::string_view s) : Value(std::string(s)) {}
  Value(std::string s);
  Value(SliceValue s);
  Value(Tensor t) : v_(std::move(t)) {
    if (!std::get<Tensor>(v_).defined()) v_ = None{};
  }
  Value(TensorBase t) : Value(Tensor(std::move(t))) {}
  Value(DType d) : v_(d) {}
  Value(Device d) : v_(d) {}
  Value(Layout l) : v_(l) {}
  Value(MemoryFormat m) : v_(m) {}
  Value(Generator* g) : v_(g) {}
  Value(Node* n) : v_(n) {}
  Value(const Scalar& s);
  Value(ListValue l);
  Value(TupleValue t);
  Value(DictValue d);
  Value(StructValue s);

  Kind kind() const { return static_cast<Kind>(v_.index()); }
  bool is_none() const { return kind() == Kind::none; }
  bool is_tensor() const { return kind() == Kind::tensor; }
  bool is_node() const { return kind() == Kind::node; }
  bool is_sequence() const { return kind() == Kind::list || kind() == Kind::tuple; }
  bool is_container() const { return kind() >= Kind::list; }
  const Expr* expr() const;  // of a number that is symbolic, else null

  // Each throws a UserError naming the kind found when it does not fit. Numbers convert as schema arguments do:
  // an integer serves as a float, a bool as an integer.
  bool to_bool() const;
  SymBool to_sym_bool() const;
  int64_t to_int() const;
  SymInt to_sym_int() const;
  double to_float() const;
  SymFloat to_sym_float() const;
  std::complex<double> to_complex() const;
  Scalar to_scalar() const;
  const std::string& to_string() const;
  const SliceValue& to_slice() const;
  const Tensor& to_tensor() const;          // UserError for None
  const Tensor& to_tensor_or_none() const;  // undefined for None
  DType to_dtype() const;
  Device to_device() const;
  Layout to_layout() const;
  MemoryFormat to_memory_format() const;
  Generator* to_generator() const;
  Node* to_node() const;           // another node's result, in the arguments of a graph's nodes
  const Values& to_items() const;  // list or tuple
  const DictValue& to_dict() const;
  const StructValue& to_struct() const;

  std::string str() const;                // Python's repr
  bool equals(const Value& other) const;  // structure and values; tensors by identity
  static std::string_view kind_name(Kind k);

 private:
  std::variant<None, SymBool, SymInt, SymFloat, std::complex<double>, std::shared_ptr<const std::string>,
               std::shared_ptr<const SliceValue>, Tensor, DType, Device, Layout, MemoryFormat, Generator*, Node*,
               std::shared_ptr<const ListValue>, std::shared_ptr<const TupleValue>, std::shared_ptr<const DictValue>,
               std::shared_ptr<const StructValue>>
      v_;
};

struct SliceValue {
  Value start, stop, step;
};
struct DictValue {
  std::vector<std::pair<Value, Value>> items;
  bool ordered = false;  // collections.OrderedDict
  const Value* find(std::string_view key) const;
};
struct StructValue {
  std::string type;     // "transformers.modeling_outputs.BaseModelOutput"
  std::string context;  // what PyTorch's TreeSpec keeps for it, kept verbatim
  std::vector<std::string> fields;
  Values items;
};

inline Value list(Values items) { return Value(ListValue{std::move(items)}); }
inline Value tuple(Values items) { return Value(TupleValue{std::move(items)}); }
Value dict(std::vector<std::pair<Value, Value>> items);

}  // namespace calque
