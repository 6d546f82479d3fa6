// What regular expressions know of characters besides their categories (unicode.h): scripts, some properties, and which characters are
// equal in any case. As the tokenizers library's expressions (Oniguruma's) have it; tools/text/regex_tables.py asked it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace calque {

// The bits of regex_properties_of: a script's number in the low eight, then these.
enum RegexProperty : uint16_t {
  property_script_mask = 0xFF,
  property_alphabetic = 0x100,
  property_lowercase = 0x200,
  property_uppercase = 0x400,
  property_emoji = 0x800,
  property_emoji_presentation = 0x1000,
  property_emoji_modifier = 0x2000,
  property_pictographic = 0x4000,
  property_ideographic = 0x8000,
};
uint16_t regex_properties_of(char32_t c);

// The script of a name without hyphens and underscores, in lower case; 0 when there is none.
uint8_t script_named(std::string_view name);

// The other characters that are equal to `c` in any case.
struct CasePair {
  char32_t c, other;
};
std::span<const CasePair> equal_in_any_case(char32_t c);

// A character that is equal, in any case, to two or three others in a row; the third is 0 when there are two.
struct CaseSequence {
  char32_t c;
  std::array<char32_t, 3> parts;
  size_t size() const { return parts[2] ? 3 : 2; }
};
std::span<const CaseSequence> case_sequences();

extern const std::span<const uint32_t> regex_property_starts;
extern const std::span<const uint16_t> regex_property_values;
extern const std::span<const int32_t> regex_case_ranges;
extern const std::span<const uint32_t> regex_case_sequences;
extern const std::span<const std::string_view> regex_script_names;

}  // namespace calque
