#include "kernel/cpu/simd/isa.h"

#include <cstdlib>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace calque {
namespace {

std::string_view wished_isa() noexcept {
  const char* text = std::getenv("CALQUE_ISA");
  return text != nullptr ? text : "";
}

#if defined(__x86_64__)
// Asked of the processor: clang 16 knows no such feature by name. That its registers may be used, avx2 says.
bool has_f16c() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned f16c = 1U << 29;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & f16c) != 0;
}

Isa best_isa() noexcept {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::generic;
}

bool allow_avx512_bf16() noexcept {
  return isa() == Isa::avx512 && wished_isa() != "avx512" && __builtin_cpu_supports("avx512bf16");
}

bool allow_amx() noexcept {
  if (isa() != Isa::avx512 || wished_isa().starts_with("avx512")) return false;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned amx_bf16 = 1U << 22, amx_tile = 1U << 24;
  if ((d & amx_bf16) == 0 || (d & amx_tile) == 0) return false;
  constexpr long arch_req_xcomp_perm = 0x1023, xfeature_xtiledata = 18;
  return syscall(SYS_arch_prctl, arch_req_xcomp_perm, xfeature_xtiledata) == 0;
}
#else
Isa best_isa() noexcept { return Isa::generic; }
bool allow_amx() noexcept { return false; }
bool allow_avx512_bf16() noexcept { return false; }
#endif

Isa chosen_isa() noexcept {
  const Isa best = best_isa();
  const std::string_view wish = wished_isa();
  if (wish == "generic") return Isa::generic;
  if (wish == "avx2" && best == Isa::avx512) return Isa::avx2;
  return best;
}

}  // namespace

Isa isa() noexcept {
  static const Isa value = chosen_isa();
  return value;
}

bool has_amx_bf16() noexcept {
  static const bool value = allow_amx();
  return value;
}

bool has_avx512_bf16() noexcept {
  static const bool value = allow_avx512_bf16();
  return value;
}

}  // namespace calque
