// The ordinary side of a *.simd.cpp file: declares the array (or table) that each instruction set exports and defines a
// function of the same name that picks this machine's.
#pragma once

#include "kernel/cpu/simd/isa.h"

#if defined(CALQUE_HAVE_ISA_AVX2) && defined(CALQUE_HAVE_ISA_AVX512)
#define CALQUE_ISA_ARRAY(Type, name)                                        \
  namespace generic {                                                       \
  extern const Type name[];                                                 \
  }                                                                         \
  namespace avx2 {                                                          \
  extern const Type name[];                                                 \
  }                                                                         \
  namespace avx512 {                                                        \
  extern const Type name[];                                                 \
  }                                                                         \
  static const Type* name() {                                               \
    static const Type* const chosen = isa() == Isa::avx512 ? avx512::name   \
                                      : isa() == Isa::avx2 ? avx2::name     \
                                                           : generic::name; \
    return chosen;                                                          \
  }
#else
#define CALQUE_ISA_ARRAY(Type, name) \
  namespace generic {                \
  extern const Type name[];          \
  }                                  \
  static const Type* name() { return generic::name; }
#endif
