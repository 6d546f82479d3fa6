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
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    ::close(fd);
    fail(path, "read the size of");
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    throw UserError(ErrorKind::bad_file, path + " is not a regular file; expected a file to read");
  }
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  file->size_ = static_cast<size_t>(info.st_size);
  if (file->size_ > 0) {
    void* p = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
      ::close(fd);
      fail(path, "map");
    }
    file->data_ = static_cast<const std::byte*>(p);
  }
  ::close(fd);
  return file;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace calque
