#include "kernel/cpu/attention/attention.h"

#include <algorithm>
#include <type_traits>

#include "calque/base/thread.h"
#include "kernel/cpu/attention/attention_block.h"
#include "kernel/cpu/scratch.h"
#include "kernel/cpu/simd/isa.h"

namespace calque {
namespace {

template <class S>
const AttentionKernels<S>& kernels() {
#if defined(CALQUE_HAVE_ISA_AVX2)
  if constexpr (std::is_same_v<S, float>)
    return pick(generic::attention_float, avx2::attention_float, avx512::attention_float);
  if constexpr (std::is_same_v<S, double>)
    return pick(generic::attention_double, avx2::attention_double, avx512::attention_double);
  if constexpr (std::is_same_v<S, BFloat16>) {
    if (has_amx_bf16()) return avx512::attention_amx;
    return pick(generic::attention_bfloat16, avx2::attention_bfloat16, avx512::attention_bfloat16);
  }
  if constexpr (std::is_same_v<S, Half>) return pick(generic::attention_half, avx2::attention_half, avx512::attention_half);
#else
  if constexpr (std::is_same_v<S, float>) return generic::attention_float;
  if constexpr (std::is_same_v<S, double>) return generic::attention_double;
  if constexpr (std::is_same_v<S, BFloat16>) return generic::attention_bfloat16;
  if constexpr (std::is_same_v<S, Half>) return generic::attention_half;
#endif
}

}  // namespace

template <class T>
void attention(const Attention<T>& problem) {
  Attention<T> g = problem;
  if (g.batch <= 0 || g.heads <= 0 || g.q_length <= 0) return;
  const AttentionKernels<T>& kernel = kernels<T>();
  // Short queries of the heads that share keys are worked on together; long ones fill the vectors by themselves.
  const bool together = g.group > 1 && g.q_length < kernel.panel_rows;
  const int64_t lists = together ? g.heads / g.group : g.heads;
  const int64_t rows = together ? g.group * g.q_length : g.q_length;
  // Large blocks read the keys less often, but every thread should get some, and all about as many.
  const int64_t large_blocks = g.batch * lists * ((rows + kernel.most_rows - 1) / kernel.most_rows);
  const bool large = large_blocks >= 4 * num_threads() || large_blocks % num_threads() == 0;
  const int64_t block_rows = large ? kernel.most_rows : kernel.panel_rows;
  const int64_t blocks = (rows + block_rows - 1) / block_rows;
  const auto numbers = static_cast<size_t>(kernel.scratch_numbers(g.head_dim, g.value_dim));

  const int64_t group = g.group;
  constexpr int64_t work_per_thread = 1 << 16;
  const int64_t work = std::max<int64_t>(1, std::min(rows, block_rows) * g.kv_length * (g.head_dim + g.value_dim));
  parallel_for(0, g.batch * lists * blocks, std::max<int64_t>(1, work_per_thread / work), [&](int64_t begin, int64_t end) {
    auto* const memory = scratch<Accumulate<T>>(Scratch::attention, numbers);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t batch = i / blocks / lists, list = i / blocks % lists, turn = i % blocks;
      // Under the causal mask late blocks cost more than early ones; taking them from both ends evens the halves out.
      const int64_t block = turn % 2 == 0 ? turn / 2 : blocks - 1 - turn / 2;
      const int64_t first = block * block_rows, last = std::min(rows, first + block_rows);
      if (together || group == 1) {
        kernel.rows(g, batch, list, first, last, memory);
      } else {
        // One query head by itself: its rows are a stretch of its key head's.
        const int64_t offset = list % group * g.q_length;
        kernel.rows(g, batch, list / group, offset + first, offset + last, memory);
      }
    }
  });
}

template void attention(const Attention<float>&);
template void attention(const Attention<double>&);
template void attention(const Attention<BFloat16>&);
template void attention(const Attention<Half>&);

}  // namespace calque
