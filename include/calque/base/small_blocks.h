// Small blocks of memory, 64-byte aligned, kept by the thread that frees them and handed out again without asking malloc:
// a small tensor's header and bytes cost a few instructions. A thread keeps at most small_blocks_kept bytes and gives
// them back when it ends. Under a sanitizer nothing is kept, so that it sees every block's life.
#pragma once

#include <cstddef>

namespace calque {

inline constexpr size_t small_block_limit = size_t{64} << 10;  // larger ones are not small
inline constexpr size_t small_blocks_kept = size_t{1} << 20;

void* take_small_block(size_t bytes);                       // uninitialised; null when memory is exhausted
void give_small_block(void* block, size_t bytes) noexcept;  // `bytes` as taken

}  // namespace calque
