#include "kernel/cpu/box_muller.h"

namespace calque {

namespace generic {
extern const BoxMuller box_muller;
}
#ifdef CALQUE_HAVE_ISA_AVX2
namespace avx2 {
extern const BoxMuller box_muller;
}
#endif

const BoxMuller& best_box_muller() {
#ifdef CALQUE_HAVE_ISA_AVX2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::box_muller;
#endif
  return generic::box_muller;
}

}  // namespace calque
