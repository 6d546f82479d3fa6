// Eight frames at a time through a real transform, mel filters and a logarithm, in float64; compiled once per instruction set
// (mel_frames.simd.cpp). Numbers of the eight frames lie side by side.
#pragma once

#include <cstdint>

namespace calque {

constexpr int64_t frames_at_once = 8;

struct MelSpan {
  int64_t first = 0, begin = 0, count = 0;  // of the bins; of the weights
};

struct MelFramesJob {
  int64_t fft;             // even, and its half a product of 2, 3, 4 and 5
  const int64_t* factors;  // of the half
  int64_t factor_count;
  const double* roots;    // of one: cos and -sin of 2 pi i / fft, in pairs
  const double* samples;  // [fft][8], windowed
  double *work, *other;   // [fft / 2 + 1][2][8] each
  const MelSpan* spans;
  int64_t filters;
  const double* weights;
  double floor;
  bool log10;
  double* out;  // [filters][8]
};

struct MelFramesKernel {
  void (*run)(const MelFramesJob& job);
};

}  // namespace calque
