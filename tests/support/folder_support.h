// What tests of any room share about files: a folder that goes away, files as text.
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace calque::test {

// A folder of its own in the system's temporary folder, removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  // Folders on the way are made; the path of what was made is returned.
  std::string write(const std::string& name, const std::string& content) const;
  std::string copy(const std::filesystem::path& from, const std::string& name) const;
  std::set<std::string> names() const;

 private:
  std::filesystem::path path_;
};

std::set<std::string> names_in(const std::filesystem::path& folder);  // hidden ones too
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& content);

}  // namespace calque::test
