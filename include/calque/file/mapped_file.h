// A whole file mapped read-only, or zeros that cost nothing until they are read. The mapping lives as long as any shared_ptr to it;
// tensors made over it keep it alive. A file that is cut off while it is mapped cannot be read any more: the system sends SIGBUS, for
// which the library installs no handler; a program's handler learns from mapped_file_at() which file it was.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace calque {

class MappedFile {
 public:
  // UserError(bad_file) naming the path and the system's reason.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  static std::shared_ptr<const MappedFile> open(int descriptor, const std::string& name);  // it stays the caller's
  static std::shared_ptr<const MappedFile> zeros(size_t bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile() = default;
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t place_ = no_place;  // in the table of mapped files
  static constexpr size_t no_place = static_cast<size_t>(-1);
};

// The path of the file that is mapped there; null when none is, or when more than a thousand are mapped. Async-signal-safe.
const char* mapped_file_at(const void* address) noexcept;

// Gives the memory of whole pages of a mapped file back to the system; they are read from the file again when they are needed. What
// is no mapped file, or is beside one, stays as it is.
void release_mapped(std::span<const std::byte> bytes) noexcept;

}  // namespace calque
