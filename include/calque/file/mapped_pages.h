// Which pages of a mapped file are wanted in memory.
#pragma once

#include <cstddef>
#include <span>

namespace calque {

// Tells the system that these bytes of a mapped file are read soon and whole: it begins to read those that are not in memory. Nothing for what is
// no mapped file.
void announce_mapped(std::span<const std::byte> bytes) noexcept;

}  // namespace calque
