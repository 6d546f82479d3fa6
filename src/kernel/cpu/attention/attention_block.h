// The serial, instruction-set specific part of attention: one table per (storage type, instruction set).
#pragma once

#include "kernel/cpu/attention/attention.h"

namespace calque {

template <class T>
struct AttentionKernels {
  /// Query rows [first, last) of one batch and key head, where row r is position r % q_length of query head
  /// kv_head * group + r / q_length. Scratch: scratch_numbers(head_dim, value_dim) accumulators, 64-byte aligned.
  void (*rows)(const Attention<T>&, int64_t batch, int64_t kv_head, int64_t first, int64_t last, Accumulate<T>* scratch);
  int64_t (*scratch_numbers)(int64_t head_dim, int64_t value_dim);
  int64_t most_rows;   // of one call
  int64_t panel_rows;  // calls are best made on multiples of this
};

#define CALQUE_DECLARE_ATTENTION(ns)                          \
  namespace ns {                                              \
  extern const AttentionKernels<float> attention_float;       \
  extern const AttentionKernels<double> attention_double;     \
  extern const AttentionKernels<BFloat16> attention_bfloat16; \
  extern const AttentionKernels<Half> attention_half;         \
  }
CALQUE_DECLARE_ATTENTION(generic)
#if defined(CALQUE_HAVE_ISA_AVX2)
CALQUE_DECLARE_ATTENTION(avx2)
CALQUE_DECLARE_ATTENTION(avx512)
namespace avx512 {
extern const AttentionKernels<BFloat16> attention_amx;  // where has_amx_bf16()
}
#endif
#undef CALQUE_DECLARE_ATTENTION

}  // namespace calque
