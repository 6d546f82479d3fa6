// Writing a file so that it is there whole or not at all. Bytes go to a temporary name in the same folder; commit()
// syncs them and renames the temporary over the target. A FileWriter destroyed without commit() removes what it wrote,
// and whatever had the target's name before is still there, untouched. A temporary that a killed process left is removed by the
// next FileWriter for the target; one whose process lives is locked, and stays. Not for two threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace calque {

class TemporaryPath;

class FileWriter {
 public:
  // UserError(bad_file) naming the path and the system's reason; so do write() and commit().
  explicit FileWriter(std::string path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(const void* data, size_t nbytes) { write({static_cast<const std::byte*>(data), nbytes}); }
  uint64_t size() const { return size_; }  // bytes written so far
  // Without `sync` the file is whole after a crash of the process, not after one of the machine.
  void commit(bool sync = true);

 private:
  [[noreturn]] void fail(const char* what);
  bool open_temporary(const std::string& name);
  void discard() noexcept;

  std::string path_;
  std::string temporary_;
  std::unique_ptr<TemporaryPath> entry_;
  int fd_ = -1;
  int lock_ = -1;  // a copy of fd_, open until the temporary has its target's name or is gone
  uint64_t size_ = 0;
};

}  // namespace calque
