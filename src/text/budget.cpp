#include "text/budget.h"

#include <limits>
#include <string>

#include "calque/base/error.h"

namespace calque {
namespace {

constexpr size_t bytes_an_id = 16;  // what an id counts for: most tokens are shorter

// fixed + each * count, or the largest number.
size_t allowance(size_t fixed, size_t each, size_t count) {
  constexpr size_t most = std::numeric_limits<size_t>::max();
  if (each != 0 && count > (most - fixed) / each) return most;
  return fixed + each * count;
}

std::string subject(TextBudget::Of of, size_t count) {
  const std::string number = std::to_string(count), plural = count == 1 ? "" : "s";
  switch (of) {
    case TextBudget::Of::text: return "a text of " + number + " byte" + plural;
    case TextBudget::Of::ids: return number + " id" + plural;
    case TextBudget::Of::added_tokens: return "added tokens of " + number + " byte" + plural;
  }
  return "";
}

std::string place(std::string_view file, const char* part, size_t number) {
  return std::string(file) + ": " + part + (number ? " " + std::to_string(number) : "") + ": ";
}

}  // namespace

TextBudget::TextBudget(const TextLimits& limits, std::string_view file, Of of, size_t count)
    : file_(file), of_(of), count_(count) {
  const size_t bytes = of == Of::ids ? allowance(0, bytes_an_id, count) : count;
  steps_ = all_steps_ = allowance(limits.steps, limits.steps_per_byte, bytes);
  memory_ = all_memory_ = allowance(limits.memory, limits.memory_per_byte, bytes);
}

void TextBudget::continue_stream(const TextLimits& limits, size_t ids, size_t spent) {
  count_ = ids;
  all_steps_ = allowance(limits.steps, limits.steps_per_byte, allowance(0, bytes_an_id, ids));
  steps_ = all_steps_ - std::min(spent, all_steps_);
}

void TextBudget::took_too_long() const {
  throw UserError(ErrorKind::bad_file, place(file_, part_, number_) + "too many steps for " + subject(of_, count_) +
                                           ", the limit is " + std::to_string(all_steps_) +
                                           "; a pattern of the file may backtrack too much, or the file has too many parts "
                                           "(TextLimits::steps raises the limit)");
}

void TextBudget::grew_too_large() const {
  throw UserError(ErrorKind::bad_file, place(file_, part_, number_) + "the text grew too long: " + subject(of_, count_) +
                                           " may take " + std::to_string(all_memory_) +
                                           " bytes of memory; the file makes too much of it (TextLimits::memory raises the "
                                           "limit)");
}

}  // namespace calque
