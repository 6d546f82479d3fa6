// The elementwise engine: one walk over broadcast, strided, differently typed operands that hands a kernel short
// contiguous runs of one compute type. All special cases (strides, broadcasting, dtype promotion, rounding, threads)
// are dealt with here; the kernel is a plain loop over arrays.
#pragma once

#include <cstdint>

#include "calque/tensor/tensor.h"
#include "kernel/cpu/convert.h"

namespace calque::kernel {

// arrays[0..outputs) are written, the rest read; each is `n` contiguous values of the compute type. Output and input
// may be the same array.
using ElementFn = void (*)(void* const* arrays, int64_t n, const void* parameters);

class ElementLoop {
 public:
  static constexpr int max_operands = 6;
  static constexpr int64_t cheap = 32768;     // elements below which a thread is not worth waking
  static constexpr int64_t expensive = 4096;  // for transcendental functions

  // `common`: the dtype that inputs are brought to (rounded, wrapped) and results are computed as.
  explicit ElementLoop(DType common) : common_(common), compute_(compute_type(common)) {}

  // Outputs first; the first one's sizes are the loop's. Inputs broadcast to them.
  ElementLoop& output(const Tensor& t);
  ElementLoop& input(const Tensor& t);
  ElementLoop& input(const Scalar& s);
  // The last input, if it has one element, is taken at compute precision instead of being rounded to `common`.
  ElementLoop& keep_wide();
  void run(ElementFn fn, const void* parameters = nullptr, int64_t grain = cheap);

  Compute compute() const { return compute_; }

 private:
  static constexpr int max_dims = 64;
  struct Operand {
    char* data;
    DType dtype;
    bool is_output;
    bool wide;       // not rounded to `common`
    bool constant;   // one value for the whole loop
    bool native;     // memory already holds `common` in the compute type
    bool flat;       // contiguous in iteration order
    SmallVector<int64_t, 8> strides;  // bytes, in iteration order
    alignas(16) char value[16];       // a scalar's
  };
  Operand& add(bool is_output);
  void plan();
  void run_range(int64_t begin, int64_t end, ElementFn fn, const void* parameters) const;
  void gather(const Operand& o, int64_t position, int64_t n, void* to) const;
  void scatter(const Operand& o, int64_t position, int64_t n, void* from) const;

  DType common_;
  Compute compute_;
  int count_ = 0;
  int64_t numel_ = 0;
  SmallVector<int64_t, 8> sizes_;  // after plan: coalesced, outermost first
  Operand operands_[max_operands];
};

}  // namespace calque::kernel
