// GPT-2's alphabet of bytes: each byte as a printable character, those that are printable already as themselves.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace calque {

// The character of each byte, in UTF-8.
const std::array<std::string, 256>& byte_characters();
std::optional<uint8_t> byte_of_character(char32_t c);

struct Piece;
class TextStore;
// The piece with the character of each of its bytes.
Piece in_byte_alphabet(const Piece& piece, TextStore& store);

}  // namespace calque
