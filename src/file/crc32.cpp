#include <array>
#include <cstring>

#include "calque/file/zip.h"

namespace calque {
namespace {

// Sixteen bytes a step: tables[k][b] is the checksum of byte b followed by k zero bytes.
constexpr auto tables = [] {
  std::array<std::array<uint32_t, 256>, 16> t{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1U) != 0 ? 0xEDB88320U ^ (c >> 1) : c >> 1;
    t[0][b] = c;
  }
  for (size_t k = 1; k < 16; ++k)
    for (size_t b = 0; b < 256; ++b) t[k][b] = t[0][t[k - 1][b] & 255U] ^ (t[k - 1][b] >> 8);
  return t;
}();

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t c = ~before;
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 16; p += 16, left -= 16) {
    uint32_t w[4];
    std::memcpy(w, p, 16);
    w[0] ^= c;
    c = 0;
    for (size_t i = 0; i < 4; ++i)
      for (size_t j = 0; j < 4; ++j) c ^= tables[15 - 4 * i - j][w[i] >> (8 * j) & 255U];
  }
  for (; left > 0; ++p, --left) c = tables[0][(c ^ *p) & 255U] ^ (c >> 8);
  return ~c;
}

}  // namespace calque
