#include "calque/base/crc32.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace calque::crc32_test {
namespace {

// Bit by bit, as the standard defines it.
uint32_t slow(std::span<const std::byte> bytes) {
  uint32_t c = ~0U;
  for (const std::byte b : bytes) {
    c ^= static_cast<uint32_t>(b);
    for (int i = 0; i < 8; ++i) c = (c & 1U) != 0 ? 0xEDB88320U ^ (c >> 1) : c >> 1;
  }
  return ~c;
}

TEST(Crc32, is_the_standard_one) {
  const std::string text = "123456789";
  EXPECT_EQ(crc32(std::as_bytes(std::span(text))), 0xCBF43926U);
  std::vector<std::byte> bytes(700);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i * 7 + i / 3);
  for (size_t length = 0; length < bytes.size(); ++length)
    ASSERT_EQ(crc32(std::span(bytes).first(length)), slow(std::span(bytes).first(length))) << length;
  for (size_t first = 0; first < 64; ++first)
    ASSERT_EQ(crc32(std::span(bytes).subspan(first)), slow(std::span(bytes).subspan(first))) << first;
}

TEST(Crc32, goes_on_from_another) {
  const std::string text(1000, 'x');
  const auto bytes = std::as_bytes(std::span(text));
  for (const size_t cut : {0, 1, 15, 16, 17, 64, 500, 1000})
    EXPECT_EQ(crc32(bytes.subspan(cut), crc32(bytes.first(cut))), crc32(bytes)) << cut;
}

}  // namespace
}  // namespace calque::crc32_test
