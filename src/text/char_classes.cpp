#include "text/char_classes.h"

#include <algorithm>

#include "text/utf8.h"

namespace calque {

CharClasses::CharClasses() : values_(0x110000) {
  for (size_t i = 0; i < char_class_starts.size(); ++i) {
    const size_t end = i + 1 < char_class_starts.size() ? char_class_starts[i + 1] : values_.size();
    std::fill(values_.begin() + char_class_starts[i], values_.begin() + static_cast<std::ptrdiff_t>(end),
              char_class_values[i]);
  }
}

const CharClasses& CharClasses::instance() {
  static const CharClasses classes;
  return classes;
}

bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

size_t grapheme_end(std::string_view text, size_t at, const CharClasses& classes) {
  using Break = GraphemeBreak;
  Utf8Char c = decode_utf8(text.data() + at);
  Break last = classes.grapheme_break(c.value);
  bool picture = last == Break::pictographic;  // a picture, perhaps with what extends it
  bool flag = false;                           // of two regional letters
  size_t end = at + c.size;
  if (c.value == '\r' && end < text.size() && text[end] == '\n') return end + 1;
  while (end < text.size() && last != Break::control) {
    c = decode_utf8(text.data() + end);
    const Break next = classes.grapheme_break(c.value);
    const bool syllable =
        (last == Break::l && (next == Break::l || next == Break::v || next == Break::lv || next == Break::lvt)) ||
        ((last == Break::lv || last == Break::v) && (next == Break::v || next == Break::t)) ||
        ((last == Break::lvt || last == Break::t) && next == Break::t);
    const bool extends = next == Break::extend || next == Break::joiner || next == Break::spacing_mark;
    const bool pictures = picture && last == Break::joiner && next == Break::pictographic;
    const bool flags = last == Break::regional && next == Break::regional && !flag;
    const bool prepended = last == Break::prepend && next != Break::control;
    if (!syllable && !extends && !pictures && !flags && !prepended) break;
    flag = flag || flags;
    picture = next == Break::pictographic || (picture && (next == Break::extend || next == Break::joiner));
    last = next;
    end += c.size;
  }
  return end;
}

}  // namespace calque
