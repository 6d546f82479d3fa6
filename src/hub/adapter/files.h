// An adapter's files, for whoever writes a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "calque/hub/pretrained_model.h"

namespace calque::adapter {

struct Written {
  std::vector<std::string> files;
  uint64_t bytes = 0;  // of tensors
};
// adapter_config.json and the tensors, into a folder that is there.
Written write_files(PretrainedModel& model, const std::string& name, const std::filesystem::path& folder, bool safe,
                    bool sync);
bool is_adapter_file(const std::string& name);

}  // namespace calque::adapter
