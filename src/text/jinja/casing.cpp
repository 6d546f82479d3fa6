// Upper, lower and title case of Unicode.
#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>

#include "text/jinja/casing_data.h"
#include "text/jinja/python_text.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace calque::jinja {
namespace {

// By lower case: every cased character lies in the first two planes.
const std::unordered_map<char32_t, char32_t>& upper_of_lower() {
  static const std::unordered_map<char32_t, char32_t> map = [] {
    std::unordered_map<char32_t, char32_t> out;
    for (char32_t c = 0; c < 0x20000; ++c)
      if (const LowerCase lower = lower_case(c); lower.first != c && lower.second == 0) out.emplace(lower.first, c);
    return out;
  }();
  return map;
}

const UnusualCase* unusual(char32_t c) {
  static const std::unordered_map<char32_t, const UnusualCase*> map = [] {
    std::unordered_map<char32_t, const UnusualCase*> out;
    for (const UnusualCase& row : unusual_cases) out.emplace(row.character, &row);
    return out;
  }();
  const auto found = map.find(c);
  return found == map.end() ? nullptr : found->second;
}

void append_all(std::string& out, const char32_t (&characters)[3]) {
  for (const char32_t c : characters)
    if (c != 0) append_utf8(out, c);
}

bool is_among(char32_t c, uint32_t categories, std::span<const CharRange> others) {
  return (1u << UnicodeTable::instance().category(c) & categories) != 0 ||
         std::any_of(others.begin(), others.end(), [c](const CharRange& r) { return r.first <= c && c <= r.last; });
}

bool is_cased(char32_t c) { return is_among(c, 7u << 5, cased_symbols); }  // Lu, Ll, Lt

// Marks, format characters, modifiers, and the punctuation that stands within words.
bool is_case_ignorable(char32_t c) {
  return is_among(c, 1u << 2 | 1u << 8 | 1u << 10 | 1u << 12 | 1u << 25, case_ignorable_signs);
}

constexpr char32_t capital_sigma = 0x3A3, sigma = 0x3C3, final_sigma = 0x3C2;

// Is the sigma at `at` the end of a word?
bool ends_word(const std::u32string& text, size_t at) {
  size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append_lower(std::string& out, const std::u32string& text, size_t at) {
  if (text[at] == capital_sigma) return append_utf8(out, ends_word(text, at) ? final_sigma : sigma);
  const LowerCase lower = lower_case(text[at]);
  append_utf8(out, lower.first);
  if (lower.second) append_utf8(out, lower.second);
}

}  // namespace

void append_upper(std::string& out, char32_t c) {
  if (const UnusualCase* row = unusual(c)) return append_all(out, row->upper);
  const auto found = upper_of_lower().find(c);
  append_utf8(out, found == upper_of_lower().end() ? c : found->second);
}

void append_title(std::string& out, char32_t c) {
  if (const UnusualCase* row = unusual(c)) return append_all(out, row->title);
  append_upper(out, c);
}

std::string to_upper(std::string_view text) {
  std::string out;
  for (const char32_t c : to_utf32(text)) append_upper(out, c);
  return out;
}

std::string to_lower(std::string_view text) {
  const std::u32string all = to_utf32(text);
  std::string out;
  for (size_t i = 0; i < all.size(); ++i) append_lower(out, all, i);
  return out;
}

std::string capitalize(std::string_view text) {
  const std::u32string all = to_utf32(text);
  std::string out;
  if (!all.empty()) append_title(out, all[0]);
  for (size_t i = 1; i < all.size(); ++i) append_lower(out, all, i);
  return out;
}

std::string title(std::string_view text) {
  const std::u32string all = to_utf32(text);
  std::string out;
  bool inside = false;  // a word
  for (size_t i = 0; i < all.size(); ++i) {
    if (inside)
      append_lower(out, all, i);
    else
      append_title(out, all[i]);
    inside = is_cased(all[i]);
  }
  return out;
}

std::string swap_case(std::string_view text) {
  const std::u32string all = to_utf32(text);
  std::string out;
  for (size_t i = 0; i < all.size(); ++i) {
    const uint32_t category = UnicodeTable::instance().category(all[i]);
    if (category == 5)
      append_lower(out, all, i);
    else if (category == 6)
      append_upper(out, all[i]);
    else
      append_utf8(out, all[i]);
  }
  return out;
}

}  // namespace calque::jinja
