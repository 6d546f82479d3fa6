// How matrix multiplications, one or many of the same shape, are cut into parts for the thread pool. Between gemm.cpp and
// convolution.cpp above, which say what to multiply, and the kernels of gemm_block.h below, which do it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "calque/base/thread.h"
#include "kernel/cpu/gemm/gemm_block.h"

namespace calque {

/// The kernels for this machine.
template <class S>
const GemmKernels<S>& gemm_kernels();

/// Whether so many multiplications of bfloat16 go to instructions that multiply pairs (tiles or vectors). They take subnormal
/// numbers for 0, so that infinity times one of them is NaN; PyTorch has the same threshold for instructions that do so, and up
/// to it the infinity.
bool by_pairs(int64_t multiplications);

/// Multiplications below which another thread costs more than it saves.
constexpr int64_t work_per_thread = 1 << 16;

/// Splits batch x size/unit pieces over the threads; fn(item index, first, last) gets a range of `size` of one item.
template <class F>
void parallel_pieces(int64_t batch, int64_t size, int64_t unit, int64_t work_per_unit, const F& fn) {
  const int64_t units = (size + unit - 1) / unit;
  const int64_t grain = std::max<int64_t>(1, work_per_thread / std::max<int64_t>(1, work_per_unit));
  parallel_for(0, batch * units, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t item = begin / units;
      const int64_t first = begin % units;
      const int64_t last = std::min(units, first + (end - begin));
      fn(item, first * unit, std::min(size, last * unit));
      begin += last - first;
    }
  });
}

template <class S>
GemmPart<S> rows_of(GemmPart<S> part, int64_t first, int64_t last) {
  part.row_count = last - first;
  part.rows += first * part.rows_row;
  part.out += first * part.out_row;
  if (part.bias != nullptr) part.bias += first * part.bias_row;
  return part;
}

template <class S>
GemmPart<S> cols_of(GemmPart<S> part, int64_t first, int64_t last) {
  part.col_count = last - first;
  if (part.patches != nullptr)
    part.first_patch += first;
  else
    part.cols += first * part.cols_col;
  part.out += first * part.out_col;
  if (part.bias != nullptr) part.bias += first * part.bias_col;
  return part;
}

namespace detail {
template <class S>
using PartFunction = GemmPart<S> (*)(const void* context, int64_t item);
template <class S>
void run_parts(int64_t items, PartFunction<S> part_of, const void* context);
}  // namespace detail

/// Runs part_of(0) .. part_of(items - 1), all of the same shape, on the general kernel of this machine.
template <class S, class F>
void run_parts(int64_t items, const F& part_of) {
  detail::run_parts<S>(
      items, [](const void* context, int64_t item) { return (*static_cast<const F*>(context))(item); },
      std::addressof(part_of));
}

}  // namespace calque
