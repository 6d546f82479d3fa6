#include "calque/file/folder_writer.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "calque/base/error.h"
#include "file/temporaries.h"

namespace calque {
namespace fs = std::filesystem;

namespace {

constexpr const char* ending = ".saving";

std::string hidden(const fs::path& folder) { return "." + folder.filename().string() + "."; }
fs::path previous_of(const fs::path& folder) { return folder.parent_path() / (hidden(folder) + "previous"); }

// The folder itself where the path is a link to it, so that the link stays.
fs::path resolved(const fs::path& folder) {
  if (folder.empty())
    throw UserError(ErrorKind::bad_file, "cannot write a folder whose name is empty; give the name of a folder");
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

// The folder that this process works in, or one around it.
static bool is_worked_in(const fs::path& folder) {
  std::error_code error;
  const fs::path current = fs::current_path(error);
  return !error && std::mismatch(folder.begin(), folder.end(), current.begin(), current.end()).first == folder.end();
}

FolderWriter::FolderWriter(const fs::path& folder, Replaces replaces, Exchange at_best)
    : folder_(resolved(folder)),
      entry_(std::make_unique<TemporaryPath>()),
      replaces_(std::move(replaces)),
      at_best_(at_best) {
  struct stat info {};
  const bool exists = ::stat(folder_.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) fail("look at", errno);
  if (exists && !S_ISDIR(info.st_mode))
    throw UserError(ErrorKind::bad_file, "cannot write the folder " + folder_.string() +
                                             ": it exists and is not a folder; give the name of a folder");
  if (is_worked_in(folder_))
    throw UserError(ErrorKind::bad_file,
                    "cannot replace the folder " + folder_.string() +
                        ": it is or holds the current folder; name another folder, or change to another one");
  if (!exists) recover(folder_);
  remove_leftovers();
  if (!exists && folder_.has_parent_path()) {
    std::error_code error;
    fs::create_directories(folder_.parent_path(), error);
    if (error) fail("create the folder that is to hold", error.value());
  }
  {
    const auto gate = pass_writing_gate();
    if (at_best_ == Exchange::in_place)
      open_inside();
    else
      open_beside();
  }
  if (exists) ::chmod(temporary_.c_str(), info.st_mode & 07777U);
}

FolderWriter::~FolderWriter() {
  if (!temporary_.empty()) remove_quietly(temporary_);
  if (lock_ >= 0) ::close(lock_);
}

static std::optional<int> make_and_lock(const fs::path& path) {
  if (::mkdir(path.c_str(), 0777) != 0) return std::nullopt;
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool locked = fd >= 0 && (take_lock(fd) || errno != EWOULDBLOCK);  // a file system may have no locks
  struct stat info {};
  // Somebody who tidied up in between took it for a leftover.
  if (!locked || ::stat(path.c_str(), &info) != 0) {
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
      entry_->enter(temporary_.string());
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
  entry_->enter(temporary_.string());
}

void FolderWriter::remove_leftovers() const {
  std::error_code error;
  const auto stale = [](const fs::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return;
    if (take_lock(fd)) remove_quietly(path);
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
  fs::path at = folder_;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      at = entry.path();
      const fs::path to = temporary_ / at.filename();
      if (replaces_(at.filename().string()) || fs::symlink_status(to).type() != fs::file_type::not_found) continue;
      carry(at, to);
    }
  } catch (const fs::filesystem_error& wrong) {
    fail("carry over " + at.string() + " into the new version of", wrong.code().value());
  }
}

FolderWriter::Exchange FolderWriter::commit(bool sync) {
  internal_assert(!temporary_.empty(), "FolderWriter: commit twice");
  struct stat info {};
  const bool exists = ::stat(folder_.c_str(), &info) == 0;
  if (at_best_ != Exchange::in_place) {
    if (exists) carry_over();
    if (sync) sync_folder(temporary_);
  }
  const Exchange done = replace(exists);
  if (sync) sync_folder(done == Exchange::in_place ? folder_ : folder_.parent_path());
  remove_quietly(temporary_);
  temporary_.clear();
  entry_->leave();
  return done;
}

FolderWriter::Exchange FolderWriter::replace(bool exists) {
  const auto gate = pass_writing_gate();
  if (at_best_ == Exchange::in_place) {
    replace_in_place();
    return Exchange::in_place;
  }
  if (!exists) {
    if (::rename(temporary_.c_str(), folder_.c_str()) != 0) fail("rename the finished folder to", errno);
    return Exchange::whole;
  }
  if (at_best_ == Exchange::whole) {
    if (exchange(temporary_, folder_) == 0) return Exchange::whole;
    if (errno != EINVAL && errno != ENOSYS && errno != EBUSY && errno != EXDEV && errno != EPERM && errno != EACCES)
      fail("exchange the finished folder with", errno);
  }
  return replace_by_renames();
}

FolderWriter::Exchange FolderWriter::replace_by_renames() {
  const fs::path previous = previous_of(folder_);
  if (::rename(folder_.c_str(), previous.c_str()) != 0) {
    // A mount point can be neither exchanged nor renamed.
    replace_in_place();
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

void FolderWriter::replace_in_place() try {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(temporary_)) {
    const std::string name = entry.path().filename().string();
    // What was carried over is there already.
    if (replaces_(name) || !fs::exists(fs::symlink_status(folder_ / name))) names.insert(name);
  }
  fs::path from = temporary_;
  for (const std::string& name : names) {
    std::error_code error;
    // No rename replaces a folder that is not empty.
    if (fs::is_directory(fs::symlink_status(from / name))) remove_quietly(folder_ / name);
    fs::rename(from / name, folder_ / name, error);
    if (error == std::errc::cross_device_link) {  // the folder is a mount point: through a temporary folder inside it
      from = copied_inside();
      error.clear();
      fs::rename(from / name, folder_ / name, error);
    }
    if (error) fail("replace " + name + " in", error.value());
  }
  std::vector<fs::path> stale;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (entry.path() != temporary_ && replaces_(name) && !names.contains(name)) stale.push_back(entry.path());
  }
  for (const fs::path& path : stale) remove_quietly(path);
} catch (const fs::filesystem_error& wrong) {
  fail("replace the files of", wrong.code().value());
}

// What is not in the folder's file system yet, copied there; the copy is the temporary folder from then on.
fs::path FolderWriter::copied_inside() {
  const fs::path beside = temporary_;
  const int lock = lock_;
  open_inside();
  fs::copy(beside, temporary_, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  remove_quietly(beside);
  if (lock >= 0) ::close(lock);
  return temporary_;
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
