// Classes of characters that normalizers and pre-tokenizers go by, as the tokenizers library has them (tools/text/char_classes.py),
// expanded once at first use. What is Unicode's general category or white space is in unicode.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace calque {

enum CharClass : uint16_t {
  class_control = 1,     // BertNormalizer drops it
  class_nonspacing = 2,  // an accent to BertNormalizer
  class_mark = 4,        // an accent to StripAccents
  class_word = 8,        // of a word to the Whitespace pre-tokenizer
};

enum class GraphemeBreak : uint8_t {
  other,
  control,
  extend,
  joiner,
  prepend,
  spacing_mark,
  l,
  v,
  t,
  lv,
  lvt,
  regional,
  pictographic,
};

class CharClasses {
 public:
  static const CharClasses& instance();
  bool has(char32_t c, CharClass which) const { return (values_[c] & which) != 0; }
  GraphemeBreak grapheme_break(char32_t c) const { return static_cast<GraphemeBreak>(values_[c] >> 4 & 15); }
  // A number for each script, Han, Hiragana and Katakana being one; 0 for what goes with any.
  int script(char32_t c) const { return values_[c] >> 8; }

 private:
  CharClasses();
  std::vector<uint16_t> values_;  // by character
};

bool is_chinese(char32_t c);  // an ideograph to BertNormalizer

// Where the grapheme that begins at `at` ends: what a reader takes for one character.
size_t grapheme_end(std::string_view text, size_t at, const CharClasses& classes);

extern const std::span<const uint32_t> char_class_starts;
extern const std::span<const uint16_t> char_class_values;

}  // namespace calque
