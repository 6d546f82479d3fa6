#include "text/byte_alphabet.h"

#include "text/piece.h"
#include "text/utf8.h"

namespace calque {
namespace {

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int16_t, 0x200> bytes;

  Alphabet() {
    bytes.fill(-1);
    char32_t spare = 256;
    for (uint32_t b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const char32_t c = printable ? b : spare++;
      append_utf8(characters[b], c);
      bytes[c] = static_cast<int16_t>(b);
    }
  }
  static const Alphabet& instance() {
    static const Alphabet alphabet;
    return alphabet;
  }
};

}  // namespace

const std::array<std::string, 256>& byte_characters() { return Alphabet::instance().characters; }

std::optional<uint8_t> byte_of_character(char32_t c) {
  const auto& bytes = Alphabet::instance().bytes;
  if (c >= bytes.size() || bytes[c] < 0) return std::nullopt;
  return static_cast<uint8_t>(bytes[c]);
}

Piece in_byte_alphabet(const Piece& piece, TextStore& store) {
  RewrittenText out(store.budget());
  for (size_t i = 0; i < piece.text.size(); ++i)
    out.put(byte_characters()[static_cast<unsigned char>(piece.text[i])], piece.original(i, i + 1));
  return store.keep(std::move(out));
}

}  // namespace calque
