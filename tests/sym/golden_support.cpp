#include "sym/golden_support.h"

#include <cctype>

namespace calque {

std::string with_symbols(const std::string& text) {
  std::string out;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      out += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word = text.substr(i, end - i);
    const bool is_symbol = word.size() > 1 && (word[0] == 's' || word[0] == 'u') &&
                           word.find_first_not_of("0123456789", 1) == std::string::npos;
    if (is_symbol)
      out += "Symbol('" + word + (word[0] == 's' ? "', positive=True, integer=True)" : "', integer=True)");
    else
      out += word;
    i = end;
  }
  return out;
}

}  // namespace calque
