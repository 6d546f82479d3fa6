#include "calque/file/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "calque/base/error.h"

namespace calque {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw UserError(ErrorKind::bad_file, "cannot " + std::string(what) + " " + path + ": " + std::strerror(errno));
}

// A place is taken by its first member, and says which file it is once `path` is set. A reader that faulted in a mapping has it
// alive, so its place does not change under it.
struct Place {
  std::atomic<const std::byte*> begin{nullptr};
  std::atomic<size_t> size{0};
  std::atomic<const char*> path{nullptr};
};
constinit std::array<Place, 1024> places;

}  // namespace

const char* mapped_file_at(const void* address) noexcept {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const Place& place : places) {
    const char* path = place.path.load(std::memory_order_acquire);
    const auto begin = reinterpret_cast<uintptr_t>(place.begin.load(std::memory_order_relaxed));
    if (path && at >= begin && at - begin < place.size.load(std::memory_order_relaxed)) return path;
  }
  return nullptr;
}

void release_mapped(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty() || !mapped_file_at(bytes.data()) || !mapped_file_at(bytes.data() + bytes.size() - 1)) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (begin + page - 1) / page * page, last = (begin + bytes.size()) / page * page;
  // The mapping is private and never written, so that its pages say what the file says.
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

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
    for (size_t i = 0; i < places.size() && file->place_ == no_place; ++i) {
      const std::byte* nobody = nullptr;
      if (!places[i].begin.compare_exchange_strong(nobody, file->data_)) continue;
      places[i].size.store(file->size_, std::memory_order_relaxed);
      places[i].path.store(file->path_.c_str(), std::memory_order_release);
      file->place_ = i;
    }
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
  if (place_ != no_place) {
    places[place_].path.store(nullptr);
    places[place_].begin.store(nullptr);
  }
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace calque
