// A whole file mapped read-only, or zeros that cost nothing until they are read. The mapping lives as long as any shared_ptr to it; tensors made over it keep it alive.
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
};

}  // namespace calque
