// The gradient of an operator, as its stanza says it:
//
//   aten.def("mul.Tensor(Tensor self, Tensor other) -> Tensor")
//       ...
//       .gradient("self", "other", [](const Gradients& g) { return g.grad() * g["other"].conj(); })
//       .gradient("other", "self", [](const Gradients& g) { return g.grad() * g["self"].conj(); });
//
// The first text names the arguments whose gradients the function gives, the second the arguments and results that are kept for
// it: no more than PyTorch keeps. A function is made of operator calls, so a backward pass can be traced and differentiated. What
// it gives is summed to the argument's sizes and cast to its dtype by the engine, so that formulas need not say what
// broadcasting and promotion did. An in-place form has the gradient of the operator that it is derived from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calque/op/value.h"

namespace calque {

class OperatorNode;
class Gradients;
using TensorVector = std::vector<Tensor>;

// Of what is no tensor, or has no gradient.
inline Meta undefined_meta() {
  Meta meta;
  meta.undefined = true;
  return meta;
}

// What a formula gets: the gradients of a call's results, and what was kept of the call.
class Gradients {
 public:
  Gradients(OperatorNode& node, const TensorVector& grads, const std::vector<bool>& wanted)
      : node_(&node), grads_(&grads), wanted_(&wanted) {}

  // Of the operator's i-th result. Undefined when nothing depends on that result; of an operator with one result it never is.
  const Tensor& grad(size_t i = 0) const { return (*grads_)[i]; }
  // The same with zeros for what is undefined.
  Tensor grad_or_zeros(size_t i) const;
  // A tensor that is kept: an argument by its name, a result as "result" or "result1". Undefined where the call had None.
  Tensor operator[](std::string_view name) const;
  TensorVector list(std::string_view name) const;  // a list of tensors that is kept
  bool has_argument(std::string_view name) const;  // in the schema: formulas serve operators that differ
  // An argument that is no tensor.
  const Value& argument(std::string_view name) const;
  int64_t integer(std::string_view name) const { return argument(name).to_int(); }
  double number(std::string_view name) const { return argument(name).to_float(); }
  bool flag(std::string_view name) const { return argument(name).to_bool(); }
  Scalar scalar(std::string_view name) const { return argument(name).to_scalar(); }
  SymInt sym_int(std::string_view name) const { return argument(name).to_sym_int(); }
  SymInts sym_ints(std::string_view name) const;  // empty for None
  std::vector<int64_t> integers(std::string_view name) const;
  // Of a tensor argument, kept or not. Undefined (Meta::undefined) where the call had None.
  const Meta& meta(std::string_view name) const;
  const std::vector<Meta>& metas(std::string_view name) const;  // of a list of tensors
  SymInt storage_offset(std::string_view name) const;
  const Meta& result_meta(size_t i = 0) const;
  SymIntList sizes(std::string_view name) const { return meta(name).sizes; }
  DType dtype(std::string_view name) const { return meta(name).dtype; }
  int64_t dim(std::string_view name) const { return static_cast<int64_t>(meta(name).sizes.size()); }
  // Is this argument's gradient asked for? Formulas for several arguments may leave others undefined.
  bool needs(std::string_view name) const;

 private:
  size_t index_of(std::string_view name) const;
  OperatorNode* node_;
  const TensorVector* grads_;
  const std::vector<bool>* wanted_;
};

// One function of a stanza.
struct GradientFormula {
  std::vector<uint8_t> of;      // the arguments by position
  uint64_t kept_arguments = 0;  // by position
  uint64_t kept_results = 0;    // by position
  Tensor (*one)(const Gradients&) = nullptr;
  TensorVector (*several)(const Gradients&) = nullptr;  // in the order of `of`; a list's tensors one after the other
};

struct OperatorGradient {
  std::vector<GradientFormula> formulas;
  uint64_t constant_results = 0;  // which results depend on no argument smoothly
  std::string node_name;          // "MulBackward0"
};

}  // namespace calque
