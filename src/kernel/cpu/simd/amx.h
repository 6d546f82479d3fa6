// Setting up AMX tiles, for *.simd.cpp files built for AVX-512 only.
#pragma once

#include <cstdint>

namespace calque {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// Tiles are usable while it lives.
class Tiles {
 public:
  Tiles() {
    const TileConfig config;
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

}  // namespace
}  // namespace calque
