// What attention_backward.simd.cpp exports per instruction set: for float32 and float64.
#pragma once

#include <cstdint>

namespace calque::kernel {

struct AttentionBackwardRow {
  // scores of one query become weights: exp(score * scale + mask - logsumexp); the mask may be null.
  void (*weights)(void* scores, int64_t n, double scale, const void* mask, double logsumexp);
  // The gradients of weights become those of scores before the scale: weight * (slope - level) * scale.
  void (*slopes)(const void* weights, void* slopes, int64_t n, double level, double scale);
  double (*dot)(const void* a, const void* b, int64_t n);
};

}  // namespace calque::kernel
