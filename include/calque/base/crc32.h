// The checksum of zip archives (CRC-32, IEEE 802.3). `before` continues one: crc32(b, crc32(a)) is that of a and b together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace calque {

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace calque
