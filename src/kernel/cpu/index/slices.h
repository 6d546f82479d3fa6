// The one-dimensional slices of tensors of equal sizes along one dimension, in an order and grouping that suits memory:
// what scans, medians and modes walk.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "calque/base/thread.h"
#include "calque/tensor/tensor_base.h"

namespace calque::kernel {

// The result of a reduction that lacks the reduced dimension, seen with it as size 1.
TensorBase with_reduced_dim(const TensorBase& t, int64_t dim);

class Slices {
 public:
  static constexpr size_t most = 4;

  // A tensor may have size 1 (or lack a stride) along `dim`: results of reductions. 0-d tensors have one slice of one.
  Slices(int64_t dim, std::initializer_list<const TensorBase*> tensors);

  int64_t length() const { return length_; }  // of a slice of the first tensor
  int64_t count() const { return count_; }
  int64_t step(size_t k) const { return step_[k]; }   // bytes from element to element of tensor k
  int64_t neighbours() const { return neighbours_; }  // slices side by side in the innermost other dimension
  int64_t neighbour_step(size_t k) const { return neighbour_step_[k]; }  // bytes from one to the next

  // First element of slice i of the first tensor, in no particular order of slices.
  char* start(int64_t i) const {
    char* at[most];
    locate(i / neighbours_, i % neighbours_, at);
    return at[0];
  }

  // fn(char* const* first elements, number of neighbouring slices <= width) for all slices, on several threads.
  template <class F>
  void parallel(int64_t width, int64_t grain, F&& fn) const {
    const int64_t groups = (neighbours_ + width - 1) / width;
    if (count_ == 0) return;
    parallel_for(0, count_ / neighbours_ * groups, grain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        char* at[most];
        const int64_t start = i % groups * width;
        locate(i / groups, start, at);
        fn(static_cast<char* const*>(at), std::min(width, neighbours_ - start));
      }
    });
  }

 private:
  struct Axis {
    int64_t size;
    int64_t step[most];
  };
  void locate(int64_t outer, int64_t neighbour, char** at) const;

  size_t tensors_;
  int64_t length_ = 1;
  int64_t count_ = 1;
  int64_t neighbours_ = 1;
  int64_t step_[most] = {};
  int64_t neighbour_step_[most] = {};
  char* data_[most] = {};
  SmallVector<Axis, 6> outer_;
};

}  // namespace calque::kernel
