// Which instruction sets this machine has, asked once. The binary's baseline is plain x86-64; files named *.simd.cpp are
// compiled once per Isa with CALQUE_ISA as the name of the namespace around them, and the caller picks one of these at run
// time. CALQUE_ISA=generic|avx2|avx512|avx512_bf16 in the environment lowers the choice, for tests and for comparing: avx512 is
// without the instructions for pairs of bfloat16, avx512_bf16 has them, and neither has AMX tiles.
#pragma once

namespace calque {

enum class Isa { generic, avx2, avx512 };

Isa isa() noexcept;

/// Whether this thread may use AMX tiles on bfloat16; asks the kernel for permission the first time.
bool has_amx_bf16() noexcept;
bool has_avx512_bf16() noexcept;

/// `table_of(Isa)` style choice: picks the entry for isa().
template <class T>
const T& pick(const T& generic, const T& avx2, const T& avx512) noexcept {
  switch (isa()) {
    case Isa::generic: return generic;
    case Isa::avx2: return avx2;
    case Isa::avx512: return avx512;
  }
  return generic;
}

}  // namespace calque
