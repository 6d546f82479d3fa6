// What a text is split on: a literal, a regular expression, or one of the expressions that most byte-level tokenizers use,
// for which there are matchers written by hand. Valid UTF-8 in; positions are in bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "text/budget.h"
#include "text/utf8.h"

namespace calque {

class SplitPattern {
 public:
  virtual ~SplitPattern() = default;
  // The first match at or after `from`; false when there is none. A match may be empty.
  bool find(std::string_view text, size_t from, TextBudget& budget, size_t& begin, size_t& end) const {
    budget.spend(1);
    return search(text, from, budget, begin, end);
  }

 private:
  // Pays for every character that it looks at, as often as it does.
  virtual bool search(std::string_view text, size_t from, TextBudget& budget, size_t& begin, size_t& end) const = 0;
};

extern const std::string_view gpt2_pattern;
extern const std::string_view llama3_pattern;
extern const std::string_view qwen2_pattern;

std::unique_ptr<SplitPattern> literal_pattern(std::string text);
// UserError for an expression that is wrong, too long for the budget or uses what regex.h does not know. `by_hand` is for tests.
std::unique_ptr<SplitPattern> regex_pattern(std::string_view expression, ExpressionBudget& budget, bool by_hand = true);

// All matches in order: match(begin, end). An empty match directly behind another does not count.
template <class Match>
void for_each_match(const SplitPattern& pattern, std::string_view text, TextBudget& budget, Match&& match) {
  size_t from = 0, begin = 0, end = 0;
  bool any = false;
  size_t last = 0;
  while (from <= text.size() && pattern.find(text, from, budget, begin, end)) {
    if (begin == end) {
      const bool again = any && begin == last;
      from = end + (end < text.size() ? decode_utf8(text.data() + end).size : 1);
      if (again) continue;
    } else {
      from = end;
    }
    any = true;
    last = end;
    match(begin, end);
  }
}

}  // namespace calque
