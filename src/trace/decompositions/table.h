// What every family of decompositions (src/trace/decompositions/*.cpp) includes: how a body enters the table, and the
// vocabulary that bodies share. A file FAMILY.cpp defines decompose_FAMILY(DecompositionBuilder&) and nothing else that
// is visible. Bodies make the nodes that PyTorch's make, in their order, and ask the guards that those ask.
#pragma once

#include <initializer_list>

#include "calque/op/operators.h"
#include "calque/op/unbox.h"
#include "calque/trace/decompositions.h"

namespace calque {

class DecompositionBuilder {
 public:
  explicit DecompositionBuilder(DecompositionTable& table) : table_(table) {}

  // A body takes the operator's arguments in the schema's order, with the types of op/unbox.h.
  template <class Body>
  void add(std::string_view name, Body body) {
    put(name, boxed(+body), arity(+body));
  }
  template <class Body>
  void add(std::initializer_list<std::string_view> names, Body body) {
    for (const std::string_view name : names) add(name, body);
  }
  void add_boxed(std::string_view name, Decomposition body) { put(name, std::move(body), any_arity); }

  // How dtypes are promoted around a body (torch._prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND).
  enum class Kind : uint8_t { standard, int_to_float, always_bool };

  // Half-precision tensors are computed with in float32; the results go back. `compute_only`: they do not.
  template <class Body>
  void add_cast(std::string_view name, Body body, Kind kind = Kind::standard, bool compute_only = false) {
    put(name, cast(boxed(+body), kind, compute_only), arity(+body));
  }
  // The arguments named by position, tensors and numbers, are promoted together; the results go back.
  template <class Body>
  void add_promoted(std::string_view name, std::vector<size_t> promoted, Kind kind, Body body) {
    put(name, promote(boxed(+body), kind, std::move(promoted)), arity(+body));
  }

 private:
  static constexpr size_t any_arity = ~size_t{0};

  template <class R, class... A>
  static constexpr size_t arity(R (*)(A...)) {
    return sizeof...(A);
  }
  template <class R, class... A>
  static Decomposition boxed(R (*body)(A...)) {
    return boxed(reinterpret_cast<void (*)()>(body), &BoxedResult<R (*)(A...)>::call, ArgumentTypes<A...>::list);
  }
  static Decomposition boxed(void (*body)(), Value (*call)(void (*)(), Arguments), const ArgumentList& arguments);
  static Decomposition cast(Decomposition body, Kind kind, bool compute_only);
  static Decomposition promote(Decomposition body, Kind kind, std::vector<size_t> promoted);
  void put(std::string_view name, Decomposition body, size_t arity);

  DecompositionTable& table_;
};

// The dtype in which values of a dtype are computed with, and that in which a result of such values is given.
DType computation_dtype(DType dtype);
struct ElementwiseDTypes {
  DType computation;
  DType result;
};
ElementwiseDTypes elementwise_dtypes(const Values& args, DecompositionBuilder::Kind kind);

// x.to(dtype) where it differs.
Tensor converted(const Tensor& x, DType dtype);
// A number as Python's type for a dtype writes it: 1 as 1.0 for floats.
Scalar converted(const Scalar& x, DType dtype);

// Numbers as Python computes with them.
Scalar times(const Scalar& a, const Scalar& b);

// torch.sub(number, tensor) and the like: a number where the operator takes a tensor.
Tensor number_tensor(const Scalar& value);

// Factories as Python's calls of them reach the operator: the device is the tensor's, nothing is pinned.
Tensor arange_on(const Tensor& like, const Scalar& end, std::optional<DType> dtype = std::nullopt);
Tensor arange_on(const Tensor& like, const Scalar& start, const Scalar& end, std::optional<DType> dtype = std::nullopt);
Tensor zeros_on(const Tensor& like, SymIntList size, DType dtype);

Tensor unsqueezed_to(Tensor x, int64_t dim);
// where(mask, x, 0), which stays boolean for a boolean x.
Tensor masked(const Tensor& mask, const Tensor& x);

// ATen's reductions of losses: none, mean, sum.
Tensor reduced_loss(const Tensor& loss, int64_t reduction);

// torch._check
void require(SymBool condition, const char* op, const char* what);

}  // namespace calque
