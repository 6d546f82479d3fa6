#include "hub/read_ahead.h"

#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace calque {

namespace {

// Measured (docs/performance.md): eight readers of 16 MB into pages of 2 MB take as long as the disk does, and 14 ms of processor time
// for 2.2 GB; into pages of 4 KB, with whatever readers and pieces, half as long again and 350 ms.
constexpr size_t cold_piece = size_t{16} << 20;
constexpr size_t cold_readers = 8;
// What is in the page cache already is only mapped, 16 us a MB. Left to the faults of the first pass it takes longer (by a tenth of the
// time to the first logits of 2.2 GB), since lines that the kernels ask for ahead do not come from pages that are not mapped yet.
constexpr size_t warm_piece = size_t{4} << 20;
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
  const bool cold = std::any_of(files_.begin(), files_.end(), [](const auto& file) { return is_cold(file->bytes()); });
  const size_t size = cold ? cold_piece : warm_piece;
  for (const auto& file : files_) {
    const ByteSpan bytes = file->bytes();
    if (cold) advise(bytes, MADV_HUGEPAGE);
    for (size_t at = 0; at < bytes.size(); at += size)
      pieces_.push_back(bytes.subspan(at, std::min(size, bytes.size() - at)));
  }
  std::reverse(pieces_.begin(), pieces_.end());
  const size_t count = std::min(cold ? cold_readers : warm_readers, pieces_.size());
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
    if (!advise(piece, populate)) advise(piece, MADV_WILLNEED);
  }
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    pieces_.clear();
  }
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace calque
