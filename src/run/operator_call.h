// OperatorCall: a step that calls an operator of the table. Constants are made what the kernel takes once; tensors are taken by their
// address; what else comes from other steps is converted at each call. The result takes the memory of an operand that nobody needs
// any more where the operator allows it.
#pragma once

#include <vector>

#include "calque/op/library.h"
#include "run/instruction.h"

namespace calque::run {

// One output, by rule and kernel, each element by itself.
bool is_pointwise_operator(const Operator& op);

class OperatorCall final : public Instruction {
 public:
  static constexpr size_t most_arguments = 64;  // op/unbox.h

  // UserError where the arguments do not fit the schema, as far as they are known.
  OperatorCall(const Node& n, const ValueIds& ids);
  Value run(const Frame& frame, const Place& place) const override;

  bool makes_tensor() const override { return is_plain_; }
  bool takes_over() const override { return is_pointwise_; }

  // ---- in parts, for steps that are made of several calls ------------------------------------------------------------
  // Of a pointwise operator, from tensors and constants.
  bool is_pointwise() const { return is_pointwise_; }
  // Where the arguments are; false where one is no tensor with data of its own (None, a number, a fake tensor).
  bool find_arguments(const Frame& frame, const void** at, bool fake = false) const;
  Meta meta(const void* const* at) const { return op_.calls().meta(op_.rule(), at); }
  void compute(const void* const* at, const Tensor& out) const { op_.calls().kernel(op_.kernel(), at, TensorList(&out, 1)); }
  bool needs_grad(const void* const* at) const;

 private:
  struct Constant {
    Value value;
    ArgumentSlot slot;
    const void* at = nullptr;
  };

  Values placed_arguments(const Node& n) const;
  void prepare(size_t i);
  Value answer(const void* const* at, const Frame& frame, const Place& place) const;
  Value run_directly(const Frame& frame, const Place& place) const;
  Value run_converting(const Frame& frame) const;
  Values bound(const Frame& frame) const;              // UserError as bind_arguments says it
  [[noreturn]] void refuse(const Frame& frame) const;  // the error that the interpreter gives

  const Operator& op_;
  const Schema& schema_;
  std::vector<const ArgumentType*> types_;
  std::vector<Operand> operands_;
  std::vector<std::unique_ptr<Constant>> constants_;
  bool converts_ = false;
  bool is_plain_ = false;  // one output, by rule and kernel, from tensors and constants
  bool is_pointwise_ = false;
};

// The memory of a value that is used for the last time, if it holds all of it alone and `meta` describes it; else undefined.
// `handles`: how many there are where the frame's is one of them.
Tensor take_over(const Frame& frame, const Place& place, const Meta& meta, uint32_t handles = 1);
// In the slot, where the place names one that is free; else of its own.
Tensor new_result(const Frame& frame, const Place& place, const Meta& meta);

}  // namespace calque::run
