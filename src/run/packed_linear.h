// PackedLinear: a product with weights that pass pack_weights laid out once. Where a call does not fit (another dtype, strides that
// are no rows, modes), it is the operator's own.
#pragma once

#include <memory>

#include "run/operator_call.h"

namespace calque::run {

// The attribute with the packed weights of a node; empty where there are none. Entered by the pass, in the node's meta.
std::string packed_weights_of(const Node& n);
void set_packed_weights(Node& n, const std::string& path);

// Where the operands of a product stand among its operator's arguments, and which way the weights lie.
struct ProductForm {
  size_t input, weight;
  std::optional<size_t> bias;
  bool weight_is_transposed;  // [n, k], as in linear
};
// Null for what is no product of an input and weights: linear, addmm without factors, mm.
const ProductForm* product_form(const Node& n);

class PackedLinear final : public Instruction {
 public:
  PackedLinear(const Node& n, const ValueIds& ids, Tensor packed)
      : call_(n, ids), form_(*product_form(n)), packed_(std::move(packed)) {}
  Value run(const Frame& frame, const Place& place) const override;

  bool makes_tensor() const override { return true; }

 private:
  Tensor multiply(const void* const* at, const Frame& frame,
                  const Place& place) const;  // undefined where the call does not fit

  OperatorCall call_;
  const ProductForm& form_;
  Tensor packed_;
};

}  // namespace calque::run
