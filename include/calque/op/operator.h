// Operator: one entry of the operator table. Its identity is its address; entries live as long as the process.
// Calling goes through the mode stack (op/mode.h); with no mode active and ordinary tensors a typed call reaches
// `eager` directly. Users add entries through Library (op/library.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calque/op/schema.h"

namespace calque {

enum class Tag : uint32_t {
  pointwise = 1U << 0,  // each output element depends on the input elements at its index
  reduction = 1U << 1,
  view = 1U << 2,      // the result aliases self
  in_place = 1U << 3,  // writes its first argument
  out = 1U << 4,       // writes its out= arguments
  random = 1U << 5,
  data_dependent = 1U << 6,    // output shape or value-dependent control flow
  allocates_own = 1U << 7,     // the kernel allocates its result
  may_alias = 1U << 8,         // result may or may not alias (reshape, contiguous)
  self_in_out = 1U << 9,       // the kernel starts from self's values: in place it may write self directly
  core = 1U << 10,             // tagged core in PyTorch
  side_effect = 1U << 11,      // never dead code (asserts)
  strided_out = 1U << 12,      // the kernel writes outputs of any strides
  any_device = 1U << 13,       // its tensors may be on different devices; the result is where the first one is
  dense_out = 1U << 14,        // an out= argument that is resized becomes contiguous, whatever the result's strides
  cast_out = 1U << 15,         // an out= argument may have any dtype that the result's casts to, ...
  any_out = 1U << 16,          // ... or any at all
  dtype_from_out = 1U << 17,   // without a dtype argument the result is computed in the out= argument's dtype
  restrides_out = 1U << 18,    // an out= argument takes the result's strides even where its sizes fit
  unshared_out = 1U << 19,     // an out= argument may not share memory with an input
  resizes_self = 1U << 20,     // the in-place form is the out= form with out=self
  overlap_ok = 1U << 21,       // may write a tensor whose elements share memory (fills)
  restrides_image = 1U << 22,  // as restrides_out, for out= arguments of four dimensions or more
  inplace_view = 1U << 24,     // changes sizes, strides or storage of its first argument
  made_like_self =
      1U << 23,  // the result is made by empty_like: an empty one keeps self's strides, but not as an out= argument
};

class Operator {
 public:
  using ErasedFunction = void (*)();
  using Boxed = Value (*)(const Operator& op, const Values& args);

  enum class Form : uint8_t { compute, view, composite, mutate, own, in_place, out, undefined };

  const Schema& schema() const { return schema_; }
  const std::string& name() const { return name_; }  // "aten::add.Tensor"
  // The Python function that users call it by: "torch.relu", "torch.nn.functional.linear".
  const std::string& python_name() const { return python_name_; }
  // The stanza file that defines it, "pooling"; empty for a user's.
  const std::string& family() const { return family_; }
  bool has_tag(Tag t) const { return (tags_ & static_cast<uint32_t>(t)) != 0; }
  Form form() const { return form_; }
  bool is_composite() const { return form_ == Form::composite; }
  bool has_kernel() const { return eager_ != nullptr; }
  // The functional operator that an in-place or out= form was derived from; null otherwise.
  const Operator* base() const { return base_; }
  const Operator* in_place() const { return in_place_; }

  // For the trampolines and typed fronts; not for general use.
  ErasedFunction eager() const { return eager_; }
  ErasedFunction rule() const { return rule_; }
  ErasedFunction kernel() const { return kernel_; }
  // Runs with Values: the real thing, and from the shape rule alone (fake, meta and symbolic tensors).
  Value run_eager(const Values& args) const;
  Value run_fake(const Values& args) const;

 private:
  friend class OpBuilder;
  friend class Library;
  friend class OperatorTable;
  Schema schema_;
  std::string name_;
  std::string python_name_;
  std::string family_;
  uint32_t tags_ = 0;
  Form form_ = Form::undefined;
  const Operator* base_ = nullptr;
  const Operator* in_place_ = nullptr;
  ErasedFunction eager_ = nullptr;
  ErasedFunction rule_ = nullptr;
  ErasedFunction kernel_ = nullptr;
  Boxed boxed_eager_ = nullptr;
  Boxed boxed_fake_ = nullptr;
};

// "aten::add.Tensor" (or "aten.add.Tensor", "aten.relu.default"). find gives null, get throws with near names.
const Operator* find_operator(std::string_view name);
const Operator& get_operator(std::string_view name);
// In order of registration. The built-in ones are registered on the first use of the table.
std::vector<const Operator*> all_operators();
// All overloads of "aten::add".
std::vector<const Operator*> overloads_of(std::string_view name);
// The overload of "aten::add" that these arguments fit, as PyTorch resolves a call; UserError lists the candidates.
const Operator& resolve_overload(std::string_view name, const Values& positional,
                                 const std::vector<std::pair<std::string, Value>>& keyword = {});

}  // namespace calque
