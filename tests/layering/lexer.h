// The tokens of C++ text as it is laid out here: what the checks of this folder read. It does not preprocess.
#pragma once

#include <string_view>
#include <vector>

namespace calque::layering {

struct Token {
  std::string_view text;  // of the source, which must outlive it; a literal with its quotes
  int line = 0;
  bool is_word() const;
  bool is_number() const;
};

/// Words, numbers, literals and single characters, without comments and preprocessor lines.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace calque::layering
