// UTF-8: one character written, and whether bytes are characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace calque {

void append_utf8(std::string& out, char32_t c);

// A surrogate (U+D800 to U+DFFF, half of a UTF-16 pair) is no character; JSON can name one all the same, and Python keeps it.
enum class Surrogates : uint8_t { refuse, keep };

// What the bytes begin with.
struct Utf8Step {
  enum class Kind { valid, wrong, incomplete };  // incomplete: more bytes could still make it a character
  Kind kind;
  size_t size;  // of the character, or of the longest wrong sequence
};
Utf8Step next_utf8(std::string_view bytes, Surrogates surrogates = Surrogates::refuse);  // `bytes` is not empty
bool is_valid_utf8(std::string_view bytes, Surrogates surrogates = Surrogates::refuse);

}  // namespace calque
