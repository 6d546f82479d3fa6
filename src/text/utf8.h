// UTF-8: reading characters from text that is known to be valid, and making valid text of any bytes, as Python's
// bytes.decode(errors="replace") does: one U+FFFD for each longest wrong sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace calque {

struct Utf8Char {
  char32_t value;
  uint32_t size;  // in bytes
};

// The character at `p`, of valid text.
inline Utf8Char decode_utf8(const char* p) {
  const auto byte = [p](int i) { return static_cast<char32_t>(static_cast<unsigned char>(p[i])); };
  const char32_t c = byte(0);
  if (c < 0x80) return {c, 1};
  if (c < 0xE0) return {(c & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (c < 0xF0) return {(c & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(c & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

inline bool is_utf8_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::u32string to_utf32(std::string_view valid);
size_t count_utf8(std::string_view valid);  // characters

// Valid text. With `origin`, which byte of `bytes` each byte of the result came from, and one past the end.
std::string repair_utf8(std::string_view bytes, std::vector<uint32_t>* origin = nullptr);

// The beginning of a text that may be long, for messages: whole characters, "..." behind them when there is more.
std::string excerpt(std::string_view valid, size_t longest = 80);

}  // namespace calque
