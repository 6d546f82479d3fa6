// What the tests of file/ share: tensors from golden lines, files made by hand.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "calque/op/tensor.h"
#include "support/folder_support.h"

namespace calque::file_test {

std::vector<std::byte> from_hex(const std::string& text);
// A golden line's {"dtype", "sizes", "strides", "offset", "data"}; strides and offset may be absent.
Tensor tensor_from(const nlohmann::json& line);
std::vector<nlohmann::json> read_lines(const std::string& golden);  // tests/file/golden/<golden>

// A safetensors file by hand: the length of `header` (or `length`), the header, the data.
std::string file_of(const std::string& header, const std::string& data = "");
std::string file_of(const std::string& header, const std::string& data, uint64_t length);

}  // namespace calque::file_test
