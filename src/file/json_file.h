// A JSON file, read where it is mapped.
#pragma once

#include <filesystem>
#include <functional>

#include "calque/file/json.h"

namespace calque {

// Calls fn with the document's root, which it must not keep; errors name the file.
void read_json_file(const std::filesystem::path& path, const std::function<void(const Json&)>& fn);

}  // namespace calque
