// Regular expressions as tokenizer.json files use them (Oniguruma's, in its own syntax): characters, classes with ranges, nesting,
// intersection, categories, scripts and POSIX brackets, groups, options i, m and x, alternation, greedy, lazy and possessive repetition,
// look-ahead and look-behind, atomic groups, anchors, \R, \K, back-references. What is left out is a UserError when the expression is
// read: clusters of characters (\X), calls of groups, conditions, absent groups, callouts, options W, D, S and P.
// Reading is paid from the file's ExpressionBudget, a search from its text's TextBudget: neither hangs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/budget.h"
#include "text/regex_set.h"

namespace calque {

class UnicodeTable;

class TextRegex {
 public:
  TextRegex(std::string_view expression, ExpressionBudget& budget);

  // The first match at or after `from`, in valid UTF-8.
  bool find(std::string_view text, size_t from, TextBudget& budget, size_t& begin, size_t& end) const;

  enum class Op : uint8_t {
    match,
    character,
    set,
    repeat,
    split,
    jump,
    look,
    atomic,
    save,  // the place, in a slot
    back_reference,
    skip_if_at,  // the jump behind it, when the place is the slot's
    line_begin,
    line_end,
    text_begin,
    text_end,
    last_line_end,
    search_begin,
    word_boundary,
    no_word_boundary,
  };
  enum class Greed : uint8_t { greedy, lazy, possessive };
  // Jumps are relative to the instruction, so that a program can be put behind another.
  struct Instruction {
    Op op;
    Greed greed = Greed::greedy;
    bool negative = false;          // of look
    bool behind = false;            // of look
    uint32_t value = 0;             // a character, a set, a slot, or the length of a look's or an atomic group's body
    uint32_t min = 0, max = 0;      // of repeat; how many characters back a look behind begins
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
  bool take_again(Search& search, Place& here) const;
  bool run_inside(Search& search, Place& here) const;
  bool look_behind(Search& search, const Place& here) const;
  bool holds(Op anchor, const Search& search, size_t at) const;
  bool go_back(Search& search, size_t floor, Place& here) const;
  bool accepts(const Instruction& i, char32_t c, TextBudget& budget) const;

  Program program_;
  std::vector<CharSet> sets_;
  uint32_t slots_ = 0;
  bool keeps_ = false;  // the first slot is where the match begins
  const UnicodeTable& table_;
};

}  // namespace calque
