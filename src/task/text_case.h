// Texts as sentence-transformers prepares them: without white space around them, and in lower case.
#pragma once

#include <string>
#include <string_view>

namespace calque {

std::string stripped(std::string_view text);
std::string lower_text(std::string_view text);  // wrong UTF-8 becomes U+FFFD

// Python's text[begin:end], in characters.
std::string_view characters(std::string_view text, size_t begin, size_t end);

}  // namespace calque
