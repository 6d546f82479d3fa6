// Mapped files brought into memory behind the caller's back, in order, so that weights are there when they are used: read where they
// are not in the page cache, and their pages mapped. Nothing is copied. Keeps the files mapped; stops when it is destroyed. Private
// to hub/.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "calque/file/mapped_file.h"

namespace calque {

class ReadAhead {
 public:
  explicit ReadAhead(std::vector<std::shared_ptr<const MappedFile>> files);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

 private:
  void work();

  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<std::span<const std::byte>> pieces_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace calque
