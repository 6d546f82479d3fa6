#include "task/files.h"

#include <system_error>

#include "calque/base/error.h"
#include "calque/file/mapped_file.h"

namespace calque {

namespace fs = std::filesystem;

void read_json_file(const fs::path& path, const std::function<void(const Json&)>& fn) {
  const auto file = MappedFile::open(path.string());
  const auto bytes = file->bytes();
  const JsonDocument document({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
  document.read([&](const Json& root) { fn(root); });
}

fs::path path_inside(const fs::path& folder, const std::string& relative, const std::string& where) {
  const fs::path path = fs::path(relative).lexically_normal();
  if (path.is_absolute() || (!path.empty() && *path.begin() == ".."))
    throw UserError(ErrorKind::bad_file, where + ": the path '" + relative + "' leads out of the model's folder");
  return relative.empty() ? folder : folder / path;
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

const Json* member_or_null(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found && !found->is_null() ? found : nullptr;
}

}  // namespace calque
