// Operator: one entry of the operator table. Its identity is its address; entries live as long as the process.
// Calling goes through the mode stack (op/mode.h); with no mode active and ordinary tensors a typed call reaches
// `eager` directly. Users add entries through Library (op/library.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calque/op/schema.h"
#include "calque/op/value.h"

namespace calque {

struct OperatorGradient;  // op/gradient.h
namespace op_detail {
struct Calls;  // op/library.h
}

// What passes, modes and trampolines want to know of an operator; they ask for a tag, never for a name.
enum class Tag : uint8_t {
  random,
  reduction,
  pointwise,          // each output element depends on the input elements at its index
  view,               // the result aliases self
  in_place,           // writes its first argument
  out,                // writes its out= arguments
  data_dependent,     // output shape or value-dependent control flow
  allocates_own,      // the kernel allocates its result
  may_alias,          // result may or may not alias (reshape, contiguous)
  self_in_out,        // the kernel starts from self's values: in place it may write self directly
  core,               // tagged core in PyTorch
  side_effect,        // never dead code (asserts)
  strided_out,        // the kernel writes outputs of any strides
  any_device,         // its tensors may be on different devices; the result is where the first one is
  dense_out,          // an out= argument that is resized becomes contiguous, whatever the result's strides
  cast_out,           // an out= argument may have any dtype that the result's casts to, ...
  any_out,            // ... or any at all
  dtype_from_out,     // without a dtype argument the result is computed in the out= argument's dtype
  restrides_out,      // an out= argument takes the result's strides even where its sizes fit
  unshared_out,       // an out= argument may not share memory with an input
  resizes_self,       // the in-place form is the out= form with out=self
  overlap_ok,         // may write a tensor whose elements share memory (fills)
  restrides_image,    // as restrides_out, for out= arguments of four dimensions or more
  made_like_self,     // made by empty_like: an empty result keeps self's strides, but not as an out= argument
  inplace_view,       // changes sizes, strides or storage of its first argument
  wraps_numbers,      // Python calls it with a number, and the overload for two tensors answers
  number_for_tensor,  // Python takes a number in the place of its tensors: 2 + x, x.copy_(1)
  not_whole,          // a composite that may give an argument back: it never stays whole in an exported program
  own_composite,      // composite here, but a kernel of its own in PyTorch or no operator of programs: it never stays whole
  core_composite,     // a composite of the core set: run_decompositions leaves it whole
  left_whole,         // this form is not decomposed though its functional operator is
  decomposes,         // this form is decomposed though its functional operator is not
  repeatable,         // unflatten computes it again in another module rather than hand its result over
  autocast_lower,     // autocast computes it in the narrower type, ...
  autocast_float32,   // ... in float32, ...
  autocast_promote,   // ... in the widest type of its arguments
  always_apart,       // run_decompositions takes it apart whatever its table says
  reads_geometry,     // gives a number of the tensor's geometry: a size, a stride, the offset
  lifts,              // gives the tensor that it gets, as one of the program
  counts_results,     // its second argument says how many tensors it gives: so many, or places to cut
  sizes_results,      // its second argument, where it is a list, has the size of each tensor that it gives
};

class Operator;

// A name that Python has for an operator besides python_name(): of the same function ("torch.nn.functional.conv2d", which
// PyTorch prints as "torch.conv2d"), or of one that calls the operator when it gets a tensor ("operator.add").
struct PythonAlias {
  std::string name;
  std::string printed = {};  // empty where PyTorch prints the name itself
  const Operator* op = nullptr;
};

class Operator {
 public:
  using ErasedFunction = void (*)();
  // Runs with the addresses of the arguments (op/unbox.h): the real thing, or from the shape rule alone.
  using Run = Value (*)(const Operator& op, const void* const* at, bool fake);
  // The same for a form that writes one tensor, which it gives.
  using Write = Tensor (*)(const Operator& op, const void* const* at, bool fake);

  enum class Form : uint8_t { compute, view, composite, mutate, own, in_place, out, undefined };

  const Schema& schema() const { return schema_; }
  const std::string& name() const { return name_; }  // "aten::add.Tensor"
  std::string packet() const;                        // of all its overloads: "aten::add"
  // The Python function that users call it by: "torch.relu", "torch.nn.functional.linear".
  const std::string& python_name() const { return python_name_; }
  // The stanza file that defines it, "pooling"; empty for a user's.
  const std::string& family() const { return family_; }
  bool has_tag(Tag t) const { return (tags_ >> static_cast<unsigned>(t) & 1U) != 0; }
  Form form() const { return form_; }
  bool is_composite() const { return form_ == Form::composite; }
  bool has_kernel() const { return called().run_ != nullptr || called().write_ != nullptr; }
  // The functional operator that an in-place or out= form was derived from; null otherwise.
  const Operator* base() const { return base_; }
  const Operator* in_place() const { return in_place_; }
  // The operator that this one is another name of (Library::alias); null otherwise.
  const Operator* alias_of() const { return alias_of_; }

  // For the trampolines and typed fronts; not for general use.
  ErasedFunction eager() const { return eager_; }                            // null: called by addresses
  const Operator& called() const { return alias_of_ ? *alias_of_ : *this; }  // whose functions a typed call runs
  ErasedFunction rule() const { return rule_; }
  ErasedFunction kernel() const { return kernel_; }
  const op_detail::Calls& calls() const { return *calls_; }  // of rule and kernel
  // How gradients go back through a call; null where the stanza says nothing of it. Without formulas: no result has any.
  const OperatorGradient* gradient() const { return base_ && !gradient_ ? base_->gradient_.get() : gradient_.get(); }
  Run run() const { return run_; }
  Write write() const { return write_; }
  // Runs with Values: the real thing, and from the shape rule alone (fake, meta and symbolic tensors).
  Value run_eager(const Values& args) const;
  Value run_fake(const Values& args) const;

 private:
  friend class OpBuilder;
  friend class Library;
  friend class OperatorTable;
  Value run_boxed(const Values& args, bool fake) const;
  Schema schema_;
  std::string name_;
  std::string python_name_;
  std::string family_;
  uint64_t tags_ = 0;  // by the numbers of Tag
  Form form_ = Form::undefined;
  const Operator* base_ = nullptr;
  const Operator* in_place_ = nullptr;
  const Operator* alias_of_ = nullptr;
  ErasedFunction eager_ = nullptr;
  ErasedFunction rule_ = nullptr;
  ErasedFunction kernel_ = nullptr;
  const op_detail::Calls* calls_ = nullptr;
  Run run_ = nullptr;
  Write write_ = nullptr;
  std::shared_ptr<OperatorGradient> gradient_;
};

// "aten::add.Tensor" (or "aten.add.Tensor", "aten.relu.default"). find gives null, get throws with near names.
const Operator* find_operator(std::string_view name);
const Operator& get_operator(std::string_view name);
// "aten::relu" for "relu".
std::string aten_name(std::string_view name);
// A Python name of an operator that a stanza states; null when none has it.
const PythonAlias* find_python_alias(std::string_view name);
// In order of registration. The built-in ones are registered on the first use of the table.
std::vector<const Operator*> all_operators();
// All overloads of "aten::add".
std::vector<const Operator*> overloads_of(std::string_view name);
// The overload of "aten::add" that these arguments fit, as PyTorch resolves a call; UserError lists the candidates.
const Operator& resolve_overload(std::string_view name, const Values& positional,
                                 const std::vector<std::pair<std::string, Value>>& keyword = {});

}  // namespace calque
