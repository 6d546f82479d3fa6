#include "media/settings.h"

#include "calque/base/error.h"
#include "calque/media/feature_extractor.h"
#include "file/json_file.h"

namespace calque {
namespace {

namespace fs = std::filesystem;

constexpr const char *own_file = "preprocessor_config.json", *common_file = "processor_config.json";

bool is_file_there(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// False where the file has no such part.
bool read_settings(const fs::path& path, std::string_view part, const std::function<void(const Json&)>& fn) {
  bool found = false;
  read_json_file(path, [&](const Json& root) {
    const Json* settings = part.empty() ? &root : setting(root, part);
    if (!settings) return;
    if (!settings->is_object()) settings->fail("the settings of a processor are an object");
    fn(*settings);
    found = true;
  });
  return found;
}

}  // namespace

bool has_preprocessor(const fs::path& folder) {
  return is_file_there(folder / own_file) || is_file_there(folder / common_file);
}

void read_processor_settings(const fs::path& folder, std::string_view kind, const std::function<void(const Json&)>& fn) {
  if (is_file_there(folder / common_file) && read_settings(folder / common_file, kind, fn)) return;
  if (!is_file_there(folder / own_file))
    throw UserError(ErrorKind::bad_file,
                    (folder / own_file).string() + ": there is no such file, nor a processor_config.json with a \"" +
                        std::string(kind) + "\"; expected what transformers' save_pretrained writes beside the model");
  read_settings(folder / own_file, "", fn);
}

const Json* setting(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  return found && !found->is_null() ? found : nullptr;
}

bool flag_setting(const Json& json, std::string_view key, bool otherwise) {
  const Json* found = setting(json, key);
  if (found && found->kind() == Json::Kind::integer) return found->to_int() != 0;
  return found ? found->to_bool() : otherwise;
}

int64_t integer_setting(const Json& json, std::string_view key, int64_t otherwise, int64_t lowest, int64_t highest) {
  const Json* found = setting(json, key);
  if (!found) return otherwise;
  const int64_t value = found->to_int();
  if (value < lowest || value > highest)
    found->fail(std::string(key) + " is " + std::to_string(value) + "; expected " + std::to_string(lowest) + " to " +
                std::to_string(highest));
  return value;
}

double number_setting(const Json& json, std::string_view key, double otherwise) {
  const Json* found = setting(json, key);
  return found ? found->to_float() : otherwise;
}

}  // namespace calque
