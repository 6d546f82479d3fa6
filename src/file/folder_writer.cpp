#include "calque/file/folder_writer.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <vector>

#include "calque/base/error.h"

namespace calque {
namespace fs = std::filesystem;

namespace {

constexpr const char* ending = ".saving";

std::string hidden(const fs::path& folder) { return "." + folder.filename().string() + "."; }
fs::path previous_of(const fs::path& folder) { return folder.parent_path() / (hidden(folder) + "previous"); }

// The folder itself where the path is a link to it, so that the link stays.
fs::path resolved(const fs::path& folder) {
  std::error_code error;
  fs::path found = fs::weakly_canonical(fs::absolute(folder), error);
  if (error) found = fs::absolute(folder).lexically_normal();
  return found.has_filename() ? found : found.parent_path();
}

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

int exchange(const fs::path& a, const fs::path& b) {
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE));
}

void remove_quietly(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

void carry(const fs::path& from, const fs::path& to) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(from);
  if (status.type() == fs::file_type::symlink) {
    fs::copy_symlink(from, to);
  } else if (status.type() == fs::file_type::directory) {
    fs::create_directory(to);
    fs::permissions(to, status.permissions());
    for (const fs::directory_entry& entry : fs::directory_iterator(from)) carry(entry.path(), to / entry.path().filename());
  } else {
    fs::create_hard_link(from, to, error);
    if (error) fs::copy_file(from, to);
  }
}

}  // namespace

FolderWriter::FolderWriter(const fs::path& folder, Replaces replaces, Exchange at_best)
    : folder_(resolved(folder)), replaces_(std::move(replaces)), at_best_(at_best) {
  struct stat info {};
  const bool exists = ::stat(folder_.c_str(), &info) == 0;
  if (exists && !S_ISDIR(info.st_mode))
    throw UserError(ErrorKind::bad_file, "cannot write the folder " + folder_.string() +
                                             ": it exists and is not a folder; give the name of a folder");
  if (!exists) recover(folder_);
  remove_leftovers();
  if (!exists && folder_.has_parent_path()) {
    std::error_code error;
    fs::create_directories(folder_.parent_path(), error);
    if (error) fail("create the folder that is to hold", error.value());
  }
  if (at_best_ == Exchange::in_place)
    open_inside();
  else
    open_beside();
  if (exists) ::chmod(temporary_.c_str(), info.st_mode & 07777U);
}

FolderWriter::~FolderWriter() {
  if (!temporary_.empty()) remove_quietly(temporary_);
  if (lock_ >= 0) ::close(lock_);
}

static std::optional<int> make_and_lock(const fs::path& path) {
  if (::mkdir(path.c_str(), 0777) != 0) return std::nullopt;
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) ::flock(fd, LOCK_EX | LOCK_NB);
  struct stat info {};
  // Somebody who tidied up in between took it for a leftover.
  if (fd < 0 || ::stat(path.c_str(), &info) != 0) {
    if (fd >= 0) ::close(fd);
    errno = EEXIST;
    return std::nullopt;
  }
  return fd;
}

void FolderWriter::open_beside() {
  static std::atomic<uint64_t> count{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = folder_.parent_path() /
                 (hidden(folder_) + std::to_string(::getpid()) + "-" + std::to_string(count.fetch_add(1)) + ending);
    if (const std::optional<int> fd = make_and_lock(temporary_)) {
      lock_ = *fd;
      return;
    }
    if (errno != EEXIST) break;
  }
  const int reason = errno;
  temporary_.clear();
  std::error_code ignored;
  // A parent that may not be written: inside the folder there may be room.
  if ((reason == EACCES || reason == EPERM || reason == EROFS) && fs::is_directory(folder_, ignored)) {
    at_best_ = Exchange::in_place;
    return open_inside();
  }
  fail("create a folder beside", reason);
}

void FolderWriter::open_inside() {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) fail("create", error.value());
  temporary_ = folder_ / (std::string(".") + std::to_string(::getpid()) + ending);
  remove_quietly(temporary_);
  const std::optional<int> fd = make_and_lock(temporary_);
  if (!fd) {
    const int reason = errno;
    temporary_.clear();
    fail("create a folder in", reason);
  }
  lock_ = *fd;
}

