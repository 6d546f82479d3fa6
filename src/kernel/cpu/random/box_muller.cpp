#include "kernel/cpu/random/box_muller.h"

#include "kernel/cpu/simd/isa.h"

namespace calque {

const BoxMuller& best_box_muller() {
#if defined(CALQUE_HAVE_ISA_AVX2)
  return pick(generic::box_muller, avx2::box_muller, avx512::box_muller);
#else
  return generic::box_muller;
#endif
}

}  // namespace calque
