// Files brought into the page cache behind the caller's back, in order, so that mapped weights are there when they are
// used. Files that are in the cache already are left alone: mapped pages of a warm file cost nothing more. Nothing is
// copied, no memory of this process is used. Stops when it is destroyed. Private to hub/.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace calque {

class ReadAhead {
 public:
  explicit ReadAhead(const std::vector<std::filesystem::path>& files);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

 private:
  struct Piece {
    int descriptor;
    uint64_t begin, bytes;
  };
  void work();

  std::vector<int> descriptors_;
  std::vector<Piece> pieces_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace calque
