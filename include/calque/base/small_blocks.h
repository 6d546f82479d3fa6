// Small blocks of memory, 64-byte aligned, kept by the thread that frees them and handed out again without asking malloc:
// a small tensor's header and bytes cost a few instructions. A thread keeps at most small_blocks_kept bytes and gives
// them back when it ends. Under a sanitizer nothing is kept, so that it sees every block's life.
#pragma once

#include <cstddef>

namespace calque {

inline constexpr size_t small_block_limit = size_t{64} << 10;  // larger blocks come from malloc each time
inline constexpr size_t small_blocks_kept = size_t{1} << 20;

// A sanitizer watches every block: nothing is kept for reuse, and no block is larger than what was asked for.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool memory_is_watched = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr bool memory_is_watched = true;
#else
inline constexpr bool memory_is_watched = false;
#endif
#else
inline constexpr bool memory_is_watched = false;
#endif

void* take_small_block(size_t bytes);                       // uninitialised; UserError when memory is exhausted
void give_small_block(void* block, size_t bytes) noexcept;  // `bytes` as taken

}  // namespace calque
