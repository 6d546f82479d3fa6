#include "file/file_support.h"
#include "support/paths.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace calque::file_test {

std::vector<std::byte> from_hex(const std::string& text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::byte> out(text.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
  return out;
}

Tensor tensor_from(const nlohmann::json& line) {
  const DType dtype = dtype_from_name(line.at("dtype").get<std::string>()).value();
  const auto sizes = line.at("sizes").get<std::vector<int64_t>>();
  const auto bytes = from_hex(line.at("data").get<std::string>());
  Ref<Storage> storage = Storage::allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(storage->data(), bytes.data(), bytes.size());
  std::vector<int64_t> strides(sizes.size());
  int64_t running = 1;
  for (size_t d = sizes.size(); d-- > 0; running *= std::max<int64_t>(sizes[d], 1)) strides[d] = running;
  if (line.contains("strides")) strides = line["strides"].get<std::vector<int64_t>>();
  return from_storage(std::move(storage), dtype, sizes, strides, line.value("offset", int64_t{0}));
}

std::vector<nlohmann::json> read_lines(const std::string& golden) {
  std::ifstream in(test::source_folder() + "/tests/file/golden/" + golden);
  if (!in) throw std::runtime_error("no golden file " + golden);
  std::vector<nlohmann::json> out;
  for (std::string line; std::getline(in, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

std::string file_of(const std::string& header, const std::string& data) { return file_of(header, data, header.size()); }

std::string file_of(const std::string& header, const std::string& data, uint64_t length) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + header + data;
}

}  // namespace calque::file_test
