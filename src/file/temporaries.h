// The temporary names that this process has on disk, and the gate before each step that makes one or puts it in its target's place.
#pragma once

#include <mutex>
#include <string>

namespace calque {

// Held while a temporary is made or put in place, and for no longer: abandon_writing() waits for it and never gives it back.
std::unique_lock<std::mutex> pass_writing_gate();

// A path that abandon_writing() removes with everything in it, from enter() to leave(). enter() is for those who hold the gate.
class TemporaryPath {
 public:
  TemporaryPath() = default;
  ~TemporaryPath() { leave(); }
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

  void enter(std::string path);
  void leave() noexcept;

 private:
  friend struct TemporaryList;
  std::string path_;
  TemporaryPath* previous_ = nullptr;  // a list through the objects themselves
  TemporaryPath* next_ = nullptr;
  bool entered_ = false;
};

// Takes the lock of the file or folder that `descriptor` is open on, unless somebody has it. It is held as long as the descriptor (or a
// copy of it) is open, by a process that is alive; where a file system has no locks it is never had.
bool take_lock(int descriptor) noexcept;

// Removes a temporary file whose writer has died: nobody has its lock. False when there is none, or it is in use.
bool remove_dead_file(const std::string& path) noexcept;

}  // namespace calque
