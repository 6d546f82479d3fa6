// Replacing the files of a folder so that the old ones or the new ones are there whole, whatever happens on the way. The new
// folder is made beside the old one; commit() exchanges the two in one step and removes the old one. Other files of the old
// folder are carried over as hard links. Where the file system cannot exchange (or the folder is a mount point, or its parent
// may not be written) commit() does what can be done and says which: see Exchange. Needs room for both. What a process that
// was killed left beside the folder is removed by the next FolderWriter for it. The folder that a process works in is not
// replaced: it would go on working in the old one, which is removed.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace calque {

class TemporaryPath;

class FolderWriter {
 public:
  enum class Exchange {
    whole,    // one atomic step (renameat2 RENAME_EXCHANGE, or a plain rename where there was no folder)
    renames,  // the old one away, the new one there: between the two steps the folder is missing, and recover() brings it back
    in_place,  // file by file: each file is old or new, but a crash between two files leaves a mixture
  };
  // Which files at the top of the old folder the new one stands for; they are not carried over.
  using Replaces = std::function<bool(const std::string& name)>;

  // UserError(bad_file) names the path and the system's reason; so do the others. `at_best` is for tests and for file systems
  // known to lie: nothing better than it is tried.
  FolderWriter(const std::filesystem::path& folder, Replaces replaces, Exchange at_best = Exchange::whole);
  ~FolderWriter();  // without commit(): removes what was written; the old folder is as it was
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  const std::filesystem::path& path() const { return temporary_; }  // write the new files here
  Exchange commit(bool sync = true);

  // After a crash between the two steps of Exchange::renames: puts the old folder back. True when it had to.
  static bool recover(const std::filesystem::path& folder);

 private:
  void open_beside();
  void open_inside();
  void carry_over() const;
  Exchange replace(bool exists);
  Exchange replace_by_renames();
  void replace_in_place();
  std::filesystem::path copied_inside();
  void remove_leftovers() const;
  [[noreturn]] void fail(const std::string& what, int reason) const;

  std::filesystem::path folder_, temporary_;
  std::unique_ptr<TemporaryPath> entry_;
  Replaces replaces_;
  Exchange at_best_;
  int lock_ = -1;  // held on the temporary folder: what nobody holds was left by a process that died
};

}  // namespace calque
