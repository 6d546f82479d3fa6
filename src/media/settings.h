// The settings of a processor: preprocessor_config.json, or the part of processor_config.json that is of this kind and counts first.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/file/json.h"

namespace calque {

// Calls fn with the settings; errors name the file. `kind` is "image_processor" or "feature_extractor". UserError (bad_file) where the folder
// has neither file.
void read_processor_settings(const std::filesystem::path& folder, std::string_view kind,
                             const std::function<void(const Json&)>& fn);

// Members of an object; absent ones, and null, are nothing.
const Json* setting(const Json& json, std::string_view key);
bool flag_setting(const Json& json, std::string_view key, bool otherwise);
// UserError names the key where the value is not in lowest..highest.
int64_t integer_setting(const Json& json, std::string_view key, int64_t otherwise, int64_t lowest, int64_t highest);
double number_setting(const Json& json, std::string_view key, double otherwise);

}  // namespace calque
