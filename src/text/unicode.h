// What the characters are: general category, white space, words, lower case. The tables are the tokenizers library's own
// (tools/text/unicode_tables.py), expanded once at first use; nothing here knows a regular expression.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace calque {

// The bits of UnicodeTable::of(): a category in the low five, then flags.
enum UnicodeFlag : uint16_t {
  unicode_category_mask = 31,
  unicode_space = 32,
  unicode_word = 64,          // \w of a regular expression
  unicode_beside_word = 128,  // an added token with single_word does not stand beside it
  unicode_numeric = 256,      // a digit to the Digits pre-tokenizer
  unicode_punctuation = 512,  // of the Punctuation pre-tokenizer, whose tables are older
};

class UnicodeTable {
 public:
  static const UnicodeTable& instance();

  uint16_t of(char32_t c) const { return values_[static_cast<size_t>(blocks_[c >> 8]) << 8 | (c & 0xFF)]; }
  uint32_t category(char32_t c) const { return of(c) & unicode_category_mask; }
  bool is_space(char32_t c) const { return (of(c) & unicode_space) != 0; }
  bool is_letter(char32_t c) const { return (1u << category(c) & letters) != 0; }
  bool is_number(char32_t c) const { return (1u << category(c) & numbers) != 0; }

  // Sets of categories, a bit each.
  static constexpr uint32_t letters = 0x1Fu << 5;
  static constexpr uint32_t numbers = 0x7u << 13;
  // "L", "Lu", "Letter", "Uppercase_Letter", ... as a regular expression names them; nothing when it is no category.
  static std::optional<uint32_t> categories_named(std::string_view name);

 private:
  UnicodeTable();
  std::array<uint16_t, 0x1100> blocks_{};
  std::vector<uint16_t> values_;
};

// Lower case of one character; U+0130 alone becomes two (the second is then given).
struct LowerCase {
  char32_t first;
  char32_t second = 0;
};
LowerCase lower_case(char32_t c);
char32_t fold_case(char32_t c);  // equal for characters that differ in case alone

// A capital sigma becomes the small one of the end of a word behind a cased character and in front of none, wherever case-ignorable
// characters are between. Cased are categories Lu, Ll, Lt, ignorable Mn, Me, Cf, Lm, Sk, and of other categories these.
struct CharRange {
  char32_t first, last;
};
inline constexpr CharRange cased_symbols[] = {{0xAA, 0xAA},       {0xBA, 0xBA},       {0x2160, 0x217F},  {0x24B6, 0x24E9},
                                              {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
inline constexpr CharRange case_ignorable_signs[] = {{0x27, 0x27},     {0x2E, 0x2E},     {0x3A, 0x3A},     {0xB7, 0xB7},
                                                     {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
                                                     {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52},
                                                     {0xFE55, 0xFE55}, {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};

}  // namespace calque
