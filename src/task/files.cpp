#include "task/files.h"

#include <system_error>

#include "calque/base/error.h"

namespace calque {

namespace fs = std::filesystem;

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
