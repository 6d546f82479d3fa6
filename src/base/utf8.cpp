#include "base/utf8.h"

#include <cstring>

namespace calque {

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

Utf8Step next_utf8(std::string_view bytes, Surrogates surrogates) {
  using Kind = Utf8Step::Kind;
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = at(0);
  if (first < 0x80) return {Kind::valid, 1};
  if (first < 0xC2 || first > 0xF4) return {Kind::wrong, 1};
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The second byte's bounds keep out overlong forms, surrogates and what is past U+10FFFF.
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED && surrogates == Surrogates::refuse ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {Kind::incomplete, i};
    const unsigned c = at(i);
    if (i == 1 ? c < low || c > high : (c & 0xC0) != 0x80) return {Kind::wrong, i};
  }
  return {Kind::valid, length};
}

bool is_valid_utf8(std::string_view bytes, Surrogates surrogates) {
  size_t i = 0;
  while (i < bytes.size()) {
    uint64_t eight;
    while (bytes.size() - i >= sizeof eight) {  // ASCII goes by eights
      std::memcpy(&eight, bytes.data() + i, sizeof eight);
      if (eight & 0x8080808080808080) break;
      i += sizeof eight;
    }
    if (i == bytes.size()) break;
    const Utf8Step step = next_utf8(bytes.substr(i), surrogates);
    if (step.kind != Utf8Step::Kind::valid) return false;
    i += step.size;
  }
  return true;
}

}  // namespace calque
