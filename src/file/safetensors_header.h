// Reading the JSON header of a safetensors file. Every claim is checked against the bytes that are there as soon as it
// is read, so a hostile header costs no more than a small multiple of its own length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calque/file/safetensors.h"

namespace calque {

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes, which they cover without hole or overlap
  std::vector<uint32_t> by_name;          // positions in entries, sorted by name
  std::optional<SafetensorsMetadata> metadata;
};

// `json` is the header, `data_bytes` what follows it in the file, `path` the file's name in errors.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes, const std::string& path);

// A name from a file, fit for a message: quoted, cut when very long, control characters escaped.
std::string shown(std::string_view name);

}  // namespace calque
