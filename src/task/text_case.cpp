#include "task/text_case.h"

#include "text/unicode.h"
#include "text/utf8.h"

namespace calque {

std::string stripped(std::string_view given) {
  const std::string text = is_valid_utf8(given) ? std::string(given) : repair_utf8(given);
  const UnicodeTable& unicode = UnicodeTable::instance();
  size_t begin = text.size(), end = 0;
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text.data() + i);
    if (!unicode.is_space(c.value)) begin = std::min(begin, i), end = i + c.size;
    i += c.size;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string();
}

std::string lower_text(std::string_view given) {
  const std::string text = is_valid_utf8(given) ? std::string(given) : repair_utf8(given);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text.data() + i);
    const LowerCase lower = lower_case(c.value);
    append_utf8(out, lower.first);
    if (lower.second) append_utf8(out, lower.second);
    i += c.size;
  }
  return out;
}

std::string_view characters(std::string_view text, size_t begin, size_t end) {
  size_t at = 0, count = 0, first = text.size(), last = text.size();
  for (; at < text.size(); ++at) {
    if (is_utf8_continuation(text[at])) continue;
    if (count == begin) first = at;
    if (count == end) {
      last = at;
      break;
    }
    ++count;
  }
  return first < last ? text.substr(first, last - first) : std::string_view();
}

}  // namespace calque
