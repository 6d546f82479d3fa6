// The elementwise engine: one walk over broadcast, strided, differently typed operands that hands a kernel short
// contiguous runs of one compute type. All special cases (strides, broadcasting, dtype promotion, rounding, threads)
// are dealt with here; the kernel is a plain loop over arrays.
#pragma once

#include <cstddef>
#include <cstdint>

#include "calque/tensor/tensor_base.h"
#include "kernel/cpu/elementwise/convert.h"

namespace calque::kernel {

// arrays[0..outputs) are written, the rest read; each is `n` contiguous values of the compute type. Output and input
// may be the same array.
using ElementFn = void (*)(void* const* arrays, int64_t n, const void* parameters);

// The loops of one function, by compute type; null where it has no such form. The last one works on bfloat16 as it lies in
// memory, and is taken where nothing else is involved: reading and rounding on the way costs less than a pass of its own.
struct ElementRow {
  ElementFn f32 = nullptr, f64 = nullptr, i64 = nullptr, c128 = nullptr, bf16 = nullptr;

  ElementFn at(Compute c) const {
    return c == Compute::f32 ? f32 : c == Compute::f64 ? f64 : c == Compute::i64 ? i64 : c128;
  }
};

class ElementLoop {
 public:
  static constexpr int max_operands = 6;
  static constexpr int64_t cheap = 32768;     // elements below which a thread is not worth waking
  static constexpr int64_t expensive = 4096;  // for transcendental functions

  // `common`: the dtype that inputs are brought to (rounded, wrapped) and results are computed as.
  explicit ElementLoop(DType common) : common_(common), compute_(compute_type(common)) {}

  // Outputs first; the first one's sizes are the loop's. Inputs broadcast to them.
  ElementLoop& output(const TensorBase& t);
  ElementLoop& input(const TensorBase& t);
  ElementLoop& input(const Scalar& s);
  // The last input, if it has one element, is taken at compute precision instead of being rounded to `common`.
  ElementLoop& keep_wide();
  void run(ElementFn fn, const void* parameters = nullptr, int64_t grain = cheap);
  // The row's loop for the compute type. Without one the dtype is refused.
  void run(const ElementRow& row, const void* parameters = nullptr, int64_t grain = cheap);

  Compute compute() const { return compute_; }

 private:
  static constexpr int64_t chunk =
      1024;  // complex numbers, or twice as many others, handed over at once: the buffers stay in the first-level cache
  using Buffer = std::byte[chunk * 16];
  struct Operand {
    const TensorBase* tensor;  // null for a scalar
    char* data;
    DType dtype;
    bool is_output;
    bool wide;                        // not rounded to `common`
    bool constant;                    // one value for the whole loop
    bool native;                      // memory already holds what the loop works on
    bool flat;                        // contiguous in iteration order
    SmallVector<int64_t, 8> strides;  // bytes, in iteration order
    alignas(16) char value[16];       // a scalar's
  };
  Operand& add(const TensorBase* tensor, bool is_output);
  bool all_are(DType d) const;
  bool all_in_place() const;
  void plan_flat();
  void plan();
  void run_range(int64_t begin, int64_t end, ElementFn fn, const void* parameters) const;
  void run_rows(int64_t begin, int64_t end, int64_t limit, ElementFn fn, const void* parameters, void** arrays,
                Buffer* buffers) const;
  void run_blocks(int64_t begin, int64_t end, int64_t limit, ElementFn fn, const void* parameters, void** arrays,
                  Buffer* buffers) const;
  void load_run(const Operand& o, const char* from, int64_t stride, void* to, int64_t n) const;
  void store_run(const Operand& o, void* from, char* to, int64_t stride, int64_t n) const;

  DType common_;
  Compute compute_;
  bool direct_ = false;  // the loop works on `common` as it lies in memory
  int count_ = 0;
  int64_t numel_ = 0;
  bool flat_ = true;               // so far every operand is contiguous and of the loop's sizes, or one value
  SmallVector<int64_t, 8> sizes_;  // after plan: coalesced, outermost first
  Operand operands_[max_operands];
};

}  // namespace calque::kernel
