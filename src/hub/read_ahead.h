// Mapped files brought into memory behind the caller's back, so that weights are there when they are used: read where they are not
// in the page cache, and their pages mapped. In the order of the files until order() knows a better one. Nothing is copied. Keeps
// the files mapped; stops when it is destroyed. Private to hub/.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "calque/file/mapped_file.h"

namespace calque {

using ByteSpan = std::span<const std::byte>;

// The pieces by their first use: a piece comes as early as the first of `used` that it has a part of, those that have none come last,
// and what is equal stays in the order of addresses. `used` may lie elsewhere.
std::vector<ByteSpan> in_order_of_use(std::vector<ByteSpan> pieces, std::span<const ByteSpan> used);

class ReadAhead {
 public:
  explicit ReadAhead(std::vector<std::shared_ptr<const MappedFile>> files);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // What is not read yet comes in the order of its use.
  void order(std::span<const ByteSpan> used);

 private:
  void work();

  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::mutex mutex_;
  std::vector<ByteSpan> pieces_;  // the next one last
  std::vector<std::thread> threads_;
};

}  // namespace calque
