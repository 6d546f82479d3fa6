// A set of characters of a regular expression, and the sets that have names: \w, \p{Lu}, \p{Greek}, [:alpha:].
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "text/budget.h"

namespace calque {

class UnicodeTable;

struct CharSet {
  std::vector<std::pair<char32_t, char32_t>> ranges;
  uint32_t categories = 0;       // a bit each
  uint16_t flags = 0;            // UnicodeFlag
  uint16_t properties = 0;       // RegexProperty
  std::vector<uint8_t> scripts;  // by number
  std::vector<CharSet> any;      // nested sets
  std::vector<CharSet> all;      // must hold as well
  bool negated = false;
  bool any_case = false;
  std::bitset<128> ascii;  // what `in` says of ASCII, made by `prepare`
  size_t steps = 1;        // what asking for another character costs, made by `prepare`

  bool contains(char32_t c, const UnicodeTable& table, TextBudget& budget) const {
    if (c < 128) return ascii[c];
    budget.spend(steps);
    return in(c, table);
  }
  bool in(char32_t c, const UnicodeTable& table) const;
  void prepare(const UnicodeTable& table);
  size_t members() const;  // of it and of the sets in it
  void add(char32_t c) { ranges.emplace_back(c, c); }

 private:
  bool holds(char32_t c, const UnicodeTable& table) const;
};

// The set behind \p{name}; false when there is none of that name. Within brackets a few characters are none of a word.
bool named_set(std::string_view name, bool in_brackets, CharSet& set);
// [:name:] within brackets.
bool posix_set(std::string_view name, CharSet& set);

}  // namespace calque