void FolderWriter::remove_leftovers() const {
  std::error_code error;
  const auto stale = [](const fs::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return;
    const bool held = ::flock(fd, LOCK_EX | LOCK_NB) != 0;
    if (!held) remove_quietly(path);
    ::close(fd);
  };
  const auto sweep = [&](const fs::path& where, const std::string& start) {
    std::vector<fs::path> found;
    for (fs::directory_iterator it(where, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (name.starts_with(start) && name.ends_with(ending) &&
          name.find_first_not_of("0123456789-", start.size()) == name.size() - std::strlen(ending))
        found.push_back(it->path());
    }
    for (const fs::path& path : found) stale(path);
  };
  sweep(folder_.parent_path(), hidden(folder_));
  sweep(folder_, ".");
  if (fs::is_directory(folder_, error)) remove_quietly(previous_of(folder_));
}

void FolderWriter::carry_over() const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (replaces_(name) || fs::symlink_status(temporary_ / name).type() != fs::file_type::not_found) continue;
    try {
      carry(entry.path(), temporary_ / name);
    } catch (const fs::filesystem_error& wrong) {
      fail("carry over " + entry.path().string() + " into the new version of", wrong.code().value());
    }
  }
}

FolderWriter::Exchange FolderWriter::commit(bool sync) {
  internal_assert(!temporary_.empty(), "FolderWriter: commit twice");
  struct stat info {};
  const bool exists = ::stat(folder_.c_str(), &info) == 0;
  Exchange done = at_best_;
  if (at_best_ == Exchange::in_place) {
    replace_in_place(sync);
  } else {
    if (exists) carry_over();
    if (sync) sync_folder(temporary_);
    if (!exists) {
      if (::rename(temporary_.c_str(), folder_.c_str()) != 0) fail("rename the finished folder to", errno);
      done = Exchange::whole;
    } else if (at_best_ != Exchange::whole || exchange(temporary_, folder_) != 0) {
      if (at_best_ == Exchange::whole && errno != EINVAL && errno != ENOSYS && errno != EBUSY && errno != EXDEV &&
          errno != EPERM && errno != EACCES)
        fail("exchange the finished folder with", errno);
      done = replace_by_renames();
    }
    if (sync) sync_folder(folder_.parent_path());
  }
  remove_quietly(temporary_);
  temporary_.clear();
  return done;
}

FolderWriter::Exchange FolderWriter::replace_by_renames() {
  const fs::path previous = previous_of(folder_);
  if (::rename(folder_.c_str(), previous.c_str()) != 0) {
    // A mount point can be neither exchanged nor renamed.
    replace_in_place(true);
    return Exchange::in_place;
  }
  if (::rename(temporary_.c_str(), folder_.c_str()) != 0) {
    const int reason = errno;
    ::rename(previous.c_str(), folder_.c_str());
    fail("rename the finished folder to", reason);
  }
  remove_quietly(previous);
  return Exchange::renames;
}

void FolderWriter::replace_in_place(bool sync) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(temporary_)) {
    const std::string name = entry.path().filename().string();
    // What was carried over is there already.
    if (replaces_(name) || !fs::exists(fs::symlink_status(folder_ / name))) names.push_back(name);
  }
  for (const std::string& name : names) {
    std::error_code error;
    fs::rename(temporary_ / name, folder_ / name, error);
    if (error == std::errc::cross_device_link) {  // the folder is a mount point: through a temporary name inside it
      const fs::path part = folder_ / ("." + name + ".part");
      error.clear();
      fs::copy_file(temporary_ / name, part, fs::copy_options::overwrite_existing, error);
      if (!error) fs::rename(part, folder_ / name, error);
    }
    if (error) fail("replace " + name + " in", error.value());
  }
  std::vector<fs::path> stale;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (entry.path() != temporary_ && replaces_(name) && std::find(names.begin(), names.end(), name) == names.end())
      stale.push_back(entry.path());
  }
  for (const fs::path& path : stale) remove_quietly(path);
  if (sync) sync_folder(folder_);
}

bool FolderWriter::recover(const fs::path& folder) {
  const fs::path target = resolved(folder);
  std::error_code error;
  if (fs::exists(fs::symlink_status(target, error)) || !fs::is_directory(previous_of(target), error)) return false;
  return ::rename(previous_of(target).c_str(), target.c_str()) == 0;
}

void FolderWriter::fail(const std::string& what, int reason) const {
  throw UserError(ErrorKind::bad_file, "cannot " + what + " " + folder_.string() + ": " + std::strerror(reason) +
                                           "; a folder of that name is as it was");
}

}  // namespace calque
