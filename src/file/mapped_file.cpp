#include "calque/file/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "calque/base/error.h"

namespace calque {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw UserError(ErrorKind::bad_file, "cannot " + std::string(what) + " " + path + ": " + std::strerror(errno));
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path, "open");
  try {
    std::shared_ptr<const MappedFile> file = open(fd, path);
    ::close(fd);
    return file;
  } catch (...) {
    ::close(fd);
    throw;
  }
}

std::shared_ptr<const MappedFile> MappedFile::open(int descriptor, const std::string& name) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) fail(name, "read the size of");
  if (!S_ISREG(info.st_mode)) throw UserError(ErrorKind::bad_file, name + " is not a regular file; expected a file to read");
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = name;
  file->size_ = static_cast<size_t>(info.st_size);
  if (file->size_ > 0) {
    void* p = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (p == MAP_FAILED) fail(name, "map");
    file->data_ = static_cast<const std::byte*>(p);
  }
  return file;
}

std::shared_ptr<const MappedFile> MappedFile::zeros(size_t bytes) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = "zeros";
  file->size_ = bytes;
  if (bytes > 0) {
    void* p = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) fail(std::to_string(bytes) + " bytes of zeros", "map");
    file->data_ = static_cast<const std::byte*>(p);
  }
  return file;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace calque
