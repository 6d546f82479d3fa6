// A regular expression's text, read character by character; and what stands for a character or a set of them: escapes, \p{...}, [...].
#pragma once

#include <string_view>

#include "text/regex_tree.h"

namespace calque {

class RegexReader {
 public:
  RegexReader(std::u32string_view text, RegexErrors& errors) : text_(text), errors_(errors) {}

  bool more() const { return at_ < text_.size(); }
  char32_t peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0; }
  char32_t take();
  bool take_if(std::u32string_view s);
  size_t place() const { return at_; }
  void go_to(size_t place) { at_ = place; }
  std::u32string_view rest() const { return text_.substr(at_); }
  // A decimal number; false when there is none.
  bool number(uint32_t& n, uint32_t most);

  // Behind a backslash: true and a set, or false and one character.
  bool escape(bool in_brackets, CharSet& set, char32_t& single);
  // Behind [ up to its ].
  CharSet bracket();

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void unknown(const std::string& what) const;
  void pay(size_t parts) const;

 private:
  struct BracketState;
  char32_t digits(int base, int most, int& count);
  char32_t in_braces(int base);
  void property(bool in_brackets, CharSet& set);
  bool posix(CharSet& set);
  void bracket_character(BracketState& state, char32_t c);

  std::u32string_view text_;
  RegexErrors& errors_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace calque
