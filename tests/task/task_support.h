// What the tests of task/ share: folders of the golden models with their tokenizer, and what transformers said of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "support/folder_support.h"
#include "support/paths.h"

namespace calque::task_test {

inline const nlohmann::json& expected() {
  static const nlohmann::json json =
      nlohmann::json::parse(std::ifstream(test::source_folder() + "/tests/task/golden/expected.json"));
  return json;
}

// A folder that goes away, with one of the golden models and the tokenizer.
class ModelFolder : public test::TemporaryFolder {
 public:
  explicit ModelFolder(const std::string& name) {
    const std::filesystem::path golden = std::filesystem::path(test::source_folder()) / "tests/task/golden";
    for (const std::filesystem::path& from : {golden / name, golden / "tokenizer"})
      for (const auto& file : std::filesystem::directory_iterator(from))
        std::filesystem::copy(file.path(), path() / file.path().filename());
  }
};

}  // namespace calque::task_test
