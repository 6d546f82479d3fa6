#include "calque/file/file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "calque/base/error.h"

namespace calque {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

FileWriter::FileWriter(std::string path) : path_(std::move(path)) {
  static std::atomic<uint64_t> count{0};
  struct stat info {};
  if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    throw UserError(ErrorKind::bad_file,
                    "cannot write " + path_ + ": it exists and is not a regular file; give the name of a file");
  const size_t slash = path_.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  // A leftover of a process that died has its number in the name, so a new one may meet it: try the next.
  for (int attempt = 0; attempt < 100 && fd_ < 0; ++attempt) {
    temporary_ = path_.substr(0, name) + "." + path_.substr(name, 200) + "." + std::to_string(::getpid()) + "-" +
                 std::to_string(count.fetch_add(1)) + ".tmp";
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ < 0) {
    temporary_.clear();
    fail("create a file in the folder of");
  }
}

FileWriter::~FileWriter() { discard(); }

void FileWriter::write(std::span<const std::byte> bytes) {
  internal_assert(fd_ >= 0, "FileWriter: write after commit");
  while (!bytes.empty()) {
    // Linux moves at most about 2 GiB a call.
    const ssize_t n = ::write(fd_, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    if (n == 0) {
      errno = ENOSPC;
      fail("write");
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
    size_ += static_cast<uint64_t>(n);
  }
}

void FileWriter::commit(bool sync) {
  internal_assert(fd_ >= 0, "FileWriter: commit twice");
  if (sync && ::fsync(fd_) != 0) fail("sync");
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) fail("close");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename the finished file to");
  temporary_.clear();
  if (!sync) return;
  // The new name itself must survive a crash. Some file systems cannot sync a folder; the data is safe all the same.
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

void FileWriter::fail(const char* what) {
  const int reason = errno;
  discard();
  throw UserError(ErrorKind::bad_file, "cannot " + std::string(what) + " " + path_ + ": " + std::strerror(reason) +
                                           "; nothing was left behind, and a file of that name is as it was");
}

void FileWriter::discard() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

}  // namespace calque
