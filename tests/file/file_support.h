// What the tests of file/ share: tensors from golden lines, temporary folders, files made by hand.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "calque/tensor/tensor.h"

namespace calque::file_test {

std::vector<std::byte> from_hex(const std::string& text);
// A golden line's {"dtype", "sizes", "strides", "offset", "data"}; strides and offset may be absent.
Tensor tensor_from(const nlohmann::json& line);
std::vector<nlohmann::json> read_lines(const std::string& golden);  // tests/file/golden/<golden>

// A safetensors file by hand: the length of `header` (or `length`), the header, the data.
std::string file_of(const std::string& header, const std::string& data = "");
std::string file_of(const std::string& header, const std::string& data, uint64_t length);

class TemporaryFolder {  // removed with its content
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const;  // returns its path
  std::vector<std::string> names() const;                                        // what is in it, sorted

 private:
  std::filesystem::path folder_;
};

std::string read_whole(const std::string& path);

}  // namespace calque::file_test
