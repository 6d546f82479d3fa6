#include "text/unicode.h"

#include <algorithm>
#include <unordered_map>

#include "text/unicode_data.h"

namespace calque {
namespace {

constexpr char32_t past_last = 0x110000;

// Order as in tools/text/unicode_tables.py.
constexpr std::array<std::pair<std::string_view, std::string_view>, 30> category_names{{
    {"Cn", "Unassigned"},
    {"Cc", "Control"},
    {"Cf", "Format"},
    {"Cs", "Surrogate"},
    {"Co", "Private_Use"},
    {"Lu", "Uppercase_Letter"},
    {"Ll", "Lowercase_Letter"},
    {"Lt", "Titlecase_Letter"},
    {"Lm", "Modifier_Letter"},
    {"Lo", "Other_Letter"},
    {"Mn", "Nonspacing_Mark"},
    {"Mc", "Spacing_Mark"},
    {"Me", "Enclosing_Mark"},
    {"Nd", "Decimal_Number"},
    {"Nl", "Letter_Number"},
    {"No", "Other_Number"},
    {"Pc", "Connector_Punctuation"},
    {"Pd", "Dash_Punctuation"},
    {"Ps", "Open_Punctuation"},
    {"Pe", "Close_Punctuation"},
    {"Pi", "Initial_Punctuation"},
    {"Pf", "Final_Punctuation"},
    {"Po", "Other_Punctuation"},
    {"Sm", "Math_Symbol"},
    {"Sc", "Currency_Symbol"},
    {"Sk", "Modifier_Symbol"},
    {"So", "Other_Symbol"},
    {"Zs", "Space_Separator"},
    {"Zl", "Line_Separator"},
    {"Zp", "Paragraph_Separator"},
}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> group_names{{
    {"C", "Other"},
    {"L", "Letter"},
    {"M", "Mark"},
    {"N", "Number"},
    {"P", "Punctuation"},
    {"S", "Symbol"},
    {"Z", "Separator"},
}};

// Names compare without case, spaces, hyphens and underscores.
bool same_name(std::string_view a, std::string_view b) {
  const auto next = [](std::string_view& s) {
    while (!s.empty() && (s[0] == '_' || s[0] == ' ' || s[0] == '-')) s.remove_prefix(1);
    if (s.empty()) return '\0';
    const char c = s[0];
    s.remove_prefix(1);
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  for (;;) {
    const char x = next(a), y = next(b);
    if (x != y) return false;
    if (x == '\0') return true;
  }
}

using LowerMap = std::unordered_map<char32_t, char32_t>;

const LowerMap& lower_map() {
  static const LowerMap map = [] {
    LowerMap m;
    for (size_t i = 0; i < unicode_lower_ranges.size(); i += 4) {
      const int32_t* r = unicode_lower_ranges.data() + i;
      for (int32_t c = r[0]; c <= r[1]; c += r[2]) m.emplace(static_cast<char32_t>(c), static_cast<char32_t>(c + r[3]));
    }
    return m;
  }();
  return map;
}

}  // namespace

const UnicodeTable& UnicodeTable::instance() {
  static const UnicodeTable table;
  return table;
}

UnicodeTable::UnicodeTable() {
  std::unordered_map<uint16_t, uint16_t> uniform;  // value -> the block that is all of it
  size_t run = 0;
  const auto start = [](size_t i) {
    return i < unicode_property_runs.size() ? static_cast<char32_t>(unicode_property_runs[i] >> 11) : past_last;
  };
  for (size_t block = 0; block < blocks_.size(); ++block) {
    const auto first = static_cast<char32_t>(block << 8);
    while (start(run + 1) <= first) ++run;
    const auto value = static_cast<uint16_t>(unicode_property_runs[run] & 0x7FF);
    const bool whole = start(run + 1) >= first + 256;
    if (whole)
      if (const auto known = uniform.find(value); known != uniform.end()) {
        blocks_[block] = known->second;
        continue;
      }
    blocks_[block] = static_cast<uint16_t>(values_.size() >> 8);
    if (whole) uniform.emplace(value, blocks_[block]);
    size_t at = run;
    for (char32_t c = first; c < first + 256; ++c) {
      while (start(at + 1) <= c) ++at;
      values_.push_back(static_cast<uint16_t>(unicode_property_runs[at] & 0x7FF));
    }
  }
}

std::optional<uint32_t> UnicodeTable::categories_named(std::string_view name) {
  uint32_t set = 0;
  for (size_t i = 0; i < category_names.size(); ++i)
    if (same_name(name, category_names[i].first) || same_name(name, category_names[i].second)) set |= 1u << i;
  for (const auto& [letter, group] : group_names)
    if (same_name(name, letter) || same_name(name, group))
      for (size_t i = 0; i < category_names.size(); ++i)
        if (category_names[i].first[0] == letter[0]) set |= 1u << i;
  return set ? std::optional(set) : std::nullopt;
}

LowerCase lower_case(char32_t c) {
  if (c < 0x80) return {c >= 'A' && c <= 'Z' ? c + 32 : c};
  if (c == 0x130) return {'i', 0x307};
  const auto found = lower_map().find(c);
  return {found == lower_map().end() ? c : found->second};
}

char32_t fold_case(char32_t c) {
  if (c == 0x17F) return 's';    // the long s
  if (c == 0x3C2) return 0x3C3;  // the final sigma
  if (c == 0x130) return c;      // its lower case is two characters
  return lower_case(c).first;
}

}  // namespace calque
