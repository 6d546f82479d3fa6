#include "calque/file/file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "calque/base/error.h"
#include "calque/file/mapped_file.h"
#include "file/temporaries.h"

namespace calque {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

FileWriter::FileWriter(std::string path) : path_(std::move(path)), entry_(std::make_unique<TemporaryPath>()) {
  if (path_.empty())
    throw UserError(ErrorKind::bad_file, "cannot write a file whose name is empty; give the name of a file");
  struct stat info {};
  const bool exists = ::stat(path_.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) fail("write");
  if (exists && !S_ISREG(info.st_mode))
    throw UserError(ErrorKind::bad_file,
                    "cannot write " + path_ + ": it exists and is not a regular file; give the name of a file");
  const size_t slash = path_.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  const auto numbered = [&](int number) {
    return path_.substr(0, name) + "." + path_.substr(name, 200) + "." + std::to_string(number) + ".tmp";
  };
  // Who writes the same target at the same time has a number of its own; a number that nobody uses may be a dead process's.
  constexpr int most = 1000, looked_at = 8;
  int number = 0;
  while (number < most && !open_temporary(numbered(number)) && errno == EEXIST) ++number;
  if (fd_ < 0) fail("create a file in the folder of");
  for (++number; number < looked_at; ++number) remove_dead_file(numbered(number));
}

// False with errno; EEXIST when somebody is using the name.
bool FileWriter::open_temporary(const std::string& name) {
  const auto gate = pass_writing_gate();
  for (;;) {
    remove_dead_file(name);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    const bool locked = take_lock(fd) || (errno != EWOULDBLOCK && errno != EINTR);  // a file system may have no locks
    struct stat info {};
    // Somebody who tidied up before it was locked took it for a dead process's.
    if (!locked || ::fstat(fd, &info) != 0 || info.st_nlink == 0) {
      ::close(fd);
      continue;
    }
    fd_ = fd;
    lock_ = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    temporary_ = name;
    entry_->enter(temporary_);
    return true;
  }
}

FileWriter::~FileWriter() { discard(); }

void FileWriter::write(std::span<const std::byte> bytes) {
  internal_assert(fd_ >= 0, "FileWriter: write after commit");
  while (!bytes.empty()) {
    // Linux moves at most about 2 GiB a call.
    const ssize_t n = ::write(fd_, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EFAULT) {
      // The bytes are those of a mapped file that has become shorter.
      if (const char* source = mapped_file_at(bytes.data())) {
        discard();
        throw UserError(ErrorKind::bad_file, "cannot write " + path_ + ": " + source +
                                                 ", which its bytes come from, was cut off or could not be read any more");
      }
    }
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
  {
    const auto gate = pass_writing_gate();
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename the finished file to");
    temporary_.clear();
    discard();
  }
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
  entry_->leave();
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1;
}

}  // namespace calque
