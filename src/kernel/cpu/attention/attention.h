// Scaled dot product attention, forward, on raw memory: softmax(scale * q @ k^T + mask) @ v in one pass over the keys, in
// blocks, without ever holding the matrix of scores. Sums are float32 (float64 for float64), rounded once at the end.
//
// A row whose every key is masked gives 0 and a logsumexp of 0, as PyTorch's CPU kernel does. It does not check shapes.
#pragma once

#include <cstdint>

#include "calque/base/half.h"
#include "kernel/cpu/gemm/gemm_block.h"

namespace calque {

enum class MaskKind {
  none,
  boolean,         // uint8_t, nonzero: may attend
  additive,        // of the same type as q
  additive_float,  // float, whatever q is
};

template <class T>
struct Attention {
  int64_t batch = 0, heads = 0, q_length = 0, kv_length = 0, head_dim = 0, value_dim = 0;
  int64_t group = 1;  // query heads that share one key and value head

  // Strides in elements: batch, head, position. The last dimension lies contiguous.
  const T* q = nullptr;
  int64_t q_strides[3] = {};
  const T* k = nullptr;
  int64_t k_strides[3] = {};
  const T* v = nullptr;
  int64_t v_strides[3] = {};
  T* out = nullptr;
  int64_t out_strides[3] = {};

  MaskKind mask_kind = MaskKind::none;
  const void* mask = nullptr;
  int64_t mask_strides[4] = {};  // batch, query head, query position, key position; 0 broadcasts

  bool causal = false;  // query i sees keys 0..i, whatever the two lengths are
  double scale = 1;

  Accumulate<T>* logsumexp = nullptr;  // null for none
  int64_t logsumexp_strides[3] = {};
};

/// T: float, double, BFloat16, Half.
template <class T>
void attention(const Attention<T>& problem);

}  // namespace calque
