// Regular expressions as tokenizer.json files use them (Oniguruma's syntax): characters, classes with ranges, nesting,
// intersection and Unicode categories, groups, (?i:...), alternation, greedy, lazy and possessive repetition, look-ahead and
// look-behind, atomic groups, anchors. No captures or back-references: those are a UserError when the expression is read.
// Reading is paid from the file's ExpressionBudget, a search from its text's TextBudget: neither hangs.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/budget.h"

namespace calque {

class UnicodeTable;

// A set of characters.
struct CharSet {
  std::vector<std::pair<char32_t, char32_t>> ranges;
  uint32_t categories = 0;   // a bit each
  uint16_t flags = 0;        // UnicodeFlag
  std::vector<CharSet> any;  // nested sets
  std::vector<CharSet> all;  // must hold as well
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
};

class TextRegex {
 public:
  TextRegex(std::string_view expression, ExpressionBudget& budget);

  // The first match at or after `from`, in valid UTF-8.
  bool find(std::string_view text, size_t from, TextBudget& budget, size_t& begin, size_t& end) const;

  enum class Op : uint8_t {
    match,
    character,
    folded,
    set,
    repeat,
    split,
    jump,
    look,
    atomic,
    line_begin,
    line_end,
    text_begin,
    text_end,
    last_line_end,
    word_boundary,
    no_word_boundary,
  };
  enum class Greed : uint8_t { greedy, lazy, possessive };
  // Jumps are relative to the instruction, so that a program can be put behind another.
  struct Instruction {
    Op op;
    Greed greed = Greed::greedy;
    bool negative = false;  // of look
    bool behind = false;    // of look
    uint32_t value = 0;     // a character, a set, or the length of a look's or an atomic group's body
    uint32_t min = 0, max = 0;
    int32_t first = 0, second = 0;  // of split and jump: where to go, what to try before
  };
  using Program = std::vector<Instruction>;

 private:
  struct Search;
  struct Place {
    size_t pc, at;
  };
  size_t run(Search& search, size_t pc, size_t at, size_t must_end) const;
  bool take_one(Search& search, Place& here) const;
  bool take_many(Search& search, Place& here) const;
  bool run_inside(Search& search, Place& here) const;
  bool holds(Op anchor, std::string_view text, size_t at) const;
  bool go_back(Search& search, size_t floor, Place& here) const;
  bool accepts(const Instruction& i, char32_t c, TextBudget& budget) const;

  Program program_;
  std::vector<CharSet> sets_;
  const UnicodeTable& table_;
};

}  // namespace calque
