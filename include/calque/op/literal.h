// torch.tensor(...): a fresh tensor of values written in the program. Traces and fake tensors see it as a literal: it is
// stored with the graph, and a single number stays known.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <vector>

#include "calque/op/tensor.h"
#include "calque/tensor/scalar.h"

namespace calque {

// A number, or a list of such trees; each list of a depth has the same length.
class NumberTree {
 public:
  template <class T>
    requires std::convertible_to<T, Scalar>
  NumberTree(const T& number) : number_(number) {}
  NumberTree(std::initializer_list<NumberTree> items) : items_(items), is_list_(true) {}

  bool is_list() const { return is_list_; }
  const std::vector<NumberTree>& items() const { return items_; }
  const Scalar& number() const { return number_; }

 private:
  Scalar number_;
  std::vector<NumberTree> items_;
  bool is_list_ = false;
};

//   tensor({{1, 2}, {3, 4}})       int64, sizes [2, 2]; numbers with a point give the default dtype, float32
// The dtype is said, or that of torch.tensor: complex, floating, integer or bool, whichever the numbers need. UserError for lists
// of different lengths, and for a number that the dtype cannot hold.
Tensor tensor(const NumberTree& numbers, std::optional<DType> dtype = std::nullopt,
              std::source_location where = std::source_location::current());

}  // namespace calque
