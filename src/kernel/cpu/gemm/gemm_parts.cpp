#include "kernel/cpu/gemm/gemm_parts.h"

#include <type_traits>

#include "kernel/cpu/scratch.h"
#include "kernel/cpu/simd/isa.h"

namespace calque {

template <class S>
const GemmKernels<S>& gemm_kernels() {
#if defined(CALQUE_HAVE_ISA_AVX2)
  if constexpr (std::is_same_v<S, float>) return pick(generic::gemm_float, avx2::gemm_float, avx512::gemm_float);
  if constexpr (std::is_same_v<S, double>) return pick(generic::gemm_double, avx2::gemm_double, avx512::gemm_double);
  if constexpr (std::is_same_v<S, BFloat16>) return pick(generic::gemm_bfloat16, avx2::gemm_bfloat16, avx512::gemm_bfloat16);
  if constexpr (std::is_same_v<S, Half>) return pick(generic::gemm_half, avx2::gemm_half, avx512::gemm_half);
#else
  if constexpr (std::is_same_v<S, float>) return generic::gemm_float;
  if constexpr (std::is_same_v<S, double>) return generic::gemm_double;
  if constexpr (std::is_same_v<S, BFloat16>) return generic::gemm_bfloat16;
  if constexpr (std::is_same_v<S, Half>) return generic::gemm_half;
#endif
}

bool by_pairs(int64_t multiplications) { return multiplications > 16 * 16 * 16 && (has_amx_bf16() || has_avx512_bf16()); }

namespace {

/// The part of one item, with a view to the next where the same thread goes on to it.
template <class S>
GemmPart<S> whole_part(detail::PartFunction<S> part_of, const void* context, int64_t item, bool next) {
  GemmPart<S> part = part_of(context, item);
  if (next) {
    const GemmPart<S> after = part_of(context, item + 1);
    part.next_rows = after.rows;
    part.next_cols = after.cols;
  }
  return part;
}

/// fn(part) on pieces of every item, on all threads. `speed`: how much faster than one vector kernel fn works.
template <class S, class F>
void split(int64_t items, const GemmPart<S>& first, int64_t speed, detail::PartFunction<S> part_of, const void* context,
           const F& fn) {
  // Splitting the columns lets each thread pack only its own; it needs enough of them to fill wide tiles.
  constexpr int64_t unit = 16;
  if (first.col_count >= 128 * num_threads()) {
    parallel_pieces(items, first.col_count, unit, unit * first.k * first.row_count / speed,
                    [&](int64_t item, int64_t begin, int64_t end) {
                      const bool next = begin == 0 && end == first.col_count && item + 1 < items;
                      fn(cols_of(whole_part(part_of, context, item, next), begin, end));
                    });
  } else {
    parallel_pieces(items, first.row_count, unit, unit * first.k * first.col_count / speed,
                    [&](int64_t item, int64_t begin, int64_t end) {
                      const bool next = begin == 0 && end == first.row_count && item + 1 < items;
                      fn(rows_of(whole_part(part_of, context, item, next), begin, end));
                    });
  }
}

}  // namespace

template <class S>
void detail::run_parts(int64_t items, PartFunction<S> part_of, const void* context) {
  if (items <= 0) return;
  const GemmPart<S> first = part_of(context, 0);
  if (first.row_count <= 0 || first.col_count <= 0) return;
#if defined(CALQUE_HAVE_ISA_AVX512)
  if constexpr (std::is_same_v<S, BFloat16>) {
    if (by_pairs(items * first.row_count * first.col_count * first.k)) {
      const PairKernels& pairs = has_amx_bf16() ? avx512::gemm_amx : avx512::gemm_avx512_bf16;
      const auto bytes = static_cast<size_t>(pairs.scratch_size(first.k));
      const int64_t times_faster = has_amx_bf16() ? 8 : 2;
      split<S>(items, first, times_faster, part_of, context,
               [&](const GemmPart<S>& part) { pairs.block(part, scratch_bytes(Scratch::block, bytes)); });
      return;
    }
  }
#endif
  const GemmKernels<S>& kernel = gemm_kernels<S>();
  const auto bytes = static_cast<size_t>(kernel.scratch_bytes);
  split<S>(items, first, 1, part_of, context,
           [&](const GemmPart<S>& part) { kernel.block(part, scratch_bytes(Scratch::block, bytes)); });
}

#define CALQUE_INSTANTIATE(S)                    \
  template const GemmKernels<S>& gemm_kernels(); \
  template void detail::run_parts(int64_t, PartFunction<S>, const void*);
CALQUE_INSTANTIATE(float)
CALQUE_INSTANTIATE(double)
CALQUE_INSTANTIATE(BFloat16)
CALQUE_INSTANTIATE(Half)
#undef CALQUE_INSTANTIATE

}  // namespace calque
