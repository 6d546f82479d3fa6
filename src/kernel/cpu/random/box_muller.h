// Sixteen uniforms to sixteen normal samples, in place; element i is paired with i + 8. One version for each
// instruction set, all equal to the bit.
#pragma once

namespace calque {

inline constexpr int box_muller_block = 16;

struct BoxMuller {
  void (*f32)(float* data, float mean, float std);
  void (*f64)(double* data, double mean, double std);
};

namespace generic {
extern const BoxMuller box_muller;
}
#if defined(CALQUE_HAVE_ISA_AVX2)
namespace avx2 {
extern const BoxMuller box_muller;
}
namespace avx512 {
extern const BoxMuller box_muller;
}
#endif

const BoxMuller& best_box_muller();  // for the processor this runs on

}  // namespace calque
