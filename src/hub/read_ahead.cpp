#include "hub/read_ahead.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace calque {

namespace {

// Measured (docs/performance.md): eight readers of 16 MB into pages of 2 MB take as long as the disk does, and 14 ms of processor time
// for 2.2 GB; into pages of 4 KB, with whatever readers and pieces, half as long again and 350 ms.
constexpr size_t cold_piece = size_t{16} << 20;
constexpr size_t cold_readers = 8;
// A piece whose pages are slow to touch costs as much as small pages do for eight. A few of them mean nothing yet.
constexpr size_t slow_worth = 8;
constexpr size_t few_pieces = 4;
constexpr size_t small_piece = size_t{4} << 20;  // MADV_WILLNEED reads no more than 8 MB at a time
// What is in the page cache already is only mapped, 16 us a MB. Left to the faults of the first pass it takes longer (by a tenth of the
// time to the first logits of 2.2 GB), since lines that the kernels ask for ahead do not come from pages that are not mapped yet.
constexpr size_t warm_readers = 2;
#ifdef MADV_POPULATE_READ
constexpr int populate = MADV_POPULATE_READ;
#else
constexpr int populate = 22;  // of Linux 5.14, whatever the headers know
#endif

// Failing is no harm: what is touched is read then.
bool advise(ByteSpan bytes, int advice) {
  return ::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), advice) == 0;
}

// Is any of it not in the page cache? Looks at one page of every MB: asking for all of them takes as long as mapping them.
bool is_cold(ByteSpan bytes) {
  constexpr size_t step = size_t{1} << 20;
  for (size_t at = 0; at < bytes.size(); at += step) {
    unsigned char present = 0;
    if (::mincore(const_cast<std::byte*>(bytes.data() + at), 1, &present) != 0 || (present & 1U) == 0) return true;
  }
  return false;
}

// A virtual machine may have given its free blocks of 2 MB back to its host. Each 4 KB of one then costs a fault of some microseconds that
// only the host sees; a page that is there is touched in a tenth of one. Single long waits are something else.
bool is_slow_to_touch(ByteSpan piece) {
  constexpr size_t step = size_t{128} << 10;
  size_t pages = 0, slow = 0;
  auto start = std::chrono::steady_clock::now();
  for (size_t at = 0; at < piece.size(); at += step, ++pages) {
    [[maybe_unused]] const std::byte touched = static_cast<const volatile std::byte&>(piece[at]);
    const auto end = std::chrono::steady_clock::now();
    if (end - start > std::chrono::microseconds(1)) ++slow;
    start = end;
  }
  return 2 * slow > pages;
}

}  // namespace

std::vector<ByteSpan> in_order_of_use(std::vector<ByteSpan> pieces, std::span<const ByteSpan> used) {
  const std::less<const std::byte*> before;
  std::sort(pieces.begin(), pieces.end(), [&](const ByteSpan& a, const ByteSpan& b) { return before(a.data(), b.data()); });
  std::vector<std::pair<size_t, ByteSpan>> ranked;
  for (const ByteSpan& piece : pieces) ranked.emplace_back(used.size(), piece);
  for (size_t i = 0; i < used.size(); ++i) {
    const std::byte* const end = used[i].data() + used[i].size();
    auto at = std::partition_point(ranked.begin(), ranked.end(), [&](const auto& one) {
      return !before(used[i].data(), one.second.data() + one.second.size());
    });
    for (; at != ranked.end() && before(at->second.data(), end); ++at) at->first = std::min(at->first, i);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(ranked.begin(), ranked.end(), pieces.begin(), [](const auto& one) { return one.second; });
  return pieces;
}

ReadAhead::ReadAhead(std::vector<std::shared_ptr<const MappedFile>> files) : files_(std::move(files)) {
  for (const auto& file : files_) cold_ = cold_ || is_cold(file->bytes());
  const size_t size = cold_ ? cold_piece : small_piece;
  for (const auto& file : files_) {
    const ByteSpan bytes = file->bytes();
    if (cold_) advise(bytes, MADV_HUGEPAGE);
    for (size_t at = 0; at < bytes.size(); at += size)
      pieces_.push_back(bytes.subspan(at, std::min(size, bytes.size() - at)));
  }
  std::reverse(pieces_.begin(), pieces_.end());
  const size_t count = std::min(cold_ ? cold_readers : warm_readers, pieces_.size());
  for (size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
}

void ReadAhead::order(std::span<const ByteSpan> used) {
  const std::lock_guard lock(mutex_);
  pieces_ = in_order_of_use(std::move(pieces_), used);
  std::reverse(pieces_.begin(), pieces_.end());
}

void ReadAhead::work() {
  for (;;) {
    ByteSpan piece;
    {
      const std::lock_guard lock(mutex_);
      if (pieces_.empty()) return;
      piece = pieces_.back();
      pieces_.pop_back();
    }
    read(piece);
  }
}

void ReadAhead::read(ByteSpan piece) {
  if (small_pages_.load(std::memory_order_relaxed)) {
    for (size_t at = 0; at < piece.size(); at += small_piece) {
      const ByteSpan part = piece.subspan(at, std::min(small_piece, piece.size() - at));
      advise(part, MADV_WILLNEED);
      advise(part, populate);
    }
    return;
  }
  if (!advise(piece, populate)) {
    advise(piece, MADV_WILLNEED);
    return;
  }
  if (!cold_) return;
  const bool slow = is_slow_to_touch(piece);
  {
    const std::lock_guard lock(mutex_);
    ++(slow ? slow_pieces_ : fast_pieces_);
    if (slow_pieces_ < few_pieces || slow_worth * slow_pieces_ < fast_pieces_) return;
  }
  if (small_pages_.exchange(true)) return;
  for (const auto& file : files_) advise(file->bytes(), MADV_NOHUGEPAGE);
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    pieces_.clear();
  }
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace calque
