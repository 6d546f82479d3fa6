#include "support/folder_support.h"

#include <stdlib.h>

#include <fstream>
#include <stdexcept>

namespace calque::test {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "calque-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
  fs::create_directories((path_ / name).parent_path());
  write_file(path_ / name, content);
  return path(name);
}

std::string TemporaryFolder::copy(const fs::path& from, const std::string& name) const {
  fs::create_directories((path_ / name).parent_path());
  fs::copy(from, path_ / name, fs::copy_options::recursive);
  return path(name);
}

std::set<std::string> TemporaryFolder::names() const { return names_in(path_); }

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_file(const fs::path& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

}  // namespace calque::test
