#include "text/utf8.h"

#include <cstring>

namespace calque {

std::u32string to_utf32(std::string_view valid) {
  std::u32string out;
  for (size_t i = 0; i < valid.size();) {
    const Utf8Char c = decode_utf8(valid.data() + i);
    out += c.value;
    i += c.size;
  }
  return out;
}

size_t count_utf8(std::string_view valid) {
  size_t n = 0;
  for (const char c : valid) n += !is_utf8_continuation(c);
  return n;
}

Utf8Step next_utf8(std::string_view bytes) {
  using Kind = Utf8Step::Kind;
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = at(0);
  if (first < 0x80) return {Kind::valid, 1};
  if (first < 0xC2 || first > 0xF4) return {Kind::wrong, 1};
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The second byte's bounds keep out overlong forms, surrogates and what is past U+10FFFF.
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {Kind::incomplete, i};
    const unsigned c = at(i);
    if (i == 1 ? c < low || c > high : (c & 0xC0) != 0x80) return {Kind::wrong, i};
  }
  return {Kind::valid, length};
}

bool is_valid_utf8(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    uint64_t eight;
    while (bytes.size() - i >= sizeof eight) {  // ASCII goes by eights
      std::memcpy(&eight, bytes.data() + i, sizeof eight);
      if (eight & 0x8080808080808080) break;
      i += sizeof eight;
    }
    if (i == bytes.size()) break;
    const Utf8Step step = next_utf8(bytes.substr(i));
    if (step.kind != Utf8Step::Kind::valid) return false;
    i += step.size;
  }
  return true;
}

std::string repair_utf8(std::string_view bytes, std::vector<uint32_t>* origin) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const Utf8Step step = next_utf8(bytes.substr(i));
    if (step.kind == Utf8Step::Kind::valid)
      out.append(bytes, i, step.size);
    else
      out += "\xEF\xBF\xBD";
    if (origin) {
      // All bytes of a replaced sequence come from its start; those of a character from its own.
      while (origin->size() < out.size()) origin->push_back(static_cast<uint32_t>(i));
    }
    i += step.size;
  }
  if (origin) origin->push_back(static_cast<uint32_t>(bytes.size()));
  return out;
}

}  // namespace calque
