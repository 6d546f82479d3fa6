#include "file/json_file.h"

#include "calque/file/mapped_file.h"

namespace calque {

void read_json_file(const std::filesystem::path& path, const std::function<void(const Json&)>& fn) {
  const auto file = MappedFile::open(path.string());
  const auto bytes = file->bytes();
  const JsonDocument document({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
  document.read([&](const Json& root) { fn(root); });
}

}  // namespace calque
