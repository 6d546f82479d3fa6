#include "hub/read_ahead.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace calque {

namespace {

// Measured on a virtual disk of 0.9 GB/s: faults on the mapping alone reach a part of that, one reader a third, four of
// them, 4 MB at a time, the whole; reading into a buffer instead costs a copy and is slower on a busy machine.
constexpr uint64_t piece_bytes = uint64_t{4} << 20;
constexpr size_t readers = 4;

// Which pieces of a file are not in the page cache. Looks at one page of every 256 KB: asking for all of them takes as long as
// mapping them.
std::vector<bool> cold_pieces(int descriptor, uint64_t bytes) {
  constexpr uint64_t step = uint64_t{256} << 10;
  std::vector<bool> cold((bytes + piece_bytes - 1) / piece_bytes, false);
  void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) return std::vector<bool>(cold.size(), true);
  for (uint64_t at = 0; at < bytes; at += step) {
    if (cold[at / piece_bytes]) continue;
    unsigned char present = 0;
    cold[at / piece_bytes] = ::mincore(static_cast<char*>(mapped) + at, 1, &present) != 0 || (present & 1U) == 0;
  }
  ::munmap(mapped, bytes);
  return cold;
}

}  // namespace

ReadAhead::ReadAhead(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (descriptor < 0) continue;  // who opens it for its tensors says what is wrong
    descriptors_.push_back(descriptor);
    if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) continue;
    const auto bytes = static_cast<uint64_t>(info.st_size);
    const std::vector<bool> cold = cold_pieces(descriptor, bytes);
    for (size_t i = 0; i < cold.size(); ++i)
      if (cold[i]) pieces_.push_back({descriptor, i * piece_bytes, std::min(piece_bytes, bytes - i * piece_bytes)});
  }
  for (size_t i = 0; i < std::min(readers, pieces_.size()); ++i)
    threads_.emplace_back([this] { work(); });
}

void ReadAhead::work() {
  while (!stop_.load(std::memory_order_relaxed)) {
    const size_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= pieces_.size()) return;
    // Failing is no harm: the mapping reads what is not there.
    static_cast<void>(::posix_fadvise(pieces_[i].descriptor, static_cast<off_t>(pieces_[i].begin), static_cast<off_t>(pieces_[i].bytes), POSIX_FADV_WILLNEED));
  }
}

ReadAhead::~ReadAhead() {
  stop_ = true;
  for (std::thread& thread : threads_)
    thread.join();
  for (const int descriptor : descriptors_)
    ::close(descriptor);
}

}  // namespace calque
