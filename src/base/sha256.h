// SHA-256, for the few places that must name things as others do. Not for secrets.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace calque {

std::array<uint8_t, 32> sha256(std::string_view data);

}  // namespace calque
