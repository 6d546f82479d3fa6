// What the tasks read beside a model: JSON files of a folder, and paths that a file names.
#pragma once

#include <filesystem>
#include <string>

#include "file/json_file.h"

namespace calque {

// folder / relative, where relative stays inside the folder; UserError (bad_file) names `where` otherwise.
std::filesystem::path path_inside(const std::filesystem::path& folder, const std::string& relative,
                                  const std::string& where);
bool is_file(const std::filesystem::path& path);

// A member, or null where the object lacks it or says null.
const Json* member_or_null(const Json& object, std::string_view key);

}  // namespace calque
