#include "text/utf8.h"

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

std::string excerpt(std::string_view valid, size_t longest) {
  if (valid.size() <= longest) return std::string(valid);
  while (longest > 0 && is_utf8_continuation(valid[longest])) --longest;
  return std::string(valid.substr(0, longest)) + "...";
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
