#include "file/temporaries.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "calque/file/temporaries.h"

namespace calque {

struct TemporaryList {
  std::mutex gate;   // held for each step of a writer
  std::mutex mutex;  // of the list
  TemporaryPath* first = nullptr;

  void add(TemporaryPath& one) {
    const std::lock_guard lock(mutex);
    one.next_ = first;
    one.previous_ = nullptr;
    if (first) first->previous_ = &one;
    first = &one;
  }
  void remove(TemporaryPath& one) {
    const std::lock_guard lock(mutex);
    (one.previous_ ? one.previous_->next_ : first) = one.next_;
    if (one.next_) one.next_->previous_ = one.previous_;
  }
  // False when something was added to a folder meanwhile, by a writer that is not at the gate yet.
  bool remove_files() {
    const std::lock_guard lock(mutex);
    bool gone = true;
    for (const TemporaryPath* one = first; one; one = one->next_) {
      std::error_code error;
      std::filesystem::remove_all(one->path_, error);
      gone &= !error;
    }
    return gone;
  }
};

// Both mutexes need no destructor to run: a writer may be alive when the process ends.
static TemporaryList& temporaries() {
  static TemporaryList list;
  return list;
}

std::unique_lock<std::mutex> pass_writing_gate() { return std::unique_lock(temporaries().gate); }

void TemporaryPath::enter(std::string path) {
  leave();
  path_ = std::move(path);
  temporaries().add(*this);
  entered_ = true;
}

void TemporaryPath::leave() noexcept {
  if (std::exchange(entered_, false)) temporaries().remove(*this);
}

void abandon_writing() noexcept {
  TemporaryList& list = temporaries();
  list.gate.lock();  // for good
  constexpr int tries = 1000;
  for (int i = 0; i < tries && !list.remove_files(); ++i) {
  }
}

bool take_lock(int descriptor) noexcept { return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0; }

bool remove_dead_file(const std::string& path) noexcept {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat opened {
  }, named{};
  // The name may have become another file's, or the file another name's, before the lock was had.
  const bool dead = ::fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode) && take_lock(fd) &&
                    ::lstat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
  const bool removed = dead && ::unlink(path.c_str()) == 0;
  ::close(fd);
  return removed;
}

}  // namespace calque
