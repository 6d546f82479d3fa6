// What a tokenizer may cost. Every part that searches, rewrites, splits, merges or decodes a text is handed the TextBudget of
// that text and pays before it works, and every regular expression is read against the ExpressionBudget of its file: the
// budgets are arguments of the interfaces (SplitPattern, Normalizer, PreTokenizer, PostProcessor, Decoder), so whoever
// implements one pays too. A budget that is used up is one UserError that names the file, the part and what ran out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "calque/text/tokenizer.h"

namespace calque {

// Of one text, or of one list of ids to decode; one thread uses it.
class TextBudget {
 public:
  enum class Of { text, ids, added_tokens };
  // `count` is the number of bytes or ids. `file` must outlive the budget.
  TextBudget(const TextLimits& limits, std::string_view file, Of of, size_t count);

  // Of ids that come one by one, so many until now: the steps that they may take together, less those that were spent.
  void continue_stream(const TextLimits& limits, size_t ids, size_t spent);
  size_t steps_spent() const { return all_steps_ - steps_; }

  // Whose work is paid from here on: normalizer 3. A part that there is one of has the number 0.
  void enter(const char* part, size_t number = 0) {
    part_ = part;
    number_ = number;
  }
  void spend(size_t steps) {
    if (steps > steps_) [[unlikely]]
      took_too_long();
    steps_ -= steps;
  }
  // Memory that is kept until the text is done.
  void take(size_t bytes) {
    require(bytes);
    memory_ -= bytes;
  }
  // Memory that is given back soon: it must fit, but it is not counted.
  void require(size_t bytes) const {
    if (bytes > memory_) [[unlikely]]
      grew_too_large();
  }

 private:
  [[noreturn]] void took_too_long() const;
  [[noreturn]] void grew_too_large() const;

  std::string_view file_;
  Of of_;
  size_t count_;
  size_t all_steps_, steps_;
  size_t all_memory_, memory_;
  const char* part_ = "";
  size_t number_ = 0;
};

// Of all the regular expressions of one file.
class ExpressionBudget {
 public:
  explicit ExpressionBudget(const TextLimits& limits = {}) : all_(std::min(limits.expression_size, largest)), left_(all_) {}
  // False when there are not so many left.
  bool take(size_t parts) {
    if (parts > left_) return false;
    left_ -= parts;
    return true;
  }
  size_t all() const { return all_; }

 private:
  static constexpr size_t largest = size_t{1} << 28;  // jumps are 32-bit
  size_t all_, left_;
};

}  // namespace calque
