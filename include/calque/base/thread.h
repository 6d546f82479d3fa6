// The one thread pool of the process.
//
// parallel_for splits a range into at most num_threads() contiguous chunks and runs them on the pool and on the calling
// thread. The split depends only on the range, the grain and num_threads(), never on timing, so a kernel that keeps one
// partial result per chunk gives the same bits every time. Any number of threads may call it at once, and a chunk may
// call it again: whoever finds the pool taken runs the same chunks itself.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace calque {

/// Threads that work on one parallel_for, the caller included. Starts as CALQUE_NUM_THREADS, else as the number of cores
/// this process may run on.
int num_threads() noexcept;

/// Throws UserError if `count` is below 1 or when called from inside a parallel_for.
void set_num_threads(int count);

/// True inside a chunk of a parallel_for, where a further parallel_for runs on the calling thread alone.
bool in_parallel_region() noexcept;

/// Chunks that parallel_for makes of `size` items; chunk i is [size * i / chunks, size * (i + 1) / chunks) from begin.
int64_t parallel_chunks(int64_t size, int64_t grain) noexcept;

namespace detail {
using ChunkFunction = void (*)(void* context, int64_t begin, int64_t end);
void run_chunks(int64_t begin, int64_t end, int64_t chunks, ChunkFunction function, void* context);
}  // namespace detail

/// Calls fn(b, e) on disjoint chunks that cover [begin, end), each of at least `grain` items unless there is only one.
/// Returns when all are done; if some threw, rethrows the exception of the first of them in range order.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& fn) {
  if (begin >= end) return;
  const int64_t chunks = parallel_chunks(end - begin, grain);
  if (chunks == 1) {
    fn(begin, end);
    return;
  }
  using Function = std::remove_reference_t<F>;
  detail::run_chunks(
      begin, end, chunks, [](void* context, int64_t b, int64_t e) { (*static_cast<Function*>(context))(b, e); },
      const_cast<void*>(static_cast<const void*>(std::addressof(fn))));
}

}  // namespace calque
