// A regular expression as it was read: a tree. regex_parser.cpp makes it, regex_compiler.cpp makes a program of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace calque {

struct RegexNode {
  enum class Kind : uint8_t {
    sequence,
    alternatives,
    character,
    set,
    repeat,
    enclosed,  // a group that no repetition around it is merged with
    capture,
    look,
    atomic,
    anchor,
    keep,
    back_reference,
  };
  using Parts = std::vector<RegexNode>;

  Kind kind = Kind::sequence;
  bool any_case = false;  // of a character
  bool negative = false, behind = false;
  TextRegex::Greed greed = TextRegex::Greed::greedy;
  TextRegex::Op anchor = TextRegex::Op::match;
  char32_t character = 0;
  uint32_t number = 0;  // a set's place, a group's number
  uint32_t min = 0, max = 0;
  uint32_t depth = 1;  // of the tree below it, itself included
  Parts parts;         // of a sequence or alternatives; else the one that it is about
};

constexpr uint32_t unlimited_repeats = ~uint32_t{0};

struct RegexTree {
  RegexNode root;
  std::vector<CharSet> sets;
  std::vector<bool> referenced;  // by group: does a back-reference need what it matched?
  bool keeps = false;            // \K
};

// Throws the UserErrors of an expression, and pays for what it makes.
class RegexErrors {
 public:
  RegexErrors(std::string_view expression, ExpressionBudget& budget);
  // For an expression that is wrong.
  [[noreturn]] void fail(const std::string& what) const;
  // For an expression that may be right, but that Calque does not know how to match.
  [[noreturn]] void unknown(const std::string& what) const;
  void pay(size_t parts) const;
  void at(size_t character) { at_ = character; }

 private:
  std::string shown_;
  size_t size_;
  ExpressionBudget& budget_;
  size_t at_ = 0;
};

}  // namespace calque
